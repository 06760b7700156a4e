import asyncio
from collections.abc import Iterable
from random import Random

import pytest
from tests.apiworld import Intercepting, Served, served
from tests.builders import pod

from joiner.kube.client import Key
from joiner.kube.controller import Change
from joiner.kube.errors import Throttled, Unreachable
from joiner.kube.informer import Informers, Store
from joiner.kube.tasks import Tasks
from joiner.model.meta import KubeObject, ObjectMeta, replace
from joiner.model.node import Node
from joiner.model.pod import Pod
from joiner.sim.apiserver.client import Call, WatchedChange


def node(name: str, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))


def by_colour(thing: Node) -> Iterable[str]:
    return (thing.metadata.labels["colour"],) if "colour" in thing.metadata.labels else ()


class Cached:
    """A cache of nodes, and what it told."""

    def __init__(self, world: Served) -> None:
        self.world = world
        self.changes: list[Change] = []
        self.informers = Informers(world.client, {Node: {"colour": by_colour}})
        self.informers.of(Node).listen(self.changes.append)
        self.tasks = Tasks()

    async def start(self) -> "Cached":
        await self.informers.start(self.tasks)
        return self

    @property
    def told(self) -> list[str]:
        signs = {(True, False): "+", (False, False): "~", (False, True): "-"}
        return [
            signs[change.before is None, change.after is None] + change.latest.metadata.name for change in self.changes
        ]

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.informers.all(Node)]


def test_a_store_finds_by_key_and_by_index_in_order_of_keys() -> None:
    store: Store[Node] = Store({"colour": by_colour})
    for name, colour in (("c", "red"), ("a", "red"), ("b", "blue")):
        store.put(node(name, colour=colour))
    store.put(node("a", colour="blue"))
    store.drop(Key("", "c"))
    store.drop(Key("", "nobody"))

    assert [each.name for each in store.all()] == ["a", "b"]
    assert [each.name for each in store.by("colour", "blue")] == ["a", "b"]
    assert store.by("colour", "red") == ()
    assert (store.get(Key("", "c")), len(store)) == (None, 2)


def test_a_cache_has_what_was_there_and_follows_what_comes() -> None:
    async def test(world: Served) -> None:
        made = world.server.create("world", node("a"))
        cached = await Cached(world).start()
        assert cached.names == ["a"]
        world.server.create("world", node("b", colour="red"))
        world.server.patch("world", made, replace(made, metadata=replace(made.metadata, labels={"colour": "red"})))
        world.server.delete("world", Node, "b")
        await asyncio.sleep(1)
        await cached.tasks.close()

        assert cached.told == ["+a", "+b", "~a", "-b"]
        assert [each.name for each in cached.informers.by(Node, "colour", "red")] == ["a"]

    served(test)


@pytest.mark.parametrize(("latest", "known"), [(frozenset({Node}), ["a"]), (frozenset(), [])])
def test_of_some_kinds_a_cache_knows_from_the_start_what_was_there_before(
    latest: frozenset[type[KubeObject]], known: list[str]
) -> None:
    async def test(world: Served) -> None:
        world.server.create("world", node("a"))
        informers, tasks = Informers(world.client, latest=latest), Tasks()
        informers.of(Node)
        await informers.start(tasks)
        assert [each.name for each in informers.all(Node)] == known
        await tasks.close()

    served(test, interceptor=Intercepting(behind=100))


def test_a_cache_is_behind_by_the_way_of_an_event() -> None:
    async def test(world: Served) -> None:
        cached = await Cached(world).start()
        world.server.create("world", node("a"))
        assert cached.informers.get(Node, "a") is None
        await asyncio.sleep(1)
        assert cached.informers.get(Node, "a") is not None
        await cached.tasks.close()

    served(test)


def test_after_a_hang_up_nothing_is_missed_and_nothing_told_twice() -> None:
    async def test(world: Served) -> None:
        cached = await Cached(world).start()
        for number in range(10):
            world.server.create("world", node(f"n-{number}"))
            world.server.hang_up()
            await asyncio.sleep(number)
        await asyncio.sleep(60)
        await cached.tasks.close()

        assert cached.told == [f"+n-{number}" for number in range(10)]

    served(test)


def test_when_the_thread_is_lost_everything_is_listed_again() -> None:
    async def test(world: Served) -> None:
        world.server.create("world", node("goes"))
        first = world.server.create("world", node("again"))
        cached = await Cached(world).start()
        world.server.hang_up()
        await asyncio.sleep(0.1)
        for name in ("goes", "again"):
            world.server.delete("world", Node, name)
        for number in range(30):
            world.server.create("world", node("again" if number == 0 else f"n-{number}"))
        await asyncio.sleep(60)
        await cached.tasks.close()

        assert cached.told[:5] == ["+again", "+goes", "-goes", "-again", "+again"]
        assert cached.changes[3].before == first
        assert len(cached.names) == 30

    served(test, history=5)


