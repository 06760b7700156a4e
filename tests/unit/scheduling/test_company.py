"""Pods that stay together go where all of them are cheap, not where the first one is."""

from typing import Any

import pytest
from tests.builders import existing_node, instance_type, near_to, node_pool, offering, pod, pods, pool_option, problem

from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import ZONE
from joiner.model.nodepool import NodePool
from joiner.scheduling.desk import Desk
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
    (group,) = {
        group for each in Desk(problem(waiting, types=KINDS, **more)).classes for group, _ in each.steps[0].groups
    }
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
