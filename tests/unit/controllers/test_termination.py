"""The end of a node."""

import asyncio
from typing import Any

import pytest
from tests.builders import pod
from tests.unit.controllers.lifecycleworld import LifeWorld, bound, claim, live

from joiner.disruption import drain
from joiner.kube.client import WatchEvent
from joiner.model import labels, taints
from joiner.model.claimconditions import TERMINATION_TIMESTAMP
from joiner.model.codec import decode
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.model.storage import VolumeAttachment
from joiner.sim.apiserver.client import Call, NoInterceptor, WatchedChange

MINUTE = 60.0
HOUR = 60 * MINUTE


async def with_pods(world: LifeWorld, *pods: Pod, **metadata: Any) -> Node:
    """A node that is in use, and the moment somebody deletes it."""
    node = await world.settled()
    world.put(*(bound(each, node.name, world.clock, **metadata) for each in pods))
    await asyncio.sleep(1)
    world.delete(node)
    return node


def end(world: LifeWorld, name: str) -> None:
    """The kubelet says that a pod has ended."""
    world.server.delete("kubelet", Pod, name, "default", grace_s=0)


def test_a_deleted_node_is_closed_drained_and_taken_away_with_its_claim() -> None:
    async def story(world: LifeWorld) -> None:
        node = await with_pods(world, pod("web"))
        await asyncio.sleep(2)

        closed = world.node(node.name)
        assert taints.is_among(taints.DISRUPTED, closed.spec.taints)
        assert closed.metadata.labels[drain.EXCLUDE_FROM_LOAD_BALANCERS] == "karpenter"
        assert world.claim().metadata.deletion_timestamp is not None
        assert world.server.get(Pod, "web", "default").metadata.deletion_timestamp is not None
        assert world.condition("Drained").reason == "Draining"

        end(world, "web")
        await asyncio.sleep(MINUTE)
        assert not world.there(Node, node.name)
        assert not world.there(NodeClaim, "c")

    live(story)


def test_a_drain_takes_at_least_five_seconds() -> None:
    async def story(world: LifeWorld) -> None:
        await with_pods(world)
        await asyncio.sleep(4.5)
        assert world.condition("Drained").status == "Unknown"

        await asyncio.sleep(1)
        assert world.condition("Drained").status == "True"
        assert world.condition("VolumesDetached").status == "True"
        assert world.condition("InstanceTerminating").status == "True"

    live(story)


def test_a_pod_that_came_at_the_last_moment_is_drained_too() -> None:
    async def story(world: LifeWorld) -> None:
        node = await with_pods(world)
        await asyncio.sleep(4)
        world.put(bound(pod("late"), node.name, world.clock))
        await asyncio.sleep(10)

        assert world.condition("Drained").status == "Unknown"
        assert world.server.get(Pod, "late", "default").metadata.deletion_timestamp is not None

    live(story)


def test_an_unready_node_whose_machine_is_gone_is_not_drained() -> None:
    async def story(world: LifeWorld) -> None:
        node = await with_pods(world, pod("web", terminationGracePeriodSeconds=3600))
        await asyncio.sleep(5)
        world.cloud.machines.vanish(world.claim().status.provider_id)
        world.annotate(world.node(node.name), look="again")
        await asyncio.sleep(MINUTE)
        assert world.there(Node, node.name)

        world.set_ready(node.name, False)
        await asyncio.sleep(1)
        assert not world.there(Node, node.name)

    live(story)


def test_a_machine_that_ends_after_its_kubelet_fell_silent_is_noticed() -> None:
    async def story(world: LifeWorld) -> None:
        node = await with_pods(world, pod("web", terminationGracePeriodSeconds=3600))
        world.set_ready(node.name, False)
        await asyncio.sleep(MINUTE)
        world.cloud.machines.vanish(world.claim().status.provider_id)
        await asyncio.sleep(15)

        assert not world.there(Node, node.name)

    live(story)


