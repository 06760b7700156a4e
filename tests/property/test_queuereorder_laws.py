"""A plan whose queue was put in another order is a plan like any other, and no worse in any way."""

import json
import random
from pathlib import Path

import pytest
from tests.differential import generate
from tests.differential.judge import complaints
from tests.differential.terms import Json

from joiner.model.meta import replace
from joiner.offline.scenario import answer
from joiner.offline.scenario.reader import read
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.planners.leastincrease import LeastIncrease
from joiner.scheduling.planners.queuereorder import reordered
from joiner.scheduling.problem import Problem
from joiner.scheduling.report.plannedclaims import to_plan

each_way = pytest.mark.parametrize("planner", [FirstFit, LeastIncrease], ids=lambda planner: planner.planner)
SCENARIOS = [generate.generate(family, seed) for family in generate.FAMILIES for seed in range(700, 704)]
MIXED = [generate.generate("mixed", seed) for seed in range(710, 730)]


def asked(scenario: Json) -> Problem:
    return read(json.dumps(scenario).encode(), Path()).problem


def placed(problem: Problem, planner: type[FirstFit]) -> FirstFit:
    run = planner(problem, Unlimited())
    run.place()
    return run


def wrong(scenario: Json, run: FirstFit) -> list[str]:
    return complaints(scenario, answer.told(read(json.dumps(scenario).encode(), Path()), to_plan(run)))


@each_way
def test_the_plan_is_valid_and_no_worse_in_any_way(planner: type[FirstFit]) -> None:
    repaired = 0
    for scenario in SCENARIOS:
        start = placed(asked(scenario), planner)

        run = reordered(start, FirstFit.price)

        if run is not start:
            repaired += 1
            assert run.price() < start.price()
            assert run.left_over() == start.left_over()
            assert run.given_up <= start.given_up
            assert not wrong(scenario, run), scenario["name"]
    assert repaired >= 10


@each_way
def test_the_order_of_the_question_does_not_matter(planner: type[FirstFit]) -> None:
    repaired = 0
    for scenario in MIXED:
        problem = asked(scenario)
        pods, nodes = list(problem.pods), list(problem.nodes)
        for each in (pods, nodes):
            random.Random(len(pods)).shuffle(each)
        start = placed(problem, planner)

        one = reordered(start, FirstFit.price)
        other = reordered(placed(replace(problem, pods=tuple(pods), nodes=tuple(nodes)), planner), FirstFit.price)

        repaired += one is not start
        assert other.price() == pytest.approx(one.price(), abs=1e-9)
        assert len(other.claims) == len(one.claims)
    assert repaired >= 5
