"""What a refusal says: the rule, what was wanted and what there was, and how many types each rule left."""

from typing import Any

import pytest
from tests.builders import (
    SHELF,
    away_from,
    bound_volume,
    existing_node,
    instance_type,
    near_to,
    node_pool,
    offering,
    pod,
    pods,
    pool_option,
    problem,
    requirement,
    spread_over,
)

from joiner.catalog.market import InstanceType
from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL, ZONE
from joiner.model.nodepool import NodePool
from joiner.model.storage import PersistentVolume, PersistentVolumeClaim
from joiner.requirements import similar_key
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.plan import ITSELF, Refusal, RefusalReason
from joiner.scheduling.problem import Problem, Storage
from joiner.scheduling.report.plannedclaims import to_plan
from joiner.scheduling.schedule import schedule

TAINTS = [{"key": "a", "value": "x", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]
TAINTED = decode({"metadata": {"name": "default"}, "spec": {"template": {"spec": {"taints": TAINTS}}}}, NodePool)
FULL = existing_node(allocatable={})
OLD = pod("old", labels={"app": "old"}, nodeName="node-a")
ONLY_A = node_pool("default", [requirement(ZONE, "In", "a")])


def reason(question: Problem) -> RefusalReason:
    (found,) = schedule(question).refusals[0].reasons
    return found


CASES: dict[str, tuple[Problem, str, str, str]] = {
    "taints": (
        problem([pod()], TAINTED),
        "taints", "no taint that it does not tolerate", "a=x:NoSchedule, b:NoExecute",
    ),
    "a contradiction": (
        problem([pod(nodeSelector={ZONE: "b"})], ONLY_A), "requirements", f"{ZONE} In [b]", f"{ZONE} In [a]"
    ),
    "a label that the pool lacks": (problem([pod(nodeSelector={"team": "x"})]), "requirements", "team In [x]", ""),
    "a value that no type has": (problem([pod(nodeSelector={ZONE: "x"})]), "requirements", f"{ZONE} In [x]", ""),
    "size": (problem([pod(cpu="100", memory="8Gi")]), "resources", "cpu 100", "cpu 16"),
    "size with daemons": (
        problem([pod(cpu="15500m")], daemons=(pod("agent", "1", "1Gi"),)), "resources", "cpu 16.5", "cpu 16"
    ),
    "limits": (problem([pod(cpu="3")], node_pool(limits={"cpu": "2"})), "limits", "cpu 4", "cpu 2"),
    "the limit that binds": (
        problem([pod(cpu="3")], node_pool(limits={"cpu": "2", "memory": "64Gi"})), "limits", "cpu 4", "cpu 2"
    ),
    "host ports": (
        problem([pod(ports=[80])], daemons=(pod("agent", ports=[80]),)), "ports", "", "",
    ),
    "limits of nodes": (problem([pod()], node_pool(limits={"nodes": "0"})), "limits", "nodes 1", "nodes 0"),
    "minValues": (
        problem([pod(cpu="5")], node_pool("default", [requirement(INSTANCE_TYPE, "Exists", minValues=3)])),
        "min-values", f"{INSTANCE_TYPE} 3", f"{INSTANCE_TYPE} 2",
    ),
    "affinity": (
        problem([pod(affinity=near_to("db"))]), "topology", "a domain with one of them", "a 0, b 0, c 0"
    ),
    "anti-affinity": (
        problem([pod(affinity=away_from("old", ZONE))], ONLY_A, nodes=(FULL,), bound=(OLD,)),
        "topology", "a domain with none of them", "a 1",
    ),
    "anti-affinity of others": (
        problem(
            [pod(labels={"app": "web"})], ONLY_A, nodes=(FULL,),
            bound=(pod("old", affinity=away_from("web", ZONE), nodeName="node-a"),),
        ),
        "topology", "a domain without a pod that keeps it away", "a 1",
    ),
    "spread": (
        problem(
            [pod(topologySpreadConstraints=[spread_over("old")], labels={"app": "old"})],
            ONLY_A, types=SHELF, nodes=(FULL, existing_node("node-b", "b", allocatable={})), bound=(OLD,),
        ),
        "topology", "a domain with at most 0 of them", "a 1 (not for it: b 0)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("question", "rule", "wanted", "had"), CASES.values(), ids=CASES)
def test_a_reason_names_the_rule_what_was_wanted_and_what_there_was(
    question: Problem, rule: str, wanted: str, had: str
) -> None:
    found = reason(question)

    assert (found.rule, found.wanted, found.had) == (rule, wanted, had)
    assert found.object == "NodePool default"
    assert found.message


FUNNELS: dict[str, tuple[Problem, list[tuple[str, int]]]] = {
    "labels one by one, then size": (
        problem([pod(cpu="100", nodeSelector={ZONE: "a", CAPACITY_TYPE: "spot"})]),
        [("what the pool can buy", 5), (f"{CAPACITY_TYPE} In [spot]", 5), (f"{ZONE} In [a]", 5), ("cpu 100", 0)],
    ),
    "each resource": (
        problem([pod(cpu="4", memory="100Gi")]),
        [("what the pool can buy", 5), ("cpu 4", 3), ("memory 100Gi", 0)],
    ),
    "no two resources on one type": (
        problem(
            [pod(cpu="4", extra={"x.com/gpu": "1"})],
            types=(SHELF[2], instance_type("gpu", capacity={"cpu": 1000, "memory": 1 << 50, "pods": 9000, "x.com/gpu": 1000})),
        ),
        [("what the pool can buy", 2), ("cpu 4", 1), ("x.com/gpu 1", 0)],
    ),
    "limits last": (
        problem([pod(cpu="3")], node_pool(limits={"cpu": "2"})),
        [("what the pool can buy", 5), ("cpu 3", 3), ("what the limits of the pool leave", 0)],
    ),
    "a taint keeps all of them": (
        problem([pod()], TAINTED), [("what the pool can buy", 5), ("taint a=x:NoSchedule, b:NoExecute", 0)]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("question", "stages"), FUNNELS.values(), ids=FUNNELS)
def test_the_funnel_tells_how_many_types_each_rule_leaves(question: Problem, stages: list[tuple[str, int]]) -> None:
    assert [(stage.after, stage.left) for stage in reason(question).funnel] == stages


HINTS: dict[str, tuple[dict[str, Any], str]] = {
    "a mistyped label": (
        {"topology.kubernetes.io/zon": "a"},
        f"no node has a label topology.kubernetes.io/zon; did you mean {ZONE}?",
    ),
    "a mistyped value": (
        {CAPACITY_TYPE: "spott"}, f"{CAPACITY_TYPE} is nowhere spott; did you mean spot?",
    ),
    "a value like no other": ({ZONE: "x"}, f"{ZONE} is nowhere x; there is a, b, c"),
    "a label like no other": ({"colour": "red"}, "no node has a label colour"),
    "a pool that is not there": ({NODEPOOL: "defautl"}, f"{NODEPOOL} is nowhere defautl; did you mean default?"),
    "an old name of a label": ({"failure-domain.beta.kubernetes.io/zone": "x"}, f"{ZONE} is nowhere x; there is a, b, c"),
}  # fmt: skip


@pytest.mark.parametrize(("selector", "hint"), HINTS.values(), ids=HINTS)
def test_what_looks_mistyped_is_answered_with_what_was_probably_meant(selector: dict[str, str], hint: str) -> None:
    assert reason(problem([pod(nodeSelector=selector)])).hint == hint


def test_a_pool_that_can_buy_nothing_is_named_beside_those_that_can() -> None:
    martian = node_pool("martian", [requirement(ZONE, "In", "mars")])
    (refused,) = schedule(problem([pod(cpu="100")], node_pool(), martian)).refusals

    assert [each.object for each in refused.reasons] == ["NodePool default", "NodePool martian"]
    assert refused.reasons[1].message == (
        f"nothing that its requirements allow can be bought (5 types, 0 after {ZONE} In [mars])"
    )
    assert refused.reasons[1].hint == f"{ZONE} is nowhere mars; there is a, b, c"


def test_a_mistyped_value_of_a_pool_is_answered_with_the_right_one() -> None:
    mistyped = node_pool("default", [requirement(INSTANCE_TYPE, "In", "m5.largee")])

    assert reason(problem([pod()], mistyped, types=[instance_type("m5.large")])).hint.endswith("did you mean m5.large?")


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ({"key": "a", "value": "y"}, "it tolerates a=y:any effect; was a=x:NoSchedule meant?"),
        ({"key": "aa", "operator": "Exists"}, "it tolerates aa:any effect; was a=x:NoSchedule meant?"),
        ({"key": "something", "operator": "Exists"}, ""),
    ],
)
def test_a_toleration_that_nearly_fits_is_named(written: dict[str, str], hint: str) -> None:
    assert reason(problem([pod(tolerations=[written])], TAINTED)).hint == hint


def test_company_in_another_namespace_is_named() -> None:
    there = pod("there", labels={"app": "db"}, namespace="other")

    found = schedule(problem([there, pod(affinity=near_to("db"))])).refusals[0].reasons[0]

    assert found.hint == "such pods are in namespace other, and the term looks in default"


def test_who_has_to_be_on_the_node_of_others_hears_that_there_is_no_room() -> None:
    together = [pod(f"web-{n}", cpu="10", labels={"app": "web"}, affinity=near_to("web", HOSTNAME)) for n in range(2)]

    found = schedule(problem(together)).refusals[0].reasons[0]

    assert found.had == "1 on new node 1"
    assert found.hint == "where they are there is no room for it"


def test_volumes_in_two_places_are_said_to_differ() -> None:
    (one, first), (other, second) = (
        bound_volume(name, requirement(ZONE, "In", zone)) for name, zone in (("one", "a"), ("other", "b"))
    )
    shelf = Storage(claims=(one, other), volumes=(first, second))

    found = reason(problem([pod(claims=["one", "other"])], storage=shelf))

    assert found.message == f"5 types, 0 after its volumes, which differ in {ZONE}"


def test_where_there_is_no_pool_that_is_said() -> None:
    assert reason(problem([pod()], pools=())).message == "there is none that buys nodes for pods"


@pytest.mark.parametrize("cpu", ["100M", "100000000"])
def test_millions_of_cores_are_taken_for_a_slip_of_the_pen_however_they_are_written(cpu: str) -> None:
    assert reason(problem([pod(cpu=cpu)])).hint.endswith("; m stands for thousandths of a cpu, M for millions")
    assert "millions" not in reason(problem([pod(cpu="100")])).hint


def sized(name: str, **amounts: Any) -> InstanceType:
    return instance_type(name, capacity=resources.of(pods=20, **amounts))


def test_the_nearest_type_is_told_with_what_it_has_itself() -> None:
    types = (sized("fast", cpu=64, memory="16Gi"), sized("large", cpu=60, memory="800Gi"))

    found = reason(problem([pod(cpu="100", memory="1000Gi")], types=types))

    assert found.hint.startswith("the nearest is large: ")
    assert found.had == "cpu 60, memory 800Gi"


GPU = instance_type("gpu", capacity={**resources.of(cpu=8, memory="32Gi", pods=20), "nvidia.com/gpu": 1000})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("nvidia.com/gpus", "no type has nvidia.com/gpus; did you mean nvidia.com/gpu?"),
        ("hugepages-2Mi", "no type has hugepages-2Mi"),
    ],
)
def test_of_a_resource_that_no_type_has_no_type_is_the_nearest(name: str, hint: str) -> None:
    found = reason(problem([pod(extra={name: "1"})], types=(*SHELF, GPU)))

    assert (found.rule, found.hint) == ("resources", hint)