def test_a_protected_pod_holds_the_node_for_ever() -> None:
    async def story(world: LifeWorld) -> None:
        await with_pods(world, pod("shy"), annotations={labels.DO_NOT_DISRUPT: "true"})
        await asyncio.sleep(5)
        version = world.server.version
        await asyncio.sleep(3 * HOUR)

        assert world.server.get(Pod, "shy", "default").metadata.deletion_timestamp is None
        assert world.server.version == version
        assert "Node node-c" in world.events("FailedDraining")

    live(story)


def test_a_pod_that_is_protected_for_a_while_is_evicted_when_it_is_over() -> None:
    async def story(world: LifeWorld) -> None:
        await with_pods(world, pod("shy"), annotations={labels.DO_NOT_DISRUPT: "10m"})
        await asyncio.sleep(9 * MINUTE)
        assert world.server.get(Pod, "shy", "default").metadata.deletion_timestamp is None

        await asyncio.sleep(MINUTE + 1)
        assert world.server.get(Pod, "shy", "default").metadata.deletion_timestamp is not None
        assert world.events("DoNotDisruptUntil") == ["Pod default/shy"]
        assert world.events("DoNotDisruptGracePeriodElapsed") == ["Pod default/shy"]

    live(story)


def test_a_protection_that_makes_no_sense_is_told_of_and_has_no_effect() -> None:
    async def story(world: LifeWorld) -> None:
        await with_pods(world, pod("shy"), annotations={labels.DO_NOT_DISRUPT: "sometimes"})
        await asyncio.sleep(5)

        assert world.server.get(Pod, "shy", "default").metadata.deletion_timestamp is not None
        assert world.events("InvalidDoNotDisruptAnnotation") == ["Pod default/shy"]

    live(story)


@pytest.mark.parametrize("restarts", [False, True], ids=["in one life", "over a restart"])
def test_at_the_deadline_even_protected_pods_go(restarts: bool) -> None:
    async def story(world: LifeWorld) -> None:
        node = await with_pods(world, pod("shy"), annotations={labels.DO_NOT_DISRUPT: "true"})
        await asyncio.sleep(5 * MINUTE)
        if restarts:
            await world.restart()
        await asyncio.sleep(4 * MINUTE)
        assert world.server.get(Pod, "shy", "default").metadata.deletion_timestamp is None

        await asyncio.sleep(MINUTE + 1)
        assert world.events("Disrupted") == ["Pod default/shy"]
        end(world, "shy")
        await asyncio.sleep(MINUTE)
        assert not world.there(Node, node.name)

    live(story, claim(terminationGracePeriod="10m"))


def test_a_pod_with_a_long_grace_is_cut_short_by_the_deadline() -> None:
    async def story(world: LifeWorld) -> None:
        graces: list[int | None] = []
        world.server.observers.append(
            lambda write: (
                graces.append(write.after.metadata.deletion_grace_period_seconds)
                if isinstance(write.after, Pod)
                else None
            )
        )
        await with_pods(world, pod("slow", terminationGracePeriodSeconds=7200))
        await asyncio.sleep(5)

        told = [grace for grace in graces if grace is not None]
        assert told
        assert max(told) <= 600

    live(story, claim(terminationGracePeriod="10m"))


def test_a_deadline_that_is_moved_closer_is_kept() -> None:
    async def story(world: LifeWorld) -> None:
        await with_pods(world, pod("shy"), annotations={labels.DO_NOT_DISRUPT: "true"})
        await asyncio.sleep(5)
        world.annotate(world.claim(), **{TERMINATION_TIMESTAMP: "2030-01-07T00:02:00Z"})
        await asyncio.sleep(2 * MINUTE)

        assert world.server.get(Pod, "shy", "default").metadata.deletion_timestamp is not None

    live(story, claim(terminationGracePeriod="10h"))


