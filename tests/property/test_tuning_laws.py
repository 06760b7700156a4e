"""What holds with the dials turned, wherever they stand: plans are valid, and cost no more than the dials allow."""

from hypothesis import given
from hypothesis import strategies as st
from tests.differential.judge import judge
from tests.differential.terms import Json
from tests.property.test_schedule_laws import FEW, question
from tests.strategies import scenarios

from joiner.model.labels import SPOT
from joiner.model.meta import replace
from joiner.offline.scenario import answer
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.report.plannedclaims import to_plan
from joiner.scheduling.schedule import schedule
from joiner.scheduling.tuning import charge

FRACTIONS = st.sampled_from([0.01, 0.1, 1.0, 10.0])
WIDTHS = st.integers(2, 4)
HAIR = 1e-6


def turned(problem: Problem, **dials: float) -> Problem:
    return replace(problem, policy=replace(problem.policy, **dials))


def left_over(plan: Plan) -> int:
    return len(plan.refusals) + len(plan.not_attempted)


def comparable(one: Plan, other: Plan) -> bool:
    """Whether only money tells the plans apart: they leave as many pods over and use as many reservations."""
    reserved = [sum(bool(claim.options[0].offering.reserved) for claim in plan.claims) for plan in (one, other)]
    return left_over(one) == left_over(other) and reserved[0] == reserved[1]


@FEW
@given(scenarios(), FRACTIONS, WIDTHS)
def test_every_plan_is_valid(scenario: Json, fraction: float, width: int) -> None:
    asked = question(scenario)
    problem = turned(asked.problem, node_price=fraction, spot_width=width, spot_width_cost=10.0)
    wrong = judge(scenario, answer.told(asked, schedule(problem)))

    # A claim that takes a reservation was flexible before it did; the judge sees only what it was in the end.
    assert not [each for each in wrong if not each.rule.startswith("min-values")]


@FEW
@given(scenarios(), FRACTIONS)
def test_no_plan_is_dearer_for_the_node_price_than_first_fit(scenario: Json, fraction: float) -> None:
    problem = turned(question(scenario).problem, node_price=fraction)
    net = FirstFit(problem, Unlimited())
    net.place()
    first_fit, plan = to_plan(net), schedule(problem)

    assert not comparable(plan, first_fit) or plan.price <= first_fit.price * (1 + HAIR)


@FEW
@given(scenarios(), FRACTIONS)
def test_a_node_less_costs_no_more_than_it_is_charged(scenario: Json, fraction: float) -> None:
    problem = question(scenario).problem
    each = charge(turned(problem, node_price=fraction))
    off, on = schedule(problem), schedule(turned(problem, node_price=fraction))

    saved = len(off.claims) - len(on.claims)
    assert not comparable(on, off) or on.price <= off.price + each * saved + HAIR * (off.price + each)


@FEW
@given(scenarios(), WIDTHS, st.sampled_from([0.0, 0.1, 1.0]))
def test_spot_width_costs_no_more_than_it_may(scenario: Json, width: int, part: float) -> None:
    problem = question(scenario).problem
    off, on = schedule(problem), schedule(turned(problem, spot_width=width, spot_width_cost=part))

    assert left_over(on) == left_over(off)
    assert on.price <= off.price * (1 + part) * (1 + HAIR)
    assert narrow(on, width) <= narrow(off, width)


def narrow(plan: Plan, width: int) -> int:
    """How many pods are on spot claims with few types."""
    few = [claim for claim in plan.claims if claim.options[0].offering.capacity_type == SPOT]
    return sum(len(claim.pods) for claim in few if len(claim.options) < width)