def test_a_resource_that_only_other_pools_have_is_not_taken_for_a_slip_of_the_pen() -> None:
    asked = pod(extra={"nvidia.com/gpu": "1"})
    pools = (pool_option(node_pool("plain"), SHELF), pool_option(node_pool("gpu", limits={"cpu": "0"}), (GPU,)))
    (refused,) = schedule(problem([asked], *pools)).refusals

    assert {each.object: each.rule for each in refused.reasons} == {
        "NodePool plain": "resources",
        "NodePool gpu": "limits",
    }
    assert next(each.hint for each in refused.reasons if each.hint) == "no type of the pool has nvidia.com/gpu"


FULL_POOL: dict[str, Any] = {"limits": {"cpu": "0"}}
BESIDE_LIMITS: dict[str, tuple[Problem, str]] = {
    "a label": (problem([pod(nodeSelector={ZONE: "x"})], node_pool(**FULL_POOL)), "requirements"),
    "size": (problem([pod(cpu="100")], node_pool(**FULL_POOL)), "resources"),
    "affinity": (problem([pod(affinity=near_to("db"))], node_pool(**FULL_POOL)), "topology"),
    "minValues": (
        problem(
            [pod(nodeSelector={INSTANCE_TYPE: "m-4"})],
            node_pool("default", [requirement(INSTANCE_TYPE, "Exists", minValues=2)], **FULL_POOL),
        ),
        "min-values",
    ),
}