@pytest.mark.parametrize("error", [Throttled("slowly", 20.0), Unreachable("lost")], ids=["throttled", "unreachable"])
def test_what_fails_is_tried_again_with_patience(error: Exception) -> None:
    class Until(Intercepting):
        def before(self, call: Call) -> float:
            self.calls.append(call)
            if len(self.calls) < 6:
                raise error
            return 0.0

    interceptor = Until()

    async def test(world: Served) -> None:
        cached = await Cached(world).start()
        await cached.tasks.close()
        least = 100 if isinstance(error, Throttled) else 0.5 + 1 + 2 + 4 + 8
        assert least < world.loop.time() < least + 1

    served(test, interceptor=interceptor)


def test_a_watch_that_breaks_at_once_every_time_is_no_busy_loop() -> None:
    interceptor = Intercepting(told={"bad": WatchedChange(broken=True)})

    async def test(world: Served) -> None:
        cached = await Cached(world).start()
        world.server.create("world", node("bad"))
        await asyncio.sleep(3600)
        await cached.tasks.close()

    served(test, interceptor=interceptor)

    assert len(interceptor.calls) < 200


def test_events_that_come_again_leave_the_cache_right() -> None:
    interceptor = Intercepting(told={"b": WatchedChange(again=3)})

    async def test(world: Served) -> None:
        cached = await Cached(world).start()
        world.server.create("world", node("a"))
        world.server.delete("world", Node, "a")
        world.server.create("world", node("a"))
        world.server.create("world", node("b"))
        await asyncio.sleep(5)
        await cached.tasks.close()
        assert cached.names == ["a", "b"]
        assert cached.informers.get(Node, "a") == world.server.get(Node, "a")
        assert cached.told == ["+a", "-a", "+a", "+b", "-a", "+a"]
        assert cached.changes[4].before.metadata.uid == cached.changes[2].after.metadata.uid

    served(test, interceptor=interceptor)


def test_a_kind_that_nobody_asked_for_in_time_is_an_error_and_not_empty() -> None:
    async def test(world: Served) -> None:
        world.server.create("world", pod())
        cached = await Cached(world).start()
        with pytest.raises(LookupError, match="Pod is not cached"):
            cached.informers.get(Pod, "web", "default")
        await cached.tasks.close()

    served(test)


def test_after_something_was_heard_the_next_reconnect_is_as_quick_as_the_first() -> None:
    """Ten watches break one after the other, each after an event came through: none is waited for longer than the first."""

    async def test(world: Served) -> None:
        cached = await Cached(world).start()
        for number in range(10):
            world.server.create("world", node(f"n-{number}"))
            await asyncio.sleep(1)
            world.server.hang_up()
            world.server.create("world", node(f"m-{number}"))
            await asyncio.sleep(2)
            assert len(cached.names) == 2 * number + 2
        await cached.tasks.close()

    served(test)


def test_other_tasks_have_their_turn_while_a_long_list_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joiner.kube.informer.IN_ONE_GO", 10)

    async def test(world: Served) -> list[int]:
        for number in range(35):
            await world.client.create(node(f"n{number:02d}"))
        cached, seen = Cached(world), list[int]()

        def later(change: Change) -> None:
            world.loop.call_soon(lambda: seen.append(len(cached.changes)))

        cached.informers.of(Node).listen(later)
        await cached.start()
        await asyncio.sleep(1)
        await cached.tasks.close()
        return seen

    assert {10, 20, 30} <= set(served(test))


def test_with_jitter_caches_do_not_come_back_at_the_same_moment() -> None:
    def after(seed: int | None) -> float:
        async def test(world: Served) -> float:
            broken = world.server.client("cache", interceptor=Intercepting(before=Unreachable("away")))
            informers = Informers(broken, jitter=None if seed is None else Random(seed))
            informers.of(Node)
            tasks = Tasks()
            tasks.start("cache", informers.start(tasks))
            while len(broken.interceptor.calls) < 2:  # type: ignore[attr-defined]
                await asyncio.sleep(0.001)
            await tasks.close()
            return round(world.clock.monotonic(), 2)

        return served(test)

    assert len({after(seed) for seed in (1, 2, 3)}) == 3
    assert after(None) == after(None)
