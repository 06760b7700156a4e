"""Local repair: a class that goes before all others, or after them, may save a node."""

from typing import Any

import pytest
from tests.builders import (
    Heard,
    away_from,
    existing_node,
    instance_type,
    near_to,
    node_pool,
    offering,
    pod,
    pods,
    problem,
    requirement,
)

from joiner.model import resources
from joiner.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.planners.queuereorder import reordered
from joiner.scheduling.planners.table import SMALL
from joiner.scheduling.problem import Policy, Problem
from joiner.scheduling.reporter import NOTHING_NEW
from joiner.scheduling.schedule import schedule

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
    start = FirstFit(problem(waiting, node_pool(limits={"cpu": "20"})), Unlimited())
    start.place()
    thrifty = start.again([2, 3, 4, 5, 0, 1], cost_max=1.0)
    assert thrifty is not None
    assert (thrifty.price(), thrifty.given_up.total()) == pytest.approx((0.32, 2))

    run = reordered(start, FirstFit.price)

    assert (run.price(), run.given_up.total()) == pytest.approx((0.80, 0))


def liking_ssd(weight: int) -> dict[str, Any]:
    term = {"weight": weight, "preference": {"matchExpressions": [requirement("disk", "In", "ssd")]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_no_class_pays_with_its_preference_for_another() -> None:
    waiting = [
        *pods(2, "web", cpu="2", affinity=liking_ssd(100)),
        *pods(4, "steady", nodeSelector=STEADY, affinity=liking_ssd(1)),
    ]

    plan = schedule(problem(waiting, nodes=(existing_node("node-a", labels={**STEADY, "disk": "ssd"}),)))

    assert plan.placements == {"node-a": ("default/web-0", "default/web-1")}


@pytest.mark.parametrize("factor", [1.0, 2.0, 3.0, 10.0])
def test_the_last_digit_of_a_sum_decides_nothing(factor: float) -> None:
    kinds = [
        instance_type(
            f"m{cpu}", [offering(price=cpu / 10 * factor)], capacity=resources.of(cpu=cpu, memory="64Gi", pods=40)
        )
        for cpu in (1, 7, 8)
    ]
    shy = pod("shy", cpu="7", affinity=away_from("small"), labels={"app": "shy"})
    waiting = [pod("large", cpu="7", labels={"app": "large"}), shy, pod("small", labels={"app": "small"})]
    room = existing_node(allocatable=resources.of(cpu=7, memory="64Gi", pods=20))

    plan = schedule(problem(waiting, types=kinds, nodes=(room,), policy=Policy(node_price=0.05)))

    assert len(plan.claims) == 1
    assert plan.price == pytest.approx(0.8 * factor)


def test_nothing_is_repaired_where_nothing_is_bought() -> None:
    heard = Heard()
    asked = problem(pods(2, affinity=liking_ssd(1)), nodes=(existing_node(),))

    assert schedule(asked, reporter=heard).price == 0
    assert not any(attempt.planner.endswith(", reordered") for attempt in heard.attempts)


def tried(question: Problem) -> set[str]:
    heard = Heard()
    schedule(question, reporter=heard)
    return {attempt.planner for attempt in heard.attempts}


def test_nothing_else_is_tried_where_first_fit_and_price_agree_on_one_node() -> None:
    one, several = (tried(problem(pods(3, cpu=cpu, affinity=near_to("web")))) for cpu in ("100m", "10"))

    assert not any(each.startswith("first-fit, favouring") for each in one)
    assert any(each.startswith("first-fit, favouring") for each in several)


def test_every_class_must_have_its_turn_where_no_node_is_there_to_fight_for() -> None:
    few = [each for number in range(3) for each in pods(6, f"app-{number}", cpu=f"{3 + number}")]
    many = [each for number in range(12) for each in pods(2, f"app-{number}", cpu=f"{3 + number}")]

    assert any(each.endswith(", reordered") for each in tried(problem(few)))
    assert not any(each.endswith(", reordered") for each in tried(problem(many)))