@pytest.mark.parametrize(("question", "rule"), BESIDE_LIMITS.values(), ids=BESIDE_LIMITS)
def test_limits_are_not_named_where_the_pool_would_refuse_the_pod_without_them(question: Problem, rule: str) -> None:
    found = reason(question)

    assert found.rule == rule
    assert "limits" not in [stage.rule for stage in found.funnel]


def test_the_smallest_type_that_would_do_is_one_that_the_pod_could_use() -> None:
    found = reason(problem([pod(nodeSelector={INSTANCE_TYPE: "m-8"})], node_pool(**FULL_POOL)))

    assert (found.rule, found.wanted, found.had) == ("limits", "cpu 8", "cpu 0")


def test_a_label_is_taken_for_one_that_ends_alike_before_one_that_contains_it() -> None:
    assert similar_key("zone", ["topology.k8s.aws/zone-id", ZONE]) == ZONE


def test_what_took_the_values_away_that_min_values_needs_is_said() -> None:
    rare = node_pool("default", [requirement(ZONE, "Exists", minValues=2)])

    assert reason(problem([pod(nodeSelector={ZONE: "a"})], rare)).hint == f"1 of {ZONE} are left after {ZONE} In [a]"


def test_a_new_node_that_may_be_in_several_zones_is_said_to_count_in_each() -> None:
    shy = pod("shy", affinity=away_from("web", ZONE))
    run = FirstFit(problem([shy, *pods(1, cpu="2")]), Unlimited())
    run.place()
    (found,) = to_plan(run).refusals[0].reasons

    assert found.had == "a 1, b 1, c 1"
    assert found.hint == f"a new node that may still be launched in several of them counts in each ({ZONE})"


