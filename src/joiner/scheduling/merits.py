"""What decisions of a plan are worth: why a node is bought from this pool and as this type, and what wishes cost.

Nothing of this is kept while plans are made; it is found out by asking again, when somebody wants to know.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from joiner.catalog.market import InstanceType, Offering, Option
from joiner.model import resources
from joiner.model.meta import Value, replace
from joiner.model.pod import Pod, PodSpec
from joiner.scheduling.afterwards import settled
from joiner.scheduling.lifting import Alike, Constraint, Lift, preferences, without
from joiner.scheduling.plan import Plan, PlannedClaim
from joiner.scheduling.problem import PoolOption, Problem
from joiner.scheduling.schedule import schedule

TOO_SMALL: Final = "too small"
EXCLUDED: Final = "excluded by what the node must be"
PLACE: Final = "not sold where or how the node must be bought"
_NEAR: Final = 1e-9


class Rival(Value):
    """Another pool, and what it would have asked for the same pods."""

    nodepool: str
    weight: int
    price: float | None = None
    """Dollars an hour; nothing if it cannot take all of them."""
    reason: str = ""
    """Why it cannot."""


class Purchase(Value):
    """Why a claim is bought as it is."""

    weight: int
    """Of its pool."""
    types: int
    """How many types would do."""
    cheaper: Mapping[str, int] = {}
    """How many types of the pool cost less, by why they would not do."""
    runner_up: Option | None = None
    """The next cheapest type."""
    rivals: tuple[Rival, ...] = ()
    """The other pools in the order in which they are asked: by weight, at equal weight the last name first."""


def purchase(problem: Problem, plan: Plan, claim: PlannedClaim) -> Purchase:
    """Why a claim of a plan is of this pool and this type, and what the alternatives would have cost."""
    own = next(option for option in problem.pools if option.pool.name == claim.nodepool)
    others = sorted(
        (option for option in problem.pools if option is not own),
        key=lambda option: (option.pool.spec.weight, option.pool.name),
        reverse=True,
    )
    return Purchase(
        weight=own.pool.spec.weight,
        types=len(claim.options),
        cheaper=dict(sorted(Counter(_unfit(own, claim)).items())),
        runner_up=claim.runner_up,
        rivals=tuple(_rival(problem, plan, claim, option) for option in others),
    )


def _unfit(option: PoolOption, claim: PlannedClaim) -> Iterator[str]:
    """For each type that the pool could buy for less than the claim, why it would not do."""
    would_do = {each.name for each in claim.options}
    for each in option.catalog.members():
        if each.name in would_do:
            continue
        cheaper = [o for o in option.catalog.offerings(each) if o.cost < claim.price and not o.reserved]
        if cheaper:
            yield _why_not(each, cheaper, claim)


def _why_not(each: InstanceType, offerings: Sequence[Offering], claim: PlannedClaim) -> str:
    if not any(resources.fits(claim.requests, each.allocatable(offering)) for offering in offerings):
        return TOO_SMALL
    if not each.requirements.intersects(claim.requirements):
        return EXCLUDED
    return PLACE


def _rival(problem: Problem, plan: Plan, claim: PlannedClaim, option: PoolOption) -> Rival:
    """What the pods of a claim would cost in another pool, everything else being as planned."""
    rest = settled(problem, replace(plan, claims=tuple(each for each in plan.claims if each is not claim)))
    full = tuple(replace(node, allocatable={}) for node in rest.nodes)  # they count for topology, and take nobody
    pods = set(claim.pods)
    (pool,) = (each for each in rest.pools if each.pool.name == option.pool.name)
    waiting = tuple(pod for pod in problem.pods if pod.key in pods)
    found = schedule(replace(rest, pods=waiting, nodes=full, pools=(pool,)))
    weight = option.pool.spec.weight
    if found.refusals or found.not_attempted:
        reason = str(found.refusals[0].reasons[0]) if found.refusals else ""
        return Rival(nodepool=option.pool.name, weight=weight, reason=reason)
    return Rival(nodepool=option.pool.name, weight=weight, price=found.price)


# -- what wishes cost ----------------------------------------------------------------------------------------------------


class Cost(Value):
    """What a preference or a constraint on the company of pods adds to a plan."""

    constraint: Constraint
    pod: str
    """One of the pods that have it."""
    pods: int
    """How many are like it."""
    hourly: float | None
    """Dollars an hour; nothing if the plans cannot be compared, because they do not place the same pods."""


def costs(problem: Problem, plan: Plan, pods: Sequence[Pod], most: int) -> Iterator[Cost]:
    """What the wishes of these pods cost: everything is planned again without each, for at most so many of them."""
    for pod, count, lift in islice(_wishes(pods), most):
        price = compared(without(problem, (lift,)), plan)
        saved = None if price is None else plan.price - price
        hourly = None if saved is None else saved if saved > _NEAR else 0.0
        yield Cost(constraint=lift.constraint, pod=pod.key, pods=count, hourly=hourly)


def wishes(pods: Sequence[Pod]) -> int:
    """How many wishes there are that could be priced."""
    return sum(1 for _ in _wishes(pods))


def _wishes(pods: Sequence[Pod]) -> Iterator[tuple[Pod, int, Lift]]:
    """The wishes of each kind of pod once, kinds with more pods first."""
    kinds: list[tuple[Alike, list[Pod]]] = []
    by_spec: dict[tuple[int, str], list[Pod]] = {}
    for pod in pods:
        if not any(True for _ in preferences(pod)):
            continue
        known = by_spec.get((id(pod.spec), repr(pod.metadata.labels)))
        if known is None:
            known = next((members for like, members in kinds if like(pod)), None)
            if known is None:
                known = []
                kinds.append((Alike(pod), known))
            by_spec[id(pod.spec), repr(pod.metadata.labels)] = known
        known.append(pod)
    for _, members in sorted(kinds, key=lambda kind: (-len(kind[1]), kind[1][0].key)):
        for lift in preferences(members[0]):
            yield members[0], len(members), lift


# -- what rules cost -----------------------------------------------------------------------------------------------------


def asked_first(problem: Problem, nodepool: str) -> Problem:
    """The question if a pool went before all others."""

    def weighed(option: PoolOption) -> PoolOption:
        if option.pool.name != nodepool:
            return option
        first = 1 + max(each.pool.spec.weight for each in problem.pools)
        return replace(option, pool=replace(option.pool, spec=replace(option.pool.spec, weight=first)))

    return replace(problem, pools=tuple(map(weighed, problem.pools)))


def best_order(problem: Problem, plan: Plan, most: int) -> tuple[str, float] | None:
    """The pool that should be asked first, and what a plan costs then; nothing if no other order is cheaper.

    Pools are asked by weight and by name, backwards, whatever they cost. At most so many of them are tried.
    """
    if len(problem.pools) < 2:
        return None
    names = sorted(option.pool.name for option in problem.pools)
    prices = [(compared(asked_first(problem, name), plan), name) for name in names[:most]]
    known = [(price, name) for price, name in prices if price is not None and price < plan.price - _NEAR]
    return (min(known)[1], min(known)[0]) if known else None


def without_spread(problem: Problem) -> Problem | None:
    """The question if no pod were spread over domains; nothing if none is."""
    known: dict[int, PodSpec] = {}

    def loose(pod: Pod) -> Pod:
        if not pod.spec.topology_spread_constraints:
            return pod
        spec = known.get(id(pod.spec))
        if spec is None:
            spec = known[id(pod.spec)] = replace(pod.spec, topology_spread_constraints=())
        return replace(pod, spec=spec)

    pods = tuple(map(loose, problem.pods))
    return replace(problem, pods=pods) if known else None


def compared(question: Problem | None, plan: Plan) -> float | None:
    """What another question costs, if there is one and its plan leaves out nobody else."""
    if question is None:
        return None
    other = schedule(question)
    return other.price if _left_out(other) == _left_out(plan) else None


def _left_out(plan: Plan) -> set[str]:
    return {each.pod for each in plan.refusals} | set(plan.not_attempted)
