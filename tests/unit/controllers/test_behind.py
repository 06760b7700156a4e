"""Where a cache, a list or an earlier look may be behind: the live look, the lock, or the second look is what counts."""

import asyncio
from typing import Any

from tests.builders import pod
from tests.unit.controllers.lifecycleworld import LifeWorld, bound, claim, live

from joiner.cloud.errors import Transient
from joiner.kube.client import WatchEvent
from joiner.kube.errors import EvictionBlocked
from joiner.model import claimconditions, labels
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.model.taints import Taint
from joiner.sim.apiserver.client import Call, NoInterceptor, WatchedChange
from joiner.sim.cloud.cloud import NoCloudInterceptor

MINUTE = 60.0
CLOSED = Taint(key="example.com/closed", effect="NoSchedule")


class Deaf(NoInterceptor):
    """While it is on, nothing that happens to one kind is heard of for a long time."""

    def __init__(self, kind: type) -> None:
        self.kind, self.on = kind, False

    def event(self, call: Call, event: WatchEvent[Any]) -> WatchedChange:
        return WatchedChange(delay_s=600.0 if self.on and call.kind is self.kind else 0.0)


def test_a_machine_whose_claim_the_cache_has_not_heard_of_is_no_garbage() -> None:
    deaf = Deaf(NodeClaim)

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        deaf.on = True
        world.put(claim("d"))
        uid = world.claim("d").metadata.uid
        made = world.cloud.machines.of_claim(world.claim().metadata.uid)
        assert made is not None
        world.cloud.machines.start(replace(made, provider_id="sim://d", node_name="d", claim_name="d", claim_uid=uid))
        await asyncio.sleep(5 * MINUTE)

        assert {each.claim_name: each.state for each in world.cloud.machines.alive()} == {
            "c": "running",
            "d": "running",
        }

    live(story, interceptor=deaf)


def test_no_machine_is_bought_for_a_claim_that_was_deleted_and_the_cache_has_not_heard() -> None:
    deaf = Deaf(NodeClaim)

    class Busy(NoCloudInterceptor):
        on = True

        def before(self, call: str, about: str) -> float:
            if call == "create" and self.on:
                raise Transient("the cloud is busy", after_s=20.0)
            return 0.0

    busy = Busy()

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        deaf.on = True
        world.delete(world.claim())
        busy.on = False
        await asyncio.sleep(MINUTE)

        assert not world.cloud.machines.alive()

    live(story, interceptor=deaf, cloud_interceptor=busy)


def test_a_silent_node_is_drained_while_the_cloud_is_too_busy_to_tell_of_its_machine() -> None:
    class Busy(NoCloudInterceptor):
        def before(self, call: str, about: str) -> float:
            if call == "get":
                raise Transient("the cloud is busy")
            return 0.0

    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        await asyncio.sleep(2 * MINUTE)
        protected = {labels.DO_NOT_DISRUPT: "true"}
        world.put(bound(pod("web"), node.name, world.clock, annotations=protected))
        world.set_ready(node.name, False)
        world.delete(world.claim())
        await asyncio.sleep(2 * MINUTE)

        assert world.there(Node, node.name)
        assert [each.state for each in world.cloud.machines.alive()] == ["running"]

    live(story, cloud_interceptor=Busy())


def test_a_node_whose_claim_the_cache_has_not_heard_of_is_not_let_go_before_its_machine() -> None:
    """Without a claim there is no machine to wait for."""
    deaf = Deaf(NodeClaim)

    async def story(world: LifeWorld) -> None:
        first = await world.settled()
        deaf.on = True
        world.put(claim("d"))
        uid = world.claim("d").metadata.uid
        made = world.cloud.machines.of_claim(world.claim().metadata.uid)
        assert made is not None
        world.cloud.machines.start(replace(made, provider_id="sim://d", node_name="d", claim_name="d", claim_uid=uid))
        known = world.claim("d")
        held = replace(known.metadata, finalizers=(labels.TERMINATION_FINALIZER,))
        world.change(known, metadata=held, status=replace(known.status, provider_id="sim://d", node_name="d"))
        owner = replace(first.metadata.owner_references[0], name="d", uid=uid)
        metadata = replace(first.metadata, name="d", uid="", resource_version="", owner_references=(owner,))
        world.put(replace(first, metadata=metadata, spec=replace(first.spec, provider_id="sim://d")))
        world.delete(world.node("d"))
        await asyncio.sleep(MINUTE)

        assert world.claim("d").metadata.deletion_timestamp is not None
        assert world.there(Node, "d") or "sim://d" not in [each.provider_id for each in world.cloud.machines.alive()]

    live(story, interceptor=deaf)


