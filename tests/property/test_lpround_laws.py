"""Plans rounded from a plan in pieces keep every rule, and put pods together that belong together."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.differential import generate
from tests.differential.judge import complaints
from tests.differential.terms import Json
from tests.strategies import scenarios

from joiner.cli import answer
from joiner.cli.scenario import read
from joiner.requirements import Requirements
from joiner.scheduling.claims import Claim
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.lpround import RepricedRun, RoundedRun
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.relaxation import Floats
from joiner.scheduling.sizes import Size

both = pytest.mark.parametrize("planner", [RoundedRun, RepricedRun], ids=lambda planner: planner.planner)


def planned(problem: Problem, planner: type[RepricedRun]) -> Plan:
    run = planner(problem, Unlimited())
    run.place()
    return run.plan()


def violations(scenario: Json, planner: type[RepricedRun]) -> list[str]:
    question = read(json.dumps(scenario).encode(), Path())
    return complaints(scenario, answer.told(question, planned(question.problem, planner)))


@both
@settings(max_examples=60, deadline=None)
@given(scenario=scenarios())
def test_every_plan_is_valid(planner: type[RepricedRun], scenario: Json) -> None:
    assert not violations(scenario, planner)


@both
@pytest.mark.parametrize("family", generate.FAMILIES)
def test_plans_of_every_family_are_valid(planner: type[RepricedRun], family: str) -> None:
    found = [words for seed in range(600, 602) for words in violations(generate.generate(family, seed), planner)]

    assert not found, "\n".join(found)


class Plain(RoundedRun):
    """The same without its short cuts: every size is tried on every claim, and goes there on its own."""

    def _some_of_each(self, claim: Claim, sizes: list[Size], wanted: list[tuple[int, int]], taken: Floats) -> None:
        for number, most in wanted:
            taken[number] += self._some(claim, sizes[number], most)

    def _never_pays(self, claim: Claim, size: Size, joined: Requirements) -> bool:
        return False


def crowded(scenario: Json, times: int) -> Json:
    """The same with so many times as many pods."""
    more = [
        {**pod, "metadata": {**pod["metadata"], "name": f"{pod['metadata']['name']}-{n}"}}
        for pod in scenario["pods"]
        for n in range(times)
    ]
    return {**scenario, "pods": more}


@pytest.mark.parametrize("family", generate.FAMILIES)
def test_short_cuts_lead_to_the_same_plan(family: str) -> None:
    for seed in range(620, 623):
        scenario = crowded(generate.generate(family, seed), 12)
        problem = read(json.dumps(scenario).encode(), Path()).problem

        assert planned(problem, RoundedRun) == planned(problem, Plain)
