"""Capacity buffers: the room is bought, kept, told of, and let go."""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.unit.controllers.provisioningworld import Workshop, at_work, own_node, ready_pool, seconds

from joiner.controllers.provisioning.buffers import CapacityBuffers
from joiner.kube.controller import Controller
from joiner.model.capacitybuffer import CapacityBuffer
from joiner.model.codec import decode
from joiner.model.conditions import Condition, find
from joiner.model.meta import replace
from joiner.model.workload import Deployment, PodTemplate

SPEC = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
METADATA = {"name": "web", "namespace": "default"}
TEMPLATE = decode({"metadata": METADATA, "template": {"metadata": {}, "spec": SPEC}}, PodTemplate)
WORKLOAD = decode({"metadata": METADATA, "spec": {"replicas": 10, "template": {"spec": SPEC}}}, Deployment)
BY_TEMPLATE = {"podTemplateRef": {"name": "web"}, "replicas": 2}
BY_WORKLOAD = {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}, "percentage": 20}


def buffers(shop: Workshop) -> Iterable[Controller]:
    assert shop.room is not None
    yield CapacityBuffers(shop.shared, batcher=shop.batcher, room=shop.room)


def buffer(**spec: Any) -> CapacityBuffer:
    return decode({"metadata": {"name": "spare", "namespace": "default"}, "spec": spec}, CapacityBuffer)


def told(shop: Workshop, kind: str) -> Condition | None:
    return find(shop.server.get(CapacityBuffer, "spare", "default").status.conditions, kind)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param(BY_TEMPLATE, "Resolved", id="a template"),
        pytest.param(BY_WORKLOAD, "Resolved", id="a workload"),
        pytest.param({"podTemplateRef": {"name": "gone"}, "replicas": 1}, "PodTemplateNotFound", id="no such template"),
        pytest.param({"scalableRef": {"kind": "Deployment", "name": "gone"}}, "ScalableRefNotFound", id="no workload"),
        pytest.param({"scalableRef": {"kind": "CronJob", "name": "web"}}, "ResolutionFailed", id="of another kind"),
    ],
)
def test_a_buffer_says_whether_it_is_known_what_it_imitates(spec: dict[str, Any], reason: str) -> None:
    async def test(shop: Workshop) -> None:
        shop.load(TEMPLATE, WORKLOAD, buffer(**spec))
        await seconds(10)

        found = told(shop, "ReadyForProvisioning")
        assert found is not None
        assert (found.reason, found.status) == (reason, "True" if reason == "Resolved" else "False")

    at_work(test, more=buffers, buffered=True)


def test_room_that_is_missing_is_bought_once() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), TEMPLATE, buffer(**BY_TEMPLATE))
        await seconds(10)
        (claim,) = shop.claims()
        assert _reason(shop) == "RequiresNewCapacity"

        shop.launch(claim)
        await seconds(120)

        assert (len(shop.claims()), _reason(shop)) == (1, "FitsExistingCapacity")
        assert shop.cluster.buffered(claim.name) == 2
        assert shop.told("Nominated") == []

    at_work(test, more=buffers, buffered=True)


def _reason(shop: Workshop) -> str:
    found = told(shop, "Provisioning")
    return found.reason if found is not None else ""


def test_room_on_nodes_that_are_there_is_enough_and_nobody_is_nominated() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), own_node("n"), TEMPLATE, buffer(**BY_TEMPLATE))
        await seconds(10)

        assert (shop.claims(), _reason(shop), shop.cluster.buffered("n")) == ([], "FitsExistingCapacity", 2)
        assert not shop.cluster.is_nominated("n", shop.clock.now())

    at_work(test, more=buffers, buffered=True)


def test_a_share_follows_its_workload() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), own_node("n"), WORKLOAD, buffer(**BY_WORKLOAD))
        await seconds(10)
        workload = shop.server.get(Deployment, "web", "default")
        shop.server.patch("test", workload, replace(workload, spec=replace(workload.spec, replicas=15)))
        await seconds(10)

        assert shop.server.get(CapacityBuffer, "spare", "default").status.replicas == 3
        assert shop.cluster.buffered("n") == 3

    at_work(test, more=buffers, buffered=True)


def test_room_is_given_back_when_the_buffer_is_deleted() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), own_node("n"), TEMPLATE, buffer(**BY_TEMPLATE))
        await seconds(10)
        shop.remove(buffer())
        await seconds(10)

        assert shop.cluster.buffered("n") == 0

    at_work(test, more=buffers, buffered=True)


def test_a_buffer_of_nothing_says_so() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), TEMPLATE, buffer(**{**BY_TEMPLATE, "replicas": 0}))
        await seconds(10)

        assert _reason(shop) == "BufferEmpty"

    at_work(test, more=buffers, buffered=True)
