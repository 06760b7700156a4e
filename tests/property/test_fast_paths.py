"""Quick answers are the plain ones: masks, ladders and groups against asking one by one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import VOCABULARY, existing_node, instance_type, offering, pod, problem
from tests.strategies import markets, questions

from joiner.bitset import TypeSet, UnitSet
from joiner.catalog.index import TypeLabels
from joiner.catalog.market import UNLIMITED, InstanceType
from joiner.catalog.units import Stock, units_of
from joiner.model import resources
from joiner.model.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from joiner.model.selector import LabelSelector
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.engine.prepared import PreparedProblem
from joiner.scheduling.nodes.dominance import first_of_each, numbered
from joiner.scheduling.nodes.reservations import Reservations
from joiner.scheduling.nodes.resourcefit import FitIndex
from joiner.scheduling.planners.spreadquota import dealt
from joiner.scheduling.topology.group import AFFINITY, ANTI_AFFINITY, SPREAD, Group

KNOWN = VOCABULARY.extended(well_known=["a", "b", "c"])
SOME = settings(max_examples=80)


def stocked(types: tuple[InstanceType, ...]) -> Stock:
    return Stock(types, TypeLabels(types), KNOWN)


def numbers(mask: UnitSet | TypeSet) -> set[int]:
    return {number for number in range(mask.bit_length()) if mask >> number & 1}


@SOME
@given(markets, questions)
def test_who_matches_and_who_is_for_sale(types: tuple[InstanceType, ...], asked: Requirements) -> None:
    stock = stocked(types)

    described = {n for n, unit in enumerate(stock.units) if unit.requirements.intersects(asked)}
    ways = [
        (n, way)
        for n, unit in enumerate(stock.units)
        for way in unit.offerings
        if way.launchable and not way.reserved and asked.compatible(way.requirements, KNOWN.well_known)
    ]
    counted = {n for _, units in stock.counted(asked) for n in numbers(units)}

    assert numbers(stock.described(asked)) == described
    assert numbers(stock.for_sale(asked)) == {n for n, way in ways if way.available >= UNLIMITED}
    assert counted == {
        n for n, way in ways if way.available < UNLIMITED and asked.at(INSTANCE_TYPE).has(stock.units[n].name)
    }


@SOME
@given(markets, questions)
def test_which_reservations_can_be_used(types: tuple[InstanceType, ...], asked: Requirements) -> None:
    stock = stocked(types)

    usable = {
        (way.requirements[VOCABULARY.reservation_id].any(), n)
        for n, unit in enumerate(stock.units)
        for way in unit.offerings
        if way.launchable and way.reserved and asked.compatible(way.requirements, KNOWN.well_known)
    }

    assert {(name, n) for name, units in stock.reserved(asked) for n in numbers(units)} == usable


LABELS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["", "x", "y", "1", "2"]))


@SOME
@given(st.lists(LABELS, max_size=6), questions)
def test_which_nodes_have_the_labels(labels: list[dict[str, str]], asked: Requirements) -> None:
    nodes = tuple(existing_node(f"n-{number}", labels=each) for number, each in enumerate(labels))
    prepared = PreparedProblem(problem([pod()], nodes=nodes))

    assert prepared.nodes_agreeing(asked).tolist() == [node.requirements.compatible(asked) for node in prepared.nodes()]


@SOME
@given(markets, questions)
def test_prices_are_those_of_the_best_offering(types: tuple[InstanceType, ...], asked: Requirements) -> None:
    stock = stocked(types)
    prices = stock.prices(asked)
    best = {each.unit: each.offering.cost for each in prices.among(stock.everyone)}

    for number, unit in enumerate(stock.units):
        ways = [
            way.cost
            for way in unit.offerings
            if way.launchable
            and not way.reserved
            and way.available >= UNLIMITED
            and asked.compatible(way.requirements, KNOWN.well_known)
        ]
        assert best.get(number) == min(ways, default=None)
        for cost in (0.5, 1.0, 9.0):
            assert (number in numbers(prices.at_most(cost))) == (number in best and best[number] <= cost)


sizes = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6)


@SOME
@given(sizes, st.integers(-1, 5), st.integers(0, 5))
def test_who_is_large_enough(machines: list[tuple[int, int]], cpu: int, memory: int) -> None:
    types = tuple(
        instance_type(f"t-{n}", capacity=resources.of(cpu=c, memory=m, pods=1)) for n, (c, m) in enumerate(machines)
    )
    stock = stocked(types)

    fitting = {n for n, (c, m) in enumerate(machines) if 0 <= cpu <= c and memory <= m}

    assert numbers(FitIndex(stock, ("cpu", "memory")).large_enough((cpu * 1000, memory * 1000))) == fitting
    assert stock.capacity("cpu").largest(stock.everyone) == max(c for c, _ in machines) * 1000


@SOME
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0, 1, 2])), max_size=5, unique_by=lambda each: each[0])
)
def test_a_type_is_as_many_units_as_kinds_of_node(ways: list[tuple[str, int]]) -> None:
    offerings = [offering(zone=zone, capacity={"x": amount} if amount else {}) for zone, amount in ways]
    kind = instance_type("t", offerings)

    units = units_of([kind])

    assert len(units) == max(1, len({amount for _, amount in ways}))
    assert sorted(way.zone for unit in units for way in unit.offerings) == sorted(zone for zone, _ in ways)
    assert all(len({way.capacity.get("x", 0) for way in unit.offerings}) <= 1 for unit in units)


domains = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), min_size=1)
wanted = st.sampled_from(
    [Requirement(ZONE, complement=True), Requirement(ZONE, "a"), Requirement(ZONE, "a", complement=True)]
)


@SOME
@given(
    st.sampled_from([SPREAD, AFFINITY, ANTI_AFFINITY]),
    domains,
    st.integers(0, 2),
    st.none() | st.integers(1, 4),
    wanted,
    st.booleans(),
)
def test_domains_that_are_ruled_out(
    kind: str, counts: dict[str, int], skew: int, least: int | None, asked: Requirement, chosen: bool
) -> None:
    group = Group(kind, ZONE, frozenset({"default"}), LabelSelector(), skew, least)  # type: ignore[arg-type]
    for domain, count in counts.items():
        group.register(domain)
        group.record(domain, count)

    one_by_one = {each for each in counts if group.narrowed(asked, Requirement(ZONE, each), chosen) is None}

    assert set(group.forbidden(asked, chosen)) == one_by_one


@SOME
@given(
    st.sampled_from([SPREAD, ANTI_AFFINITY]),
    st.lists(st.integers(0, 4), max_size=12),
    st.integers(1, 3),
    st.booleans(),
)
def test_hosts_that_are_full(kind: str, arrivals: list[int], skew: int, chosen: bool) -> None:
    group = Group(kind, HOSTNAME, frozenset({"default"}), LabelSelector(), skew)  # type: ignore[arg-type]
    for claim in arrivals:
        group.record_host(claim, f"host-{claim}")

    anywhere = Requirement(HOSTNAME, complement=True)
    full = {n for n in range(5) if group.narrowed(anywhere, Requirement(HOSTNAME, [f"host-{n}"]), chosen) is None}

    assert {n for n in range(5) if group.full_hosts(chosen) >> n & 1} == full


@SOME
@given(st.lists(st.lists(st.sampled_from("xyz"), min_size=1, unique=True).map(tuple), max_size=6))
def test_a_promise_is_kept(asked: list[tuple[str, ...]]) -> None:
    reservations = Reservations({"x": 1, "y": 2, "z": 0})

    for claim, names in enumerate(asked):
        usable = reservations.those(names)
        assert reservations.can_hold(claim, usable) == reservations.hold(claim, usable)


@SOME
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(0, 15))
def test_pods_are_dealt_to_the_emptiest_domain_one_by_one(there: list[int], pods: int) -> None:
    domains = [f"zone-{number}" for number in range(len(there))]
    counts = dict(zip(domains, there, strict=True))
    plain, meant = dict(counts), dict[str, list[int]]()
    for position in reversed(range(pods)):
        emptiest = min(domains, key=lambda domain: (plain[domain], domain))
        plain[emptiest] += 1
        meant.setdefault(emptiest, []).append(position)

    found = dealt(list(range(pods)), domains, counts)

    assert list(found.items()) == [(domain, members[::-1]) for domain, members in meant.items()]
    assert counts == plain


@SOME
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=12))
def test_equal_rows_have_equal_numbers_and_the_first_of_each_is_found(rows: list[tuple[int, int]]) -> None:
    found = numbered(np.array(rows, dtype=np.float64).reshape(len(rows), 2))

    assert [[one == other for other in found] for one in found] == [[one == other for other in rows] for one in rows]
    assert first_of_each(found).tolist() == [at for at, row in enumerate(rows) if row not in rows[:at]]


@SOME
@given(markets, questions, st.sampled_from("abc"))
def test_values_that_some_types_may_have(types: tuple[InstanceType, ...], asked: Requirements, key: str) -> None:
    labels = TypeLabels(types)
    some = labels.described(asked)

    own = [each.requirements.get(key) for n, each in enumerate(types) if some >> n & 1]

    assert labels.values(key, some) == {
        v for each in own if each is not None and not each.complement for v in each.values
    }
