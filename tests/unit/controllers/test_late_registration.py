"""A node that is open for pods although its claim does not say so yet: neither given up nor ended without a drain."""

import asyncio
from typing import Any

import pytest
from tests.builders import pod
from tests.unit.controllers.lifecycleworld import LifeWorld, bound, live

from joiner.kube.client import WatchEvent
from joiner.kube.errors import Conflict, Invalid, KubeError, Throttled, Unreachable
from joiner.model import labels
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.sim.apiserver.client import Call, NoInterceptor, WatchedChange

AWAY_S = 16 * 60


class StatusRefused(NoInterceptor):
    """Events about Nodes come late. Once the node is open pods come at once, and writes of the claim's status fail."""

    world: LifeWorld | None = None

    def __init__(self, error: KubeError, times: int = 1, late_s: float = 2.0) -> None:
        self.error, self.left, self.late_s = error, times, late_s

    def event(self, call: Call, event: WatchEvent[Any]) -> WatchedChange:
        return WatchedChange(delay_s=self.late_s if call.kind is Node else 0.0)

    def before(self, call: Call) -> float:
        if self.world is None or call.verb != "status" or call.kind is not NodeClaim or not self.left:
            return 0.0
        node = self.world.server.find(Node, "node-c")
        if node is not None and node.metadata.labels.get(labels.REGISTERED):
            self.left -= 1
            if not self.world.there(Pod, "web", "default"):
                self.world.put(bound(pod("web"), "node-c", self.world.clock))
            raise self.error
        return 0.0


@pytest.mark.parametrize(
    "error",
    [Conflict("another client was faster"), Throttled("too many requests", 0.1), Unreachable("no answer")],
    ids=["conflict", "throttled", "unreachable"],
)
def test_a_claim_is_not_given_up_while_writing_that_its_node_joined_fails(error: KubeError) -> None:
    faults = StatusRefused(error)

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        await world.stop()
        await asyncio.sleep(AWAY_S)
        world.join()
        faults.world = world
        world.start()
        await asyncio.sleep(60)

        assert faults.left == 0
        assert world.claim().metadata.deletion_timestamp is None
        assert world.condition("Registered").status == "True"
        assert world.cloud.machines.alive()

    live(story, interceptor=faults)


def test_a_claim_whose_node_the_server_does_not_accept_is_given_up_in_time() -> None:
    class Refused(NoInterceptor):
        def before(self, call: Call) -> float:
            if call.verb == "patch" and call.kind is Node:
                raise Invalid("a label is too long")
            return 0.0

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.join()
        await asyncio.sleep(AWAY_S)

        assert not world.there(NodeClaim, "c")
        assert world.disrupted() == {"registration_timeout": 1.0}

    live(story, interceptor=Refused())


@pytest.mark.parametrize("launched_before", [True, False], ids=["launched", "launch not written either"])
def test_an_open_node_is_drained_although_the_cache_has_not_seen_it_opened(launched_before: bool) -> None:
    """The claim is deleted when the node is open, pods are on it, and neither claim nor cache say so."""
    faults = StatusRefused(Unreachable("no answer"), times=1_000, late_s=600.0)

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        await world.stop()
        if not launched_before:
            claim = world.claim()
            world.change(claim, status=NodeClaim().status)
        world.join()
        faults.world = world
        world.start()
        await asyncio.sleep(5)
        assert world.there(Pod, "web", "default"), "the node was not opened"

        world.delete(world.claim())
        await asyncio.sleep(10)

        assert world.node("node-c").metadata.deletion_timestamp is not None
        assert all(each.state == "running" for each in world.cloud.machines.alive())
        assert world.cloud.machines.alive()

    live(story, interceptor=faults)


def test_a_node_that_was_never_opened_does_not_hold_up_the_end_of_its_machine() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        world.delete(world.claim())
        await asyncio.sleep(60)

        assert not world.there(NodeClaim, "c")
        assert not world.cloud.machines.alive()

    live(story)
