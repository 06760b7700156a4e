"""Objects that came past an older CRD, or past none: judged as typed values."""

from typing import Any

import pytest
from tests.unit.admission.table import ENTRY, TEMPLATE, claim, pool, requirement

from joiner.admission.runtime import nodepool_problems, runtime_problems
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.model.codec import decode
from joiner.model.customobject import CustomObject
from joiner.model.labels import Vocabulary
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.typesettings import InstanceTypeSettings

OTHER = Vocabulary().extended(well_known=["cloud.example/size"], restricted_domains=["cloud.example"])

RULES: list[tuple[str, dict[str, Any], str]] = [
    ("In without values", requirement(values=[]), f"{ENTRY}.values"),
    ("Gt with text", requirement(operator="Gt", values=["a"]), f"{ENTRY}.values"),
    ("minValues above the values", requirement(minValues=3), f"{ENTRY}.minValues"),
    ("a reserved domain", requirement("karpenter.sh/a"), f"{ENTRY}.key"),
    ("the pool label", requirement("karpenter.sh/nodepool"), f"{ENTRY}.key"),
    ("a bad key", requirement("a b"), f"{ENTRY}.key"),
    ("a bad value", requirement(values=["a b"]), f"{ENTRY}.values[0]"),
]


@pytest.mark.parametrize(("entry", "path"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_the_rules_of_the_crd_hold_at_run_time_too(entry: dict[str, Any], path: str) -> None:
    problems = nodepool_problems(decode(pool(entry), NodePool), Vocabulary())

    assert [problem.path for problem in problems] == [path]


def test_the_provider_says_which_labels_are_its_own() -> None:
    typed = decode(pool(requirement("cloud.example/size"), requirement("cloud.example/mine")), NodePool)

    assert [problem.path for problem in nodepool_problems(typed, OTHER)] == [f"{TEMPLATE}.requirements[1].key"]
    assert nodepool_problems(typed, Vocabulary()) == ()


EC2 = Vocabulary(aliases={"eks.amazonaws.com/instance-cpu": "karpenter.k8s.aws/instance-cpu"}).extended(
    well_known=["karpenter.k8s.aws/instance-cpu", "karpenter.k8s.aws/instance-category"],
    restricted_domains=["karpenter.k8s.aws"],
)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("node.kubernetes.io/instance-types", "node.kubernetes.io/instance-type"),
        ("topology.kubernetes.io/zones", "topology.kubernetes.io/zone"),
        ("eks.amazonaws.com/instance-cpus", "eks.amazonaws.com/instance-cpu"),
        ("instance-category", "karpenter.k8s.aws/instance-category"),
        ("eks.amazonaws.com/compute-type", None),
        ("kubernetes.io/role", None),
    ],
)
def test_a_key_that_looks_like_one_of_the_machine_and_is_none_is_a_warning(key: str, meant: str | None) -> None:
    (problem,) = nodepool_problems(decode(pool(requirement(key)), NodePool), EC2)

    assert (problem.path, problem.severity, problem.nearest) == (f"{ENTRY}.key", "warning", meant)
    assert "leaves no type out" in problem.message


@pytest.mark.parametrize(
    "key",
    ["team", "example.com/rack", "node-role.kubernetes.io/worker", "eks.amazonaws.com/instance-cpu", "type"],
)
def test_a_label_of_ones_own_and_other_names_of_known_labels_are_fine(key: str) -> None:
    assert nodepool_problems(decode(pool(requirement(key)), NodePool), EC2) == ()


def test_a_key_that_is_also_a_label_of_the_template_is_meant_as_it_is() -> None:
    typed = decode(pool(requirement("kubernetes.io/role", values=["a"]), labels={"kubernetes.io/role": "a"}), NodePool)

    assert nodepool_problems(typed, EC2) == ()


def test_a_former_spelling_of_a_reserved_label_is_reserved() -> None:
    vocabulary = Vocabulary(aliases={"old/hostname": "kubernetes.io/hostname"})

    problems = nodepool_problems(decode(pool(requirement("old/hostname")), NodePool), vocabulary)

    assert [problem.path for problem in problems] == [f"{ENTRY}.key"]


def test_an_overlay_that_shuns_no_value_is_an_error_and_not_one_for_everything() -> None:
    nothing = {"requirements": [{"key": "team", "operator": "NotIn"}], "price": "0.1"}

    (problem,) = runtime_problems(decode({"metadata": {"name": "o"}, "spec": nothing}, NodeOverlay), Vocabulary())

    assert (problem.path, problem.is_error) == ("spec.requirements[0].values", True)


def test_all_problems_are_collected() -> None:
    taint = {"key": "a", "effect": "NoSchedule"}
    raw = pool(requirement(values=[]), template={"taints": [taint, taint]}, labels={"karpenter.sh/a": "b c"})

    assert len(nodepool_problems(decode(raw, NodePool), Vocabulary())) == 4


