"""Pods: ports, claims, requests."""

from typing import Any

import pytest

from joiner.model import podrequests, resources
from joiner.model.codec import decode
from joiner.model.pod import ContainerPort, Pod, PodSpec, Volume, host_ports


def container(**fields: Any) -> dict[str, Any]:
    name, always = fields.pop("name", "c"), fields.pop("sidecar", False)
    shape: dict[str, Any] = {"name": name, "resources": {"requests": fields}}
    return {**shape, "restartPolicy": "Always"} if always else shape


def spec(containers: list[Any], init: list[Any] | None = None, **fields: Any) -> PodSpec:
    return decode({"containers": containers, "initContainers": init or [], **fields}, PodSpec)


@pytest.mark.parametrize(
    ("pod", "cpu"),
    [
        (spec([container(cpu="1"), container(cpu="500m")]), "1500m"),
        (spec([container(cpu="1")], [container(cpu="3"), container(cpu="2")]), "3"),
        (spec([container(cpu="1")], [container(cpu="2", sidecar=True)]), "3"),
        (spec([container(cpu="1")], [container(cpu="2", sidecar=True), container(cpu="4")]), "6"),
        (spec([container(cpu="1")], [container(cpu="4"), container(cpu="2", sidecar=True)]), "4"),
        (spec([container(cpu="1")], overhead={"cpu": "250m"}), "1250m"),
        (spec([container(cpu="1")], resources={"requests": {"cpu": "5"}}, overhead={"cpu": "1"}), "6"),
        (spec([container(cpu="3")], resources={"requests": {"cpu": "2"}}), "2"),
        (spec([container(memory="1Gi")]), "0"),
    ],
    ids=["sum", "largest init", "sidecar", "init after it", "init before it", "overhead", "pod", "pod below", "none"],
)
def test_requests_are_what_the_pod_takes_at_its_peak(pod: PodSpec, cpu: str) -> None:
    assert podrequests.of_spec(pod).get("cpu", 0) == resources.of(cpu=cpu)["cpu"]


def test_every_pod_takes_a_place() -> None:
    assert podrequests.of_spec(PodSpec()) == resources.of(pods=1)


def test_the_pod_as_a_whole_speaks_only_for_some_resources() -> None:
    pod = spec(
        [container(**{"example.com/gpu": "1"})], resources={"requests": {"example.com/gpu": "5", "memory": "1Gi"}}
    )

    assert podrequests.of_spec(pod) == {**resources.of(memory="1Gi", pods=1), "example.com/gpu": 1000}


@pytest.mark.parametrize(
    ("given", "reason", "cpu"),
    [("1", "Deferred", "2"), ("3", "Deferred", "3"), ("1", "Infeasible", "1"), (None, "", "2")],
    ids=["growing", "shrinking", "refused", "no resize"],
)
def test_while_resized_a_pod_takes_the_larger_amount(given: str | None, reason: str, cpu: str) -> None:
    statuses = [{"name": "c"} if given is None else {"name": "c", "allocatedResources": {"cpu": given}}]
    conditions = [{"type": "PodResizePending", "reason": reason}]
    raw = {
        "spec": {"containers": [container(cpu="2")]},
        "status": {"containerStatuses": statuses, "conditions": conditions},
    }

    assert podrequests.of_pod(decode(raw, Pod)) == resources.of(cpu=cpu, pods=1)


def test_a_pod_without_statuses_takes_what_it_asks_for() -> None:
    pod = Pod(spec=spec([container(cpu="2")]))

    assert podrequests.of_pod(pod) == podrequests.of_spec(pod.spec)


def test_overhead_counts_towards_limits_that_exist() -> None:
    pod = decode(
        {"containers": [{"resources": {"limits": {"cpu": "1"}}}], "overhead": {"cpu": "1", "memory": "1Gi"}}, PodSpec
    )

    assert podrequests.limits(pod) == resources.of(cpu="2")


def port(number: int, address: str = "", protocol: str = "TCP") -> ContainerPort:
    return ContainerPort(host_port=number, host_ip=address, protocol=protocol)


@pytest.mark.parametrize(
    ("one", "other", "answer"),
    [
        (port(80), port(80), True),
        (port(80, "10.0.0.1"), port(80, "10.0.0.2"), False),
        (port(80, "10.0.0.1"), port(80, "10.0.0.1"), True),
        (port(80, "10.0.0.1"), port(80, "0.0.0.0"), True),
        (port(80, "::"), port(80, "10.0.0.2"), True),
        (port(80), port(80, protocol="UDP"), False),
        (port(80), port(81), False),
        (port(0), port(0), False),
    ],
    ids=["any", "two addresses", "one address", "v4", "v6", "protocol", "port", "no host port"],
)
def test_host_ports_conflict(one: ContainerPort, other: ContainerPort, answer: bool) -> None:
    assert one.conflicts(other) is answer
    assert other.conflicts(one) is answer


def test_only_ports_of_the_node_and_of_containers_count() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081, "hostIP": "10.0.0.1"}]
    pod = decode({"containers": [{"ports": ports}], "initContainers": [{"ports": [{"hostPort": 9}]}]}, PodSpec)

    assert host_ports(pod) == (ContainerPort(container_port=81, host_port=8081, host_ip="10.0.0.1"),)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ({"name": "v", "persistentVolumeClaim": {"claimName": "data"}}, "data"),
        ({"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}, "web-0-v"),
        ({"name": "v", "emptyDir": {}}, None),
    ],
    ids=["claim", "ephemeral", "neither"],
)
def test_a_volume_knows_its_claim(raw: object, name: str | None) -> None:
    assert decode(raw, Volume).claim_name("web-0") == name
