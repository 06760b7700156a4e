"""What is there already, as the engine sees it: which labels, taints and amounts count, who must move, what comes with a node."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from joiner.cli.cluster import Holdings, Picture, picture
from joiner.model import labels, resources
from joiner.model.codec import decode
from joiner.model.labels import INITIALIZED, NODEPOOL, REGISTERED, Vocabulary
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.model.policy import PodDisruptionBudget
from joiner.model.storage import CSINode, PersistentVolumeClaim, StorageClass
from joiner.model.workload import DaemonSet
from joiner.scheduling.problem import Storage

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STARTUP = {"key": "example.com/starting", "effect": "NoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OWN = {"key": "example.com/own", "effect": "NoSchedule"}
DONE = {REGISTERED: "true", INITIALIZED: "true"}


def node(
    name: str = "n", cpu: str = "4", taints: tuple[dict[str, str], ...] = (), labelled: Mapping[str, str] | None = None
) -> Node:
    amounts = {"cpu": cpu, "pods": "10"}
    return decode(
        {
            "metadata": {"name": name, "labels": labelled or {}},
            "spec": {"providerID": f"id-{name}", "taints": list(taints)},
            "status": {"capacity": amounts, "allocatable": amounts},
        },
        Node,
    )


def claim(name: str = "c", of: str = "", **more: Any) -> NodeClaim:
    amounts = {"cpu": "4", "pods": "10"}
    return decode(
        {
            "metadata": {"name": name, "labels": {NODEPOOL: "p", "from": "claim"}, **more.pop("metadata", {})},
            "spec": {"startupTaints": [STARTUP], "taints": [OWN, STARTUP]},
            "status": {"providerID": f"id-{of}", "capacity": amounts, "allocatable": amounts, **more},
        },
        NodeClaim,
    )


def pod(name: str, on: str = "n", cpu: str = "1", **more: Any) -> Pod:
    metadata = {"name": name, "namespace": "default", **more.pop("metadata", {})}
    spec = {
        "nodeName": on,
        "containers": [{"resources": {"requests": {"cpu": cpu}}, **more.pop("container", {})}],
        **more,
    }
    return decode({"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}, Pod)


def owned_by(kind: str, name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True}]}


def seen(**holdings: Any) -> Picture:
    return picture(Holdings(**holdings), NOW, Vocabulary())


@pytest.mark.parametrize(
    ("own", "name", "believed", "taints", "initialized"),
    [
        pytest.param({}, "c", "claim", ["example.com/own"], False, id="not registered"),
        pytest.param({REGISTERED: "true"}, "n", "node", ["example.com/own"], False, id="registered"),
        pytest.param(
            DONE,
            "n",
            "node",
            ["example.com/own", "example.com/starting", "node.kubernetes.io/not-ready"],
            True,
            id="initialized",
        ),
    ],
)
def test_the_claim_is_believed_until_the_node_is_ready(
    own: dict[str, str], name: str, believed: str, taints: list[str], initialized: bool
) -> None:
    joined = node(taints=(OWN, STARTUP, NOT_READY), labelled={**own, "from": "node"})
    (found,) = seen(nodes=(joined,), claims=(claim(of="n"),)).nodes

    assert (found.name, found.labels["from"], found.initialized) == (name, believed, initialized)
    assert [taint.key for taint in found.taints] == taints


def test_a_node_that_is_still_starting_has_what_its_claim_promises() -> None:
    starting = node(cpu="0", labelled={REGISTERED: "true"})
    (found,) = seen(nodes=(starting,), claims=(claim(of="n"),)).nodes

    assert found.allocatable == resources.of(cpu=4, pods=10)


def test_a_claim_without_a_node_is_a_place_already_and_is_counted() -> None:
    found = seen(claims=(claim(),))

    assert [each.name for each in found.nodes] == ["c"]
    assert found.nodes[0].labels[labels.HOSTNAME] == "c"
    assert found.used == {"p": resources.of(cpu=4, pods=10, nodes=1)}


def test_nodes_that_nobody_claimed_are_taken_as_they_are() -> None:
    (found,) = seen(nodes=(node(taints=(NOT_READY,)),)).nodes

    assert found.initialized
    assert [taint.key for taint in found.taints] == ["node.kubernetes.io/not-ready"]


def test_usage_counts_pods_daemons_ports_and_volumes_but_not_what_has_ended() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    pods = (
        pod("a", volumes=volumes, container={"ports": [{"hostPort": 80}]}),
        pod("d", cpu="500m", metadata=owned_by("DaemonSet", "d")),
        decode({"metadata": {"name": "over"}, "spec": {"nodeName": "n"}, "status": {"phase": "Failed"}}, Pod),
    )
    found = seen(nodes=(node(),), pods=pods, storage=storage(), csi_nodes=(csi_node(3),))
    (place,) = found.nodes

    assert place.used == resources.of(cpu="1500m", pods=2)
    assert place.daemon_used == resources.of(cpu="500m", pods=1)
    assert [port.host_port for port in place.ports] == [80]
    assert place.volumes == {"ebs.csi.aws.com": frozenset({"default/data"})}
    assert place.volume_limits == {"ebs.csi.aws.com": 3}
    assert [each.name for each in found.bound] == ["a", "d"]


def storage() -> Storage:
    kind = {
        "metadata": {"name": "gp3"},
        "provisioner": "kubernetes.io/aws-ebs",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    data = {"metadata": {"name": "data", "namespace": "default"}, "spec": {"storageClassName": "gp3"}}
    return Storage(claims=(decode(data, PersistentVolumeClaim),), classes=(decode(kind, StorageClass),))


def csi_node(count: int) -> CSINode:
    driver = {"name": "ebs.csi.aws.com", "allocatable": {"count": count}}
    return decode({"metadata": {"name": "n"}, "spec": {"drivers": [driver, {"name": "other"}]}}, CSINode)


GOING = [
    pytest.param({"deleting": frozenset({"n"})}, id="chosen"),
    pytest.param(
        {"claims": (claim(of="n", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),)}, id="claim deleted"
    ),
    pytest.param(
        {"claims": (claim(of="n", conditions=[{"type": "InstanceTerminating", "status": "True"}]),)}, id="terminating"
    ),
]


@pytest.mark.parametrize("holdings", GOING)
def test_pods_of_a_node_that_goes_join_the_queue(holdings: dict[str, Any]) -> None:
    found = seen(nodes=(node(labelled={**DONE, NODEPOOL: "p"}),), pods=(pod("a"),), **holdings)

    assert (found.nodes, found.used, found.bound) == ((), {}, ())
    assert [(each.name, each.spec.node_name) for each in found.evicted] == [("a", "")]
    assert found.bound_nodes["n"][labels.HOSTNAME] == "n"


@pytest.mark.parametrize(
    "stays",
    [
        pytest.param({"metadata": owned_by("DaemonSet", "d")}, id="of a DaemonSet"),
        pytest.param({"metadata": {"annotations": {labels.DO_NOT_DISRUPT: "true"}}}, id="do not disrupt"),
        pytest.param({"metadata": {"labels": {"app": "db"}}}, id="protected by a budget"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, id="leaving anyway"),
    ],
)
def test_pods_that_need_no_other_place_yet_stay_where_they_are(stays: dict[str, Any]) -> None:
    strict = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "db"}}},
    }
    budgets = (decode(strict, PodDisruptionBudget),)
    found = seen(nodes=(node(),), pods=(pod("a", **stays),), budgets=budgets, deleting=frozenset({"n"}))

    assert found.evicted == ()
    assert [each.name for each in found.bound] == ["a"]


def daemon_set(**spec: Any) -> DaemonSet:
    limits = {"resources": {"limits": {"cpu": "200m"}}}
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [limits], **spec}}
    return decode({"metadata": {"name": "d", "namespace": "default"}, "spec": {"template": template}}, DaemonSet)


def test_a_daemon_without_pods_is_made_from_the_template_with_limits_as_requests() -> None:
    (found,) = seen(daemon_sets=(daemon_set(),)).daemons

    assert found.spec.containers[0].resources.requests == resources.of(cpu="200m")
    assert found.metadata.labels == {"app": "d"}


def test_a_daemon_is_like_its_newest_pod_but_bound_to_no_node() -> None:
    pinned = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": pinned}}
    pods = [
        pod(name, cpu=cpu, affinity=affinity, metadata={**owned_by("DaemonSet", "d"), "creationTimestamp": born})
        for name, cpu, born in (("old", "1", "2025-01-01T00:00:00Z"), ("new", "2", "2025-06-01T00:00:00Z"))
    ]
    (found,) = seen(nodes=(node(),), daemon_sets=(daemon_set(),), pods=tuple(pods)).daemons

    assert found.spec.containers[0].resources.requests == resources.of(cpu=2)
    assert (found.spec.node_name, found.spec.affinity.node_affinity.required) == ("", None)
