"""Small random problems in which settings and overlays make offerings of one type differ, and what must hold of their plans.

What is written and could be launched is what was planned: price, room, labels, reservation, minValues. No pod is refused that a
NodePool could serve, and none goes to a lighter pool while a heavier one would take it: both are looked up by trying every
claim that could be written for the pod.

    python -m tests.property.launchscenarios 10000        # so many problems, from seed 0 on
    python -m tests.property.launchscenarios 1 4711       # one of them
"""

import sys
from collections.abc import Iterator
from itertools import chain, combinations, product
from random import Random
from typing import Any, NamedTuple

from tests.builders import (
    RESERVATION,
    VOCABULARY,
    instance_type,
    node_pool,
    offering,
    overlay,
    pod,
    requirement,
    settings,
)

from joiner.catalog import launchoptions
from joiner.catalog.build import Adjustments, Catalog, build
from joiner.catalog.market import RESERVED_DIVISOR, UNLIMITED, InstanceType, Offering
from joiner.controllers.provisioning.claimwriter import ClaimRequest, dynamic_claim
from joiner.model import resources
from joiner.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, PRICE, ZONE
from joiner.model.meta import replace
from joiner.model.nodepool import NodePool
from joiner.model.pod import ContainerPort, Pod
from joiner.model.podrequests import of_pod
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.plan import Plan, PlannedClaim
from joiner.scheduling.pods.noderules import node_rules
from joiner.scheduling.problem import Policy, PoolOption, Problem
from joiner.scheduling.schedule import schedule

FUSE = "x/fuse"
TEAM = "team"
SIZES = (2, 2, 4, 4, 8)
MANY = 20
"""So many machines no problem uses up."""


def types_of(random: Random) -> tuple[InstanceType, ...]:
    """A few types, each in some zones and capacity types, some with machines in a reservation."""
    return tuple(_type(random, f"t-{number}") for number in range(random.randint(1, 4)))


def _type(random: Random, name: str) -> InstanceType:
    cpu = random.choice(SIZES)
    zones = random.sample("abc", random.randint(1, 3))
    ways = [
        offering(kind, zone, cpu * (1.0 if kind == "on-demand" else 0.4) + random.randint(0, 3) / 100)
        for kind in random.sample(("spot", "on-demand"), random.randint(1, 2))
        for zone in zones
    ]
    if random.random() < 0.15:
        ways[0] = replace(ways[0], available=random.choice((1, 2)))
    if random.random() < 0.3:
        count = random.choice((1, 2, MANY))
        ways.append(offering("reserved", zones[0], cpu, count, f"cr-{name}", divisor=RESERVED_DIVISOR))
    return instance_type(name, ways, capacity=resources.of(cpu=cpu, memory=f"{cpu}Gi", pods=20))


def overlays_of(random: Random) -> tuple[Any, ...]:
    """Overlays that make some offerings larger, smaller or dearer."""
    found = []
    for number in range(random.randint(0, 3)):
        match = {}
        if random.random() < 0.7:
            match[CAPACITY_TYPE] = random.choice(("spot", "on-demand", "reserved"))
        if random.random() < 0.5:
            match[ZONE] = random.choice("abc")
        if random.random() < 0.4:
            match[INSTANCE_TYPE] = f"t-{random.randint(0, 3)}"
        effect: dict[str, Any] = random.choice(
            ({"capacity": {FUSE: 1}}, {"capacity": {FUSE: 1}}, {"overhead": {"memory": "1Gi"}}, {"pricePercent": 50})
        )
        found.append(overlay(f"o-{number}", match=match, weight=number, **effect))
    return tuple(found)


def settings_of(random: Random, types: tuple[InstanceType, ...]) -> tuple[Any, ...]:
    """Offerings of some types for nodes of a team, or at another price."""
    found = []
    for each in types:
        if random.random() < 0.35:
            entries = []
            for _ in range(random.randint(1, 3)):
                entry = {}
                if random.random() < 0.6:
                    entry[TEAM] = random.choice("xy")
                if random.random() < 0.3:
                    entry[CAPACITY_TYPE] = random.choice(("spot", "on-demand"))
                if random.random() < 0.5:
                    entry[PRICE] = str(random.randint(1, 50) / 10)
                entries.append(entry)
            found.append(settings(each.name, offerings=entries))
    return tuple(found)


