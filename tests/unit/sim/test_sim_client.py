import asyncio
from collections.abc import Callable

import pytest
from tests.apiworld import Intercepting, Served, served

from joiner.kube.client import ADDED, BOOKMARK, WatchEvent
from joiner.kube.errors import Gone, Throttled, Unreachable
from joiner.kube.tasks import Tasks
from joiner.model.meta import ObjectMeta, replace
from joiner.model.node import Node
from joiner.model.storage import StorageClass
from joiner.sim.apiserver.client import WatchedChange


def node(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name))


class Following:
    """Somebody who watches nodes and writes down what is heard."""

    def __init__(self, world: Served, version: str = "1") -> None:
        self.events: list[WatchEvent[Node]] = []
        self.ended: str = ""
        self._stream = world.client.watch(Node, version)

    async def run(self) -> None:
        try:
            async for event in self._stream:
                self.events.append(event)
            self.ended = "hung up"
        except Gone:
            self.ended = "gone"

    @property
    def names(self) -> list[str]:
        return [event.object.name for event in self.events if event.type == ADDED]


async def followed(world: Served, *names: str, then: Callable[[], object] = lambda: None) -> Following:
    """What somebody hears while these nodes come, one a second."""
    tasks, following = Tasks(), Following(world)
    tasks.start("following", following.run())
    for name in names:
        await asyncio.sleep(1)
        world.server.create("world", node(name))
    await asyncio.sleep(1)
    then()
    await asyncio.sleep(100)
    await tasks.close()
    return following


def test_a_call_takes_its_time_before_and_after() -> None:
    async def test(world: Served) -> None:
        client = world.server.client("slow", latency_s=(2.0, 2.0))
        await client.create(node("a"))
        made = world.server.get(Node, "a").metadata.creation_timestamp

        assert made is not None
        assert (world.clock.now() - made).total_seconds() == 2
        assert world.loop.time() == 4

    served(test)


def test_latency_may_be_anything_that_gives_seconds() -> None:
    async def test(world: Served) -> None:
        ways = iter((1.0, 5.0))
        await world.server.client("odd", latency_s=lambda: next(ways)).create(node("a"))

        assert world.loop.time() == 6

    served(test)


def test_who_is_cancelled_on_the_way_back_has_done_it_all_the_same() -> None:
    async def test(world: Served) -> None:
        tasks = Tasks()
        tasks.start("create", world.server.client("slow", latency_s=(2.0, 2.0)).create(node("a")))
        await asyncio.sleep(3)
        await tasks.close()

        assert world.server.find(Node, "a") is not None

    served(test)


def test_who_is_cancelled_on_the_way_there_has_not() -> None:
    async def test(world: Served) -> None:
        tasks = Tasks()
        tasks.start("create", world.server.client("slow", latency_s=(2.0, 2.0)).create(node("a")))
        await asyncio.sleep(1)
        await tasks.close()
        await asyncio.sleep(10)

        assert world.server.find(Node, "a") is None

    served(test)


def test_clients_of_different_names_do_not_share_their_luck() -> None:
    async def test(world: Served) -> None:
        times = []
        for actor in ("a", "b"):
            began = world.loop.time()
            await world.server.client(actor).list(Node)
            times.append(world.loop.time() - began)

        assert times[0] != times[1]

    served(test)


def test_a_watch_hears_what_comes_and_in_order() -> None:
    async def test(world: Served) -> None:
        assert (await followed(world, "c", "a", "b")).names == ["c", "a", "b"]

    served(test)


def test_a_watch_ends_when_the_server_hangs_up() -> None:
    async def test(world: Served) -> None:
        following = await followed(world, "a", then=lambda: world.server.hang_up(Node))

        assert (following.names, following.ended) == (["a"], "hung up")

    served(test)


def test_what_was_on_its_way_when_the_server_hung_up_is_not_heard() -> None:
    async def test(world: Served) -> None:
        following, tasks = Following(world), Tasks()
        tasks.start("following", following.run())
        await asyncio.sleep(1)
        world.server.create("world", node("a"))
        await asyncio.sleep(0)
        world.server.hang_up()
        await asyncio.sleep(1)
        await tasks.close()

        assert (following.names, following.ended) == ([], "hung up")

    served(test)


