"""Local repair: a class that goes before all others, or after them, may save a node."""

import pytest
from tests.builders import Heard, existing_node, node_pool, pods, problem, requirement

from joiner.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.problem import Problem
from joiner.scheduling.reorder import reordered
from joiner.scheduling.reporter import NOTHING_NEW
from joiner.scheduling.run import Run
from joiner.scheduling.schedule import SMALL, schedule

STEADY = {CAPACITY_TYPE: ON_DEMAND}


def contested(times: int = 1) -> Problem:
    """A node that is dear to buy: the larger pods come first and take it, though they could be anywhere else for less."""
    waiting = [*pods(2 * times, "web", cpu="2"), *pods(4 * times, "steady", nodeSelector=STEADY)]
    nodes = [existing_node(f"node-{number:02}", labels=STEADY) for number in range(times)]
    return problem(waiting, nodes=tuple(nodes))


@pytest.mark.parametrize("times", [1, 20], ids=["tiny", "small"])
def test_who_can_hardly_be_elsewhere_goes_first(times: int) -> None:
    plan = schedule(contested(times))

    assert {pod.split("-")[0] for on_node in plan.placements.values() for pod in on_node} == {"default/steady"}
    assert plan.price == pytest.approx(0.16 * times)
    assert plan.planner.endswith(", reordered")


def test_large_plans_are_left_as_they_are() -> None:
    asked = contested(SMALL // 6 + 1)

    assert not schedule(asked).planner.endswith(", reordered")


def test_a_reporter_hears_of_the_repair_once_for_each_way() -> None:
    heard = Heard()

    schedule(contested(), reporter=heard)

    repaired = [attempt for attempt in heard.attempts if attempt.planner.endswith(", reordered")]
    assert [attempt.planner for attempt in repaired] == ["first-fit, reordered", "guarded, reordered"]
    assert {attempt.price for attempt in repaired} == {0.16}
    assert heard.begun == [attempt.planner for attempt in heard.attempts]


def test_who_finds_nothing_better_says_so() -> None:
    heard = Heard()
    asked = problem([*pods(2, "web", cpu="2"), *pods(4, "api")], nodes=(existing_node(),))

    schedule(asked, reporter=heard)

    assert [each.outcome for each in heard.attempts if each.planner.endswith(", reordered")] == [NOTHING_NEW] * 2


def test_nobody_gives_up_a_preference_to_save_money() -> None:
    large, not_large = (requirement(INSTANCE_TYPE, operator, "m-16") for operator in ("In", "NotIn"))
    liked = {"weight": 1, "preference": {"matchExpressions": [large]}}
    needed = {"nodeSelectorTerms": [{"matchExpressions": [not_large]}]}
    rules = {"preferred": [liked], "required": needed}
    fond, averse = (
        {"nodeAffinity": {f"{kind}DuringSchedulingIgnoredDuringExecution": rule}} for kind, rule in rules.items()
    )
    waiting = [*pods(2, "fond", cpu="2", affinity=fond), *pods(4, "averse", affinity=averse)]
    start = Run(problem(waiting, node_pool(limits={"cpu": "20"})), Unlimited())
    start.place()
    thrifty = start.again([2, 3, 4, 5, 0, 1], cost_max=1.0)
    assert thrifty is not None
    assert (thrifty.price(), thrifty.given_up) == pytest.approx((0.32, 2))

    run = reordered(start, Run.price)

    assert (run.price(), run.given_up) == pytest.approx((0.80, 0))
