"""Events: told once, not too often, counted when they repeat, and lost without harm."""

import asyncio
from pathlib import Path

import pytest
from tests.apiworld import Served, served
from tests.builders import node_pool, pod
from tests.clusterworld import node

from joiner.kube.tasks import Tasks
from joiner.model.clusterobjects import Event
from joiner.model.conditions import Condition
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
            recorder.publish(node_pool(), "NoCompatibleInstanceTypes", "nothing to buy")
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


def test_the_same_is_told_of_nodes_less_often_than_of_pools() -> None:
    async def test(world: Served) -> None:
        recorder, tasks = await recorded(world)
        for _ in range(3):
            for thing in (node(), node_pool()):
                recorder.publish(thing, "DisruptionBlocked", "not now")
            await asyncio.sleep(61)
        assert sorted((each.involved_object.kind, each.count) for each in world.server.objects(Event)) == [
            ("Node", 2),
            ("NodePool", 3),
        ]
        await tasks.close()

    served(test)


def test_about_one_object_there_is_a_burst_and_then_one_in_five_minutes() -> None:
    async def test(world: Served) -> None:
        recorder, tasks = await recorded(world)
        for number in range(100):
            recorder.finalized(node(), f"example.com/{number}")
        recorder.finalized(node_pool(), "example.com/other")
        await asyncio.sleep(1)
        assert len(messages(world)) == 26
        await asyncio.sleep(300)
        recorder.finalized(node(), "example.com/later")
        recorder.finalized(node(), "example.com/much-later")
        await asyncio.sleep(1)
        assert len(messages(world)) == 27
        await tasks.close()

    served(test)


def test_a_condition_that_turns_is_told_under_its_own_name() -> None:
    async def test(world: Served) -> None:
        recorder, tasks = await recorded(world)
        old = Condition(type="Ready", status="Unknown", reason="AwaitingReconciliation")
        recorder.turned(
            node_pool(), old, Condition(type="Ready", status="False", reason="NoImages", message="none fits")
        )
        await asyncio.sleep(1)
        assert messages(world) == [("Ready", "Ready turned from Unknown to False: NoImages, none fits", 1)]
        await tasks.close()

    served(test)


WARNINGS = {
    "FailedScheduling", "NoCompatibleInstanceTypes", "NodeRepairBlocked", "FailedDraining", "TerminationGracePeriodExpiring",
    "FailedConsistencyCheck", "InsufficientCapacityError", "UnregisteredTaintMissing", "InvalidDoNotDisruptAnnotation",
    "RebootFailed", "NodeClassNotReady", "SpotInterrupted", "CapacityReservationInterrupted", "InstanceStopping",
    "InstanceTerminating", "InstanceUnhealthy", "TerminatingOnInterruption", "SpotSLRCreationFailed",
}  # fmt: skip
QUIET = {
    "Unconsolidatable": 900.0, "DriftExpected": 900.0,
    "FailedScheduling": 300.0, "NoCompatibleInstanceTypes": 60.0, "NodeRepairBlocked": 900.0, "RebootObserved": 1800.0,
    "RebootFailed": 1800.0, "NodeOverlaysChanged": 10.0,
}  # fmt: skip


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_a_reason_has_the_weight_and_the_pace_that_people_rely_on(reason: str) -> None:
    known = REASONS[reason]

    assert known.warning == (reason in WARNINGS)
    assert known.quiet_for("NodeClaim") == QUIET.get(reason, 120.0)
    assert (known.per_second, known.burst) == (
        5.0 if reason in ("Nominated", "InsufficientCapacityError") else None,
        10,
    )


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
