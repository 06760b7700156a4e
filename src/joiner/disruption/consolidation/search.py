"""The search for moves that pay, part by part.

Of each part whose circumstances changed: the target of the linear programme, cut to the budgets, is asked exactly, then half of
it, and so on down to single nodes; then nodes one by one, the most promising first, two or three together, and at last the first
of all nodes together. The first move that may be made and pays is taken. Parts are asked in turn, so that none starves when
there is not effort enough for all.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from joiner.disruption.consolidation import balanced
from joiner.disruption.consolidation.balanced import BALANCED
from joiner.disruption.consolidation.evidence import observed, owner_of
from joiner.disruption.consolidation.exact import Answer, Judge
from joiner.disruption.consolidation.fleet import Fleet, Mask
from joiner.disruption.consolidation.hosting import Hosting
from joiner.disruption.consolidation.memory import HIGHEST, Memory, PartMemory, PartName, Promise, settled
from joiner.disruption.consolidation.payback import START_H
from joiner.disruption.consolidation.target import Target, target
from joiner.disruption.decision import UNDERUTILIZED, Decision, JudgedMove, Move
from joiner.disruption.eligibility import Candidate, Objection, candidates
from joiner.disruption.methods.quota import Quota
from joiner.disruption.nodeprice import of_node, of_offering
from joiner.disruption.situation import Situation
from joiner.model import labels, podrules
from joiner.model.claimconditions import CONSOLIDATABLE, holds
from joiner.model.duration import NEVER
from joiner.model.evictioncost import eviction_cost_problem
from joiner.model.meta import Value, replace
from joiner.scheduling.effort import Effort
from joiner.state.problem import promised
from joiner.state.statenode import StateNode

TOGETHER: Final = 50
"""So many nodes go in one move at most."""
COUNTED: Final = 200
"""So many nodes are looked at one by one by counting, and so many of them asked exactly."""
ONE_BY_ONE: Final = 10
PAIRED: Final = 16
TRIPLED: Final = 8
"""So many nodes are looked at two by two by counting, and so many of the target three by three."""
FEW: Final = 10
"""So many sets of two, and as many of three, are asked exactly."""
QUESTIONS: Final = 60
"""So many questions may be asked of the planner in one decision, all parts together."""


_NUMBERS: Final = re.compile(r"[:;0-9]")
UNRELIABLE: Final = "pods did not land as planned, again and again, so its part of the cluster rests for a while"


class Consolidation(Value):
    """What consolidation decides."""

    decision: Decision
    memory: Memory
    target: frozenset[str]
    """Nodes that should go sooner or later: pods should rather be put elsewhere."""
    reasons: Mapping[str, "StayReason"] = {}
    """Node to why it is still there, as far as it was asked."""
    cut_short: frozenset[str] = frozenset()
    """The searches, `multi` or `single`, that ran out of questions: the next pass goes on where this one stopped."""


class StayReason(Value):
    """Why a node is still there, and what would have to change."""

    message: str
    most: float = float("inf")
    """No plan that removes it saves more, in dollars an hour."""


class Alone(Value):
    """What there is to say about the removal of one node by itself."""

    answer: Answer
    most: float
    """No plan that removes it saves more, in dollars an hour; infinite where nothing is proven."""
    targeted: bool
    """Whether a cheapest cluster is without it."""


def consolidate(
    situation: Situation,
    memory: Memory,
    *,
    questions: int = QUESTIONS,
    kept: frozenset[str] = frozenset(),
) -> Consolidation:
    """The moves that pay now, at most one for each part. `kept`: the target so far, of parts that are not asked again."""
    found, objections = _candidates(situation)
    search = _Search(situation, found, memory, questions)
    search.run(kept)
    return Consolidation(
        decision=Decision(
            moves=tuple(search.moves),
            objections=(*objections, *search.objections),
            judged=tuple(search.judged),
            eligible={UNDERUTILIZED: len(found)},
        ),
        memory=search.memory,
        target=frozenset(search.target),
        reasons=search.reasons,
        cut_short=frozenset(search.cut_short),
    )


def still_pays(
    move: Move, situation: Situation, memory: Memory, effort: Effort | None = None
) -> tuple[Move | None, str]:
    """An earlier move as it is now, with the best plan for it; or why it does not hold any more."""
    names = [each.identity for each in move.candidates]
    pools = next((each for each in memory.parts if move.candidates[0].pool.name in each), ())
    found, _ = _candidates(situation, pools)
    known = {each.identity: number for number, each in enumerate(found)}
    if any(name not in known for name in names):
        return None, "a node may not go any more"
    numbers = [known[name] for name in names]
    if not Quota(situation, UNDERUTILIZED).allows(found[number] for number in numbers):
        return None, "the budgets do not allow it any more"
    fleet = Fleet(situation, found, pools, memory.workloads)
    part = next((part for part, members in fleet.parts if set(numbers) & set(members)), ())
    raised, why = memory.raised(part, situation.now), ""
    # A thorough plan may be cheaper with more nodes than were decided on: then the quick one that was decided on may still hold.
    for thorough in (True, False):
        judge = Judge(fleet, balanced.totals(situation), thorough=thorough, effort=effort)
        answer = judge.ask(numbers, (move.avoided, frozenset()), raised, frozenset(part))
        if answer.move is not None and len(answer.move.claims) <= len(move.claims):
            return answer.move, ""
        why = why or answer.obstacle or "more nodes would have to be bought by now"
    return None, why


def alone(situation: Situation, name: str) -> Alone | None:
    """What the planner answers about one node, whether or not a search would come to ask; nothing if it may not go."""
    found, _ = _candidates(situation)
    number = next((number for number, each in enumerate(found) if each.name == name), None)
    return None if number is None else _Search(situation, found, Memory(), 1).alone(number)


def movable(situation: Situation) -> list[Candidate]:
    """The nodes that may go, empty ones among them."""
    found, _ = candidates(situation, lambda each: unconsolidatable(each, situation) is None, eventual=False)
    return found


def _candidates(situation: Situation, pools: PartName = ()) -> tuple[list[Candidate], list[Objection]]:
    """The nodes that may be consolidated, of these pools if any are named, and what is to be told of others."""
    told: list[Objection] = []

    def wanted(state_node: StateNode) -> bool:
        if pools and state_node.nodepool not in pools:
            return False
        why = unconsolidatable(state_node, situation)
        if why is None:
            return True
        if why:
            told.append(
                Objection(message=f"it is not consolidated: {why}", nodes=(state_node,), reason="Unconsolidatable")
            )
        return False

    found, refused = candidates(situation, wanted, eventual=False)
    ours = [each for each in found if not each.empty and each.price.known]
    return sorted(ours, key=lambda each: each.name), [*refused, *told]


def unconsolidatable(state_node: StateNode, situation: Situation) -> str | None:
    """Why a node is none for consolidation; nothing to tell where that will change by itself. None if it is one."""
    pool = situation.pool_of(state_node)
    if (
        pool is None
        or state_node.claim is None
        or state_node.node is None
        or state_node.deleting
        or not state_node.initialized
    ):
        return ""
    if pool.spec.replicas is not None:
        return ""
    if pool.spec.disruption.consolidate_after == NEVER:
        return f"NodePool {pool.name} has consolidateAfter Never"
    if pool.spec.disruption.consolidation_policy == "WhenEmpty":
        return f"NodePool {pool.name} has the policy WhenEmpty, and it is not empty" if _is_used(state_node) else ""
    if problem := eviction_cost_problem(pool):
        return f"NodePool {pool.name}: {problem}"
    for key in (labels.INSTANCE_TYPE, labels.CAPACITY_TYPE, labels.ZONE):
        if not state_node.labels.get(key):
            return f"it has no label {key}, so its price is not known"
    if pool.name in situation.catalogs and not of_node(state_node.labels, situation.catalogs[pool.name]).known:
        return f"the provider does not tell a price of {state_node.labels[labels.INSTANCE_TYPE]} there"
    return None if holds(state_node.claim, CONSOLIDATABLE) else ""


def _is_used(state_node: StateNode) -> bool:
    return any(podrules.is_reschedulable(pod) for pod in state_node.pods)


class _Search:
    """One decision over all parts."""

    def __init__(self, situation: Situation, found: list[Candidate], memory: Memory, questions: int) -> None:
        self._situation, self._questions = situation, questions
        self._workloads = observed(situation, memory.workloads)
        self._fleet = Fleet(situation, found, workloads=self._workloads)
        self._judge = Judge(self._fleet, balanced.totals(situation))
        self._quota = Quota(situation, UNDERUTILIZED)
        self._known = memory
        self.memory = memory
        self.moves: list[Move] = []
        self.objections: list[Objection] = []
        self.judged: list[JudgedMove] = []
        self.target: set[str] = set()
        self.reasons: dict[str, StayReason] = {}
        self.cut_short: set[str] = set()
        self._refused: frozenset[frozenset[str]] = frozenset()
        """Of the part that is searched: what is not proposed again."""

    def run(self, kept: frozenset[str]) -> None:
        """Ask every part whose circumstances changed, those first that have waited longest."""
        known, now = self._settled(), self._situation.now
        turns, fresh = known.turns, {name: each for name, each in known.parts.items() if each.matters}
        for number, (part, members) in sorted(
            enumerate(self._fleet.parts), key=lambda each: (known.of(each[1][0]).turn, each[1][0])
        ):
            own, raised = known.of(part), known.raised(part, now)
            fresh[part] = own
            if raised >= HIGHEST:
                for each in members:
                    self._stays(self._fleet.candidates[each], UNRELIABLE)
                continue
            stamp = self._stamp(part, members, raised)
            names = {self._fleet.candidates[each].name for each in members}
            if own.quiet == stamp or self._is_busy(known.sharing(part)) or self._is_spent("multi"):
                self.target |= names & kept
                continue
            self._refused = own.refused if own.asked == stamp else frozenset()
            move = self._part(number, raised)
            if move is None and self.cut_short:
                continue  # it keeps its turn, and is the first of the next pass
            turns += 1
            own = replace(own, turn=turns)
            if move is None:
                # What cannot be reached is no target: no taint of ours stays on nodes that stay.
                self.target -= {
                    each.name
                    for each in map(self._fleet.candidates.__getitem__, members)
                    if not self._quota.is_used_up(each.pool.name)
                }
                fresh[part] = replace(own, quiet=stamp)
                continue
            self._take(move)
            promises = (*own.promises, self._promise(move, part, raised))
            fresh[part] = replace(own, quiet=None, promises=promises, asked=stamp, refused=self._refused)
        self.memory = Memory(parts=fresh, turns=turns, workloads=self._workloads)

    def _settled(self) -> Memory:
        """The memory with what has become of earlier moves."""
        now, parts = self._situation.now, dict[PartName, PartMemory]()
        for part, known in self._known.parts.items():
            if not self._situation.pools.keys().isdisjoint(part):
                facts = _PartFacts(self._situation, part)
                parts[part] = settled(known, claims=facts.claims, price=facts.price, pods=facts.pods, now=now)
        return replace(self._known, parts=parts)

    def _is_busy(self, known: Iterable[PartMemory]) -> bool:
        """Whether a move there is under way: the next one is decided when it has come to its end."""
        there = self._situation.by_claim.keys()
        return any(not promise.gone.isdisjoint(there) for each in known for promise in each.promises)

    def _promise(self, move: Move, part: PartName, raised: float) -> Promise:
        assert move.payback is not None
        facts = _PartFacts(self._situation, part)
        return Promise(
            price=facts.price,
            saved=min(move.payback.saved, _ranked_saving(move)),
            bearable=raised * move.payback.margin,
            gone=frozenset(each.claim.name for each in move.candidates),
            pods=facts.pods,
            at=self._situation.now,
        )

    def _is_spent(self, search: str) -> bool:
        """Whether no more questions may be asked, so that this search ends before its time."""
        if self._judge.asked < self._questions:
            return False
        self.cut_short.add(search)
        return True

    def _stamp(self, part: PartName, members: Sequence[int], raised: float) -> object:
        """What the answer for a part depends on. Pods that leave nodes of other parts go to other parts."""
        situation, snapshot = self._situation, self._situation.snapshot
        # Nodes and catalogues that did not change are the very same objects, so comparing them costs little.
        states = tuple(each for each in snapshot.nodes if each.nodepool in part)
        leaving = {pod.key for each in states if each.deleting for pod in each.pods}
        return (
            tuple(each for each in states if not each.deleting),
            tuple(self._fleet.candidates[number].name for number in members),
            tuple(float(self._fleet.horizons_h[number]) for number in members),
            tuple((name, self._quota.left(name)) for name in part if name in situation.pools),
            tuple(
                (each.pool.name, each.pool.spec, each.catalog, tuple(sorted(each.used.items())))
                for each in situation.options
                if each.pool.name in part
            ),
            tuple((name, situation.eviction_cost(name)) for name in part),
            round(raised, 1),
            snapshot.daemons,
            snapshot.namespaces,
            situation.virtual,
            tuple(promised(snapshot, situation.rules.vocabulary, situation.stale_since, situation.options).items()),
            tuple(pod.key for pod in snapshot.waiting),
            tuple(pod.key for pod in snapshot.evicted if pod.key in leaving),
            tuple(each.name for each in states if situation.is_settling(each)),
        )

    def _take(self, move: Move) -> None:
        self.moves.append(move)
        self._quota.take(*move.candidates)
        self._count(move.candidates, move.scores, approved=True)

    def _count(self, gone: Iterable[Candidate], scores: Mapping[str, float], *, approved: bool) -> None:
        for name in sorted({each.pool.name for each in gone}):
            policy = self._situation.pools[name].spec.disruption.consolidation_policy
            score = scores.get(name) if policy == BALANCED else None
            self.judged.append(
                JudgedMove(decision="approved" if approved else "rejected", nodepool=name, policy=policy, score=score)
            )

    # -- one part -----------------------------------------------------------------------------------------------------

    def _part(self, part: int, raised: float) -> Move | None:
        fleet = self._fleet
        pools, members = frozenset(fleet.parts[part][0]), fleet.parts[part][1]
        kinds = fleet.kinds(part)
        aim = target(fleet, members, kinds, raised)
        hosting = Hosting(fleet, kinds)
        removed = [number for number, gone in zip(members, aim.removed, strict=True) if gone]
        names = frozenset(fleet.candidates[number].name for number in removed)
        self.target |= names
        avoid = self._mask(pools, names)
        move = self._together(pools, removed, names, hosting, avoid, raised)
        move = move if move is not None else self._one_by_one(pools, members, aim, hosting, raised)
        move = move if move is not None else self._few_together(pools, members, aim, hosting, raised)
        # Last of all as Karpenter asks: the first of all nodes together, whatever the target says of them.
        none, others = frozenset[str](), self._mask(pools, ())
        return move if move is not None else self._together(pools, members, none, hosting, others, raised)

    def alone(self, number: int) -> Alone:
        """What there is to say about one candidate by itself."""
        fleet = self._fleet
        part, members = next((part, each) for part, (_, each) in enumerate(fleet.parts) if number in each)
        aim, position = target(fleet, members, fleet.kinds(part), 1.0), members.index(number)
        own = frozenset({fleet.candidates[number].name})
        answer = self._judge.ask([number], (own,), 1.0, frozenset(fleet.parts[part][0]))
        return Alone(answer=answer, most=float(aim.most[position]), targeted=bool(aim.removed[position]))

    def _mask(self, pools: frozenset[str], names: Iterable[str]) -> Mask:
        """The places not to use: those of other parts, and these."""
        places = self._fleet.places
        mask = np.array([place.node.labels.get(labels.NODEPOOL, "") not in pools for place in places], np.bool_)
        return self._closed(mask, names)

    def _closed(self, mask: Mask, names: Iterable[str]) -> Mask:
        """The same places and these."""
        found, place_of = mask.copy(), self._fleet.place_of
        found[[place_of[name] for name in names if name in place_of]] = True
        return found

    def _together(
        self,
        pools: frozenset[str],
        removed: list[int],
        names: frozenset[str],
        hosting: Hosting,
        avoid: Mask,
        raised: float,
    ) -> Move | None:
        fleet = self._fleet
        ranked = sorted(removed, key=lambda number: (-fleet.candidates[number].ratio, fleet.candidates[number].name))
        allowed = {each.name for each in self._quota.within(fleet.candidates[number] for number in ranked)}
        todo = [number for number in ranked if fleet.candidates[number].name in allowed][:TOGETHER]
        for count in _halved(len(todo)):
            some = todo[:count]
            if self._is_spent("multi"):
                return None
            closed = self._closed(avoid, [fleet.candidates[number].name for number in some])
            if not self._seems_to_pay(some, hosting, closed, raised):
                continue
            answer = self._ask(some, names, pools, raised)
            if answer.move is not None:
                return answer.move
        return None

    def _one_by_one(
        self,
        pools: frozenset[str],
        members: list[int],
        aim: Target,
        hosting: Hosting,
        raised: float,
    ) -> Move | None:
        fleet = self._fleet
        others, exact = self._mask(pools, ()), 0
        for position in self._order(members, aim)[:COUNTED]:
            number = members[position]
            each, most = fleet.candidates[number], float(aim.most[position])
            if most <= 0:
                self._stays(each, "no plan without it saves anything: the other nodes have no room for its pods", most)
                continue
            if self._quota.left(each.pool.name) <= 0:
                self._stays(each, f"the budgets of NodePool {each.pool.name} let no node go now", most)
                continue
            if exact >= ONE_BY_ONE or self._is_spent("single"):
                break
            if not self._seems_to_pay([number], hosting, self._closed(others, [each.name]), raised):
                self._stays(each, "by a count of resources, moving its pods does not pay", most)
                continue
            exact += 1
            answer = self._ask([number], frozenset(), pools, raised)
            if answer.move is not None:
                return answer.move
            self._stays(each, answer.obstacle, most)
        return None

    def _few_together(
        self, pools: frozenset[str], members: list[int], aim: Target, hosting: Hosting, raised: float
    ) -> Move | None:
        """Two or three nodes for cheaper ones, where neither the target nor single nodes can be reached."""
        removed = {members[position] for position in np.flatnonzero(aim.removed)}
        some = [members[position] for position in self._order(members, aim) if aim.most[position] > 0]
        some.sort(key=lambda number: number not in removed)
        for few in (
            combinations(some[:PAIRED], 2),
            combinations([each for each in some if each in removed][:TRIPLED], 3),
        ):
            for gone in self._most_promising(few, removed, hosting, self._mask(pools, ()), raised):
                if self._is_spent("multi"):
                    return None
                answer = self._ask(list(gone), frozenset(), pools, raised)
                if answer.move is not None:
                    return answer.move
        return None

    def _most_promising(
        self, sets: Iterable[tuple[int, ...]], removed: set[int], hosting: Hosting, others: Mask, raised: float
    ) -> list[tuple[int, ...]]:
        """Those sets of candidates that are worth a question: most nodes of the target first, then by counting."""
        fleet, found = self._fleet, list[tuple[int, float, tuple[int, ...]]]()
        for gone in sets:
            if self._quota.allows(fleet.candidates[number] for number in gone):
                names = [fleet.candidates[number].name for number in gone]
                gain = self._estimated(list(gone), hosting, self._closed(others, names), raised)
                found += [(-len(removed.intersection(gone)), -gain, gone)] if gain > 0 else []
        return [gone for _, _, gone in sorted(found)[:FEW]]

    def _order(self, members: list[int], aim: Target) -> list[int]:
        """The positions of candidates, the most promising first."""
        return sorted(range(len(members)), key=lambda n: (-aim.gain[n], self._fleet.candidates[members[n]].name))

    def _ask(self, numbers: list[int], names: frozenset[str], pools: frozenset[str], raised: float) -> Answer:
        if frozenset(self._fleet.candidates[number].claim.name for number in numbers) in self._refused:
            return Answer(obstacle="a move of it did not hold at the second look")
        own = frozenset(self._fleet.candidates[number].name for number in numbers)
        answer = self._judge.ask(numbers, (names | own, own), raised, pools)
        if answer.move is None and answer.payback is not None:
            self._count((self._fleet.candidates[n] for n in numbers), answer.scores, approved=False)
        return answer

    def _stays(self, candidate: Candidate, message: str, most: float = float("inf")) -> None:
        self.reasons[candidate.name] = StayReason(message=message, most=most)
        # Another reason is told at once; the same one with other numbers is not, as long as it was told lately.
        said, kind = f"it is not consolidated: {message}", _NUMBERS.split(message, maxsplit=1)[0]
        self.objections.append(
            Objection(message=said, nodes=(candidate.state,), reason="Unconsolidatable", dedupe=(kind,))
        )

    def _seems_to_pay(self, gone: list[int], hosting: Hosting, avoid: Mask, raised: float) -> bool:
        return self._estimated(gone, hosting, avoid, raised) > 0

    def _estimated(self, gone: list[int], hosting: Hosting, avoid: Mask, raised: float) -> float:
        """What is left within the horizon of what is saved, once costs are taken off, in dollars, by counting."""
        fleet = self._fleet
        new = hosting.bought(gone, avoid)
        saved = float(fleet.prices[gone].sum()) - new
        evict = float(fleet.evictions[gone].sum()) * raised
        start = START_H * new if evict > 0 else 0.0
        return saved * fleet.horizon_of(gone) - evict - start


def _ranked_saving(move: Move) -> float:
    """What the part should cost less afterwards, as nodes are ranked."""
    new = sum(of_offering(claim.options[0].offering).ranked for claim in move.claims)
    return sum(each.price.ranked for each in move.candidates) - new


class _PartFacts:
    """What is there of a part, for the comparison with what was promised."""

    def __init__(self, situation: Situation, part: PartName) -> None:
        nodes = [each for each in situation.snapshot.nodes if each.nodepool and each.nodepool in part]
        self.claims = frozenset(each.claim.name for each in nodes if each.claim is not None)
        self.price = sum(of_node(each.labels, situation.catalogs.get(each.nodepool)).ranked for each in nodes)
        counts = Counter(owner_of(pod) for each in nodes for pod in each.pods if podrules.is_reschedulable(pod))
        self.pods: object = tuple(sorted(counts.items()))


def _halved(count: int) -> list[int]:
    """The number, its half, and so on; three, two and one at last."""
    found = []
    while count > 3:
        found.append(count)
        count //= 2
    return [*found, *(each for each in (3, 2, 1) if each <= count)]
