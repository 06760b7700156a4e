"""Workloads become the pods that they would make, with what the API server adds on the way."""

from typing import Any

import pytest

from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.pod import Pod, PodSpec, host_ports
from joiner.model.podpolicy import LimitRange, PriorityClass, RuntimeClass
from joiner.model.podrequests import of_spec
from joiner.model.podrules import is_provisionable, is_stateful
from joiner.model.workload import Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from joiner.offline.workloads.expand import Workload, claims_of, expand, wanted
from joiner.offline.workloads.owners import WorkloadFamilies
from joiner.offline.workloads.podadmission import Rules, admitted, elsewhere

TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}


def workload(kind: type[Workload], **spec: Any) -> Any:
    status = spec.pop("status", {})
    body = {"metadata": {"name": "web", "namespace": "team"}, "spec": {"template": TEMPLATE, **spec}, "status": status}
    return decode(body, kind)


COMPLETE = {"type": "Complete", "status": "True"}
FAILED = {"type": "Failed", "status": "True"}


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [
        pytest.param(Deployment, {}, 1, id="one unless said otherwise"),
        pytest.param(Deployment, {"replicas": 3}, 3, id="Deployment"),
        pytest.param(ReplicaSet, {"replicas": 0}, 0, id="scaled to zero"),
        pytest.param(StatefulSet, {"replicas": 2}, 2, id="StatefulSet"),
        pytest.param(ReplicationController, {"replicas": 2}, 2, id="ReplicationController"),
        pytest.param(Job, {}, 1, id="a simple Job"),
        pytest.param(Job, {"parallelism": 5}, 5, id="as many as run at once"),
        pytest.param(Job, {"parallelism": 5, "completions": 3}, 3, id="never more than are to be done"),
        pytest.param(Job, {"parallelism": 5, "completions": 6, "status": {"succeeded": 4}}, 2, id="nearly done"),
        pytest.param(Job, {"parallelism": 5, "suspend": True}, 0, id="suspended"),
        pytest.param(Job, {"parallelism": 5, "status": {"conditions": [COMPLETE]}}, 0, id="complete"),
        pytest.param(Job, {"completions": 2, "status": {"conditions": [FAILED]}}, 0, id="failed"),
    ],
)
def test_a_workload_wants_so_many_pods(kind: type[Workload], spec: dict[str, Any], count: int) -> None:
    made = workload(kind, **spec)

    assert wanted(made) == count
    assert [pod.name for pod in expand(made)] == [f"web-{number}" for number in range(count)]


def test_pods_wait_for_a_node_and_know_whose_they_are() -> None:
    (pod,) = expand(workload(StatefulSet))

    assert is_provisionable(pod)
    assert is_stateful(pod)
    assert (pod.metadata.namespace, pod.metadata.labels) == ("team", {"app": "web"})


def test_pods_of_one_workload_share_their_spec() -> None:
    one, other = expand(workload(Deployment, replicas=2))

    assert one.spec is other.spec
    assert one.metadata.uid < other.metadata.uid


def test_only_what_is_missing_is_made() -> None:
    living = [decode({"metadata": {"name": name, "namespace": "team"}}, Pod) for name in ("web-0", "web-2")]

    assert [pod.name for pod in expand(workload(StatefulSet, replicas=4), living)] == ["web-1", "web-3"]


def test_each_pod_of_a_statefulset_gets_a_claim_of_its_own() -> None:
    template = {"metadata": {"name": "disk"}, "spec": {"storageClassName": "gp3"}}
    made = workload(StatefulSet, replicas=2, volumeClaimTemplates=[template])
    pods = expand(made)

    assert [pod.spec.volumes[0].claim_name(pod.name) for pod in pods] == ["disk-web-0", "disk-web-1"]
    assert [(each.metadata.namespace, each.name) for each in claims_of(made, pods)] == [
        ("team", "disk-web-0"),
        ("team", "disk-web-1"),
    ]


@pytest.mark.parametrize(
    ("owner", "head"),
    [
        pytest.param(None, ("Pod", "team", "p"), id="nobody's"),
        pytest.param("web-abc", ("Deployment", "team", "web"), id="by way of a ReplicaSet"),
        pytest.param("alone", ("ReplicaSet", "team", "alone"), id="a ReplicaSet that stands alone"),
    ],
)
def test_a_pod_belongs_to_the_workload_at_the_top(owner: str | None, head: tuple[str, str, str]) -> None:
    reference = {"apiVersion": "apps/v1", "controller": True}
    above = [{**reference, "kind": "Deployment", "name": "web"}]
    between = decode({"metadata": {"name": "web-abc", "namespace": "team", "ownerReferences": above}}, ReplicaSet)
    owners = [{**reference, "kind": "ReplicaSet", "name": owner}] if owner else []
    pod = decode({"metadata": {"name": "p", "namespace": "team", "ownerReferences": owners}}, Pod)

    assert WorkloadFamilies([between]).head(pod) == head


# -- what the API server adds --------------------------------------------------------------------------------------------


def spec(**fields: Any) -> PodSpec:
    asked = fields.pop("resources", {})
    return decode({"containers": [{"name": "c", "resources": asked}], **fields}, PodSpec)


def limit_range(namespace: str = "team", **item: Any) -> LimitRange:
    limits = [{"type": "Pod", "max": {"cpu": "9"}}, {"type": "Container", **item}]
    return decode({"metadata": {"name": "l", "namespace": namespace}, "spec": {"limits": limits}}, LimitRange)