class SecondWriter(NoInterceptor):
    """Taints a node just before a write of it arrives."""

    world: LifeWorld | None = None

    def before(self, call: Call) -> float:
        if self.world is not None and (call.verb, call.kind) == ("patch", Node):
            world, self.world = self.world, None
            node = world.node(call.key.name)
            world.change(node, spec=replace(node.spec, taints=(*node.spec.taints, CLOSED)))
        return 0.0


def test_a_taint_that_is_set_while_a_node_registers_stays() -> None:
    second = SecondWriter()

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        second.world = world
        world.join()
        await asyncio.sleep(5)

        assert world.condition("Registered").status == "True"
        assert CLOSED in world.node("node-c").spec.taints

    live(story, claim(taints=[{"key": "team", "effect": "NoSchedule"}]), interceptor=second)


def test_a_taint_that_is_set_while_a_node_is_closed_stays() -> None:
    second = SecondWriter()

    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.put(bound(pod("web"), node.name, world.clock, annotations={labels.DO_NOT_DISRUPT: "true"}))
        second.world = world
        world.delete(world.claim())
        await asyncio.sleep(10)

        assert {"example.com/closed", "karpenter.sh/disrupted"} <= {
            each.key for each in world.node(node.name).spec.taints
        }

    live(story, interceptor=second)


def test_a_node_that_is_being_deleted_is_not_registered() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        await world.stop()
        node = world.join()
        world.change(node, metadata=replace(node.metadata, finalizers=(labels.TERMINATION_FINALIZER,)))
        world.delete(node)
        world.start()
        for _ in range(40):
            await asyncio.sleep(0.05)
            assert labels.REGISTERED not in world.node(node.name).metadata.labels

    live(story)


def test_a_machine_whose_claim_lost_its_finalizer_to_a_person_is_found() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        await asyncio.sleep(5 * MINUTE)
        known = world.claim()
        world.change(known, metadata=replace(known.metadata, finalizers=()))
        world.server.delete("test", NodeClaim, "c")
        world.change(node, metadata=replace(world.node(node.name).metadata, finalizers=()))
        await asyncio.sleep(5 * MINUTE)

        assert not [each for each in world.cloud.machines.alive() if each.claim_uid == known.metadata.uid]

    live(story)


def test_a_pod_that_is_protected_while_its_eviction_is_retried_is_not_evicted() -> None:
    class Blocked(NoInterceptor):
        on = True

        def before(self, call: Call) -> float:
            if call.verb == "evict" and self.on:
                raise EvictionBlocked("a budget says no")
            return 0.0

    blocked = Blocked()

    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.put(bound(pod("web"), node.name, world.clock))
        world.delete(world.claim())
        await asyncio.sleep(30)
        world.annotate(world.server.get(Pod, "web", "default"), **{labels.DO_NOT_DISRUPT: "true"})
        await asyncio.sleep(1)
        blocked.on = False
        await asyncio.sleep(2 * MINUTE)

        assert world.server.get(Pod, "web", "default").metadata.deletion_timestamp is None

    live(story, interceptor=blocked)


def test_the_grace_period_of_a_claim_runs_on_while_the_controllers_are_away() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.put(bound(pod("web"), node.name, world.clock, annotations={labels.DO_NOT_DISRUPT: "true"}))
        await world.stop()
        world.delete(world.claim())
        deleted = world.now()
        await asyncio.sleep(4 * MINUTE)
        world.start()
        await asyncio.sleep(5)

        deadline = claimconditions.deadline(world.claim())
        assert deadline is not None
        assert abs((deadline - deleted).total_seconds() - 5 * MINUTE) <= 1

    live(story, claim(terminationGracePeriod="5m"))


def test_joining_is_timed_from_the_launch_and_not_from_the_creation() -> None:
    class Busy(NoCloudInterceptor):
        on = True

        def before(self, call: str, about: str) -> float:
            if call == "create" and self.on:
                raise Transient("the cloud is busy")
            return 0.0

    busy = Busy()

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(4 * MINUTE)
        busy.on = False
        await asyncio.sleep(MINUTE)
        assert world.condition("Launched").status == "True"
        await asyncio.sleep(12 * MINUTE)
        assert world.claim().metadata.deletion_timestamp is None
        await asyncio.sleep(4 * MINUTE)

        assert not world.there(NodeClaim, "c")

    live(story, cloud_interceptor=busy)
