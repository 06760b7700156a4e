import asyncio
from collections.abc import Callable, Iterable

import pytest
from tests.apiworld import Served, served

from joiner.kube.client import Key
from joiner.kube.controller import ALONE, DONE, Backoff, Change, Reconciler, Result, Watch
from joiner.kube.errors import Conflict, Throttled
from joiner.kube.informer import Informers
from joiner.kube.manager import Manager
from joiner.kube.tasks import Tasks
from joiner.model.meta import ObjectMeta
from joiner.model.node import Node
from joiner.model.storage import CSINode


def node(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name))


def _all_nodes(change: Change) -> Iterable[Key]:
    return (Key("", "a"), Key("", "b"))


class Writing(Reconciler):
    """Writes down when it was asked about whom, and does what it is told."""

    name = "writing"
    watches: tuple[Watch, ...] = (Watch(Node),)
    backoff = Backoff(1, 60)

    def __init__(self, world: Served, answer: Callable[[int], Result] = lambda count: DONE, takes_s: float = 0) -> None:
        self.asked: list[tuple[float, str]] = []
        self.most = self.now = 0
        self._world, self._answer, self._takes_s = world, answer, takes_s

    async def reconcile(self, key: Key) -> Result:
        self.asked.append((round(self._world.loop.time(), 1), str(key)))
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self._takes_s)
            return self._answer(len(self.asked))
        finally:
            self.now -= 1

    @property
    def times(self) -> list[float]:
        return [time for time, _ in self.asked]

    @property
    def keys(self) -> list[str]:
        return [key for _, key in self.asked]


async def managed(
    world: Served, *controllers: Reconciler, during: Callable[[], object] = lambda: None, for_s: float = 100
) -> list[str]:
    """Run controllers for a while; gives the errors that were told."""
    errors: list[str] = []
    tasks = Tasks()
    manager = Manager(
        Informers(world.client),
        controllers,  # type: ignore[arg-type]
        lambda name, key, error: errors.append(f"{name} {key}: {error}"),
    )
    tasks.start("manager", manager.run())
    await asyncio.sleep(1)
    during()
    await asyncio.sleep(for_s)
    await tasks.close()
    assert manager.started
    return errors


def test_a_controller_is_asked_about_what_was_there_and_what_comes() -> None:
    async def test(world: Served) -> None:
        world.server.load([node("b"), node("a")])
        controller = Writing(world)
        await managed(world, controller, during=lambda: world.server.create("world", node("c")))

        assert controller.keys == ["a", "b", "c"]

    served(test)


def test_it_comes_back_when_it_said() -> None:
    async def test(world: Served) -> None:
        world.server.load([node("a")])
        controller = Writing(world, lambda count: Result(10) if count < 4 else DONE)
        await managed(world, controller)

        assert controller.times == [0, 10, 20, 30]

    served(test)


def test_one_key_is_never_in_work_twice_at_once() -> None:
    async def test(world: Served) -> None:
        world.server.load([node("a")])
        controller = Writing(world, takes_s=10)
        world.loop.call_later(2, world.server.delete, "world", Node, "a")
        world.loop.call_later(3, world.server.create, "world", node("a"))
        await managed(world, controller)

        assert (controller.most, controller.times) == (1, [0, 10])

    served(test)


def test_no_more_keys_are_in_work_than_there_are_workers() -> None:
    class Few(Writing):
        workers = 3

    async def test(world: Served) -> None:
        world.server.load([node(f"n-{number}") for number in range(8)])
        controller = Few(world, takes_s=5)
        await managed(world, controller)

        assert (controller.most, len(controller.asked)) == (3, 8)

    served(test)


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (RuntimeError("broken"), [0, 1, 3, 7, 15]),
        (Conflict("old"), [0, 0.1, 0.1, 4.1, 12.1]),
        (Throttled("slowly", 20), [0, 20, 40, 60, 80]),
    ],
    ids=["a bug", "a conflict", "throttled"],
)
def test_what_fails_is_told_and_tried_again(error: Exception, wanted: list[float]) -> None:
    def answer(count: int) -> Result:
        if count < 5:
            raise error
        return DONE

    async def test(world: Served) -> None:
        world.server.load([node("a")])
        controller = Writing(world, answer)
        errors = await managed(world, controller)

        assert controller.times == pytest.approx(wanted, abs=0.1)
        assert errors == [f"writing a: {error}"] * 4

    served(test)


def test_after_a_success_the_next_failure_is_the_first_one() -> None:
    def answer(count: int) -> Result:
        if count == 4:
            return Result(10)
        if count < 6:
            raise RuntimeError("broken")
        return DONE

    async def test(world: Served) -> None:
        world.server.load([node("a")])
        controller = Writing(world, answer)
        await managed(world, controller)

        assert controller.times == [0, 1, 3, 7, 17, 18]

    served(test)


def test_a_watch_may_wake_other_keys() -> None:
    class Mapped(Writing):
        watches = (Watch(CSINode, keys=_all_nodes),)

    async def test(world: Served) -> None:
        controller = Mapped(world)
        await managed(
            world, controller, during=lambda: world.server.create("world", CSINode(metadata=ObjectMeta(name="x")))
        )

        assert controller.keys == ["a", "b"]

    served(test)


def test_a_watch_that_settles_looks_at_a_crowd_of_changes_once() -> None:
    class Patient(Writing):
        watches = (Watch(Node, lambda change: (Key("", "all"),), settle_s=5.0),)

    async def test(world: Served) -> None:
        patient = Patient(world)
        await managed(world, patient, during=lambda: [world.server.create("user", node(name)) for name in "abc"])

        assert patient.asked == [(6.0, "all")]

    served(test)


def test_a_controller_that_never_waits_lets_others_have_their_turn() -> None:
    class Busy(Reconciler):
        name = "busy"
        workers = 1
        keys_at_start = (ALONE,)

        async def reconcile(self, key: Key) -> Result:
            seen.append(len(other.keys))
            return Result(0.0) if len(seen) < 1_000 else DONE

    seen: list[int] = []
    other: Writing

    async def test(world: Served) -> None:
        nonlocal other
        other = Writing(world)
        world.server.load([node("a")])
        await managed(world, Busy(), other)

        assert (len(seen), seen[0], seen[-1]) == (1_000, 0, 1)

    served(test)


def test_a_loop_without_an_object_is_asked_from_the_start() -> None:
    class Loop(Writing):
        watches = ()
        keys_at_start = (ALONE,)

    async def test(world: Served) -> None:
        controller = Loop(world, lambda count: Result(40))
        await managed(world, controller)

        assert controller.times == [0, 40, 80]

    served(test)


def test_nothing_goes_on_after_the_end() -> None:
    async def test(world: Served) -> None:
        world.server.load([node(f"n-{number}") for number in range(20)])
        controller = Writing(world, lambda count: Result(10), takes_s=3)
        await managed(world, controller, for_s=5)
        asked = len(controller.asked)
        await asyncio.sleep(100)

        assert (len(controller.asked), controller.now) == (asked, 0)
        assert [task.get_name() for task in world.loop.tasks()] == ["main"]

    served(test, shuffle=True)


def test_a_bug_outside_of_reconciling_ends_the_manager() -> None:
    class Broken(Writing):
        watches = (Watch(Node, keys=lambda change: [][0]),)

    async def test(world: Served) -> None:
        manager = Manager(Informers(world.client), [Broken(world)], lambda *_: None)
        world.loop.call_later(5, world.server.create, "world", node("a"))
        with pytest.raises(IndexError):
            await manager.run()

    served(test)