def test_a_version_that_is_forgotten_is_gone() -> None:
    async def test(world: Served) -> None:
        for number in range(50):
            world.server.create("world", node(f"n-{number}"))
        following = await followed(world)

        assert following.ended == "gone"

    served(test, history=10)


def test_a_version_that_is_just_remembered_is_not() -> None:
    async def test(world: Served) -> None:
        for number in range(50):
            world.server.create("world", node(f"n-{number}"))
        following = Following(world, str(world.server.version - 10))
        tasks = Tasks()
        tasks.start("following", following.run())
        await asyncio.sleep(1)
        await tasks.close()

        assert following.names == [f"n-{number}" for number in range(40, 50)]

    served(test, history=10)


def test_who_watches_a_quiet_kind_hears_how_far_the_history_has_come() -> None:
    async def test(world: Served) -> None:
        def stir() -> None:
            for number in range(30):
                world.server.create("world", StorageClass(metadata=ObjectMeta(name=f"class-{number}")))

        following = await followed(world, "a", then=stir)

        versions = [event.object.metadata.resource_version for event in following.events if event.type == BOOKMARK]
        assert versions == ["10", "20", "30"]

    served(test, bookmark_every=10)


def test_a_call_can_fail_before_it_is_done() -> None:
    async def test(world: Served) -> None:
        with pytest.raises(Throttled):
            await world.client.create(node("a"))

        assert world.server.find(Node, "a") is None

    served(test, interceptor=Intercepting(before=Throttled("slowly", 3.0)))


def test_a_call_can_be_done_and_never_heard_of() -> None:
    async def test(world: Served) -> None:
        with pytest.raises(Unreachable):
            await world.client.create(node("a"))

        assert world.server.find(Node, "a") is not None

    served(test, interceptor=Intercepting(after=Unreachable("lost")))


def test_an_interceptor_is_told_who_asks_for_what() -> None:
    interceptor = Intercepting(before=7.0)

    async def test(world: Served) -> None:
        await world.client.create(node("a"))
        assert world.loop.time() > 7

    served(test, interceptor=interceptor)

    assert {(call.actor, call.verb, call.kind, call.key.name) for call in interceptor.calls} == {
        ("test", "create", Node, "a")
    }


def test_a_list_can_be_stale_but_never_older_than_what_was_heard() -> None:
    async def test(world: Served) -> None:
        for name in ("a", "b"):
            world.server.create("world", node(name))
        assert (await world.client.list(Node, latest=False)).items == ()
        async for event in world.client.watch(Node, "1"):
            assert event.object.name == "a"
            break
        assert [each.name for each in (await world.client.list(Node, latest=False)).items] == ["a"]
        assert [each.name for each in (await world.client.list(Node)).items] == ["a", "b"]
        assert (await world.server.client("restarted").list(Node)).resource_version == "3"

    served(test, interceptor=Intercepting(behind=100))


def test_an_event_can_be_late_and_holds_up_those_behind_it() -> None:
    async def test(world: Served) -> None:
        tasks, following = Tasks(), Following(world)
        tasks.start("following", following.run())
        for name in ("a", "b"):
            world.server.create("world", node(name))
        await asyncio.sleep(20)
        assert following.names == []
        await asyncio.sleep(20)
        assert following.names == ["a", "b"]
        await tasks.close()

    served(test, interceptor=Intercepting(told={"a": WatchedChange(delay_s=30)}))


def test_events_can_be_told_again() -> None:
    async def test(world: Served) -> None:
        assert (await followed(world, "a", "b", "c")).names == ["a", "b", "a", "b", "c"]

    served(test, interceptor=Intercepting(told={"b": WatchedChange(again=2)}))


def test_a_connection_can_break_before_an_event() -> None:
    async def test(world: Served) -> None:
        following = await followed(world, "a", "b")

        assert (following.names, following.ended) == (["a"], "hung up")

    served(test, interceptor=Intercepting(told={"b": WatchedChange(broken=True)}))


def test_nothing_is_sent_when_nothing_differs() -> None:
    interceptor = Intercepting()

    async def test(world: Served) -> None:
        made = world.server.create("world", node("a"))
        assert await world.client.patch(made, replace(made)) is made
        assert await world.client.patch_status(made, replace(made)) is made

    served(test, interceptor=interceptor)

    assert interceptor.calls == []