def test_many_hosts_are_counted_and_not_listed() -> None:
    nodes = [existing_node(f"node-{n}", allocatable={}) for n in range(12)]
    old = [pod(f"old-{n}", labels={"app": "old"}, nodeName=f"node-{n}") for n in range(3)]
    near = pod(affinity=near_to("old", HOSTNAME))

    assert reason(problem([near], nodes=tuple(nodes), bound=tuple(old))).had == "9 nodes with 0, 3 nodes with 1"


def test_of_several_alternatives_the_last_is_told_of() -> None:
    terms = [{"matchExpressions": [requirement(ZONE, "In", zone)]} for zone in "xyz"]
    asked = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}

    assert reason(problem([pod(affinity=asked)])).message.startswith("by the last of its 3 node-affinity terms: ")


def test_those_who_give_the_same_reason_are_named_together() -> None:
    same = [RefusalReason(rule="taints", object=f"NodePool p{n}", message="no") for n in range(7)]
    other = RefusalReason(rule="limits", object="NodePool q", message="full", hint="raise it")

    assert str(Refusal(pod="a/b", reasons=(*same, other))) == (
        "NodePools p0, p1, p2, p3, p4 and 2 more: no; NodePool q: full; raise it"
    )


def test_a_type_that_is_several_kinds_of_node_counts_once() -> None:
    ways = [offering(zone="a"), offering(zone="b", capacity={"x.com/fuse": 1000})]

    assert reason(problem([pod(cpu="100")], types=(instance_type("two", ways),))).funnel[0].left == 1


