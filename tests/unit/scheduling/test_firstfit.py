"""First fit asks one of several claims that are alike, unless the pod looks at what tells them apart."""

from typing import Any

import pytest
from tests.builders import VOCABULARY, instance_type, node_pool, offering

from joiner.catalog.build import Adjustments, build
from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import HOSTNAME
from joiner.model.pod import Pod
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.problem import PoolOption, Problem


def pod(name: str, cpu: str, port: int = 0, **spec: Any) -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    ports = {"ports": [{"containerPort": port, "hostPort": port}]} if port else {}
    metadata = {"name": name, "namespace": "default", "labels": {"app": name}}
    return decode({"metadata": metadata, "spec": {"containers": [{**container, **ports}], **spec}}, Pod)


def beside(kind: str, **labels: str) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def placed(*pods: Pod) -> list[set[str]]:
    machine = instance_type("only", [offering(price=1.0)], capacity=resources.of(cpu=8, memory="32Gi", pods=9))
    pool = node_pool()
    option = PoolOption(pool=pool, catalog=build((machine,), Adjustments(), pool, VOCABULARY))
    run = FirstFit(Problem(pods=pods, pools=(option,), vocabulary=VOCABULARY), Unlimited())
    run.place()
    assert not run.left_over()
    return [{pods[position].name for position in claim.positions} for claim in run.claims]


@pytest.mark.parametrize("friend", ["left", "right"])
def test_a_pod_finds_its_neighbour_among_claims_that_are_alike(friend: str) -> None:
    left = pod("left", "3", **beside("podAntiAffinity", app="right"))
    right = pod("right", "3", **beside("podAntiAffinity", app="left"))

    claims = placed(left, right, pod("small", "1", **beside("podAffinity", app=friend)))

    assert len(claims) == 2
    assert {friend, "small"} in claims


@pytest.mark.parametrize(("port", "where"), [(80, "right"), (81, "left")])
def test_a_pod_finds_the_claim_where_its_port_is_free(port: int, where: str) -> None:
    left = pod("left", "3", 80, **beside("podAntiAffinity", app="right"))
    right = pod("right", "3", 81, **beside("podAntiAffinity", app="left"))

    claims = placed(left, right, pod("small", "1", port))

    assert len(claims) == 2
    assert {where, "small"} in claims