@pytest.mark.parametrize(
    ("asked", "item", "cpu"),
    [
        pytest.param({"limits": {"cpu": "2"}}, {}, 2, id="a limit is a request"),
        pytest.param({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, {}, 1, id="unless there is one"),
        pytest.param({}, {"defaultRequest": {"cpu": "3"}, "default": {"cpu": "4"}}, 3, id="the default request"),
        pytest.param({}, {"default": {"cpu": "4"}}, 4, id="the default limit"),
        pytest.param({}, {"max": {"cpu": "5"}, "min": {"cpu": "1"}}, 5, id="the most"),
        pytest.param({}, {"min": {"cpu": "1"}}, 1, id="the least"),
        pytest.param({"limits": {"cpu": "2"}}, {"defaultRequest": {"cpu": "3"}}, 2, id="what is said comes first"),
    ],
)
def test_requests_are_filled_in(asked: dict[str, Any], item: dict[str, Any], cpu: int) -> None:
    found = admitted(spec(resources=asked), "team", Rules(limit_ranges=(limit_range(**item),)))

    assert of_spec(found) == resources.of(cpu=cpu, pods=1)


@pytest.mark.parametrize(
    ("whole", "container", "cpu"),
    [
        pytest.param({"limits": {"cpu": "2"}}, {}, 2, id="a limit of the pod is its request"),
        pytest.param({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, {}, 1, id="unless it has one"),
        pytest.param({"limits": {"cpu": "2"}}, {"requests": {"cpu": "1"}}, 1, id="unless a container has one"),
        pytest.param({"limits": {"cpu": "2"}}, {"limits": {"cpu": "1"}}, 1, id="or a limit"),
    ],
)
def test_limits_of_whole_pods_count(whole: dict[str, Any], container: dict[str, Any], cpu: int) -> None:
    made = decode({"resources": whole, "containers": [{"name": "c", "resources": container}]}, PodSpec)

    assert of_spec(admitted(made, "team", Rules())) == resources.of(cpu=cpu, pods=1)


def test_limit_ranges_of_other_namespaces_do_not_count() -> None:
    rules = Rules(limit_ranges=(limit_range("elsewhere", default={"cpu": "4"}),))

    assert of_spec(admitted(spec(), "team", rules)) == resources.of(pods=1)


def test_a_runtime_class_brings_overhead_and_places() -> None:
    body = {
        "metadata": {"name": "kata"},
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
    }
    rules = Rules(runtime_classes=(decode(body, RuntimeClass),))
    found = admitted(spec(runtimeClassName="kata"), "team", rules)

    assert of_spec(found) == resources.of(cpu="250m", pods=1)
    assert (found.node_selector, [each.key for each in found.tolerations]) == ({"kata": "yes"}, ["kata"])


@pytest.mark.parametrize(
    ("name", "priority"),
    [("", 5), ("high", 100), ("system-node-critical", 2_000_001_000), ("unknown", None)],
    ids=["the usual one", "a class", "a class of the system", "no such class"],
)
def test_priorities_come_from_their_class(name: str, priority: int | None) -> None:
    classes = [
        {"metadata": {"name": "high"}, "value": 100},
        {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True},
    ]
    rules = Rules(priority_classes=tuple(decode(each, PriorityClass) for each in classes))

    assert admitted(spec(priorityClassName=name), "team", rules).priority == priority


@pytest.mark.parametrize(
    ("metadata", "asked", "said"),
    [
        ({}, {"runtimeClassName": "kata"}, ["RuntimeClass kata is not in these files"]),
        ({}, {"priorityClassName": "high"}, ["PriorityClass high is not in these files"]),
        ({}, {"priorityClassName": "system-node-critical"}, []),
        ({"creationTimestamp": "2030-01-01T00:00:00Z"}, {"runtimeClassName": "kata"}, []),
        ({}, {"priorityClassName": "high", "priority": 7}, []),
    ],
    ids=[
        "a runtime",
        "a priority",
        "one that every cluster has",
        "stored with its runtime",
        "stored with its priority",
    ],
)
def test_classes_that_are_not_given_are_named(metadata: dict[str, Any], asked: dict[str, Any], said: list[str]) -> None:
    pod = decode({"metadata": {"name": "p", **metadata}, "spec": {"containers": [], **asked}}, Pod)

    assert [line.split(";")[0] for line in elsewhere([pod, pod], Rules())] == said


@pytest.mark.parametrize(
    ("host_network", "ports", "taken"),
    [
        (True, [{"containerPort": 80}], [80]),
        (True, [{"containerPort": 80, "hostPort": 80}, {"containerPort": 9, "protocol": "UDP"}], [80, 9]),
        (False, [{"containerPort": 80}], []),
        (False, [{"containerPort": 80, "hostPort": 81}], [81]),
    ],
    ids=["the node's network", "stated and derived", "a network of its own", "only what is stated"],
)
def test_a_pod_in_the_network_of_its_node_takes_its_ports(
    host_network: bool, ports: list[dict[str, Any]], taken: list[int]
) -> None:
    spec = decode({"hostNetwork": host_network, "containers": [{"name": "a", "ports": ports}]}, PodSpec)

    assert [port.host_port for port in host_ports(admitted(spec, "default", Rules()))] == taken