def attachment(node: str) -> VolumeAttachment:
    spec = {"nodeName": node, "source": {"persistentVolumeName": "pv-1"}}
    return decode({"metadata": {"name": "attached"}, "spec": spec}, VolumeAttachment)


def test_a_node_waits_until_its_volumes_are_detached() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.put(attachment(node.name))
        world.delete(node)
        await asyncio.sleep(MINUTE)
        assert world.condition("VolumesDetached").reason == "AwaitingVolumeDetachment"
        assert world.events("AwaitingVolumeDetachment") == ["Node node-c"]

        world.delete(world.server.get(VolumeAttachment, "attached"))
        await asyncio.sleep(MINUTE)
        assert not world.there(Node, node.name)

    live(story)


def test_volumes_are_not_waited_for_after_the_deadline() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.put(attachment(node.name))
        world.delete(node)
        await asyncio.sleep(2 * MINUTE + 1)

        assert world.condition("VolumesDetached").reason == "TerminationGracePeriodElapsed"
        await asyncio.sleep(MINUTE)
        assert not world.there(Node, node.name)

    live(story, claim(terminationGracePeriod="2m"))


def test_a_node_without_a_claim_is_drained_and_let_go() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        await world.stop()
        found = world.claim()
        world.server.patch("test", found, replace(found, metadata=replace(found.metadata, finalizers=())))
        world.delete(world.claim())
        world.put(bound(pod("web"), node.name, world.clock))
        world.start()
        await asyncio.sleep(8)
        assert world.server.get(Pod, "web", "default").metadata.deletion_timestamp is not None

        end(world, "web")
        await asyncio.sleep(MINUTE)
        assert not world.there(Node, node.name)

    live(story)


def test_a_node_that_two_claims_say_is_theirs_costs_neither() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        twin = claim("twin")
        world.put(replace(twin, status=replace(world.claim().status, node_name=node.name)))
        await asyncio.sleep(1)
        world.delete(node)
        await asyncio.sleep(2)

        assert taints.is_among(taints.DISRUPTED, world.node(node.name).spec.taints)
        assert [world.claim(name).metadata.deletion_timestamp for name in ("c", "twin")] == [None, None]

    live(story)


def test_a_node_of_somebody_else_is_left_alone() -> None:
    async def story(world: LifeWorld) -> None:
        node = decode({"metadata": {"name": "other", "finalizers": [labels.TERMINATION_FINALIZER]}}, Node)
        world.put(node)
        world.delete(world.node("other"))
        await asyncio.sleep(MINUTE)

        assert world.node("other").spec.taints == ()

    live(story)


@pytest.mark.parametrize("at", [0.1, 1, 5, 6, 6.05, 6.2, 12, 20])
def test_a_restart_at_any_moment_does_not_stop_the_end(at: float) -> None:
    async def story(world: LifeWorld) -> None:
        node = await with_pods(world, pod("web", terminationGracePeriodSeconds=3))
        await asyncio.sleep(at)
        await world.restart()
        await asyncio.sleep(4)
        if world.there(Pod, "web", "default"):
            end(world, "web")
        await asyncio.sleep(MINUTE)

        assert not world.there(Node, node.name)
        assert not world.there(NodeClaim, "c")
        assert not world.cloud.machines.alive()

    live(story)


class Deaf(NoInterceptor):
    """No word about pods reaches Joiner for a minute."""

    def event(self, call: Call, event: WatchEvent[Any]) -> WatchedChange:
        return WatchedChange(delay_s=MINUTE if call.kind is Pod else 0.0)


def test_a_machine_does_not_go_under_pods_that_the_cache_has_not_heard_of() -> None:
    async def story(world: LifeWorld) -> None:
        await with_pods(world, pod("web"))
        await asyncio.sleep(30)

        assert world.condition("Drained").status == "Unknown"
        assert [machine.state for machine in world.cloud.machines.alive()] == ["running"]

    live(story, interceptor=Deaf())
