"""Pods that stay together go where all of them are cheap, not where the first one is."""

from typing import Any

import pytest
from tests.builders import existing_node, instance_type, near_to, node_pool, offering, pod, pods, pool_option, problem

from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import ZONE
from joiner.model.nodepool import NodePool
from joiner.scheduling.engine.prepared import PreparedProblem
from joiner.scheduling.schedule import schedule

SMALL, LARGE = (resources.of(cpu=cpu, memory="64Gi", pods=40) for cpu in (1, 10))
KINDS = (
    instance_type("small", [offering(zone="a", price=1.0), offering(zone="b", price=1.1)], capacity=SMALL),
    instance_type("large", [offering(zone="b", price=4.0)], capacity=LARGE),
)
TOGETHER: dict[str, Any] = {"affinity": near_to("web")}


@pytest.mark.parametrize(("count", "zone", "price"), [(1, "a", 1.0), (3, "a", 3.0), (10, "b", 4.0), (450, "b", 180.0)])
def test_the_more_there_are_the_less_the_first_one_matters(count: int, zone: str, price: float) -> None:
    plan = schedule(problem(pods(count, **TOGETHER), types=KINDS))

    assert {min(claim.requirements[ZONE].values) for claim in plan.claims} == {zone}
    assert plan.price == pytest.approx(price)


def ranked(*waiting: Any, **more: Any) -> list[str]:
    """The zones of the only group, best first."""
    prepared = PreparedProblem(problem(waiting, **{"types": KINDS, **more}))
    (group,) = {group for each in prepared.classes for group, _ in each.steps[0].groups}
    return sorted(group.domains, key=lambda domain: group.ranks[domain])


def test_a_zone_where_one_of_them_cannot_be_comes_last() -> None:
    large = pod("large", cpu="8", labels={"app": "web"}, **TOGETHER)

    assert ranked(*pods(2, **TOGETHER)) == ["a", "b"]
    assert ranked(*pods(2, **TOGETHER), large) == ["b", "a"]


@pytest.mark.parametrize(("taints", "best"), [([], ["b", "a"]), ([{"key": "x", "effect": "NoSchedule"}], ["a", "b"])])
def test_a_pool_whose_taints_they_do_not_tolerate_does_not_count(taints: list[Any], best: list[str]) -> None:
    bargain = instance_type("bargain", [offering(zone="b", price=0.1)], capacity=SMALL)
    pool = decode({"metadata": {"name": "bargains"}, "spec": {"template": {"spec": {"taints": taints}}}}, NodePool)

    assert ranked(*pods(1, **TOGETHER), pools=(pool_option(pool, [bargain]), node_pool("all"))) == best


def test_a_group_that_is_somewhere_already_stays_there() -> None:
    there = pod("old", labels={"app": "web"}, nodeName="node-a")
    full = existing_node("node-a", "a", allocatable=resources.of(cpu=0, pods=0))

    plan = schedule(problem(pods(10, **TOGETHER), types=KINDS, nodes=(full,), bound=(there,)))

    assert {min(claim.requirements[ZONE].values) for claim in plan.claims} == {"a"}


TWO_PRICES = (
    instance_type("dear", [offering(zone="a", price=5.0)], capacity=LARGE),
    instance_type("cheap", [offering(zone="b", price=1.0)], capacity=LARGE),
)
IN_A = [{"key": ZONE, "operator": "In", "values": ["a"]}]
LIKES_A = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": IN_A}}]}
A_OR_ANYWHERE = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]} for zone in "ab"
        ]
    }
}


@pytest.mark.parametrize("wish", [LIKES_A, A_OR_ANYWHERE], ids=["a preference", "one of two terms"])
def test_what_one_of_them_would_rather_have_does_not_decide_for_all(wish: dict[str, Any]) -> None:
    choosy = pod("choosy", labels={"app": "web"}, affinity={**near_to("web"), "nodeAffinity": wish})

    assert ranked(*pods(9, **TOGETHER), choosy, types=TWO_PRICES) == ["b", "a"]


def test_one_that_can_be_nowhere_does_not_decide_for_all() -> None:
    huge = pod("huge", cpu="99", labels={"app": "web"}, **TOGETHER)

    assert ranked(*pods(9, **TOGETHER), huge, types=TWO_PRICES) == ["b", "a"]


def test_those_who_follow_count_too() -> None:
    leader, followers = pods(1, **TOGETHER), pods(9, "follower", **TOGETHER)

    assert ranked(*leader) == ["a", "b"]
    assert ranked(*leader, *followers) == ["b", "a"]


def test_pods_that_differ_in_their_number_only_share_nodes() -> None:
    numbered = [pod(f"web-{n}", labels={"app": "web", "pod-index": str(n)}, **TOGETHER) for n in range(10)]

    assert ranked(*numbered) == ["b", "a"]


def test_a_pool_that_may_buy_nothing_more_does_not_count() -> None:
    bargain = instance_type("bargain", [offering(zone="b", price=0.1)], capacity=SMALL)
    full = pool_option(node_pool("full", weight=10, limits={"cpu": "0"}), [bargain])

    assert ranked(*pods(1, **TOGETHER), pools=(full, node_pool("all"))) == ["a", "b"]


@pytest.mark.parametrize(("many", "best"), [(4, "z03"), (40, "z00")])
def test_among_very_many_domains_the_average_has_to_do(many: int, best: str) -> None:
    zones = [f"z{number:02}" for number in range(many)]
    small = instance_type("small", [offering(zone=zone, price=1.0) for zone in zones], capacity=SMALL)
    large = instance_type("large", [offering(zone=zones[-1], price=4.0)], capacity=LARGE)

    assert ranked(*pods(10, **TOGETHER), types=(small, large))[0] == best
