"""Claims that are copied are what they would have been, had they been filled one by one."""

import json
from pathlib import Path

import pytest
from benchmarks import mixes
from hypothesis import given, settings
from tests.differential.judge import judge
from tests.differential.terms import Json
from tests.strategies import scenarios

from joiner.offline.scenario import answer
from joiner.offline.scenario.reader import read
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.planners import valuegreedy
from joiner.scheduling.planners.valuegreedy import ValueGreedy
from joiner.scheduling.problem import Problem
from joiner.scheduling.report.plannedclaims import to_plan


def placed(problem: Problem) -> ValueGreedy:
    run = ValueGreedy(problem, Unlimited())
    run.place()
    return run


def one_by_one(problem: Problem) -> ValueGreedy:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(valuegreedy, "repeat", lambda run, claim, most: 0)
        return placed(problem)


@settings(max_examples=40, deadline=None)
@given(scenario=scenarios())
def test_copies_leave_nobody_out_and_cost_no_more(scenario: Json) -> None:
    problem = read(json.dumps(scenario).encode(), Path()).problem
    copied, filled = placed(problem), one_by_one(problem)

    assert copied.left_over() == filled.left_over()
    assert copied.price() <= filled.price() * 1.25 + 1e-9


@pytest.mark.parametrize("mix", [mixes.deployments(1_000, services=20, types=60), mixes.benchmark(300, types=40)])
def test_plans_with_copies_keep_every_rule(mix: Json) -> None:
    question = read(json.dumps(mix).encode(), Path())

    assert judge(mix, answer.told(question, to_plan(placed(question.problem)))) == []