def pool_of(random: Random, name: str, weight: int) -> NodePool:
    """A pool that leaves some choices open and may ask for variety."""
    rows = []
    team = random.choice((None, None, ("In", "x", "y"), ("In", "y", "z"), ("Exists",), ("In", "z")))
    if team is not None:
        rows.append(requirement(TEAM, *team))
    kinds = random.choice((None, ("spot", "on-demand"), ("reserved", "on-demand"), ("on-demand",), ("reserved",)))
    if kinds is not None:
        rows.append(requirement(CAPACITY_TYPE, "In", *kinds))
    if random.random() < 0.6:
        key = random.choice((INSTANCE_TYPE, ZONE, CAPACITY_TYPE))
        rows.append(requirement(key, "Exists", minValues=random.randint(1, 3)))
    return node_pool(name, rows, weight=weight)


def pods_of(random: Random, number: int) -> tuple[Pod, ...]:
    """Some pods; what they ask for may be nowhere."""
    found = []
    for at in range(number):
        selector = {}
        if random.random() < 0.2:
            selector[ZONE] = random.choice("abc")
        if random.random() < 0.2:
            selector[CAPACITY_TYPE] = random.choice(("spot", "on-demand"))
        if random.random() < 0.2:
            selector[TEAM] = random.choice("xyz")
        extra = {FUSE: "1"} if random.random() < 0.5 else {}
        cpu, memory = random.choice(("500m", "1500m", "3", "7")), random.choice(("500Mi", "1200Mi", "3Gi"))
        found.append(pod(f"p-{at}", cpu, memory, extra=extra, nodeSelector=selector))
    return tuple(found)


class Scenario(NamedTuple):
    """A problem with the pools by name."""

    problem: Problem
    pools: dict[str, PoolOption]


def scenario(seed: int, *, single: bool = False) -> Scenario:
    """The problem of a seed; with `single`, pods that share no node and reservations that no plan uses up."""
    random = Random(seed)
    types = types_of(random)
    adjustments = Adjustments(settings=settings_of(random, types), overlays=overlays_of(random))
    weights = random.sample((1, 10, 50), random.randint(1, 3))
    pools = [pool_of(random, f"pool-{number}", weight) for number, weight in enumerate(weights)]
    pods = pods_of(random, random.randint(1, 3 if single else 6))
    if single:
        types = tuple(_plenty(each) for each in types)
        pods = tuple(_alone(each) for each in pods)
    options = tuple(PoolOption(pool=each, catalog=build(types, adjustments, each, VOCABULARY)) for each in pools)
    policy = Policy(min_values=random.choice(("Strict", "Strict", "BestEffort")))
    if single:
        policy = Policy(reserved_mode=random.choice(("Strict", "Fallback")))
    known = {key for each in types for key in each.requirements}
    problem = Problem(pods=pods, pools=options, policy=policy, vocabulary=VOCABULARY.extended(well_known=known))
    return Scenario(problem, {option.pool.name: option for option in options})


def _plenty(each: InstanceType) -> InstanceType:
    """The type with so many machines, where they are counted, that no plan uses them up."""
    counted = (replace(o, available=MANY) if o.available < UNLIMITED else o for o in each.offerings)
    return replace(each, offerings=tuple(counted))


def _alone(each: Pod) -> Pod:
    """The pod with a host port that all of them want."""
    (container,) = each.spec.containers
    return replace(
        each, spec=replace(each.spec, containers=(replace(container, ports=(ContainerPort(host_port=80),)),))
    )


# -- what is written and could be launched is what was planned ------------------------------------------------------------


def complaints(asked: Scenario) -> Iterator[str]:
    """What is wrong with the plan of a problem."""
    plan = schedule(asked.problem)
    pods = {f"{each.metadata.namespace}/{each.name}": each for each in asked.problem.pods}
    for claim in plan.claims:
        yield from _launched(asked, claim, [pods[name] for name in claim.pods])
    yield from _oversold(asked, plan)
    placed = [name for claim in plan.claims for name in claim.pods]
    told = sorted((*placed, *(refusal.pod for refusal in plan.refusals)))
    if told != sorted(pods):
        yield f"pods {sorted(pods)} and answers for {told}"
    if plan.dropped:
        yield f"{plan.dropped} pods lost their place at the end"


