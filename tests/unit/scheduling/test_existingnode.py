"""Nodes that are there: who may go to them."""

from typing import Any

import pytest
from tests.builders import existing_node, pod, pods, problem

from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import HOSTNAME, ZONE
from joiner.model.pod import ContainerPort, Pod
from joiner.model.storage import PersistentVolumeClaim, StorageClass
from joiner.model.taints import Taint
from joiner.scheduling.problem import ExistingNode, Storage
from joiner.scheduling.schedule import schedule

TAINT = Taint(key="x", effect="NoSchedule")
TOLERANT: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}


def stays(asked: Pod, node: ExistingNode, **more: Any) -> bool:
    return bool(schedule(problem([asked], pools=(), nodes=(node,), **more)).placements)


@pytest.mark.parametrize(
    ("asked", "node", "expected"),
    [
        (pod(), existing_node(), True),
        (pod(cpu="4"), existing_node(), True),
        (pod(cpu="4001m"), existing_node(), False),
        (pod(cpu="3"), existing_node(used=resources.of(cpu="1500m")), False),
        (pod(extra={"example.com/gpu": "1"}), existing_node(), False),
        (pod(), existing_node(used=resources.of(pods=20)), False),
        (pod(), existing_node(taints=(TAINT,)), False),
        (pod(**TOLERANT), existing_node(taints=(TAINT,)), True),
        (pod(), existing_node(taints=(Taint(key="x", effect="PreferNoSchedule"),)), False),
        (pod(nodeSelector={ZONE: "b"}), existing_node(), False),
        (pod(nodeSelector={"example.com/team": "x"}), existing_node(), False),
        (pod(nodeSelector={"example.com/team": "x"}), existing_node(labels={"example.com/team": "x"}), True),
        (pod(ports=[80]), existing_node(ports=(ContainerPort(host_port=80),)), False),
        (pod(ports=[80]), existing_node(ports=(ContainerPort(host_port=81),)), True),
    ],
    ids=[
        "room enough", "exactly", "too large", "what is used is gone", "a resource it has not", "no place for a pod",
        "a taint", "a taint that is tolerated", "a taint that is only disliked, while no pool has one",
        "another zone", "a label it has not", "a label it has", "a port that is taken", "another port",
    ],
)  # fmt: skip
def test_a_node_takes_a_pod(asked: Pod, node: ExistingNode, expected: bool) -> None:
    assert stays(asked, node) == expected


@pytest.mark.parametrize(
    ("port", "other", "expected"),
    [
        ({"hostPort": 80}, ContainerPort(host_port=80, protocol="UDP"), True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, ContainerPort(host_port=80, host_ip="10.0.0.2"), True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, ContainerPort(host_port=80, host_ip="10.0.0.1"), False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, ContainerPort(host_port=80, host_ip="0.0.0.0"), False),
        ({"hostPort": 80, "hostIP": "0.0.0.0"}, ContainerPort(host_port=80, host_ip="10.0.0.1"), False),
        ({"hostPort": 80}, ContainerPort(host_port=80, host_ip="::"), False),
        ({"hostPort": 0, "containerPort": 80}, ContainerPort(host_port=80), True),
    ],
    ids=["protocol", "address", "same address", "all addresses", "all addresses, asked", "none said", "no host port"],
)
def test_ports_conflict(port: dict[str, Any], other: ContainerPort, expected: bool) -> None:
    assert stays(pod(ports=[port]), existing_node(ports=(other,))) == expected


@pytest.mark.parametrize(
    ("running", "left"),
    [(0, 3000), (400, 3000), (1000, 3000), (3000, 1000)],
    ids=["is to come", "runs with less than it asks for now", "runs", "runs with more"],
)
def test_room_is_kept_for_what_a_daemon_lacks(running: int, left: int) -> None:
    node = existing_node(used={"cpu": running}, daemon_used={"cpu": running})
    agents = (pod("agent", "1", "0"),)

    assert stays(pod(cpu=f"{left}m"), node, daemons=agents)
    assert not stays(pod(cpu=f"{left + 1}m"), node, daemons=agents)


@pytest.mark.parametrize("more", [{"nodeSelector": {ZONE: "b"}}, {"nodeSelector": {"example.com/team": "x"}}])
def test_no_room_is_kept_for_daemons_that_do_not_belong_there(more: dict[str, Any]) -> None:
    assert stays(pod(cpu="4"), existing_node(), daemons=(pod("agent", "1", **more),))


def storage(*names: str) -> Storage:
    plain = {"metadata": {"name": "plain"}, "provisioner": "ebs", "volumeBindingMode": "WaitForFirstConsumer"}
    claims = [
        {"metadata": {"name": name, "namespace": "default"}, "spec": {"storageClassName": "plain"}} for name in names
    ]
    return Storage(
        claims=tuple(decode(each, PersistentVolumeClaim) for each in claims), classes=(decode(plain, StorageClass),)
    )


@pytest.mark.parametrize(
    ("limits", "attached", "expected"),
    [
        ({"ebs": 2}, {"ebs": frozenset({"default/old"})}, True),
        ({"ebs": 1}, {"ebs": frozenset({"default/old"})}, False),
        ({"ebs": 1}, {"ebs": frozenset({"default/new"})}, True),
        ({"efs": 0}, {}, True),
        ({}, {"ebs": frozenset({"default/old"})}, True),
    ],
    ids=["one more", "too many", "the same volume again", "another driver's limit", "no limit"],
)
def test_a_node_attaches_only_so_many_volumes(limits: dict[str, int], attached: Any, expected: bool) -> None:
    node = existing_node(volume_limits=limits, volumes=attached)

    assert stays(pod(claims=["new"]), node, storage=storage("new")) == expected


def test_volumes_of_pods_placed_in_this_run_count() -> None:
    waiting = [pod(name, claims=[name]) for name in ("a", "b", "c")]
    node = existing_node(volume_limits={"ebs": 2})

    plan = schedule(problem(waiting, pools=(), nodes=(node,), storage=storage("a", "b", "c")))

    assert len(plan.placements["node-a"]) == 2


def test_nodes_that_are_ready_go_first_then_by_name() -> None:
    nodes = (existing_node("a", initialized=False), existing_node("c"), existing_node("b"))

    plan = schedule(problem(pods(9), pools=(), nodes=nodes))

    assert {name: len(members) for name, members in plan.placements.items()} == {"b": 4, "c": 4, "a": 1}


def test_nothing_is_bought_while_a_node_has_room() -> None:
    plan = schedule(problem(pods(4), nodes=(existing_node(),)))

    assert (plan.claims, len(plan.placements["node-a"])) == ((), 4)


def test_a_pod_that_names_its_host_is_not_planned_for() -> None:
    plan = schedule(problem([pod(nodeSelector={HOSTNAME: "b"})], nodes=(existing_node("a"), existing_node("b"))))

    assert [each.ignored for each in plan.refusals] == [True]
