"""Joiner on a real cluster, case by case: as a process with the token and the permissions that the chart gives it."""

import time
from typing import Any

import pytest
from tests.cluster.case import Case, is_true, name_of, requirement

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("joiner")]
ZONE = "topology.kubernetes.io/zone"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


def test_a_deployment_gets_nodes_and_a_daemon_set_a_place_on_each(case: Case) -> None:
    case.pool()
    case.workload("DaemonSet", "agent", {}, cpu="100m", tolerations=[{"operator": "Exists"}])
    case.deployment(5)

    case.until_running(5, "web")
    nodes = case.until_settled()

    case.until_running(len(nodes), "agent")
    for node in nodes:
        assert node["metadata"]["labels"]["karpenter.sh/registered"] == "true"
        assert node["metadata"]["labels"]["karpenter.sh/initialized"] == "true"
        assert not [taint for taint in node["spec"].get("taints", ()) if taint["key"].startswith("karpenter.sh/")]


def test_nodes_go_when_their_pods_have_gone(case: Case) -> None:
    case.pool(disruption={"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty"})
    case.deployment(2, "stays")
    case.until_running(2, "stays")
    case.deployment(3, "goes", cpu="20")
    case.until_running(3, "goes")
    before = {name_of(node) for node in case.until_settled()}

    case.deployment(0, "goes", cpu="20")

    needed = {pod["spec"]["nodeName"] for pod in case.running("stays")}
    assert needed < before
    case.until_gone(sorted(before - needed))
    case.until_running(2, "stays")
    assert {name_of(node) for node in case.nodes()} == needed


@pytest.mark.soak
@pytest.mark.parametrize("condition", ["KWOKUnhealthy", "KWOKRebootRequired"])
def test_a_broken_node_is_repaired(case: Case, condition: str) -> None:
    case.pool()
    case.deployment(1)
    case.until_running(1)
    [node] = case.until_ready(1)
    boot = node["status"]["nodeInfo"].get("bootID", "")

    case.breaks(name_of(node), condition)

    if condition == "KWOKUnhealthy":
        case.until_gone([name_of(node)])
    else:
        case.until(lambda: case.nodes()[0]["status"]["nodeInfo"].get("bootID", "") != boot, "it is restarted")
        case.breaks(name_of(node), condition, "False")
    case.until_running(1)
    [repaired] = case.until_ready(1)
    assert (name_of(repaired) == name_of(node)) == (condition == "KWOKRebootRequired")


def test_spread_over_zones(case: Case) -> None:
    case.pool()
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    case.deployment(3, topologySpreadConstraints=[spread])

    case.until_running(3)

    assert len({node["metadata"]["labels"][ZONE] for node in case.until_ready(3)}) == 3


def test_a_volume_decides_the_zone(case: Case) -> None:
    zone, name = "test-zone-b", case.name
    place = {"nodeSelectorTerms": [{"matchExpressions": [requirement(ZONE, "In", zone)]}]}
    claim = {
        "storageClassName": name,
        "volumeName": name,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    case.apply({**storage, "provisioner": "kubernetes.io/no-provisioner"})
    case.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "storageClassName": name,
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/data"},
                "claimRef": {"namespace": name, "name": "data"},
                "nodeAffinity": {"required": place},
            },
        }
    )
    case.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": name},
            "spec": claim,
        }
    )
    case.pool()
    case.deployment(1, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])

    case.until_running(1)

    assert [node["metadata"]["labels"][ZONE] for node in case.until_ready(1)] == [zone]


def test_a_budget_holds_a_drain_until_it_is_lifted(case: Case) -> None:
    case.pool()
    case.deployment(1)
    case.budget(minAvailable=1)
    case.until_running(1)
    [node] = case.until_ready(1)

    case.delete_claim(name_of(case.claims()[0]))
    case.until(lambda: is_going(case, name_of(node)), "the node is tainted and marked")
    case.until(lambda: blocked(case), "the refused eviction is told")
    [pod] = case.running()
    assert pod["spec"]["nodeName"] == name_of(node)
    case.budget(maxUnavailable=1)

    case.until_gone([name_of(node)])
    case.until_running(1)
    case.until_ready(1)


def is_going(case: Case, name: str) -> bool:
    found = [node for node in case.nodes() if name_of(node) == name]
    taints = [taint["key"] for node in found for taint in node["spec"].get("taints", ())]
    return bool(found) and "karpenter.sh/disrupted" in taints and "deletionTimestamp" in found[0]["metadata"]


def blocked(case: Case) -> bool:
    _, events = case.cluster.request("GET", "/api/v1/namespaces/default/events?fieldSelector=reason=FailedDraining")
    names = {name_of(node) for node in case.nodes()}
    return any(each["involvedObject"]["name"] in names for each in events["items"])


def test_a_grace_period_ends_a_drain_that_nothing_else_ends(case: Case) -> None:
    case.pool(template={"terminationGracePeriod": "15s"})
    case.deployment(1, annotations={DO_NOT_DISRUPT: "true"})
    case.budget(minAvailable=1)
    case.until_running(1)
    [node] = case.until_ready(1)

    case.delete_claim(name_of(case.claims()[0]))

    case.until_gone([name_of(node)])
    case.until_running(1)


@pytest.mark.soak
def test_a_protected_pod_keeps_a_node_that_is_to_go(case: Case) -> None:
    case.pool()
    case.deployment(1, annotations={DO_NOT_DISRUPT: "true"})
    case.until_running(1)
    [node] = case.until_ready(1)

    case.delete_claim(name_of(case.claims()[0]))
    case.until(lambda: is_going(case, name_of(node)), "the node is tainted and marked")
    time.sleep(5)  # an eviction would have been tried by now
    [pod] = case.running()
    assert pod["spec"]["nodeName"] == name_of(node)

    case.deployment(0, annotations={DO_NOT_DISRUPT: "true"})
    case.until_gone([name_of(node)])


