"""Events: told once, not too often, counted when they repeat, and lost without harm."""

import asyncio
from pathlib import Path

import pytest
from tests.builders import node_pool, pod
from tests.served import Served, served

from joiner.kube.tasks import Tasks
from joiner.model.cluster import Event
from joiner.observe import events
from joiner.observe.events import REASONS, Recorder


async def recorded(world: Served) -> tuple[Recorder, Tasks]:
    recorder, tasks = Recorder(world.client, world.clock), Tasks()
    tasks.start("events", recorder.run())
    return recorder, tasks


def messages(world: Served) -> list[tuple[str, str, int]]:
    return [(each.reason, each.message, each.count) for each in world.server.objects(Event)]


def test_the_same_thing_is_not_told_again_for_a_while() -> None:
    async def test(world: Served) -> None:
        recorder, tasks = await recorded(world)
        for _ in range(3):
            recorder.publish(node_pool(), "NoCompatibleInstanceTypes", "nothing to buy", warning=True)
        await asyncio.sleep(1)
        assert messages(world) == [("NoCompatibleInstanceTypes", "nothing to buy", 1)]
        await tasks.close()

    served(test)


def test_what_is_told_again_later_is_counted_on_the_same_event() -> None:
    async def test(world: Served) -> None:
        recorder, tasks = await recorded(world)
        for _ in range(2):
            recorder.publish(node_pool(), "NoCompatibleInstanceTypes", "nothing to buy")
            await asyncio.sleep(REASONS["NoCompatibleInstanceTypes"].quiet_s + 1)
        assert messages(world) == [("NoCompatibleInstanceTypes", "nothing to buy", 2)]
        await tasks.close()

    served(test)


def test_many_pods_at_once_are_told_of_at_a_rate() -> None:
    async def test(world: Served) -> None:
        recorder, tasks = await recorded(world)
        for number in range(50):
            recorder.publish(pod(f"web-{number}"), "Nominated", "there is a place")
        await asyncio.sleep(1)
        assert len(messages(world)) == REASONS["Nominated"].burst
        await tasks.close()

    served(test)


def test_an_event_in_no_namespace_is_kept_in_the_default_one() -> None:
    async def test(world: Served) -> None:
        recorder, tasks = await recorded(world)
        recorder.publish(node_pool(), "NodeOverlaysChanged", "x" * 5000)
        await asyncio.sleep(1)
        (event,) = world.server.objects(Event)
        assert (event.metadata.namespace, event.involved_object.kind, len(event.message)) == (
            "default",
            "NodePool",
            1024,
        )
        await tasks.close()

    served(test)


def test_a_reason_that_is_not_in_the_table_is_a_bug() -> None:
    async def test(world: Served) -> None:
        recorder, tasks = await recorded(world)
        with pytest.raises(KeyError):
            recorder.publish(node_pool(), "Unheard", "of")
        await tasks.close()

    served(test)


def test_every_reason_of_the_table_is_told_by_somebody() -> None:
    rooms = Path(events.__file__).parent.parent
    files = [path for path in rooms.rglob("*.py") if path != Path(events.__file__)]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)

    assert [reason for reason in REASONS if f'"{reason}"' not in sources] == []
