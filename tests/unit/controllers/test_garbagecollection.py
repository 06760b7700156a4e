"""Garbage, both ways."""

import asyncio

import pytest
from tests.unit.controllers.lifecycleworld import LifeWorld, claim, live

from joiner.cloud.errors import Transient
from joiner.cloud.provider import Instance
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.sim.cloud.cloud import NoCloudInterceptor
from joiner.sim.cloud.provider import PretendProvider

MINUTE = 60.0


@pytest.mark.parametrize(
    ("gone", "ready", "goes"),
    [(True, False, True), (True, True, False), (False, False, False)],
    ids=["machine gone, node silent", "machine gone, node still well", "machine there, node silent"],
)
def test_a_claim_whose_machine_is_gone_goes(gone: bool, ready: bool, goes: bool) -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        if gone:
            world.cloud.machines.vanish(world.claim().status.provider_id)
        world.set_ready(node.name, ready)
        await asyncio.sleep(3 * MINUTE)

        assert world.there(NodeClaim, "c") is not goes
        assert world.there(Node, node.name) is not goes
        assert world.disrupted() == ({"garbage_collected": 1.0} if goes else {})

    live(story)


def test_a_claim_whose_machine_is_missing_from_a_list_stays_when_the_cloud_knows_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def none(self: PretendProvider) -> tuple[Instance, ...]:
        return ()

    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.set_ready(node.name, False)
        monkeypatch.setattr(PretendProvider, "list", none)
        await asyncio.sleep(5 * MINUTE)

        assert world.claim().metadata.deletion_timestamp is None
        assert [each.state for each in world.cloud.machines.alive()] == ["running"]

    live(story)


class Silent(NoCloudInterceptor):
    """A cloud that does not answer about one machine."""

    about = ""

    def before(self, call: str, about: str) -> float:
        if call == "get" and about == self.about:
            raise Transient("not now")
        return 0.0


def test_a_machine_that_nobody_can_tell_of_does_not_hold_up_the_others() -> None:
    cloud = Silent()

    async def story(world: LifeWorld) -> None:
        world.put(claim("d"))
        for name in ("c", "d"):
            node = await world.settled(name)
            world.cloud.machines.vanish(world.claim(name).status.provider_id)
            world.set_ready(node.name, False)
        cloud.about = world.claim("c").status.provider_id
        await asyncio.sleep(3 * MINUTE)

        assert (world.there(NodeClaim, "c"), world.there(NodeClaim, "d")) == (True, False)

    live(story, cloud_interceptor=cloud)


def test_a_claim_whose_node_and_machine_are_gone_goes() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.cloud.machines.vanish(world.claim().status.provider_id)
        world.server.patch("test", node, replace(node, metadata=replace(node.metadata, finalizers=())))
        world.delete(world.node(node.name))
        await asyncio.sleep(3 * MINUTE)

        assert not world.there(NodeClaim, "c")

    live(story)


def test_a_claim_that_waits_for_its_node_is_left_to_its_own_limit() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.cloud.machines.vanish(world.claim().status.provider_id)
        await asyncio.sleep(5 * MINUTE)

        assert world.claim().metadata.deletion_timestamp is None

    live(story)


def test_a_machine_whose_claim_is_gone_goes() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(0.2)
        await world.stop()
        found = world.claim()
        world.server.patch("test", found, replace(found, metadata=replace(found.metadata, finalizers=())))
        world.delete(world.claim())
        await asyncio.sleep(1)
        assert not world.there(NodeClaim, "c")

        world.start()
        await asyncio.sleep(30)
        assert [machine.state for machine in world.cloud.machines.alive()] == ["running"]
        await asyncio.sleep(2 * MINUTE)
        assert not world.cloud.machines.alive()

    live(story)


def test_a_machine_whose_claim_is_there_stays() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        await asyncio.sleep(60 * MINUTE)

        assert [machine.state for machine in world.cloud.machines.alive()] == ["running"]

    live(story)