def test_an_affinity_to_pods_that_nobody_has_is_answered_with_those_that_look_alike() -> None:
    found = reason(problem([pod(affinity=near_to("databse")), *pods(2, "database")]))

    assert found.hint == "no pod has the label app=databse; did you mean app=database?"


@pytest.mark.parametrize(("typed", "meant"), [(f"{ZONE}e", ZONE), ("kubernetes.io/hostnam", HOSTNAME)])
@pytest.mark.parametrize("kind", ["spread", "anti-affinity", "affinity"])
def test_a_topology_that_no_node_has_is_answered_with_one_that_looks_alike(kind: str, typed: str, meant: str) -> None:
    asks: dict[str, dict[str, Any]] = {
        "spread": {"topologySpreadConstraints": [spread_over("web", typed)]},
        "anti-affinity": {"affinity": away_from("web", typed)},
        "affinity": {"affinity": near_to("web", typed)},
    }

    assert reason(problem([pod(**asks[kind])])).hint == f"no node has a label {typed}; did you mean {meant}?"


def test_a_volume_that_is_out_of_reach_is_told_with_its_place() -> None:
    zones = {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement(ZONE, "In", "x")]}]}}
    volume = decode({"metadata": {"name": "v"}, "spec": {"nodeAffinity": zones}}, PersistentVolume)
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim = decode(
        {"metadata": {"name": "data", "namespace": "default", "annotations": bound}, "spec": {"volumeName": "v"}},
        PersistentVolumeClaim,
    )
    found = reason(problem([pod(claims=["data"])], storage=Storage(claims=(claim,), volumes=(volume,))))

    assert found.funnel[-1].after == f"its volumes, which can be reached with {ZONE} In [x]"
    assert found.rule == "volumes"


def required(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    written = [{"matchExpressions": term} for term in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": written}}}


def test_a_pod_that_contradicts_itself_is_told_so() -> None:
    waiting = pods(2, nodeSelector={ZONE: "a"}, affinity=required([requirement(ZONE, "NotIn", "a")]))

    plan = schedule(problem(waiting))

    assert [each.reasons for each in plan.refusals] == [plan.refusals[0].reasons] * 2
    (told,) = plan.refusals[0].reasons
    assert told.object == "the pod itself"
    assert f"{ZONE} In [a] and {ZONE} NotIn [a] cannot both be met" in told.message


def test_an_alternative_that_contradicts_itself_does_not_hide_what_is_wrong_with_the_others() -> None:
    huge = requirement(INSTANCE_TYPE, "Exists")
    terms = required([huge], [requirement(ZONE, "In", "a"), requirement(ZONE, "NotIn", "a")])

    found = reason(problem([pod(cpu="100", affinity=terms)]))

    assert found.object == "NodePool default"
    assert (found.rule, found.wanted) == ("resources", "cpu 100")
    assert found.message.startswith("by one of its 2 node-affinity terms")


def test_a_zone_that_spread_chooses_is_not_told_as_if_the_pod_had_asked_for_it() -> None:
    waiting = pods(1, topologySpreadConstraints=[spread_over("web")])
    only_two_zones = (instance_type("one", [offering(zone="a")]), instance_type("two", [offering(zone="b")]))

    found = reason(problem(waiting, node_pool(**FULL_POOL), types=only_two_zones))

    assert [stage.after for stage in found.funnel if stage.rule == "topology"] == [
        f"spread of pods with app=web over {ZONE}, maxSkew 1 (now: {ZONE} In [a])"
    ]


def test_what_a_selector_chooses_is_told_as_labels_are_written() -> None:
    expression = {"key": "app", "operator": "In", "values": ["web", "db"]}
    spread = {**spread_over("web", "rack"), "labelSelector": {"matchExpressions": [expression]}}

    assert (
        "spread of pods with app In [web, db] over rack"
        in reason(problem([pod(topologySpreadConstraints=[spread])])).message
    )


def test_what_is_wrong_with_a_pod_in_two_ways_is_told_once() -> None:
    reasons = tuple(RefusalReason(rule="preflight", object=ITSELF, message="it makes no sense") for _ in range(2))

    assert str(Refusal(pod="default/web", reasons=reasons)) == "the pod itself: it makes no sense"
