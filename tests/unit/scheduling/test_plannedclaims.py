"""The end of a run: which types a claim names, and at what price."""

import pytest
from tests.builders import (
    SHELF,
    instance_type,
    node_pool,
    offering,
    overlay,
    pod,
    pods,
    pool_option,
    problem,
    requirement,
)

from joiner.model import resources
from joiner.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from joiner.scheduling.problem import Policy
from joiner.scheduling.schedule import schedule

FUSE = "example.com/fuse"
FAMILY = "example.com/family"


def test_types_are_named_cheapest_first_and_the_first_is_the_price() -> None:
    claim = schedule(problem([pod()])).claims[0]

    assert [option.name for option in claim.options] == [each.name for each in SHELF]
    assert claim.price == min(way.cost for way in SHELF[0].offerings)


def test_a_claim_names_at_most_six_hundred_types() -> None:
    types = tuple(instance_type(f"t-{n:04d}", [offering(price=1.0 + n / 1000)]) for n in range(700))

    claim = schedule(problem([pod()], types=types)).claims[0]

    assert [option.name for option in claim.options] == [f"t-{n:04d}" for n in range(600)]


@pytest.mark.parametrize(("least", "placed"), [(2, True), (3, False)])
def test_what_is_left_after_truncation_must_be_flexible_enough(least: int, placed: bool) -> None:
    pool = node_pool(requirements=[requirement(INSTANCE_TYPE, "Exists", minValues=least)])

    plan = schedule(problem([pod()], pool, policy=Policy(types_max=2)))

    assert (bool(plan.claims), bool(plan.refusals)) == (placed, not placed)


def test_a_cheaper_plan_whose_claims_cannot_be_bought_does_not_end_first_fit() -> None:
    sold = (
        ("one", "b", 2, 2.8),
        ("two", "b", 4, 4.0),
        ("three", "b", 2, 6.1),
        ("four", "c", 4, 5.9),
        ("five", "b", 1, 3.2),
    )
    types = tuple(
        instance_type(
            name, [offering(price=price)], {FAMILY: family}, capacity=resources.of(cpu=cpu, memory="64Gi", pods=20)
        )
        for name, family, cpu, price in sold
    )
    pool = node_pool(requirements=[requirement(FAMILY, "Exists", minValues=2)])
    waiting = [
        each for cpu, count in (("3", 9), ("1500m", 11), ("900m", 8), ("500m", 5)) for each in pods(count, cpu, cpu=cpu)
    ]

    plan = schedule(problem(waiting, pool, types=types, policy=Policy(types_max=2)))

    assert not plan.refusals


def test_a_type_that_is_larger_in_one_zone_is_bought_there() -> None:
    types = (instance_type("t", [offering(zone="a", price=1.0), offering(zone="b", price=2.0)]),)
    option = pool_option(node_pool(), types, [overlay(match={ZONE: "b"}, capacity={FUSE: 1})])

    claim = schedule(problem([pod(extra={FUSE: "1"})], option)).claims[0]

    assert (set(claim.requirements[ZONE].values), claim.price) == ({"b"}, 2.0)


def test_where_every_kind_of_a_type_will_do_nothing_is_pinned() -> None:
    types = (instance_type("t", [offering(zone="a", price=1.0), offering(zone="b", price=2.0)]),)
    option = pool_option(node_pool(), types, [overlay(match={ZONE: "b"}, capacity={FUSE: 1})])

    claim = schedule(problem([pod()], option)).claims[0]

    assert ZONE not in claim.requirements


def test_a_claim_that_holds_a_reservation_names_it_and_only_types_it_has() -> None:
    reserved = instance_type("paid", [offering("reserved", "a", 0.001, 1, "cr-1"), offering(price=3.0)])

    claim = schedule(problem([pod(cpu="2")], types=(reserved, instance_type("other", [offering(price=0.5)])))).claims[0]

    assert (claim.reservations, [option.name for option in claim.options]) == (("cr-1",), ["paid"])
    assert claim.requirements[CAPACITY_TYPE].values == {"reserved"}


def test_a_claim_tells_the_taints_of_its_pool_and_what_it_is_asked_for() -> None:
    claim = schedule(problem([pod(cpu="250m", extra={"ephemeral-storage": "1Gi"})], types=(instance_type(),))).claims[0]

    assert claim.requests == resources.of(cpu="250m", memory="1Gi", ephemeral_storage="1Gi", pods=1)
    assert claim.taints == ()
