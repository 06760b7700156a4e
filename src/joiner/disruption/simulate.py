"""What would happen if nodes went: the scheduling problem of a cluster without them, and whether its answer will do."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from joiner.model import podrules, resources
from joiner.model.labels import Vocabulary
from joiner.model.meta import Value, replace
from joiner.model.pod import Pod
from joiner.scheduling.plan import Plan, PlannedClaim
from joiner.scheduling.problem import Policy, PoolOption, Problem, Storage
from joiner.state.problem import problem
from joiner.state.snapshot import Snapshot
from joiner.state.statenode import StateNode, with_hostname


class SimulatedPlan(Value):
    """A plan for the time after some nodes have gone."""

    plan: Plan
    question: Problem
    moved: tuple[str, ...]
    """The pods of those nodes, by `namespace/name`."""
    obstacle: str
    """Why it will not do; empty if it will."""
    virtual: tuple[str, ...] = ()
    """The virtual pods of buffers, whose room must be bought again where it is lost."""

    @property
    def replacements(self) -> tuple[PlannedClaim, ...]:
        """The claims that pods of those nodes need, or room for buffers. Claims for others alone are bought without us."""
        moved = frozenset((*self.moved, *self.virtual))
        return tuple(each for each in self.plan.claims if not moved.isdisjoint(each.pods))

    @property
    def places(self) -> tuple[str, ...]:
        """The nodes that pods of those nodes would go to."""
        moved = frozenset(self.moved)
        return tuple(name for name, pods in self.plan.placements.items() if not moved.isdisjoint(pods))


def movers(gone: Iterable[StateNode]) -> tuple[Pod, ...]:
    """The pods that need another place when these nodes go, also those that may not be evicted now."""
    return tuple(
        replace(pod, spec=replace(pod.spec, node_name=""))
        for each in gone
        for pod in each.pods
        if podrules.is_reschedulable(pod)
    )


def question_without(
    gone: Sequence[StateNode],
    snapshot: Snapshot,
    options: Iterable[PoolOption],
    *,
    storage: Storage,
    policy: Policy,
    vocabulary: Vocabulary,
    stale_since: datetime | None = None,
    virtual: tuple[Pod, ...] = (),
) -> Problem:
    """Everything that waits and everything on those nodes, to be placed anywhere but there.

    They count against no limit any more: a pool that is full would else keep its broken nodes for ever.
    """
    left = tuple(_relieved(each, gone) for each in options)
    base = problem(snapshot, left, virtual=virtual, policy=policy, vocabulary=vocabulary, stale_since=stale_since)
    names = {each.name for each in gone}
    leaving = {id(pod) for each in gone for pod in each.pods if podrules.is_reschedulable(pod)}
    labelled = {each.node.name: with_hostname(each.labels, each.node.name) for each in gone if each.node is not None}
    return replace(
        base,
        pods=(*base.pods, *movers(gone)),
        nodes=tuple(each for each in base.nodes if each.name not in names),
        bound=tuple(pod for pod in base.bound if id(pod) not in leaving),
        bound_nodes={**base.bound_nodes, **labelled},
        storage=storage,
    )


def _relieved(option: PoolOption, gone: Sequence[StateNode]) -> PoolOption:
    freed = resources.add(*(each.pool_usage for each in gone if each.nodepool == option.pool.name))
    return replace(option, used=resources.subtract(option.used, freed)) if freed else option


def judged(plan: Plan, question: Problem, gone: Sequence[StateNode], snapshot: Snapshot) -> SimulatedPlan:
    """The plan judged: every pod that loses its place must find one, and not on a node that may never be complete.

    Pods that waited before do not matter, and pods of nodes that go already may use what is not complete.
    """
    moved = tuple(pod.key for pod in movers(gone))
    asked = {pod.key for pod in question.pods}
    must = frozenset((*moved, *(pod.key for pod in snapshot.evicted if pod.key in asked)))
    refused = [each.pod for each in plan.refusals if each.pod in must]
    left = [*refused, *(each for each in plan.not_attempted if each in must)]
    obstacle = ""
    if left:
        reasons = next((str(each) for each in plan.refusals if each.pod == left[0]), "it was not tried")
        obstacle = f"pod {left[0]} would find no place: {reasons}"
    unfinished = {each.name for each in question.nodes if not each.initialized}
    for name in sorted(unfinished & plan.placements.keys()):
        uncertain = [key for key in plan.placements[name] if key in moved]
        if uncertain and not obstacle:
            obstacle = f"pod {uncertain[0]} would have to go to {name}, which is not complete yet"
    return SimulatedPlan(plan=plan, question=question, moved=moved, obstacle=obstacle)
