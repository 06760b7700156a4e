"""Why a node is bought from this pool and as this type, and what preferences cost: the prices of the alternatives.

Nothing of this is kept while plans are made; it is found out by planning again when it is asked for.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from joiner.catalog.market import InstanceType, Offering, Option
from joiner.model import resources
from joiner.model.affinity import SCHEDULE_ANYWAY, Affinity
from joiner.model.labels import OS
from joiner.model.meta import Value, replace
from joiner.model.pod import Pod, PodSpec
from joiner.requirements import Requirements
from joiner.scheduling.nodes.openclaim import LIMITS, MIN_VALUES, REQUIREMENTS
from joiner.scheduling.plan import Plan, PlannedClaim
from joiner.scheduling.problem import PoolOption, Problem
from joiner.scheduling.report.words import node_preference_text
from joiner.scheduling.schedule import schedule
from joiner.scheduling.whatif.aftermath import settled
from joiner.scheduling.whatif.constraints import Constraint, Lift, kind_of, of_pool, preferences, without

TOO_SMALL: Final = "too small"
EXCLUDED: Final = "excluded by what the node must be"
PLACE: Final = "not sold where or how the node must be bought"
_NEAR: Final = 1e-9
_PRICED_MOST: Final = 20
_PRICED_LEAST: Final = 3
_PRICED_PODS: Final = 20_000
"""So many pods are planned for again, all plans taken together."""


class Rival(Value):
    """Another pool, and what it would have asked for the same pods."""

    nodepool: str
    weight: int
    price: float | None = None
    """Dollars an hour; nothing if it cannot take all of them."""
    reason: str = ""
    """Why it cannot."""


class Heeded(Value):
    """A preference of a pod that excludes cheaper ways to buy a node for the same pods."""

    pod: str
    says: str
    price: float
    """What the cheapest of them costs by the hour."""


class PurchaseReasons(Value):
    """Why a claim is bought as it is."""

    weight: int
    """Of its pool."""
    types: int
    """How many types would do."""
    cheaper: Mapping[str, int] = {}
    """How many types of the pool cost less, by why they would not do."""
    runner_up: Option | None = None
    """The next cheapest type."""
    heeded: tuple[Heeded, ...] = ()
    """Preferences that exclude cheaper ways to buy."""
    rivals: tuple[Rival, ...] = ()
    """The other pools in the order in which they are asked: by weight, at equal weight the last name first."""


def purchase(problem: Problem, plan: Plan, claim: PlannedClaim) -> PurchaseReasons:
    """Why a claim of a plan is of this pool and this type, and what the alternatives would have cost."""
    own = next(option for option in problem.pools if option.pool.name == claim.nodepool)
    others = sorted(
        (option for option in problem.pools if option is not own),
        key=lambda option: (option.pool.spec.weight, option.pool.name),
        reverse=True,
    )
    return PurchaseReasons(
        weight=own.pool.spec.weight,
        types=len(claim.options),
        cheaper=dict(sorted(Counter(_unfit(own, claim)).items())),
        runner_up=claim.runner_up,
        heeded=tuple(_heeded(problem, own, claim)),
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


def _why_not(instance_type: InstanceType, offerings: Sequence[Offering], claim: PlannedClaim) -> str:
    if not any(resources.fits(claim.requests, instance_type.allocatable(offering)) for offering in offerings):
        return TOO_SMALL
    if not instance_type.requirements.intersects(claim.requirements):
        return EXCLUDED
    return PLACE


def _heeded(problem: Problem, option: PoolOption, claim: PlannedClaim) -> Iterator[Heeded]:
    """The preferences for labels of nodes that the claim keeps, and without which the same pods could have a cheaper node."""
    here = set(claim.pods)
    pods = {kind_of(pod): pod for pod in reversed(problem.pods) if pod.key in here}
    demanded = {key for pod in pods.values() for key in _demanded(pod)}
    for pod in sorted(pods.values(), key=lambda pod: pod.key):
        for term in pod.spec.affinity.node_affinity.preferred:
            keys = {each.key for each in term.preference.match_expressions}
            if not keys or keys & demanded:
                continue
            free = Requirements(each for key, each in claim.requirements.items() if key not in keys)
            price = min(_prices(option, claim, free), default=claim.price)
            if price < claim.price - _NEAR:
                yield Heeded(pod=pod.key, says=node_preference_text(term), price=price)


def _demanded(pod: Pod) -> Iterator[str]:
    yield from pod.spec.node_selector
    required = pod.spec.affinity.node_affinity.required
    for term in required.node_selector_terms if required is not None else ():
        yield from (each.key for each in term.match_expressions)


def _prices(option: PoolOption, claim: PlannedClaim, wanted: Requirements) -> Iterator[float]:
    """What nodes cost that the pool could buy for the pods of a claim under other requirements."""
    for each in option.catalog.members():
        if each.requirements.intersects(wanted):
            for offering in option.catalog.offerings(each):
                fits = offering.requirements.intersects(wanted) and not offering.reserved
                if fits and resources.fits(claim.requests, each.allocatable(offering)):
                    yield offering.cost


def _rival(problem: Problem, plan: Plan, claim: PlannedClaim, option: PoolOption) -> Rival:
    """What the pods of a claim would cost in another pool, everything else being as planned."""
    rest = settled(problem, replace(plan, claims=tuple(each for each in plan.claims if each is not claim)))
    full = tuple(replace(node, allocatable={}) for node in rest.nodes)  # they count for topology, and take no pod
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


class PodWish(NamedTuple):
    """A preference or a demand for company, and who has it."""

    pod: Pod
    """One of them."""
    pods: int
    """How many are like it."""
    lift: Lift


def costs(problem: Problem, plan: Plan, wished: Iterable[PodWish]) -> Iterator[Cost]:
    """What wishes cost: everything is planned again without each."""
    for pod, count, lift in wished:
        price = compared(without(problem, (lift,)), plan)
        saved = None if price is None else plan.price - price
        hourly = None if saved is None else saved if saved > _NEAR else 0.0
        yield Cost(constraint=lift.constraint, pod=pod.key, pods=count, hourly=hourly)


def wishes(pods: Iterable[Pod]) -> list[PodWish]:
    """The wishes of each workload once, those with more pods first."""
    kinds: dict[tuple[object, ...], list[Pod]] = {}
    for pod in pods:
        if any(True for _ in preferences(pod)):
            kinds.setdefault(kind_of(pod), []).append(pod)
    ordered = sorted(kinds.values(), key=lambda members: (-len(members), members[0].key))
    return [PodWish(members[0], len(members), lift) for members in ordered for lift in preferences(members[0])]


class PoolCost(Value):
    """What a limit, a requirement or minValues of a NodePool adds to a plan."""

    constraint: Constraint
    hourly: float | None
    """Dollars an hour; nothing if the plans cannot be compared, because they do not place the same pods."""


def pool_wishes(problem: Problem) -> list[Lift]:
    """What NodePools demand that could be otherwise: minValues, then limits, then requirements."""
    ranks = {MIN_VALUES: 0, LIMITS: 1, REQUIREMENTS: 2}
    found = [
        lift
        for option in sorted(problem.pools, key=lambda option: option.pool.name)
        for lift in of_pool(option)
        if f"[{OS}]" not in lift.constraint.field
    ]
    return sorted(found, key=lambda lift: ranks[lift.constraint.rule])


def pool_costs(problem: Problem, plan: Plan, lifts: Iterable[Lift]) -> Iterator[PoolCost]:
    """What each of them costs, found by planning again without it."""
    for lift in lifts:
        price = compared(without(problem, [lift]), plan)
        yield PoolCost(constraint=lift.constraint, hourly=None if price is None else plan.price - price)


def affordable(pods: int) -> int:
    """For how many wishes it is bearable to plan for so many pods again."""
    return max(_PRICED_LEAST, min(_PRICED_MOST, _PRICED_PODS // max(1, pods)))


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
    return _loosened(problem, lambda spec: replace(spec, topology_spread_constraints=()))


def without_preferences(problem: Problem) -> Problem | None:
    """The question if no pod preferred anything; nothing if none does."""
    return _loosened(problem, _demanding)


def _demanding(spec: PodSpec) -> PodSpec:
    """What a pod demands, without what it only prefers."""
    sides = ("node_affinity", "pod_affinity", "pod_anti_affinity")
    affinity: Affinity = replace(
        spec.affinity, **{side: replace(getattr(spec.affinity, side), preferred=()) for side in sides}
    )
    spreads = spec.topology_spread_constraints
    kept = tuple(each for each in spreads if each.when_unsatisfiable != SCHEDULE_ANYWAY)
    return replace(spec, affinity=affinity, topology_spread_constraints=kept)


def _loosened(problem: Problem, change: Callable[[PodSpec], PodSpec]) -> Problem | None:
    """The question with every pod changed; nothing if no pod is."""
    known: dict[int, PodSpec] = {}

    def loose(pod: Pod) -> Pod:
        spec = known.get(id(pod.spec))
        if spec is None:
            changed = change(pod.spec)
            spec = known[id(pod.spec)] = pod.spec if changed == pod.spec else changed
        return pod if spec is pod.spec else replace(pod, spec=spec)

    pods = tuple(map(loose, problem.pods))
    return replace(problem, pods=pods) if any(a is not b for a, b in zip(pods, problem.pods, strict=True)) else None


def compared(question: Problem | None, plan: Plan) -> float | None:
    """What another problem costs, if there is one and its plan leaves out no other pod."""
    if question is None:
        return None
    other = schedule(question)
    return other.price if _left_out(other) == _left_out(plan) else None


def _left_out(plan: Plan) -> set[str]:
    return {each.pod for each in plan.refusals} | set(plan.not_attempted)
