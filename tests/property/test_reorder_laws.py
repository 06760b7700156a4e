"""A plan whose queue was put in another order is a plan like any other, and no worse in any way."""

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.differential.judge import judge
from tests.differential.terms import Json
from tests.strategies import scenarios

from joiner.cli import answer
from joiner.cli.scenario import Scenario, read
from joiner.model.meta import replace
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.guarded import GuardedRun
from joiner.scheduling.problem import Problem
from joiner.scheduling.reorder import reordered
from joiner.scheduling.run import Run

each_way = pytest.mark.parametrize("planner", [Run, GuardedRun], ids=lambda planner: planner.planner)


def question(scenario: Json) -> Scenario:
    return read(json.dumps(scenario).encode(), Path())


def placed(problem: Problem, planner: type[Run]) -> Run:
    run = planner(problem, Unlimited())
    run.place()
    return run


def counts(run: Run) -> Mapping[int, int]:
    return {number: count for number, count in run.left_over().items() if count}


@each_way
@settings(max_examples=60)
@given(scenario=scenarios())
def test_the_plan_is_valid_and_no_worse_in_any_way(planner: type[Run], scenario: Json) -> None:
    asked = question(scenario)
    start = placed(asked.problem, planner)

    run = reordered(start, Run.price)

    assert run is start or run.price() < start.price()
    assert counts(run) == counts(start)
    assert run.given_up <= start.given_up
    result = answer.told(asked, run.plan())
    reserved = [
        f"claim {number} ({claim['nodePool']})"
        for number, claim in enumerate(result["newNodeClaims"])
        if claim.get("reservationIDs")
    ]
    # A claim that takes a reservation was flexible before it did; the judge sees only what it was in the end.
    wrong = [
        each for each in judge(scenario, result) if not (each.rule.startswith("min-values") and each.where in reserved)
    ]
    assert not wrong, "\n".join(map(str, wrong))


@each_way
@settings(max_examples=40)
@given(scenario=scenarios(), chance=st.randoms(use_true_random=False))
def test_the_order_of_the_question_does_not_matter(planner: type[Run], scenario: Json, chance: random.Random) -> None:
    problem = question(scenario).problem
    pods = list(problem.pods)
    chance.shuffle(pods)

    one = reordered(placed(problem, planner), Run.price)
    other = reordered(placed(replace(problem, pods=tuple(pods)), planner), Run.price)

    assert other.price() == pytest.approx(one.price(), abs=1e-9)
    assert len(other.claims) == len(one.claims)
