"""Who listens while a plan is made hears of every way that is tried."""

import pytest
from tests.builders import Heard, existing_node, node_pool, pod, pods, problem

from joiner.model.labels import CAPACITY_TYPE
from joiner.scheduling.problem import Problem
from joiner.scheduling.reporter import COMPLETE, DEARER, LEFT_OVER, Attempt
from joiner.scheduling.schedule import schedule

MIXED = [*pods(4, "picky", "250m", nodeSelector={CAPACITY_TYPE: "on-demand"}), *pods(60, "easy", "1")]
ASKED = [
    pytest.param(problem(pods(1)), id="one pod"),
    pytest.param(problem(MIXED), id="mixed"),
    pytest.param(problem(pods(5), nodes=[existing_node()]), id="a node is there"),
    pytest.param(problem(pods(20, cpu="3"), node_pool(limits={"cpu": "30"})), id="limits"),
    pytest.param(problem([*pods(5), pod("nowhere", cpu="1000")]), id="too large"),
    pytest.param(problem([]), id="nothing"),
]


@pytest.mark.parametrize("asked", ASKED)
def test_the_plan_that_wins_is_one_of_those_that_were_told_of(asked: Problem) -> None:
    heard = Heard()

    plan = schedule(asked, reporter=heard)

    assert [each.planner for each in heard.attempts] == heard.begun
    won = [each for each in heard.attempts if each.planner.startswith(plan.planner) and not each.given_up]
    told = [(each.outcome, each.nodes, each.left_over, round(each.price, 9)) for each in won]
    outcome = LEFT_OVER if plan.refusals else COMPLETE
    assert (outcome, len(plan.claims), len(plan.refusals), round(plan.price, 9)) in told


@pytest.mark.parametrize("asked", ASKED)
def test_who_listens_changes_nothing(asked: Problem) -> None:
    assert schedule(asked, reporter=Heard()) == schedule(asked)


def test_first_fit_is_given_up_once_it_is_dearer() -> None:
    heard = Heard()
    picky = pods(30, "picky", "1", nodeSelector={CAPACITY_TYPE: "on-demand"})

    schedule(problem([*picky, *pods(900, "easy", "1")]), reporter=heard)

    assert heard.attempts[-1] == Attempt(planner="first-fit", outcome=DEARER)
