"""Why a node is bought as it is, and what wishes cost."""

from typing import Any

import pytest
from tests.builders import (
    SHELF,
    away_from,
    node_pool,
    pod,
    pods,
    pool_option,
    problem,
    requirement,
    spread_over,
)

from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from joiner.model.meta import OwnerReference, replace
from joiner.model.pod import Pod
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import schedule
from joiner.scheduling.whatif import alternatives
from joiner.scheduling.whatif.alternatives import PurchaseReasons, costs, purchase, wishes

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ON_DEMAND = node_pool("dear", [requirement(CAPACITY_TYPE, "In", "on-demand")], weight=10)
SPOT = node_pool("cheap", [requirement(CAPACITY_TYPE, "In", "spot")])


def bought(question: Problem) -> PurchaseReasons:
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
        pytest.param({"cpu": "3"}, {alternatives.TOO_SMALL: 2}, id="size"),
        pytest.param(
            {"nodeSelector": {"node.kubernetes.io/instance-type": "m-4"}}, {alternatives.EXCLUDED: 1}, id="label"
        ),
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

    (found,) = costs(question, schedule(question), wishes(question.pods))

    assert found.hourly == pytest.approx(price)


def test_pods_of_one_kind_are_priced_together() -> None:
    question = problem(pods(6, cpu="500m", topologySpreadConstraints=[spread_over("web", HOSTNAME)]))

    (found,) = costs(question, schedule(question), wishes(question.pods))

    # Six nodes of one cpu, or one of four: 6 * 0.04 and 0.12 or a little more.
    assert found.pods == 6
    assert found.hourly is not None
    assert found.hourly > 0.05


def test_plans_that_place_other_pods_are_not_compared() -> None:
    spread = spread_over("web", ZONE, minDomains=9)
    question = problem(pods(6, topologySpreadConstraints=[spread]))

    assert [each.hourly for each in costs(question, schedule(question), wishes(question.pods))] == [None]


def test_wishes_of_large_workloads_come_first() -> None:
    found = wishes([*pods(2, "a", affinity=likes(ZONE, "a")), *pods(3, "b", affinity=likes(ZONE, "b"))])

    assert [(each.pod.key, each.pods) for each in found] == [("default/b-0", 3), ("default/a-0", 2)]


@pytest.mark.parametrize(("pods_", "most"), [(0, 20), (1000, 20), (2000, 10), (100_000, 3)])
def test_the_more_pods_there_are_the_fewer_wishes_are_priced(pods_: int, most: int) -> None:
    assert alternatives.affordable(pods_) == most


def owned(number: int, owner: str = "db") -> Pod:
    """A pod as a StatefulSet makes it, with a volume and labels of its own."""
    made = pod(
        f"{owner}-{number}",
        cpu="500m",
        labels={"app": "db", "apps.kubernetes.io/pod-index": str(number)},
        affinity=away_from("db", HOSTNAME),
        volumes=[{"name": f"kube-api-access-{number}"}],
    )
    by = OwnerReference(api_version="apps/v1", kind="StatefulSet", name=owner, uid=owner, controller=True)
    return replace(made, metadata=replace(made.metadata, owner_references=(by,)))


def test_pods_of_one_controller_are_priced_together_whatever_their_names_and_volumes() -> None:
    question = problem([owned(number) for number in range(6)])

    (found,) = costs(question, schedule(question), wishes(question.pods))

    assert found.pods == 6
    assert found.hourly is not None
    assert found.hourly > 0.05


def test_pods_of_two_controllers_are_not_alike() -> None:
    assert [each.pods for each in wishes([owned(0), owned(1), owned(0, "other")])] == [2, 1]


def test_a_preference_that_excludes_what_is_cheaper_is_named() -> None:
    found = bought(problem([pod(affinity=likes(CAPACITY_TYPE, "on-demand"))]))

    (heeded,) = found.heeded
    assert heeded.says == f"preferred node affinity {CAPACITY_TYPE} In [on-demand]"
    assert heeded.price == pytest.approx(0.04)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"affinity": likes(CAPACITY_TYPE, "spot")}, id="what is cheapest anyway"),
        pytest.param(
            {"affinity": likes(CAPACITY_TYPE, "on-demand"), "nodeSelector": {CAPACITY_TYPE: "on-demand"}},
            id="what is demanded as well",
        ),
    ],
)
def test_a_preference_that_excludes_nothing_is_not_named(spec: dict[str, Any]) -> None:
    assert bought(problem([pod(**spec)])).heeded == ()


def test_a_plan_without_preferences_is_compared_only_where_there_are_some() -> None:
    assert alternatives.without_preferences(problem([pod(topologySpreadConstraints=[spread_over("web")])])) is None
    loose = alternatives.without_preferences(problem([pod(affinity=likes(ZONE, "a"))]))

    assert loose is not None
    assert loose.pods[0].spec == pod().spec


def test_what_the_order_of_pools_costs_is_found_by_asking_another_first() -> None:
    question = problem(pods(3), ON_DEMAND, SPOT)
    plan = schedule(question)

    found = alternatives.best_order(question, plan, 9)

    assert found is not None
    assert found[0] == "cheap"
    assert found[1] < plan.price


def test_where_the_first_pool_is_the_cheapest_there_is_nothing_to_tell() -> None:
    question = problem(pods(3), SPOT, node_pool("aaa", [requirement(CAPACITY_TYPE, "In", "on-demand")]))

    assert alternatives.best_order(question, schedule(question), 9) is None


def test_a_plan_without_spread_is_compared_only_where_there_is_spread() -> None:
    spread = problem(pods(6, cpu="500m", topologySpreadConstraints=[spread_over("web", HOSTNAME)]))
    price = alternatives.compared(alternatives.without_spread(spread), schedule(spread))

    assert alternatives.without_spread(problem(pods(3))) is None
    assert price is not None
    assert price < schedule(spread).price
