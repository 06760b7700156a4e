"""Machines that were bought and that the provider does not tell of: the answer was lost, or its list is behind."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from tests.builders import pod
from tests.unit.controllers.lifecycleworld import LifeWorld, bound, claim, live

from joiner.cloud.errors import InstanceNotFound, NodeClassNotReady, Transient
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.provider import UNLISTED_S, Instance
from joiner.model.codec import decode
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.sim.cloud.cloud import NoCloudInterceptor
from joiner.sim.cloud.provider import PretendProvider

WANTED = [
    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]},
    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]},
]


class Lost(NoCloudInterceptor):
    """The answers to the first purchases are lost."""

    def __init__(self, times: int = 1) -> None:
        self.left = times

    def after(self, call: str, about: str) -> float:
        if call == "create" and self.left:
            self.left -= 1
            raise Transient("the answer was lost")
        return 0.0


def reserved() -> KWOKNodeClass:
    one = {"id": "cr-1", "instanceType": "m5.large", "zone": "us-west-2a", "count": 1}
    spec = {"instanceTypes": "ec2/us-west-2", "capacityReservations": [one]}
    return decode({"metadata": {"name": "default"}, "spec": spec}, KWOKNodeClass)


def be_behind(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """No answer of the cloud tells of machines that are younger."""
    list_, get, delete = PretendProvider.list, PretendProvider.get, PretendProvider.delete

    def young(provider: Any, each: Any) -> bool:
        return bool((provider._cloud.clock.now() - each.launched_at).total_seconds() < seconds)

    def check(provider: Any, provider_id: str) -> None:
        machine = provider._cloud.machines.get(provider_id)
        if machine is not None and young(provider, machine):
            raise InstanceNotFound(f"there is no machine {provider_id}")

    async def listed(self: Any) -> Sequence[Instance]:
        return tuple(each for each in await list_(self) if not young(self, each))

    async def got(self: Any, provider_id: str) -> Instance:
        check(self, provider_id)
        return await get(self, provider_id)

    async def deleted(self: Any, provider_id: str) -> None:
        check(self, provider_id)
        await delete(self, provider_id)

    monkeypatch.setattr(PretendProvider, "list", listed)
    monkeypatch.setattr(PretendProvider, "get", got)
    monkeypatch.setattr(PretendProvider, "delete", deleted)


@pytest.mark.parametrize("behind_s", [0.0, 20.0], ids=["list of now", "list behind"])
@pytest.mark.parametrize("restarts", [False, True], ids=["in one life", "over a restart"])
def test_a_claim_finds_its_own_machine_in_a_reservation_that_is_full_of_it(
    behind_s: float, restarts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_behind(monkeypatch, behind_s)

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(1)
        if restarts:
            await world.restart()
        await asyncio.sleep(40)

        machines = world.cloud.machines.alive()
        assert [each.state for each in machines] == ["running"]
        assert world.claim().status.provider_id == machines[0].provider_id
        assert world.condition("Launched").status == "True"
        assert world.claim().status.capacity
        assert not world.disrupted()

    live(story, reserved(), claim(requirements=WANTED), cloud_interceptor=Lost())


def test_a_machine_that_is_being_ended_is_not_the_one_that_a_claim_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node of it would never join, and the pods of the claim would wait a quarter of an hour for it."""
    create = PretendProvider.create
    asked: list[str] = []

    async def once(self: Any, claim: NodeClaim, options: Any) -> Instance:
        asked.append(claim.name)
        if len(asked) > 1:
            for each in self._cloud.machines.alive():
                self._cloud.machines.stop(each.provider_id)
            raise NodeClassNotReady("default", "its subnets are gone")
        return await create(self, claim, options)

    monkeypatch.setattr(PretendProvider, "create", once)

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(2 * UNLISTED_S)

        assert not world.there(NodeClaim, "c")
        assert world.disrupted() == {"nodeclass_not_ready": 1.0}

    live(story, cloud_interceptor=Lost())


