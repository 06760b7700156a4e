"""minValues: what counts as a value."""

import pytest
from tests.builders import instance_type, node_pool, offering, pod, problem, requirement

from joiner.bitset import UnitSet
from joiner.catalog.market import InstanceType
from joiner.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from joiner.requirements import Requirements
from joiner.scheduling.nodes.minvalues import Flexibility
from joiner.scheduling.problem import Policy, Problem
from joiner.scheduling.schedule import schedule

FAMILY = "example.com/family"


def kind(name: str, *ways: tuple[str, str, int], family: str = "m") -> InstanceType:
    offerings = [offering(market, zone, available=count) for market, zone, count in ways]
    return instance_type(name, offerings, labels={FAMILY: family})


TYPES = (
    kind("one", ("on-demand", "a", 9), ("spot", "b", 9)),
    kind("two", ("on-demand", "a", 9), ("on-demand", "c", 0), family="c"),
    kind("gone", ("on-demand", "a", 0), family="r"),
)


@pytest.mark.parametrize(
    ("key", "least", "selector", "placed"),
    [
        (INSTANCE_TYPE, 2, {}, True),
        (INSTANCE_TYPE, 3, {}, False),
        (FAMILY, 2, {}, True),
        (FAMILY, 3, {}, False),
        (ZONE, 2, {}, True),
        (ZONE, 3, {}, False),
        (CAPACITY_TYPE, 2, {}, True),
        (CAPACITY_TYPE, 2, {ZONE: "a"}, False),
        (ZONE, 2, {ZONE: "a"}, False),
        (INSTANCE_TYPE, 2, {CAPACITY_TYPE: "spot"}, False),
        (INSTANCE_TYPE, 1, {CAPACITY_TYPE: "spot"}, True),
    ],
)
def test_only_what_can_be_launched_counts(key: str, least: int, selector: dict[str, str], placed: bool) -> None:
    pool = node_pool(requirements=[requirement(key, "Exists", minValues=least)])

    strict, lenient = (
        schedule(problem([pod(nodeSelector=selector)], pool, types=TYPES, policy=Policy(min_values=policy)))
        for policy in ("Strict", "BestEffort")
    )

    assert bool(strict.claims) == placed
    assert [claim.min_values_relaxed for claim in lenient.claims] == [not placed]


def test_the_refusal_names_the_key_what_is_wanted_and_what_is_left() -> None:
    pool = node_pool(requirements=[requirement(ZONE, "Exists", minValues=2)])

    plan = schedule(problem([pod(nodeSelector={ZONE: "a"})], pool, types=TYPES))

    assert f"{ZONE} needs 2 and has 1" in str(plan.refusals[0])


def test_pods_do_not_share_a_node_that_would_then_be_too_inflexible() -> None:
    pool = node_pool(requirements=[requirement(FAMILY, "Exists", minValues=2)])
    types = (*TYPES[:2], instance_type("large", labels={FAMILY: "x"}))
    waiting = [pod("plain", "100m"), pod("picky", "100m", nodeSelector={INSTANCE_TYPE: "one"})]

    plan = schedule(problem(waiting, pool, types=types))

    assert [each.pod for each in plan.refusals] == ["default/picky"]
    assert [claim.pods for claim in plan.claims] == [("default/plain",)]


def test_a_pool_that_lowers_its_demands_is_taken_before_a_lighter_one() -> None:
    heavy = node_pool("heavy", [requirement(INSTANCE_TYPE, "Exists", minValues=9)], weight=10)

    plan = schedule(problem([pod()], heavy, node_pool("light"), types=TYPES, policy=Policy(min_values="BestEffort")))

    assert [(claim.nodepool, claim.min_values_relaxed) for claim in plan.claims] == [("heavy", True)]
    assert plan.claims[0].requirements[INSTANCE_TYPE].min_values == 2


@pytest.mark.parametrize("least", [1, 2, 3, 4])
@pytest.mark.parametrize("units", list(map(UnitSet, range(8))))
def test_counting_stops_at_what_is_asked_for_and_never_changes_what_is_missing(units: UnitSet, least: int) -> None:
    stock = read_problem().pools[0].catalog.market.stock
    flexible = Flexibility(stock)

    for key in (INSTANCE_TYPE, FAMILY, ZONE, CAPACITY_TYPE):
        all_of_them = flexible.counts({key: 99}, units, Requirements())[key]
        short = {key: all_of_them} if all_of_them < least else {}

        assert flexible.counts({key: least}, units, Requirements())[key] == min(least, all_of_them)
        assert flexible.missing({key: least}, units, Requirements()) == short


def test_so_many_values_need_so_many_units_unless_a_unit_has_several() -> None:
    stock = read_problem().pools[0].catalog.market.stock

    assert Flexibility(stock).units_least({INSTANCE_TYPE: 3, FAMILY: 2, ZONE: 9}) == 3
    assert Flexibility(stock).units_least({FAMILY: 2}) == 2


def read_problem() -> Problem:
    return problem([pod()], node_pool(), types=(*TYPES, kind("three", ("spot", "a", 1), ("spot", "b", 1))))
