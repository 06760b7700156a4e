"""Why a node is bought as it is, and what wishes cost."""

from typing import Any

import pytest
from tests.builders import (
    SHELF,
    node_pool,
    pod,
    pods,
    pool_option,
    problem,
    requirement,
    spread_over,
)

from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from joiner.scheduling import merits
from joiner.scheduling.merits import Purchase, costs, purchase
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import schedule

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ON_DEMAND = node_pool("dear", [requirement(CAPACITY_TYPE, "In", "on-demand")], weight=10)
SPOT = node_pool("cheap", [requirement(CAPACITY_TYPE, "In", "spot")])


def bought(question: Problem) -> Purchase:
    plan = schedule(question)
    return purchase(question, plan, plan.claims[0])


def test_the_other_pools_say_what_they_would_have_asked() -> None:
    found = bought(problem([pod(cpu="3")], ON_DEMAND, SPOT))

    assert found.weight == 10
    (rival,) = found.rivals
    assert (rival.nodepool, rival.weight) == ("cheap", 0)
    assert rival.price == pytest.approx(0.16)


def test_a_pool_that_could_not_take_the_pods_says_why() -> None:
    found = bought(problem([pod(cpu="3")], pool_option(SPOT), pool_option(node_pool("tiny"), SHELF[:1])))

    (rival,) = found.rivals
    assert (rival.nodepool, rival.price) == ("tiny", None)
    assert rival.reason.startswith("1 type, 0 after cpu 3")


@pytest.mark.parametrize(
    ("spec", "cheaper"),
    [
        pytest.param({"cpu": "3"}, {merits.TOO_SMALL: 2}, id="size"),
        pytest.param({"nodeSelector": {"node.kubernetes.io/instance-type": "m-4"}}, {merits.EXCLUDED: 1}, id="label"),
    ],
)
def test_types_that_cost_less_are_counted_by_why_they_would_not_do(
    spec: dict[str, Any], cheaper: dict[str, int]
) -> None:
    types = [SHELF[2], SHELF[1]] if "nodeSelector" in spec else SHELF
    found = bought(problem([pod(**spec)], types=types))

    assert found.cheaper == cheaper


def test_the_runner_up_is_the_next_cheapest_type() -> None:
    found = bought(problem([pod(cpu="3")]))

    assert found.types == 3
    assert found.runner_up is not None
    assert found.runner_up.name == "m-8"
    assert found.runner_up.offering.cost == pytest.approx(0.32)


def likes(key: str, value: str) -> dict[str, Any]:
    term = {"weight": 1, "preference": {"matchExpressions": [requirement(key, "In", value)]}}
    return {"nodeAffinity": {PREFERRED: [term]}}


WISHES: dict[str, tuple[dict[str, Any], float]] = {
    "a preference that costs": ({"affinity": likes(CAPACITY_TYPE, "on-demand")}, 0.06),
    "a preference that costs nothing": ({"affinity": likes(CAPACITY_TYPE, "spot")}, 0.0),
    "a spread of one": ({"topologySpreadConstraints": [spread_over("web")]}, 0.0),
}


@pytest.mark.parametrize(("spec", "price"), WISHES.values(), ids=WISHES)
def test_a_wish_costs_what_is_saved_without_it(spec: dict[str, Any], price: float) -> None:
    question = problem([pod(labels={"app": "web"}, **spec)])

    (found,) = costs(question, schedule(question), question.pods, 9)

    assert found.hourly == pytest.approx(price)


def test_pods_of_one_kind_are_priced_together() -> None:
    question = problem(pods(6, cpu="500m", topologySpreadConstraints=[spread_over("web", HOSTNAME)]))

    (found,) = costs(question, schedule(question), question.pods, 9)

    # Six nodes of one cpu, or one of four: 6 * 0.04 and 0.12 or a little more.
    assert found.pods == 6
    assert found.hourly is not None
    assert found.hourly > 0.05


def test_plans_that_place_other_pods_are_not_compared() -> None:
    spread = spread_over("web", ZONE, minDomains=9)
    question = problem(pods(6, topologySpreadConstraints=[spread]))

    assert [each.hourly for each in costs(question, schedule(question), question.pods, 9)] == [None]


def test_no_more_wishes_are_priced_than_asked_for() -> None:
    question = problem([*pods(2, "a", affinity=likes(ZONE, "a")), *pods(3, "b", affinity=likes(ZONE, "b"))])

    (first,) = costs(question, schedule(question), question.pods, 1)

    assert first.pod == "default/b-0"
    assert merits.wishes(question.pods) == 2


def test_what_the_order_of_pools_costs_is_found_by_asking_another_first() -> None:
    question = problem(pods(3), ON_DEMAND, SPOT)
    plan = schedule(question)

    found = merits.best_order(question, plan, 9)

    assert found is not None
    assert found[0] == "cheap"
    assert found[1] < plan.price


def test_where_the_first_pool_is_the_cheapest_there_is_nothing_to_tell() -> None:
    question = problem(pods(3), SPOT, node_pool("aaa", [requirement(CAPACITY_TYPE, "In", "on-demand")]))

    assert merits.best_order(question, schedule(question), 9) is None


def test_a_plan_without_spread_is_compared_only_where_there_is_spread() -> None:
    spread = problem(pods(6, cpu="500m", topologySpreadConstraints=[spread_over("web", HOSTNAME)]))
    price = merits.compared(merits.without_spread(spread), schedule(spread))

    assert merits.without_spread(problem(pods(3))) is None
    assert price is not None
    assert price < schedule(spread).price