def _launched(asked: Scenario, planned: PlannedClaim, pods: list[Pod]) -> Iterator[str]:
    option = asked.pools[planned.nodepool]
    catalog = option.catalog
    claim = dynamic_claim(ClaimRequest(planned, option, tuple(pods)), option.pool)
    vocabulary = catalog.market.vocabulary
    wanted = launchoptions.requirements_of(claim, vocabulary)
    options = launchoptions.options(catalog, wanted, claim.spec.resources.requests)
    who = f"{planned.nodepool} {planned.pods} as {wanted}"
    if not options:
        yield f"{who}: nothing can be launched"
        return
    cheapest: dict[str, float] = {}
    for each in options:
        cheapest.setdefault(each.name, each.offering.cost)
    promised = {each.name: each.offering.cost for each in planned.options}
    if cheapest != promised:
        yield f"{who}: planned {promised}, launched {cheapest}"
    if options[0].offering.cost != planned.price:
        yield f"{who}: planned at {planned.price}, launched at {options[0].offering.cost}"
    yield from _room(who, catalog, wanted, pods)
    described = {one.name: one.requirements for one in catalog.types}
    for waiting in pods:
        for each in options:
            node = wanted & described[each.name] & each.offering.requirements
            if not any(node.compatible(rule, vocabulary.well_known) for rule in node_rules(waiting, vocabulary)):
                yield f"{who}: {waiting.name} may not be on {each.name} with {each.offering.requirements}"
        team = waiting.spec.node_selector.get(TEAM)
        if team is not None and claim.metadata.labels.get(TEAM) != team:
            yield f"{who}: {waiting.name} wants team {team}, the claim says {claim.metadata.labels.get(TEAM)}"
    ids = {each.offering.requirements.at(RESERVATION).any() or "" for each in options}
    if ids != {*(planned.reservations or ("",))}:
        yield f"{who}: planned for reservation {planned.reservations}, launched into {ids}"
    counted = [each for each in options if not each.offering.reserved and each.offering.available < UNLIMITED]
    if counted and len(counted) < len(options):
        yield f"{who}: may take a machine that is counted, or another"
    short = launchoptions.shortfall(catalog, wanted, options)
    if short:
        yield f"{who}: minValues are not kept, {short} are left"


def _room(who: str, catalog: Catalog, wanted: Requirements, pods: list[Pod]) -> Iterator[str]:
    """Every offering that the claim allows holds its pods, whatever requests are written on it."""
    needed = resources.add(*(of_pod(each) for each in pods))
    for each, way in _allowed(catalog, wanted):
        left = each.allocatable(way)
        if any(amount > left.get(name, 0) for name, amount in needed.items()):
            yield f"{who}: {each.name} with {way.requirements} does not hold the pods"


def _allowed(catalog: Catalog, wanted: Requirements) -> Iterator[tuple[InstanceType, Offering]]:
    for each in catalog.types:
        if each.requirements.intersects(wanted):
            for way in catalog.index.offerings(each, wanted):
                yield each, way


def _oversold(asked: Scenario, plan: Plan) -> Iterator[str]:
    counts: dict[str, int] = {}
    for option in asked.problem.pools:
        for each in option.catalog.types:
            for way in each.offerings:
                name = way.requirements.at(RESERVATION).any()
                if way.reserved and name:
                    counts[name] = min(way.available, counts.get(name, way.available))
    used = [name for claim in plan.claims for name in claim.reservations]
    machines: dict[tuple[str, str], list[int]] = {}
    for claim in plan.claims:
        (first, *_) = claim.options
        if not first.offering.reserved and first.offering.available < UNLIMITED:
            labels = str(first.offering.requirements.without(TEAM))
            machines.setdefault((first.name, labels), []).append(first.offering.available)
    for what, left in sorted(machines.items()):
        if len(left) > min(left):
            yield f"{len(left)} claims for {what}, of which there are {min(left)}"
    for name in sorted(set(used)):
        if used.count(name) > counts.get(name, 0):
            yield f"{used.count(name)} claims into {name}, which has {counts.get(name, 0)}"


# -- no wrong refusal, and weights are kept -------------------------------------------------------------------------------


class Best(NamedTuple):
    """The best claim that can be written for one pod."""

    weight: int
    market: bool
    """Whether it is bought, and not out of a reservation."""
    price: float


def expected(asked: Scenario, alone: Pod) -> Best | None:
    """The pool a pod that shares no node must go to, and what it costs there, by trying every claim that could be written."""
    found: list[Best] = []
    for option in asked.problem.pools:
        claims = [*_claims(option, alone, asked.problem.vocabulary)] or _of_a_rack(
            option, alone, asked.problem.vocabulary
        )
        found += [Best(-option.pool.spec.weight, market, price) for market, price in claims]
    return min(found, default=None)


