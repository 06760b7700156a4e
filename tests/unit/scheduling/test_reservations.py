"""Reservations: a matching that never gives out more than there is."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import RESERVATION, away_from, instance_type, node_pool, offering, pod, pods, problem, requirement

from joiner.catalog.market import RESERVED_DIVISOR, InstanceType
from joiner.model import resources
from joiner.model.labels import CAPACITY_TYPE
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.nodes.reservations import Reservations
from joiner.scheduling.plan import Plan
from joiner.scheduling.planners.valuegreedy import ValueGreedy
from joiner.scheduling.problem import Policy
from joiner.scheduling.schedule import schedule

NAMES = ("x", "y", "z")


def test_a_claim_gets_one_and_others_what_is_left() -> None:
    found = Reservations({"x": 1})

    assert [found.hold(claim, found.those(("x",))) for claim in range(2)] == [True, False]
    assert (found.holds(0), found.holds(1)) == ("x", None)


def test_claims_make_room_for_one_that_has_less_choice() -> None:
    found = Reservations({"x": 1, "y": 1})
    found.hold(0, found.those(("x", "y")))

    assert found.hold(1, found.those(("x",)))
    assert (found.holds(0), found.holds(1)) == ("y", "x")


def test_asking_changes_nothing() -> None:
    found = Reservations({"x": 1, "y": 1})
    found.hold(0, found.those(("x", "y")))

    assert found.can_hold(1, found.those(("x",)))
    assert (found.holds(0), found.holds(1)) == ("x", None)


def test_a_claim_that_lets_go_leaves_it_to_others() -> None:
    found = Reservations({"x": 1})
    found.hold(0, found.those(("x",)))
    found.release(0)

    assert found.hold(1, found.those(("x",)))


def test_a_claim_may_change_to_what_another_gives_up_for_its_own() -> None:
    found = Reservations({"x": 1, "y": 1})
    found.hold(0, found.those(("x",)))
    found.hold(1, found.those(("x", "y")))

    assert found.hold(0, found.those(("y",)))
    assert (found.holds(0), found.holds(1)) == ("y", "x")


def test_a_wish_that_cannot_be_met_leaves_the_claim_what_it_had() -> None:
    found = Reservations({"x": 1, "y": 1})
    found.hold(0, found.those(("x",)))
    found.hold(1, found.those(("y",)))

    assert not found.hold(0, found.those(("y",)))
    assert (found.holds(0), found.holds(1)) == ("x", "y")


def test_a_reservation_nobody_has_heard_of_is_never_given() -> None:
    found = Reservations({"x": 1})

    assert not found.hold(0, found.those(("unheard",)))


COSTS = {(0, "x"): 1.0, (0, "y"): 2.0, (1, "x"): 1.0, (1, "y"): 9.0}


def test_in_the_end_claims_swap_to_what_is_cheapest() -> None:
    found = Reservations({"x": 1, "y": 1})
    for claim in range(2):
        found.hold(claim, found.those("xy"))

    found.cheapen(lambda claim, name: COSTS[claim, name])

    assert (found.holds(0), found.holds(1)) == ("y", "x")


def test_in_the_end_claims_move_to_what_is_cheapest() -> None:
    found = Reservations({"x": 1, "y": 1})
    found.hold(0, found.those("xy"))

    found.cheapen(lambda _, name: {"x": 2.0, "y": 1.0}[name], even=("x", "y"))

    assert found.holds(0) == "y"


def test_in_the_end_a_claim_makes_room_for_one_that_gains_more_than_it_loses() -> None:
    found = Reservations({"x": 1, "y": 1, "z": 1})
    costs = {(0, "x"): 1.0, (0, "z"): 3.0, (1, "x"): 2.0, (1, "y"): 9.0}
    found.hold(1, found.those("y"))
    found.hold(0, found.those("xz"))
    found.hold(1, found.those("xy"))

    found.cheapen(lambda claim, name: costs[claim, name])

    assert (found.holds(0), found.holds(1)) == ("z", "x")


@pytest.mark.parametrize(("even", "swapped"), [(("x", "y"), False), (("x",), True), (("y",), True)])
def test_nobody_is_asked_what_swapping_two_would_cost_that_cost_all_the_same(
    even: tuple[str, ...], swapped: bool
) -> None:
    found, asked = Reservations({"x": 1, "y": 1}), list[str]()
    for claim in range(2):
        found.hold(claim, found.those("xy"))

    found.cheapen(lambda claim, name: asked.append(name) or COSTS[claim, name], even)  # type: ignore[func-returns-value]

    assert (bool(asked), found.holds(0) == "y") == (swapped, swapped)


def test_what_is_within_reach_hangs_on_what_others_can_do_without() -> None:
    found = Reservations({"x": 1, "y": 1, "z": 1})
    found.hold(0, found.those("xy"))
    found.hold(1, found.those("z"))
    assert found.names(found.within_reach(2)) == ("x", "y")

    found.hold(0, found.those("x"))

    assert found.names(found.within_reach(2)) == ("y",)
    assert [found.names(found.within_reach(claim)) for claim in range(2)] == [("x", "y"), ("y", "z")]


moves = st.lists(
    st.tuples(
        st.sampled_from(["hold", "release"]),
        st.integers(0, 5),
        st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=3).map(tuple),
    ),
    max_size=20,
)
counts = st.fixed_dictionaries({name: st.integers(0, 2) for name in NAMES})


def possible(wanted: dict[int, tuple[str, ...]], left: dict[str, int]) -> bool:
    """Whether everybody can have one of theirs: by trying everything."""
    if not wanted:
        return True
    claim, *others = wanted
    rest = {other: wanted[other] for other in others}
    return any(left[name] > 0 and possible(rest, {**left, name: left[name] - 1}) for name in wanted[claim])


@settings(max_examples=150)
@given(counts, moves)
def test_whoever_can_have_one_gets_one_and_none_is_oversold(
    left: dict[str, int], steps: list[tuple[str, int, tuple[str, ...]]]
) -> None:
    found, wanted = Reservations(left), dict[int, tuple[str, ...]]()
    for what, claim, names in steps:
        if what == "release":
            found.release(claim)
            wanted.pop(claim, None)
        else:
            asked = {**wanted, claim: names}
            promised = found.can_hold(claim, found.those(names))
            assert promised == bool(found.within_reach(claim) & found.those(names)) == possible(asked, left)
            assert found.hold(claim, found.those(names)) == promised
            wanted = asked if promised else wanted
        given_out = Counter(filter(None, (found.holds(each) for each in range(6))))
        assert all(given_out[name] <= left[name] for name in NAMES)
        assert all(found.holds(each) in names for each, names in wanted.items())


# -- whole plans -----------------------------------------------------------------------------------------------------


def paid(count: int, name: str = "t") -> InstanceType:
    """A type of which some instances are paid for."""
    reserved = offering("reserved", "a", 1.0, count, f"cr-{name}", divisor=RESERVED_DIVISOR)
    return instance_type(name, [reserved, offering("on-demand", "a", 1.0)])


def used(plan: Plan) -> Counter[str]:
    return Counter(name for claim in plan.claims for name in claim.reservations)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_as_many_claims_as_there_are_instances_go_into_a_reservation(count: int) -> None:
    types = (paid(count),)

    plan = schedule(problem(pods(4, affinity=away_from("web")), types=types))

    assert used(plan)["cr-t"] == min(count, 4)
    assert len(plan.claims) == 4
    open_to_reserved = [claim for claim in plan.claims if claim.requirements.at(CAPACITY_TYPE).has("reserved")]
    assert not count or all(claim.reservations for claim in open_to_reserved)


def test_a_pool_of_reserved_capacity_alone_refuses_the_rest_with_that_reason() -> None:
    types = (paid(1),)
    pool = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "reserved")])

    plan = schedule(problem(pods(3, affinity=away_from("web")), pool, types=types))

    assert (used(plan), len(plan.refusals)) == ({"cr-t": 1}, 2)
    assert {reason.rule for each in plan.refusals for reason in each.reasons} == {"reservations"}


def test_a_reservation_of_two_pools_is_one_reservation() -> None:
    types = (paid(1),)
    pools = [node_pool(name, labels={"example.com/pool": name}) for name in ("one", "two")]
    waiting = [pod(name, nodeSelector={"example.com/pool": name}) for name in ("one", "two")]

    assert used(schedule(problem(waiting, *pools, types=types))) == {"cr-t": 1}


def test_a_pod_may_choose_its_reservation() -> None:
    types = tuple(paid(1, name) for name in "xy")

    plan = schedule(problem([pod(nodeSelector={RESERVATION: "cr-y"})], types=types))

    assert used(plan) == {"cr-y": 1}


def test_reserved_capacity_can_be_switched_off() -> None:
    types = (paid(1),)

    plan = schedule(problem([pod()], types=types, policy=Policy(reserved_capacity=False)))

    assert (used(plan), plan.price) == ({}, 1.0)


def test_a_claim_that_was_opened_at_a_price_does_not_become_dearer_once_reservations_are_taken() -> None:
    small = instance_type("small", capacity=resources.of(cpu=4, memory="8Gi", pods=20))
    ways = [offering("reserved", available=1, reservation="cr-large", price=6.0), offering(price=6.0)]
    large = instance_type("large", ways, capacity=resources.of(cpu=8, memory="8Gi", pods=20))
    run = ValueGreedy(problem(pods(5, cpu="3"), types=(small, large)), Unlimited())

    run.place()

    assert [claim.size for claim in run.claims] == [2, 1, 1, 1]
    assert run.price() == 3 * 1.0 + 6.0
