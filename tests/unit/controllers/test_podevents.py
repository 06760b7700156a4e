"""When a pod last came or went."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from tests.builders import pod
from tests.unit.controllers.lifecycleworld import LifeWorld, bound, live

from joiner.model.meta import OwnerReference, replace
from joiner.model.pod import Pod


def latest(world: LifeWorld) -> datetime | None:
    return world.claim().status.last_pod_event_time


def bind(world: LifeWorld, name: str) -> None:
    world.put(pod(name))
    world.server.bind("test", "default", name, node="node-c")


def ended(world: LifeWorld, name: str) -> None:
    found = world.server.get(Pod, name, "default")
    world.change(found, status=replace(found.status, phase="Succeeded"))


def test_a_pod_that_comes_ends_or_leaves_is_noted() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        steps: list[Callable[[], None]] = [
            lambda: bind(world, "a"),
            lambda: bind(world, "b"),
            lambda: ended(world, "a"),
            lambda: world.delete(world.server.get(Pod, "b", "default")),
        ]
        for step in steps:
            now = world.now()
            step()
            await asyncio.sleep(15)
            noted = latest(world)
            assert noted is not None
            assert abs((noted - now).total_seconds()) < 1

    live(story)


def test_a_claim_is_not_written_for_every_pod() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        bind(world, "first")
        await asyncio.sleep(1)
        first, version = latest(world), world.claim().metadata.resource_version
        for number in range(8):
            bind(world, f"later-{number}")
            await asyncio.sleep(1)

        assert latest(world) == first
        assert world.claim().metadata.resource_version == version

    live(story)


def test_daemons_do_not_count() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="d", uid="d")
        world.put(bound(pod("daemon"), node.name, world.clock, owner_references=(owner,)))
        await asyncio.sleep(5)

        assert latest(world) is None

    live(story)


def test_what_happened_while_nobody_looked_is_noted_afterwards() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        await world.stop()
        now = world.now()
        bind(world, "web")
        await asyncio.sleep(100)
        world.start()
        await asyncio.sleep(5)

        noted = latest(world)
        assert noted is not None
        assert abs((noted - now).total_seconds()) < 1

    live(story)


def test_a_restart_alone_notes_nothing() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        for number in range(3):
            bind(world, f"web-{number}")
            await asyncio.sleep(7)
        noted = latest(world)
        await world.restart()
        await asyncio.sleep(30)

        assert latest(world) == noted

    live(story)