def test_the_nodes_of_a_pool_go_with_it(case: Case) -> None:
    pool = case.pool()
    case.deployment(2)
    case.until_running(2)
    nodes = [name_of(node) for node in case.until_settled()]

    case.delete(pool)

    case.until_gone(nodes)
    case.until(lambda: not case.claims(), "the claims go after their nodes")
    assert len(case.pods()) == 2  # they wait for another pool


@pytest.mark.soak
def test_nodes_expire_and_are_replaced(case: Case) -> None:
    case.pool(template={"expireAfter": "25s"})
    case.deployment(1)
    case.until_running(1)
    [node] = case.until_ready(1)

    case.until_gone([name_of(node)])

    case.pool(template={"expireAfter": "Never"})
    case.until_running(1)


def test_a_static_pool_keeps_its_size(case: Case) -> None:
    for replicas in (2, 3, 1):
        case.pool(replicas=replicas)
        case.until_ready(replicas)
    [node] = case.nodes()

    case.delete_claim(node["metadata"]["ownerReferences"][0]["name"])

    case.until_gone([name_of(node)])
    case.until_ready(1)


def test_a_buffer_keeps_room(case: Case) -> None:
    case.pool()
    template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "room", "namespace": case.name}}
    case.apply({**template, "template": {"metadata": {"labels": {"app": "room"}}, "spec": case.pod_spec(cpu="2")}})
    buffer = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer"}
    case.apply(
        {
            **buffer,
            "metadata": {"name": "room", "namespace": case.name},
            "spec": {"podTemplateRef": {"name": "room"}, "replicas": 2},
        }
    )

    before = {name_of(node) for node in case.until_settled()}
    case.deployment(1, cpu="2")
    case.until_running(1)

    assert case.running()[0]["spec"]["nodeName"] in before


def test_an_overlay_makes_another_type_the_cheapest(case: Case) -> None:
    case.pool(requirement("karpenter.sh/capacity-type", "In", "on-demand"))
    case.deployment(1, "first")
    case.until_running(1)
    [first] = case.until_ready(1)
    dear = first["metadata"]["labels"]["node.kubernetes.io/instance-type"]
    case.apply(
        {
            "apiVersion": "karpenter.sh/v1alpha1",
            "kind": "NodeOverlay",
            "metadata": {"name": case.name},
            "spec": {
                "requirements": [
                    requirement("node.kubernetes.io/instance-type", "In", dear),
                    requirement("karpenter.sh/nodepool", "In", case.name),
                ],
                "priceAdjustment": "+900%",
            },
        }
    )
    case.until(
        lambda: is_true(
            case.cluster.request("GET", f"/apis/karpenter.sh/v1alpha1/nodeoverlays/{case.name}")[1], "Ready"
        ),
        "the overlay is taken up",
    )

    case.deployment(1, "second", cpu=first["status"]["allocatable"]["cpu"])
    case.until_running(1, "second")

    types = {node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in case.until_ready(2)}
    assert len(types) == 2


def test_reservations_come_first_and_then_what_is_left(case: Case) -> None:
    kind = "c-4x-amd64-linux"
    reservation = {"id": f"cr-{case.name}", "instanceType": kind, "zone": "test-zone-a", "count": 1}
    case.apply(
        {
            "apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass",
            "metadata": {"name": case.name},
            "spec": {"capacityReservations": [reservation]},
        }
    )
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": case.name}
    case.pool(requirement("node.kubernetes.io/instance-type", "In", kind), template={"nodeClassRef": reference})
    spread = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    case.deployment(2, affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [spread]}})

    case.until_running(2)

    kinds = sorted(node["metadata"]["labels"]["karpenter.sh/capacity-type"] for node in case.until_ready(2))
    assert kinds.count("reserved") == 1, kinds


def test_too_few_types_for_min_values_buy_nothing(case: Case) -> None:
    kind = requirement("node.kubernetes.io/instance-type", "In", "c-2x-amd64-linux", "c-4x-amd64-linux", minValues=2)
    case.pool(kind, requirement("kubernetes.io/arch", "In", "amd64"))
    case.deployment(1, cpu="3")
    case.until(
        lambda: [
            each
            for each in case.all("events")
            if each["reason"] == "FailedScheduling" and "minValues" in each["message"]
        ],
        "the event says why",
    )
    assert not case.claims()

    case.deployment(1, cpu="1")

    case.until_running(1)
    wanted = {each["key"]: each for each in case.claims()[0]["spec"]["requirements"]}
    assert wanted["node.kubernetes.io/instance-type"]["minValues"] == 2


def test_settings_of_a_type_add_a_resource_and_can_be_edited(case: Case) -> None:
    kind, resource = "s-4x-amd64-linux", "example.com/widget"
    settings = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "InstanceType", "metadata": {"name": kind}}

    def container(count: str) -> dict[str, Any]:
        return {"name": "main", "image": "none", "resources": {"limits": {resource: count}}}

    case.apply({**settings, "spec": {"resources": {resource: "2"}}})
    case.pool()
    case.deployment(1, containers=[container("1")])

    case.until_running(1)

    [node] = case.until_ready(1)
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == kind

    case.apply({**settings, "spec": {"resources": {resource: "8"}}})
    case.deployment(1, "large", containers=[container("5")])

    case.until_running(1, "large")
    nodes = case.until_ready(2)
    assert [each["metadata"]["labels"]["node.kubernetes.io/instance-type"] for each in nodes] == [kind, kind]
