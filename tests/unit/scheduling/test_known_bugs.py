"""Questions that were once answered wrongly. Each stays here for ever."""

from collections import Counter
from typing import Any

import pytest
from tests.builders import (
    SHELF,
    away_from,
    instance_type,
    node_pool,
    offering,
    overlay,
    pod,
    pods,
    pool_option,
    problem,
    requirement,
    spread_over,
)

from joiner.catalog.market import RESERVED_DIVISOR
from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from joiner.model.nodepool import NodePool
from joiner.model.storage import PersistentVolume, PersistentVolumeClaim
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Policy, Storage
from joiner.scheduling.schedule import schedule

SPREAD: dict[str, Any] = {"topologySpreadConstraints": [spread_over("web")]}
BAD_NUMBER = [{"matchExpressions": [requirement("example.com/size", "Gt", "large")]}]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def tainted_pool(name: str, effect: str = "NoSchedule", zone: str = "c") -> NodePool:
    spec = {"requirements": [requirement(ZONE, "In", zone)], "taints": [{"key": "x", "effect": effect}]}
    return decode({"metadata": {"name": name}, "spec": {"template": {"spec": spec}}}, NodePool)


def by_zone(plan: Plan) -> Counter[str]:
    return Counter(dict.fromkeys("abc", 0)) + Counter(
        zone for claim in plan.claims for zone in claim.requirements[ZONE].values for _ in claim.pods
    )


def refused(plan: Plan) -> list[str]:
    return [each.pod for each in plan.refusals]


@pytest.mark.parametrize("limits", [{"nodes": "1"}, {"nodes": "2"}, {"cpu": "2"}])
def test_a_limit_that_cuts_a_spread_app_short_leaves_it_in_balance(limits: dict[str, str]) -> None:
    plan = schedule(problem(pods(9, cpu="100m", **SPREAD), node_pool(limits=limits)))

    counts = by_zone(plan)
    assert max(counts.values()) - min(counts[zone] for zone in "abc") <= 1


def test_a_zone_where_daemons_leave_no_room_keeps_a_spread_app_in_balance() -> None:
    types = (
        instance_type("big", [offering(zone="a")], capacity=resources.of(cpu=4, memory="16Gi", pods=10)),
        instance_type("tiny", [offering(zone="b")], capacity=resources.of(cpu=1, memory="2Gi", pods=10)),
    )

    plan = schedule(problem(pods(4, cpu="500m", **SPREAD), types=types, daemons=(pod("agent", "700m"),)))

    assert sum(by_zone(plan).values()) == 1


def test_a_zone_that_is_not_flexible_enough_keeps_a_spread_app_in_balance() -> None:
    types = tuple(instance_type(name, [offering(zone=zone)]) for name, zone in (("1", "a"), ("2", "a"), ("3", "b")))
    pool = node_pool(requirements=[requirement(INSTANCE_TYPE, "Exists", minValues=2)])

    plan = schedule(problem(pods(4, cpu="500m", **SPREAD), pool, types=types))

    assert sum(by_zone(plan).values()) == 1


def test_hosts_that_a_pod_only_dislikes_count_when_it_is_spread_over_them() -> None:
    constraint = spread_over("web", HOSTNAME, nodeTaintsPolicy="Honor")

    plan = schedule(
        problem(pods(2, topologySpreadConstraints=[constraint]), tainted_pool("slow", effect="PreferNoSchedule"))
    )

    assert [len(claim.pods) for claim in plan.claims] == [1, 1]


def test_which_pod_is_written_first_does_not_decide_the_price() -> None:
    types = (instance_type("t", [offering(zone="a", price=2.0), offering(zone="b", price=0.5)]),)
    first, second = (pod(app, "300m", labels={"app": app}, **SPREAD) for app in ("web", "other"))

    prices = {schedule(problem(order, types=types)).price for order in ((first, second), (second, first))}

    assert prices == {0.5}


def test_a_reservation_that_is_used_up_is_no_flexibility() -> None:
    types = (instance_type("t", [offering("reserved", "b", 0.1, 1, "cr-1"), offering(zone="a")]),)
    pool = node_pool(requirements=[requirement(CAPACITY_TYPE, "Exists", minValues=2)])

    plan = schedule(problem(pods(2, cpu="2"), pool, types=types))

    assert [claim.reservations for claim in plan.claims] == [("cr-1",)]
    assert len(plan.refusals) == 1


def test_a_claim_that_is_held_to_one_zone_by_an_overlay_still_has_its_two_zones() -> None:
    zones = ("a", "b")
    types = (
        instance_type("cheap", [offering(zone=zone, price=1.0) for zone in zones]),
        instance_type("dear", [offering(zone=zone, price=2.0) for zone in zones]),
    )
    smaller = overlay(match={ZONE: "b", INSTANCE_TYPE: "cheap"}, overhead={"memory": "4Gi"})
    pool = node_pool(requirements=[requirement(ZONE, "Exists", minValues=2)])

    plan = schedule(problem([pod(memory="6Gi")], pool_option(pool, types, [smaller])))

    assert [[option.name for option in claim.options] for claim in plan.claims] == [["dear"]]
    assert plan.claims[0].requirements[ZONE].has("b")


def test_reserved_capacity_without_an_id_loses_nobody() -> None:
    types = (instance_type("t", [offering("reserved", "a", 0.1, available=1), offering(zone="a")]),)

    assert not schedule(problem(pods(2, cpu="2"), types=types)).refusals


