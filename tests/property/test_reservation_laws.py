"""Shortcuts around reservations: a plan is the same without any of them."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.builders import away_from, instance_type, near_to, offering, pods, problem, spread_over

from joiner.catalog.market import RESERVED_DIVISOR, InstanceType
from joiner.model import resources
from joiner.model.labels import ZONE
from joiner.scheduling.engine import firstfit
from joiner.scheduling.engine.pricing import Costs
from joiner.scheduling.nodes.openclaim import PASSING, RESERVATIONS
from joiner.scheduling.nodes.placementrules import PlacementRules
from joiner.scheduling.plan import Plan
from joiner.scheduling.planners import valuegreedy
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import schedule

WISHES: tuple[dict[str, Any], ...] = (
    {},
    {"affinity": away_from("x")},
    {"affinity": near_to("x")},
    {"topologySpreadConstraints": [spread_over("x")]},
    {"nodeSelector": {ZONE: "a"}},
    {"nodeSelector": {ZONE: "b"}, "affinity": away_from("x")},
)
CPUS = ("500m", "1", "3")


def sold(number: int, reserved: dict[str, int]) -> InstanceType:
    """A type on the market in two zones, with so many machines paid for in some."""
    price = float(2**number)
    market = [offering("on-demand", zone, price) for zone in "ab"]
    paid = [
        offering("reserved", zone, price, count, f"cr-{5 - number}-{zone}", divisor=RESERVED_DIVISOR)
        for zone, count in sorted(reserved.items())
    ]
    capacity = resources.of(cpu=2**number, memory=f"{2 ** (number + 2)}Gi", pods=29)
    return instance_type(f"t-{number}", [*market, *paid], capacity=capacity)


Paid = dict[str, int]
"""Zone to how many machines of a type are paid for there."""
Kind = tuple[int, str, str, int]
"""How many pods, of which size, of which app, and the number of what they ask for."""
paid = st.lists(st.dictionaries(st.sampled_from("ab"), st.integers(1, 3)), min_size=4, max_size=4)
kinds = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from(CPUS), st.sampled_from("xyz"), st.integers(0, len(WISHES) - 1)),
    min_size=1,
    max_size=8,
)


def question(paid: list[Paid], kinds: list[Kind]) -> Problem:
    waiting = [
        each
        for number, (count, cpu, app, wish) in enumerate(kinds)
        for each in pods(count, f"{app}-{number}", cpu, labels={"app": app}, **WISHES[wish])
    ]
    return problem(waiting, types=[sold(number, some) for number, some in enumerate(paid, 1)])


def without_bounds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PlacementRules, "to_be_had", lambda _, claim: claim.units)


def without_memory_of_places(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(firstfit, "NOWHERE", object())


def without_closing_claims(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(firstfit, "PASSING", PASSING | {RESERVATIONS})


def without_even_prices(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Costs, "_same_for_all", lambda _: {})


def without_giving_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(valuegreedy.ConstrainedFirst, "_arrange", valuegreedy.ValueGreedy._arrange)


def told(plan: Plan) -> object:
    claims = [(each.pods, each.reservations, each.requirements, each.options) for each in plan.claims]
    return claims, plan.refusals, plan.planner


SHORTCUTS: tuple[Callable[[pytest.MonkeyPatch], None], ...] = (
    without_bounds,
    without_memory_of_places,
    without_closing_claims,
    without_even_prices,
    without_giving_up,
)


@settings(max_examples=60, phases=(Phase.explicit, Phase.generate))
@given(paid, kinds)
def test_no_shortcut_changes_a_plan(paid: list[Paid], kinds: list[Kind]) -> None:
    asked = question(paid, kinds)
    expected = told(schedule(asked))

    for without in SHORTCUTS:
        with pytest.MonkeyPatch.context() as patch:
            without(patch)
            assert told(schedule(asked)) == expected, without.__name__