def test_a_claim_has_nothing_left_to_judge() -> None:
    assert runtime_problems(decode(claim(), NodeClaim), Vocabulary()) == ()


@pytest.mark.parametrize(("age", "is_told"), [("0s", True), ("14m59s", True), ("15m", False), ("Never", False)])
def test_nodes_that_may_expire_before_they_joined_are_warned_of(age: str, is_told: bool) -> None:
    problems = nodepool_problems(decode(pool(requirement(), template={"expireAfter": age}), NodePool), Vocabulary())

    assert [(each.path, each.severity) for each in problems] == [(f"{TEMPLATE}.expireAfter", "warning")] * is_told


# -- amounts -------------------------------------------------------------------------------------------------------------

KEPT_BACK = {"kubelet": {"kubeReserved": {"memory": "512m"}}}
ODD: list[tuple[type[CustomObject], dict[str, Any], str, str]] = [
    (InstanceTypeSettings, {"resources": {"cpu": "2Gi"}}, "spec.resources[cpu]", "more than any machine has"),
    (InstanceTypeSettings, {"resources": {"memory": "512"}}, "spec.resources[memory]", "less than 1Mi"),
    (InstanceTypeSettings, {"resources": {"memory": "4Ei"}}, "spec.resources[memory]", "more than any machine has"),
    (InstanceTypeSettings, {"resources": {"pods": "110Mi"}}, "spec.resources[pods]", "more than any machine has"),
    (InstanceTypeSettings, {"resources": {"nvidia.com/gpu": "500m"}}, "spec.resources[nvidia.com/gpu]", "whole"),
    (InstanceTypeSettings, {"overhead": {"memory": "100m"}}, "spec.overhead[memory]", "such as 512Mi or 4Gi"),
    (NodeOverlay, {"capacity": {"example.com/fuse": "8Gi"}}, "spec.capacity[example.com/fuse]", "more than any"),
    (NodeOverlay, {"overhead": {"cpu": "1Gi"}}, "spec.overhead[cpu]", "cpu is counted in cores"),
    (NodePool, {"limits": {"memory": "1000"}}, "spec.limits[memory]", "less than 1Mi"),
    (NodePool, {"limits": {"cpu": "1000Gi"}}, "spec.limits[cpu]", "more than all machines of a cloud have"),
    (NodePool, {"limits": {"cpu": -1}}, "spec.limits[cpu]", "below 0, so the pool may buy nothing"),
    (NodePool, {"limits": {"mem": "64Gi"}}, "spec.limits[mem]", "no machine has a resource mem"),
    (KWOKNodeClass, KEPT_BACK, "spec.kubelet.kubeReserved[memory]", "less than 1Mi"),
    (EC2NodeClass, KEPT_BACK, "spec.kubelet.kubeReserved[memory]", "less than 1Mi"),
]


@pytest.mark.parametrize(("kind", "spec", "path", "message"), ODD, ids=[f"{each[0].kind}-{each[2]}" for each in ODD])
def test_an_amount_that_no_machine_has_is_warned_of(
    kind: type[CustomObject], spec: dict[str, Any], path: str, message: str
) -> None:
    (problem,) = runtime_problems(decode({"metadata": {"name": "x"}, "spec": spec}, kind), Vocabulary())

    assert (problem.path, problem.severity) == (path, "warning")
    assert message in problem.message


@pytest.mark.parametrize(("written", "meant"), [("512", "512Mi"), ("512m", "512Mi"), ("4Ei", None)])
def test_of_a_few_bytes_it_is_said_what_was_meant(written: str, meant: str | None) -> None:
    typed = decode({"metadata": {"name": "x"}, "spec": {"resources": {"memory": written}}}, InstanceTypeSettings)

    assert [each.nearest for each in runtime_problems(typed, Vocabulary())] == [meant]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (InstanceTypeSettings, {"resources": {"cpu": "1920", "memory": "24Ti", "pods": "737", "example.com/a": "5k"}}),
        (InstanceTypeSettings, {"resources": {"cpu": "1500m", "ephemeral-storage": "120Ti", "hugepages-2Mi": "4Mi"}}),
        (NodePool, {"limits": {"cpu": "1000000", "memory": "4Pi", "nodes": "5000", "nvidia.com/gpu": "0"}}),
        (NodeOverlay, {"overhead": {"memory": "10Mi", "cpu": "0"}}),
    ],
)
def test_what_large_machines_and_large_pools_have_is_fine(kind: type[CustomObject], spec: dict[str, Any]) -> None:
    assert runtime_problems(decode({"metadata": {"name": "x"}, "spec": spec}, kind), Vocabulary()) == ()