def _claims(option: PoolOption, alone: Pod, vocabulary: Any) -> Iterator[tuple[bool, float]]:
    catalog = option.catalog
    well_known = catalog.market.vocabulary.well_known
    (rule,) = node_rules(alone, vocabulary)
    if not catalog.requirements.compatible(rule, well_known | rule.invented()):
        return
    base, needed = catalog.requirements & rule, of_pod(alone)
    least = {key: each.min_values for key, each in base.items() if each.min_values}
    every = list(_allowed(catalog, base))
    kinds = sorted({way.capacity_type for _, way in every})
    zones = sorted({way.zone for _, way in every})
    teams = [each for each in "xyzw" if base[TEAM].has(each)] if TEAM in base else [""]
    flexible = _reservable(every, base, least, needed)
    for team in teams:
        known = base & Requirements([Requirement(TEAM, (team,))]) if team else base
        for some_kinds, some_zones in product(_some(kinds), _some(zones)):
            if "reserved" in some_kinds and len(some_kinds) > 1:
                continue
            box = known & Requirements([Requirement(CAPACITY_TYPE, some_kinds), Requirement(ZONE, some_zones)])
            good: set[str] = set()
            bad: set[str] = set()
            ways: list[tuple[InstanceType, Offering]] = []
            for each, way in _allowed(catalog, box):
                left = each.allocatable(way)
                fits = all(amount <= left.get(name, 0) for name, amount in needed.items())
                counted = not way.reserved and way.available < UNLIMITED
                if fits and counted and all(count <= 1 for count in least.values()):
                    yield True, way.cost
                (good if fits and not counted else bad).add(each.name)
                ways.append((each, way))
            ways = [(each, way) for each, way in ways if each.name in good - bad]
            if not ways:
                continue
            price = min(way.cost for _, way in ways)
            if some_kinds == ("reserved",):
                if flexible:
                    yield False, price
            elif all(len(_values(key, ways, box)) >= count for key, count in least.items()):
                yield True, price


def _of_a_rack(option: PoolOption, alone: Pod, vocabulary: Any) -> list[tuple[bool, float]]:
    """Claims that choose among machines which are all counted: types that differ in nothing else, and are not sold otherwise."""
    catalog, (rule,) = option.catalog, node_rules(alone, vocabulary)
    well_known = catalog.market.vocabulary.well_known
    if not catalog.requirements.compatible(rule, well_known | rule.invented()):
        return []
    base, needed = catalog.requirements & rule, of_pod(alone)
    least = {key: each.min_values for key, each in base.items() if each.min_values}
    if catalog.market.stock.has_twins:
        return []
    found = []
    for team in [each for each in "xyzw" if base[TEAM].has(each)] if TEAM in base else [""]:
        known = base & Requirements([Requirement(TEAM, (team,))]) if team else base
        every = [(each, way) for each, way in _allowed(catalog, known) if not way.reserved]
        sold = {each.name for each, way in _allowed(catalog, base) if not way.reserved and way.available == UNLIMITED}
        ways = [(each, way) for each, way in every if each.name not in sold]
        ways = [(e, w) for e, w in ways if all(n <= e.allocatable(w).get(name, 0) for name, n in needed.items())]
        if ways and all(len(_values(key, ways, known)) >= count for key, count in least.items()):
            found.append((True, min(way.cost for _, way in ways)))
    return found


def _reservable(
    every: list[tuple[InstanceType, Offering]],
    base: Requirements,
    least: dict[str, int],
    needed: resources.Resources,
) -> bool:
    """Whether minValues hold over all that a claim could be that may go into a reservation."""
    ways = []
    for each, way in every:
        left = each.allocatable(way)
        counted = not way.reserved and way.available < UNLIMITED
        if not counted and all(amount <= left.get(name, 0) for name, amount in needed.items()):
            ways.append((each, way))
    return all(len(_values(key, ways, base)) >= count for key, count in least.items())


def _values(key: str, ways: list[tuple[InstanceType, Offering]], box: Requirements) -> set[str]:
    found: set[str] = set()
    for each, way in ways:
        told = way.requirements.get(key) or each.requirements.at(key)
        found |= {value for value in told.values if box.at(key).has(value)} if not told.complement else set()
    return found


def _some(values: list[str]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(values, count) for count in range(1, len(values) + 1)))


def misplaced(asked: Scenario) -> Iterator[str]:
    """Pods of a problem of single pods that are refused, on a lighter pool or at a price for no reason."""
    plan = schedule(asked.problem)
    got = {
        name: Best(-asked.pools[claim.nodepool].pool.spec.weight, not claim.reservations, claim.price)
        for claim in plan.claims
        for name in claim.pods
    }
    for each in asked.problem.pods:
        name = f"{each.metadata.namespace}/{each.name}"
        if got.get(name) != expected(asked, each):
            yield f"{name}: expected {expected(asked, each)}, got {got.get(name)}"


def main() -> int:
    """Try so many seeds, and tell what is wrong."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    wrong = 0
    for seed in range(first, first + count):
        for text in chain(complaints(scenario(seed)), misplaced(scenario(seed, single=True))):
            print(f"seed {seed}: {text}", flush=True)
            wrong += 1
    print(f"{count} problems, {wrong} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
