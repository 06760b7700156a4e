"""Why a node goes or stays: what every method of disruption says about it, from the values that the methods decide with."""

from collections.abc import Iterable, Iterator

from joiner.disruption import budgets
from joiner.disruption.consolidation.memory import Memory
from joiner.disruption.consolidation.search import Alone, alone, consolidate, unconsolidatable
from joiner.disruption.decision import DRIFTED, EMPTY, REPLACE, UNDERUTILIZED, Decision, Move
from joiner.disruption.eligibility import Candidate, candidate, objection
from joiner.disruption.methods.drifted import drift, obstacle_of, static_drift
from joiner.disruption.methods.emptiness import emptiness
from joiner.disruption.methods.quota import Quota
from joiner.disruption.nodeprice import NodePrice, of_node
from joiner.disruption.situation import Situation
from joiner.model import claimconditions, podrules
from joiner.model.claimconditions import CONSOLIDATABLE, holds, quiet_since
from joiner.model.conditions import find
from joiner.model.duration import NEVER
from joiner.model.meta import Value
from joiner.state.statenode import StateNode


class Hindrance(Value):
    """What keeps a node."""

    reason: str
    """For which reason it would go otherwise: `Empty`, `Drifted`, `Underutilized`; empty for all of them."""
    message: str
    change: str = ""
    """What would have to change, where the message does not say so itself."""


class NodeVerdict(Value):
    """What would become of a node if it were decided now."""

    state: StateNode
    price: NodePrice
    pods: tuple[str, ...]
    """Those that need another node when it goes."""
    move: Move | None = None
    """The move it goes with."""
    before: tuple[Move, ...] = ()
    """Moves that are made before anything is decided about this one again."""
    hindrances: tuple[Hindrance, ...] = ()
    """Why it stays; nothing where it goes."""
    alone: Alone | None = None
    """What consolidation says of removing it by itself; nothing where it may not be consolidated."""


def verdict(situation: Situation, name: str) -> NodeVerdict | None:
    """About the node, or the NodeClaim, of that name; nothing if there is none."""
    state = next((each for each in situation.snapshot.nodes if name in _names(each)), None)
    if state is None:
        return None
    pods = tuple(pod.key for pod in state.pods if podrules.is_reschedulable(pod))
    found = NodeVerdict(state=state, price=of_node(state.labels, situation.catalogs.get(state.nodepool)), pods=pods)
    if state.claim is None:
        return _kept(found, [Hindrance(reason="", message="it has no NodeClaim: it was not bought by this controller")])
    before: list[Move] = []
    for decision in _decided(situation):
        move = next((each for each in decision.moves if state.name in each.nodes), None)
        if move is not None:
            return NodeVerdict(state=state, price=found.price, pods=pods, move=move, before=tuple(before))
        before += decision.moves
    asked = alone(situation, state.name)
    hindrances = list(_hindrances(state, situation, asked, before))
    return _kept(found, hindrances, asked)


def _kept(found: NodeVerdict, hindrances: Iterable[Hindrance], asked: Alone | None = None) -> NodeVerdict:
    return NodeVerdict(state=found.state, price=found.price, pods=found.pods, hindrances=tuple(hindrances), alone=asked)


def _names(state: StateNode) -> Iterator[str]:
    yield state.name
    for thing in (state.node, state.claim):
        if thing is not None:
            yield thing.name


def _decided(situation: Situation) -> Iterator[Decision]:
    """What each method decides, in the order in which they are asked."""
    yield emptiness(situation)
    chosen, _ = static_drift(situation)
    moves = (
        Move(reason=DRIFTED, decision=REPLACE, candidates=(each,), replicas=each.pool)
        for pool in sorted(chosen)
        for each in chosen[pool]
    )
    yield Decision(moves=tuple(moves))
    yield drift(situation)
    yield consolidate(situation, Memory()).decision


def _hindrances(
    state: StateNode, situation: Situation, asked: Alone | None, moves: Iterable[Move]
) -> Iterator[Hindrance]:
    assert state.claim is not None
    drifted = holds(state.claim, claimconditions.DRIFTED)
    for eventual in (True, False) if drifted else (False,):
        message = objection(state, situation, eventual=eventual)
        if message and (eventual or not drifted):
            yield Hindrance(reason="", message=message)
            return
        if message:
            yield Hindrance(reason=EMPTY, message=message)
            yield Hindrance(reason=UNDERUTILIZED, message=message)
    known = candidate(state, situation)
    if drifted:
        yield from _about_drift(known, situation)
    if objection(state, situation, eventual=False):
        return
    if known.empty and not drifted:
        yield from _about_emptiness(known, situation)
    if known.pods:
        yield from _about_consolidation(known, situation, asked, moves)


