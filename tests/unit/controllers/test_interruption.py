"""Interruption notices: which claims they delete, how, and what happens when one is lost, late or given twice."""

import asyncio
from typing import Any, get_args

import pytest
from tests.builders import pod
from tests.unit.controllers.lifecycleworld import LifeWorld, bound, claim, live

from joiner.cloud.errors import Transient
from joiner.cloud.interruption import ACTIONS, Kind, instance_id
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.controllers.nodeclaim.interruption import EVENTS
from joiner.kube.errors import Unreachable
from joiner.model import labels
from joiner.model.claimconditions import TERMINATION_TIMESTAMP
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.sim.apiserver.client import Call, NoInterceptor

SPOT: dict[str, Any] = {"requirements": [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": [labels.SPOT]}]}
HANDLED = {
    "spot_interrupted": ("drained", "SpotInterrupted"),
    "rebalance_recommendation": ("kept", "SpotRebalanceRecommendation"),
    "scheduled_change": ("drained", "InstanceUnhealthy"),
    "instance_stopped": ("drained", "InstanceStopping"),
    "instance_terminated": ("drained", "InstanceTerminating"),
    "capacity_reservation_interrupted": ("drained", "CapacityReservationInterrupted"),
    "event_status": ("drained", "InstanceUnhealthy"),
    "instance_status": ("forced", "InstanceUnhealthy"),
    "system_status": ("forced", "InstanceUnhealthy"),
    "no_op": ("kept", ""),
}
"""Kind of notice to what becomes of the claim, and the event that it gets."""


def offered(world: LifeWorld) -> bool:
    """Whether the offering that the claim's machine was bought as is offered to the next one."""
    own, sold = world.claim().metadata.labels, world.cloud.types_sold(world.server.get(KWOKNodeClass, "default"))
    types = world.provider.unavailable.apply(tuple(sold.values()))
    (found,) = (each for each in types if each.name == own[labels.INSTANCE_TYPE])
    return any(
        (each.zone, each.capacity_type) == (own[labels.ZONE], own[labels.CAPACITY_TYPE]) and each.available != 0
        for each in found.offerings
    )


def test_every_kind_has_an_action_and_a_row() -> None:
    assert set(ACTIONS) == set(HANDLED) == set(get_args(Kind))
    assert set(EVENTS) == {kind for kind, action in ACTIONS.items() if action != "ignore"}


@pytest.mark.parametrize("kind", HANDLED)
def test_what_becomes_of_the_claim(kind: Kind) -> None:
    fate, reason = HANDLED[kind]

    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.put(bound(pod("p"), node.name, world.clock, annotations={"karpenter.sh/do-not-disrupt": "true"}))
        world.cloud.notices.send(kind, world.claim().status.provider_id)
        await asyncio.sleep(2)
        metadata = world.claim().metadata

        assert (metadata.deletion_timestamp is not None) == (fate != "kept")
        assert (TERMINATION_TIMESTAMP in metadata.annotations) == (fate == "forced")
        assert set(world.events(reason) if reason else ()) == ({"NodeClaim c", "Node node-c"} if reason else set())
        assert bool(world.events("TerminatingOnInterruption")) == (fate != "kept")
        assert world.disrupted() == ({} if fate == "kept" else {kind: 1.0})
        assert offered(world) == (kind != "spot_interrupted")
        assert world.there(Pod, "p", "default")

    live(story, claim(**SPOT))


def test_a_notice_drains_and_its_machine_ends() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        provider_id = world.claim().status.provider_id
        world.cloud.machines.reclaim(provider_id)
        await asyncio.sleep(60)

        assert not world.there(NodeClaim, "c")
        assert world.metrics.registry.get_sample_value("karpenter_interruption_deleted_messages_total") == 1.0

    live(story, claim(**SPOT))


def test_a_machine_is_known_by_the_last_part_of_its_provider_id() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        provider_id = world.claim().status.provider_id
        assert instance_id(provider_id) != provider_id
        world.cloud.notices.send("instance_stopped", instance_id(provider_id))
        await asyncio.sleep(2)

        assert world.claim().metadata.deletion_timestamp is not None

    live(story)


@pytest.mark.parametrize("named", ["sim://elsewhere/m-00001", "m-99999", "", "00001"])
def test_a_notice_about_another_machine_is_acknowledged_and_deletes_nothing(named: str) -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        world.cloud.notices.send("instance_terminated", named)
        await asyncio.sleep(60)

        assert world.claim().metadata.deletion_timestamp is None
        assert world.metrics.registry.get_sample_value("karpenter_interruption_deleted_messages_total") == 1.0
        assert world.errors == []

    live(story)


class FailsOnce(NoInterceptor):
    """Breaks the first deletion of a claim."""

    def __init__(self) -> None:
        self.left = 1

    def before(self, call: Call) -> float:
        if call.verb == "delete" and call.kind is NodeClaim and self.left:
            self.left -= 1
            raise Unreachable("the connection broke")
        return 0.0


def test_a_notice_that_could_not_be_handled_comes_again_and_keeps_no_other_from_being_handled() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        for name in ("c", "d"):
            world.join(name)
        await asyncio.sleep(5)
        for name in ("c", "d"):
            world.cloud.notices.send("instance_stopped", world.claim(name).status.provider_id)
        await asyncio.sleep(3)
        assert [world.claim(name).metadata.deletion_timestamp is not None for name in ("c", "d")] == [False, True]

        await asyncio.sleep(22)
        assert not world.there(NodeClaim, "c") or world.claim("c").metadata.deletion_timestamp is not None

    live(story, claim("c"), claim("d"), interceptor=FailsOnce())


def test_a_restart_between_notice_and_deletion_loses_nothing() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        await world.stop()
        world.cloud.machines.reclaim(world.claim().status.provider_id)
        await asyncio.sleep(10)
        world.start()
        await asyncio.sleep(5)

        assert world.claim().metadata.deletion_timestamp is not None

    live(story, claim(**SPOT))


class NoAcknowledgement:
    """Loses the first answer to an acknowledgement."""

    def __init__(self) -> None:
        self.left = 1

    def before(self, call: str, about: str) -> float:
        if call == "acknowledge" and self.left:
            self.left -= 1
            raise Transient("throttled")
        return 0.0

    def after(self, call: str, about: str) -> float:
        return 0.0


def test_a_notice_that_comes_twice_counts_once() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.put(bound(pod("p"), node.name, world.clock, finalizers=("example.com/stays",)))
        world.cloud.notices.send("instance_stopped", world.claim().status.provider_id)
        await asyncio.sleep(40)

        assert world.disrupted() == {"instance_stopped": 1.0}
        received = {"message_type": "instance_stopped"}
        registry = world.metrics.registry
        assert registry.get_sample_value("karpenter_interruption_received_messages_total", received) == 2.0
        assert registry.get_sample_value("karpenter_interruption_deleted_messages_total") == 1.0

    live(story, claim(), cloud_interceptor=NoAcknowledgement())