def test_a_claim_whose_class_the_provider_finds_not_ready_goes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was bought for it, however often it was tried; its pods need another claim now."""

    async def refused(self: Any, claim: NodeClaim, options: Any) -> Instance:
        raise NodeClassNotReady("default", "its subnets are gone")

    monkeypatch.setattr(PretendProvider, "create", refused)

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)

        assert not world.there(NodeClaim, "c")
        assert world.disrupted() == {"nodeclass_not_ready": 1.0}

    live(story)


def test_a_claim_whose_class_is_not_ready_any_more_finds_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    create = PretendProvider.create
    asked: list[str] = []

    async def once(self: Any, claim: NodeClaim, options: Any) -> Instance:
        asked.append(claim.name)
        if len(asked) > 1:
            raise NodeClassNotReady("default", "its subnets are gone")
        return await create(self, claim, options)

    monkeypatch.setattr(PretendProvider, "create", once)

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(30)

        assert world.condition("Launched").status == "True"
        assert len(world.cloud.machines.alive()) == 1

    live(story, cloud_interceptor=Lost())


def test_a_claim_that_truly_got_nothing_is_given_up_once_the_provider_can_be_believed() -> None:
    """The first purchase is lost on its way there; then the reservation is full of another claim's machine."""

    class LostThere(NoCloudInterceptor):
        left = 1

        def before(self, call: str, about: str) -> float:
            if call == "create" and about == "late" and self.left:
                self.left -= 1
                raise Transient("the request was lost", after_s=10.0)
            return 0.0

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.put(claim("early", requirements=WANTED))
        await asyncio.sleep(30)
        assert world.claim("late").metadata.deletion_timestamp is None
        await asyncio.sleep(UNLISTED_S)

        assert not world.there(NodeClaim, "late")
        assert world.disrupted() == {"insufficient_capacity": 1.0}
        assert [each.claim_name for each in world.cloud.machines.alive()] == ["early"]

    live(story, reserved(), claim("late", requirements=WANTED), cloud_interceptor=LostThere())


@pytest.mark.parametrize("restarts", [False, True], ids=["in one life", "over a restart"])
@pytest.mark.parametrize("times", [0, 1], ids=["answered", "answer lost"])
def test_a_deleted_claim_is_not_let_go_while_its_machine_may_be_too_young_to_be_told_of(
    restarts: bool, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_behind(monkeypatch, 25.0)

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(0.9)
        world.delete(world.claim())
        if restarts:
            await world.restart()
        while world.there(NodeClaim, "c"):
            gone = not world.cloud.machines.alive()
            await asyncio.sleep(0.5)

        assert gone
        assert world.clock.monotonic() < 2 * UNLISTED_S

    live(story, cloud_interceptor=Lost(times))


def test_a_silent_node_is_drained_although_the_provider_does_not_tell_of_its_young_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    be_behind(monkeypatch, 30.0)

    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.put(bound(pod("web", terminationGracePeriodSeconds=10), node.name, world.clock))
        world.set_ready(node.name, False)
        world.delete(world.claim())
        await asyncio.sleep(3)

        assert world.there(Node, node.name)
        assert world.server.get(Pod, "web", "default").metadata.deletion_timestamp is not None
        world.server.delete("kubelet", Pod, "web", "default", grace_s=0)
        while world.there(Node, node.name):
            gone = not world.cloud.machines.alive()
            await asyncio.sleep(0.5)
        assert gone

    live(story)


def test_a_provider_that_is_certain_is_believed_however_young_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    delete = PretendProvider.delete

    async def at_once(self: Any, provider_id: str) -> None:
        with suppress(InstanceNotFound):
            await delete(self, provider_id)
        raise InstanceNotFound(f"{provider_id} was deleted", certain=True)

    monkeypatch.setattr(PretendProvider, "delete", at_once)

    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        began = world.clock.monotonic()
        world.delete(world.claim())
        while world.there(NodeClaim, "c") or world.there(Node, node.name):
            await asyncio.sleep(0.5)

        assert world.clock.monotonic() - began < UNLISTED_S / 2

    live(story)


def test_a_registered_claim_is_no_garbage_while_its_machine_may_be_too_young_to_be_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    be_behind(monkeypatch, 30.0)

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(100)
        world.put(claim("d"))
        node = await world.settled("d")
        world.set_ready(node.name, False)  # garbage is looked for at 120 s
        await asyncio.sleep(30)

        assert world.claim("d").metadata.deletion_timestamp is None

    live(story)
