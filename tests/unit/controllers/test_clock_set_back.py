"""The clock is set back by an hour: no wait takes longer than what it is for."""

import asyncio
from datetime import timedelta

import pytest
from tests.builders import pod
from tests.unit.controllers.lifecycleworld import LifeWorld, bound, claim, live

from joiner.clock import Clock
from joiner.controllers.waits import FORGET_FROM, Waits
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.sim.virtualtime import VirtualClock, VirtualLoop, run

HOUR = 3600.0


async def until_gone(world: LifeWorld, kind: type[Node] | type[NodeClaim], name: str) -> float:
    began = world.clock.monotonic()
    while world.there(kind, name) and world.clock.monotonic() - began < 3 * HOUR:
        await asyncio.sleep(1)
    return world.clock.monotonic() - began


def test_a_machine_that_never_joins_is_given_up_after_its_quarter_of_an_hour() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(60)
        world.clock.step(-HOUR)

        assert await until_gone(world, NodeClaim, "c") < 16 * 60

    live(story)


def test_a_restart_after_the_clock_was_set_back_costs_one_timeout_at_most() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(60)
        world.clock.step(-HOUR)
        await world.restart()

        assert await until_gone(world, NodeClaim, "c") < 17 * 60

    live(story)


def test_an_empty_node_leaves_as_soon_as_ever() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.delete(world.claim())
        await asyncio.sleep(2)
        world.clock.step(-HOUR)

        assert await until_gone(world, Node, node.name) < 60

    live(story)


def test_a_pod_that_should_have_ended_does_not_hold_a_node_an_hour_longer() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.put(bound(pod("web", terminationGracePeriodSeconds=10), node.name, world.clock))
        world.delete(world.claim())
        await asyncio.sleep(5)
        world.clock.step(-HOUR)

        assert await until_gone(world, Node, node.name) < 4 * 60

    live(story)


def test_a_claim_that_may_not_grow_old_goes_in_time() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        world.clock.step(-HOUR)

        assert await until_gone(world, NodeClaim, "c") < 32 * 60

    live(story, claim(expireAfter="30m"))


def test_a_machine_without_a_claim_is_garbage_also_if_it_was_bought_in_the_future() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        await world.stop()
        for kind, name in ((NodeClaim, "c"), (Node, node.name)):
            thing = world.server.get(kind, name)
            world.change(thing, metadata=replace(thing.metadata, finalizers=()))
            world.server.delete("test", kind, name)
        world.clock.step(-HOUR)
        world.start()
        await asyncio.sleep(5 * 60)

        assert not world.cloud.machines.alive()

    live(story)


def test_a_pod_that_comes_after_the_clock_was_set_back_is_noted() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.put(bound(pod("a"), node.name, world.clock))
        await asyncio.sleep(20)
        world.clock.step(-HOUR)
        world.put(bound(pod("b"), node.name, world.clock))
        await asyncio.sleep(5)

        noted = world.claim().status.last_pod_event_time
        assert noted is not None
        assert noted <= world.now()

    live(story)


# -- the waits themselves ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "takes"),
    [
        ((), 600),
        ((-HOUR,), 600),
        ((-HOUR, -HOUR), 600),
        ((-3.0,), 600),
        ((300.0,), 300),
        ((HOUR,), 0),
        ((HOUR, -HOUR), 600),
    ],
    ids=["steady", "set back", "set back twice", "a little", "set forward", "set forward by far", "there and back"],
)
def test_a_wait_ends_after_its_time_by_either_clock(steps: tuple[float, ...], takes: float) -> None:
    async def main(loop: VirtualLoop) -> None:
        clock = VirtualClock(loop)
        waits, since = Waits(clock), clock.now()
        assert waits.left("key", since, timedelta(minutes=10)) == 600
        for step in steps:
            clock.step(step)
            waits.left("another", clock.now(), timedelta(minutes=10))
        while (left := waits.left("key", since, timedelta(minutes=10))) > 0:
            assert left <= 600
            await asyncio.sleep(1)
        assert takes <= loop.time() <= takes + 1

    run(main)


def test_a_wait_that_begins_anew_takes_its_whole_time() -> None:
    async def main(loop: VirtualLoop) -> None:
        clock = VirtualClock(loop)
        waits = Waits(clock)
        waits.left("key", clock.now(), timedelta(minutes=10))
        await asyncio.sleep(599)
        assert waits.left("key", clock.now(), timedelta(minutes=10)) == 600

    run(main)


def test_waits_that_are_long_over_are_forgotten() -> None:
    async def main(loop: VirtualLoop) -> None:
        clock: Clock = VirtualClock(loop)
        waits = Waits(clock)
        for number in range(20 * FORGET_FROM):
            waits.left(number, clock.now(), timedelta(minutes=10))
            await asyncio.sleep(60)
        assert len(waits) <= 2 * FORGET_FROM

    run(main)
