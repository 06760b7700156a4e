"""Wherever an object is removed, or bound to a decision, by its name: a successor of the same name is never hit."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.builders import pod
from tests.unit.controllers.lifecycleworld import LifeWorld, bound, claim, live
from tests.unit.controllers.provisioningworld import Workshop, at_work, ready_pool, seconds
from tests.unit.controllers.repairworld import Clinic, in_clinic
from tests.unit.controllers.successors import Successor, succeed
from tests.unit.controllers.test_disruption_queue import commands, emptying
from tests.unit.controllers.test_static import both, scale

from joiner.model import claimconditions, labels
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod

MINUTE = 60.0


async def evicted(world: LifeWorld) -> None:
    node = await world.settled()
    world.put(bound(pod("web"), node.name, world.clock))
    world.delete(world.claim())
    await asyncio.sleep(20)


async def deleted_by_force(world: LifeWorld) -> None:
    node = await world.settled()
    world.put(bound(pod("web"), node.name, world.clock, annotations={labels.DO_NOT_DISRUPT: "true"}))
    world.delete(world.claim())
    await asyncio.sleep(3 * MINUTE)


async def leaves(world: LifeWorld) -> None:
    await world.settled()
    world.delete(world.claim())
    await asyncio.sleep(20)


async def never_joins(world: LifeWorld) -> None:
    await asyncio.sleep(16 * MINUTE)


async def loses_its_node(world: LifeWorld) -> None:
    node = await world.settled()
    world.delete(node)
    await asyncio.sleep(5)


async def grows_old(world: LifeWorld) -> None:
    await world.settled()
    await asyncio.sleep(31 * MINUTE)


async def loses_its_machine(world: LifeWorld) -> None:
    node = await world.settled()
    world.cloud.machines.vanish(world.claim().status.provider_id)
    world.set_ready(node.name, False)
    await asyncio.sleep(5 * MINUTE)


async def is_taken_back(world: LifeWorld) -> None:
    await world.settled()
    world.cloud.notices.send("scheduled_change", world.claim().status.provider_id)
    await asyncio.sleep(5)


async def fails_its_check(world: LifeWorld) -> None:
    await world.settled()
    world.cloud.notices.send("system_status", world.claim().status.provider_id)
    await asyncio.sleep(5)


LIVES: dict[str, tuple[str, type, Callable[[LifeWorld], Awaitable[None]], dict[str, Any]]] = {
    "eviction": ("evict", Pod, evicted, {}),
    "forced deletion": ("delete", Pod, deleted_by_force, {"terminationGracePeriod": "2m"}),
    "the node of a claim that goes": ("delete", Node, leaves, {}),
    "a claim that is given up": ("delete", NodeClaim, never_joins, {}),
    "the claim of a node that goes": ("delete", NodeClaim, loses_its_node, {}),
    "an old claim": ("delete", NodeClaim, grows_old, {"expireAfter": "30m"}),
    "a claim without a machine": ("delete", NodeClaim, loses_its_machine, {}),
    "a claim whose machine is taken back": ("delete", NodeClaim, is_taken_back, {}),
    "a claim whose machine fails its check": ("delete", NodeClaim, fails_its_check, {}),
}


@pytest.mark.parametrize("name", LIVES)
def test_a_successor_is_not_removed(name: str) -> None:
    verb, kind, happens, spec = LIVES[name]
    swap = Successor(verb, kind)

    async def story(world: LifeWorld) -> None:
        swap.begin(world.server)
        await happens(world)

        assert swap.is_untouched()

    live(story, claim(**spec), interceptor=swap)


def test_a_successor_is_not_launched_with_what_was_read_of_another_claim() -> None:
    """The claim is made anew while it waits to be launched: its machine would be bought for what another one asked for."""
    swap = Successor("get", NodeClaim)

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(1)
        swap.begin(world.server)
        held = claim("d")
        world.put(replace(held, metadata=replace(held.metadata, finalizers=(labels.TERMINATION_FINALIZER,))))
        await asyncio.sleep(5)

        assert swap.is_untouched()
        assert {each.claim_name for each in world.cloud.machines.alive()} == {"c"}

    live(story, interceptor=swap)


def test_the_node_of_another_machine_is_not_drained_because_a_claim_remembers_its_name() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        await world.stop()
        new = succeed(world.server, node)
        world.start()
        await asyncio.sleep(5)
        world.delete(world.claim())
        await asyncio.sleep(MINUTE)

        assert world.node(node.name) == new
        assert not world.there(NodeClaim, "c")
        assert not world.cloud.machines.alive()

    live(story)


def test_labels_of_a_claim_do_not_reach_a_successor_of_its_node() -> None:
    """The write is not locked, because others write Nodes all the time; it is meant for that Node all the same."""
    swap = Successor("patch", Node)

    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        node = world.join(ready=False)
        await asyncio.sleep(5)
        swap.begin(world.server)
        world.set_ready(node.name, True)
        await asyncio.sleep(5)

        assert swap.is_untouched()

    live(story, interceptor=swap)


def test_the_end_of_a_node_does_not_take_a_successor_of_its_claim_along() -> None:
    """The Node names the claim that it came for as its owner. The claim of that name is another one by then."""

    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        known = world.claim()
        world.change(known, metadata=replace(known.metadata, finalizers=()))
        world.delete(world.claim())
        world.put(claim())
        world.delete(world.node(node.name))
        await asyncio.sleep(60)

        assert world.claim().metadata.uid != known.metadata.uid
        assert world.claim().metadata.deletion_timestamp is None

    live(story)


# -- commands, repair, static pools --------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["get", "delete"])
def test_a_command_does_not_remove_a_successor(verb: str) -> None:
    swap = Successor(verb, NodeClaim)

    async def test(clinic: Clinic) -> None:
        assert await commands(clinic).start(emptying(clinic))
        swap.begin(clinic.server)
        await clinic.wait(2)

        assert swap.is_untouched()

    in_clinic(test, interceptor=swap)


def test_a_command_does_not_close_a_successor_of_its_node() -> None:
    swap = Successor("get", Node)

    async def test(clinic: Clinic) -> None:
        command = emptying(clinic)
        swap.begin(clinic.server)

        assert not await commands(clinic).start(command)
        await clinic.wait(2)
        assert swap.is_untouched()

    in_clinic(test, interceptor=swap)


@pytest.mark.parametrize("goes", ["leaves already", "is another one by now"])
def test_a_command_about_a_claim_that_goes_is_not_begun(goes: str) -> None:
    async def test(clinic: Clinic) -> None:
        pool = clinic.server.get(NodePool, "default")
        command = replace(emptying(clinic), decision="replace", replicas=pool)
        (found,) = clinic.claims()
        if goes == "leaves already":
            clinic.server.delete("test", NodeClaim, found.name)
        else:
            succeed(clinic.server, found)
        assert not await commands(clinic).start(command)

    in_clinic(test, replicas=1, gates="NodeRepair=true,StaticCapacity=true")


@pytest.mark.parametrize("flags", [["--legacy-node-repair=true"], []], ids=["as before", "by commands"])
def test_repair_does_not_remove_a_successor(flags: list[str]) -> None:
    swap = Successor("delete", NodeClaim)

    async def test(clinic: Clinic) -> None:
        swap.begin(clinic.server)
        clinic.sicken()
        await clinic.wait(5 * MINUTE)

        assert swap.is_untouched()

    in_clinic(test, interceptor=swap, flags=flags)


@pytest.mark.parametrize("verb", ["get", "patch", "status"])
def test_a_restart_is_not_asked_of_a_successor(verb: str) -> None:
    swap = Successor(verb, NodeClaim)

    async def test(clinic: Clinic) -> None:
        swap.begin(clinic.server)
        clinic.sicken(kind="KWOKRebootRequired")
        await clinic.wait(MINUTE)

        assert swap.is_untouched()

    in_clinic(test, interceptor=swap)


def test_a_machine_that_cannot_be_restarted_does_not_take_a_successor_with_it() -> None:
    swap = Successor("delete", NodeClaim)

    async def test(clinic: Clinic) -> None:
        swap.begin(clinic.server)
        clinic.alter(refuses_reboot=True)
        clinic.say("Rebooting", "RebootRequested")
        await clinic.wait(2 * MINUTE)

        assert swap.is_untouched()

    in_clinic(test, interceptor=swap)


def test_a_static_pool_that_shrinks_does_not_remove_a_successor() -> None:
    swap = Successor("delete", NodeClaim)

    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=2))
        await seconds(5)
        swap.begin(shop.server)
        scale(shop, 1)
        await seconds(5)

        assert swap.is_untouched()

    at_work(test, more=both, interceptor=swap, may_fail=True)


def test_a_machine_whose_claim_was_made_anew_is_garbage_and_the_new_one_keeps_its_own() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        await world.stop()
        old = world.claim()
        world.change(old, metadata=replace(old.metadata, finalizers=()))
        world.server.delete("test", NodeClaim, "c")
        world.put(claim())
        world.start()
        await asyncio.sleep(5 * MINUTE)

        (machine,) = world.cloud.machines.alive()
        assert machine.claim_uid == world.claim().metadata.uid != old.metadata.uid
        assert not claimconditions.is_leaving(world.claim())

    live(story)