def _about_drift(known: Candidate, situation: Situation) -> Iterator[Hindrance]:
    told = find(known.claim.status.conditions, claimconditions.DRIFTED)
    said = f"it has drifted ({told.reason if told is not None else DRIFTED})"
    if Quota(situation, DRIFTED).left(known.pool.name) <= 0:
        yield Hindrance(
            reason=DRIFTED, message=f"{said}, and {_full(known)}", change=_budgets(known, situation, DRIFTED)
        )
        return
    if known.pool.spec.replicas is not None:
        yield Hindrance(reason=DRIFTED, message=f"{said}, and others of its NodePool that drifted before it go first")
        return
    obstacle = obstacle_of(known, situation)
    message = (
        f"{said} and cannot be replaced: {obstacle}"
        if obstacle
        else f"{said}, and one that drifted before it goes first"
    )
    yield Hindrance(reason=DRIFTED, message=message)


def _about_emptiness(known: Candidate, situation: Situation) -> Iterator[Hindrance]:
    said = "it is empty" if not known.pods else "it has no pod whose eviction costs anything"
    pool = known.pool
    if pool.spec.replicas is not None:
        yield Hindrance(
            reason=EMPTY,
            message=f"{said}, and NodePool {pool.name} keeps {pool.spec.replicas} nodes whatever pods there are",
        )
    elif pool.spec.disruption.consolidate_after == NEVER:
        yield Hindrance(reason=EMPTY, message=f"{said}, and NodePool {pool.name} has consolidateAfter Never")
    elif not holds(known.claim, CONSOLIDATABLE):
        yield _not_quiet(known, EMPTY, f"{said}, but not for long enough")
    elif known.name in situation.buffered:
        yield Hindrance(reason=EMPTY, message=f"{said}, and it holds the room of a CapacityBuffer")
    elif Quota(situation, EMPTY).left(pool.name) <= 0:
        yield Hindrance(reason=EMPTY, message=f"{said}, and {_full(known)}", change=_budgets(known, situation, EMPTY))
    else:
        others = "budgets let only others of its NodePool go first, which save more for what they disturb"
        yield Hindrance(reason=EMPTY, message=f"{said}, and {others}", change=_budgets(known, situation, EMPTY))


def _about_consolidation(
    known: Candidate, situation: Situation, asked: Alone | None, moves: Iterable[Move]
) -> Iterator[Hindrance]:
    pool = known.pool
    why = unconsolidatable(known.state, situation)
    if pool.spec.replicas is not None:
        why = f"NodePool {pool.name} keeps {pool.spec.replicas} nodes whatever pods there are"
    if why:
        yield Hindrance(reason=UNDERUTILIZED, message=why)
    elif why is not None:
        yield _not_quiet(known, UNDERUTILIZED, "pods came or went a short time ago")
    elif asked is None:
        yield Hindrance(
            reason=UNDERUTILIZED, message="it has no pod whose eviction costs anything: it goes as an empty node"
        )
    elif asked.answer.move is None:
        change = ""
        if asked.answer.payback is None:
            change = "its pods become fewer or smaller, other nodes get room for them, or something cheaper is for sale"
        yield Hindrance(reason=UNDERUTILIZED, message=asked.answer.obstacle, change=change)
    elif Quota(situation, UNDERUTILIZED).left(pool.name) <= 0:
        yield Hindrance(reason=UNDERUTILIZED, message=_full(known), change=_budgets(known, situation, UNDERUTILIZED))
    else:
        first = ", ".join(sorted({name for move in moves for name in move.nodes}))
        message = (
            f"it would pay by itself, and other nodes go first: {first}"
            if first
            else (
                "it would pay by itself by the planner's answer, and the search, which counts resources first, did not ask for it"
            )
        )
        yield Hindrance(reason=UNDERUTILIZED, message=message)


def _not_quiet(known: Candidate, reason: str, message: str) -> Hindrance:
    after = known.pool.spec.disruption.consolidate_after
    since = quiet_since(known.claim)
    until = f", at {since + after.timedelta:%Y-%m-%dT%H:%M:%SZ}" if since is not None and after != NEVER else ""
    change = f"no pod comes or goes for the consolidateAfter of NodePool {known.pool.name}, {after}{until}"
    return Hindrance(reason=reason, message=message, change=change)


def _full(known: Candidate) -> str:
    return f"the budgets of NodePool {known.pool.name} let no node go now"


def _budgets(known: Candidate, situation: Situation, reason: str) -> str:
    return "; ".join(budgets.told(known.pool, situation.snapshot.nodes, reason, situation.now, situation.queued))
