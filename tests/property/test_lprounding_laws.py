"""Plans rounded from a plan in pieces keep every rule, and put pods together that belong together."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.differential import generate, pieces
from tests.differential.judge import complaints
from tests.differential.terms import Json
from tests.strategies import scenarios

from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from joiner.offline.scenario import answer
from joiner.offline.scenario.reader import read
from joiner.requirements import Requirements
from joiner.scheduling.bound.relaxation import Floats
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.nodes.openclaim import Claim
from joiner.scheduling.plan import Plan
from joiner.scheduling.planners.lprounding import LpPriced, LpRounded
from joiner.scheduling.planners.podsizes import Size
from joiner.scheduling.problem import Problem
from joiner.scheduling.report.plannedclaims import to_plan

both = pytest.mark.parametrize("planner", [LpRounded, LpPriced], ids=lambda planner: planner.planner)


def planned(problem: Problem, planner: type[FirstFit]) -> Plan:
    run = planner(problem, Unlimited())
    run.place()
    return to_plan(run)


def violations(scenario: Json, planner: type[LpPriced]) -> list[str]:
    question = read(json.dumps(scenario).encode(), Path())
    return complaints(scenario, answer.told(question, planned(question.problem, planner)))


@both
@settings(max_examples=60, deadline=None)
@given(scenario=scenarios())
def test_every_plan_is_valid(planner: type[LpPriced], scenario: Json) -> None:
    assert not violations(scenario, planner)


@both
@pytest.mark.parametrize("family", generate.FAMILIES)
def test_plans_of_every_family_are_valid(planner: type[LpPriced], family: str) -> None:
    found = [words for seed in range(600, 602) for words in violations(generate.generate(family, seed), planner)]

    assert not found, "\n".join(found)


class PlainFirstFit(FirstFit):
    """First fit that asks every claim, even if another one like it has refused the pod."""

    def _like(self, number: int) -> int:
        return 1 << number


class Plain(PlainFirstFit, LpRounded):
    """The same without its short cuts: every size is tried on every claim, and goes there on its own."""

    def _some_of_each(self, claim: Claim, sizes: list[Size], wanted: list[tuple[int, int]], taken: Floats) -> None:
        for number, most in wanted:
            taken[number] += self._some(claim, sizes[number], most)

    def _never_pays(self, claim: Claim, size: Size, joined: Requirements) -> bool:
        return False


def services(seed: int) -> Json:
    """A few dozen pods of each of some services: picky ones, spread ones, and plain ones that the others count."""
    rng = random.Random(seed)
    zones = pieces.ZONES[: rng.randint(2, 3)]
    made: list[Json] = []
    for number in range(rng.randint(3, 7)):
        app, other = rng.choice(["web", "db"]), rng.choice(["web", "db"])
        asks: list[Json] = [
            {},
            {"nodeSelector": {ZONE: rng.choice(zones)}},
            {"nodeSelector": {CAPACITY_TYPE: "on-demand"}},
            {"topologySpreadConstraints": [pieces.spread(ZONE, other, hard=rng.random() < 0.8)]},
            {"topologySpreadConstraints": [pieces.spread(HOSTNAME, app, skew=rng.randint(1, 3))]},
            {"affinity": {"podAffinity": pieces.near(ZONE, other)}},
            {"affinity": {"podAffinity": pieces.near(HOSTNAME, other)}},
            {"affinity": {"podAntiAffinity": pieces.near(HOSTNAME, other)}},
            {"tolerations": [{"operator": "Exists"}]},
        ]
        for pod in pieces.replicas(rng, app, rng.randint(5, 40), **rng.choice(asks)):
            pod["metadata"]["name"] = f"{number}-{pod['metadata']['name']}"
            made.append(pod)
    pool = pieces.pool(weight=1)
    if rng.random() < 0.5:
        pool["spec"]["limits"] = {"cpu": str(rng.randint(20, 120))}
    tainted = pieces.pool("tainted", taints=[{"key": "own", "effect": "NoSchedule"}], weight=rng.randint(0, 2))
    return {
        "instanceTypes": pieces.types(rng, zones=zones),
        "nodePools": [pool, tainted],
        "pods": made,
    }


@pytest.mark.parametrize("block", range(8))
def test_short_cuts_lead_to_the_same_plan(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        problem = read(json.dumps(services(seed)).encode(), Path()).problem

        assert planned(problem, LpRounded) == planned(problem, Plain)
        assert planned(problem, FirstFit) == planned(problem, PlainFirstFit)