@pytest.mark.parametrize("names", [("plain", "tolerant"), ("tolerant", "plain")])
def test_who_shares_a_rule_with_a_pod_does_not_take_zones_away_from_it(names: tuple[str, str]) -> None:
    kinds: dict[str, dict[str, Any]] = {"plain": {}, "tolerant": {"tolerations": [{"operator": "Exists"}]}}
    waiting = [pod(name, labels={"app": "web"}, affinity=away_from("web", ZONE), **kinds[name]) for name in names]
    plain = node_pool("plain", [requirement(ZONE, "In", "a")])

    assert not schedule(problem(waiting, plain, tainted_pool("tainted"))).refusals


def test_a_preference_that_cannot_be_read_does_not_stop_everybody() -> None:
    liked = {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": BAD_NUMBER[0]}]}}

    plan = schedule(problem([pod("odd", affinity=liked), pod("fine")]))

    assert "default/fine" not in refused(plan)


def test_a_daemon_that_cannot_be_read_does_not_stop_everybody() -> None:
    odd = pod("odd", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": BAD_NUMBER}}})

    assert not schedule(problem([pod()], daemons=(odd,))).refusals


def test_a_volume_that_cannot_be_read_does_not_stop_everybody() -> None:
    affinity = {"required": {"nodeSelectorTerms": BAD_NUMBER}}
    volume = decode({"metadata": {"name": "pv"}, "spec": {"nodeAffinity": affinity}}, PersistentVolume)
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim = decode(
        {"metadata": {"name": "data", "namespace": "default", "annotations": bound}, "spec": {"volumeName": "pv"}},
        PersistentVolumeClaim,
    )
    waiting = [pod("odd", claims=["data"]), pod("fine")]

    plan = schedule(problem(waiting, storage=Storage(claims=(claim,), volumes=(volume,))))

    assert refused(plan) == ["default/odd"]


def test_when_limits_bind_the_less_important_pod_is_refused() -> None:
    waiting = [pod("a-unimportant", priority=0), pod("z-important", priority=100)]

    assert refused(schedule(problem(waiting, node_pool(limits={"cpu": "1"})))) == ["default/a-unimportant"]


def test_a_limit_counts_what_overlays_add() -> None:
    option = pool_option(
        node_pool(limits={"example.com/fuse": "1"}), SHELF, [overlay(capacity={"example.com/fuse": 1})]
    )

    plan = schedule(problem(pods(3, extra={"example.com/fuse": "1"}), option))

    assert len(plan.claims) == 1


def test_a_paid_reservation_is_used_even_where_planning_by_price_saves_more_elsewhere() -> None:
    ways = [offering("reserved", "a", 1.0, 1, "cr-1", divisor=RESERVED_DIVISOR), offering(zone="a", price=1.0)]
    reserved = instance_type("paid", ways, capacity=resources.of(cpu=4, memory="16Gi", pods=40))
    dear = pods(8, "dear", "1", nodeSelector={CAPACITY_TYPE: "on-demand"})

    plan = schedule(problem([*dear, *pods(40, "cheap", "1")], types=(*SHELF, reserved)))

    assert Counter(name for claim in plan.claims for name in claim.reservations) == {"cr-1": 1}


def test_reserved_capacity_goes_first_whatever_its_price() -> None:
    reserved = instance_type("paid", [offering("reserved", "a", 0.1, 1, "cr-1"), offering(zone="a", price=1.0)])

    plan = schedule(problem(pods(3, cpu="2"), types=(*SHELF, reserved)))

    assert Counter(name for claim in plan.claims for name in claim.reservations) == {"cr-1": 1}


def test_a_claim_whose_flexibility_is_lost_to_truncation_says_so() -> None:
    pool = node_pool(requirements=[requirement(INSTANCE_TYPE, "Exists", minValues=3)])

    plan = schedule(problem([pod()], pool, policy=Policy(min_values="BestEffort", types_max=2)))

    assert [claim.min_values_relaxed for claim in plan.claims] == [True]


def test_a_node_that_will_come_out_of_a_reservation_does_not_count_for_pods_that_shun_reservations() -> None:
    types = (
        instance_type("paid", [offering("reserved", "b", 0.0, 1, "cr-1"), offering(zone="a")]),
        instance_type("plain", [offering("spot", "b", 0.0)]),
    )
    shun = {"matchExpressions": [requirement(CAPACITY_TYPE, "NotIn", "reserved")]}
    first = pod("first", "1", labels={"app": "web"}, **SPREAD)
    shunning = pods(2, cpu="300m", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [shun]}}}, **SPREAD)

    plan = schedule(problem([first, *shunning], types=types))

    counted = by_zone(Plan(claims=tuple(claim for claim in plan.claims if not claim.reservations)))
    assert abs(counted["a"] - counted["b"]) <= 1


def test_a_plan_by_price_leaves_every_type_that_would_do_to_fall_back_to() -> None:
    plan = schedule(problem([*pods(3, "small", "500m"), *pods(3, "large", "1")]))

    for claim in plan.claims:
        assert {option.name for option in claim.options} >= {
            each.name for each in SHELF if resources.fits(claim.requests, each.allocatable())
        }


def test_a_pod_that_only_limits_keep_out_is_told_so() -> None:
    plan = schedule(problem([pod(cpu="1500m")], node_pool(limits={"cpu": "1"})))

    (reason,) = plan.refusals[0].reasons
    assert reason.rule == "limits"
    assert "cpu: 1 left" in reason.message
