"""The rate limit: how many requests are sent, and which first."""

import asyncio

from tests.apiworld import Served, served

from joiner.kube.http.ratelimit import Priority, RateLimit
from joiner.kube.tasks import Tasks


def order(per_second: float, burst: int, wanted: list[Priority], at_once: int = 100) -> list[tuple[float, Priority]]:
    """When each of the requests is sent, all of which come at the same moment and never end."""

    async def test(world: Served) -> list[tuple[float, Priority]]:
        limit = RateLimit(world.clock, per_second=per_second, burst=burst, at_once=at_once)
        start, sent, tasks = world.clock.monotonic(), list[tuple[float, Priority]](), Tasks()

        async def send(priority: Priority) -> None:
            await limit.enter(priority)
            sent.append((round(world.clock.monotonic() - start, 2), priority))

        for priority in wanted:
            tasks.start("send", send(priority))
        await asyncio.sleep(60)
        await tasks.close()
        return sent

    return served(test)


def test_a_burst_goes_at_once_and_then_so_many_a_second() -> None:
    sent = order(2, 3, [Priority.READ] * 6)

    assert [at for at, _ in sent] == [0.0, 0.0, 0.0, 0.5, 1.0, 1.5]


def test_what_waits_is_sent_by_priority_and_not_by_arrival() -> None:
    wanted = [Priority.WRITE, Priority.EVENT, Priority.READ, Priority.WRITE, Priority.REMOVE]
    sent = order(1, 1, wanted)

    assert [priority for _, priority in sent][1:] == [Priority.REMOVE, Priority.WRITE, Priority.READ, Priority.EVENT]


def test_the_lease_waits_for_nothing() -> None:
    sent = order(0.01, 1, [Priority.WRITE, Priority.WRITE, Priority.LEASE, Priority.LEASE], at_once=1)

    assert [priority for at, priority in sent if at == 0.0] == [Priority.WRITE, Priority.LEASE, Priority.LEASE]


def test_no_more_are_under_way_than_may_be() -> None:
    async def test(world: Served) -> list[str]:
        limit = RateLimit(world.clock, per_second=1000, burst=1000, at_once=2)
        said: list[str] = []
        tasks = Tasks()

        async def send(name: str) -> None:
            await limit.enter(Priority.READ)
            said.append(f"{name} begins")
            await asyncio.sleep(1)
            said.append(f"{name} ends")
            limit.leave(Priority.READ)

        for name in "abc":
            tasks.start(name, send(name))
        await asyncio.sleep(5)
        await tasks.close()
        return said

    said = served(test)
    assert said[:2] == ["a begins", "b begins"]
    assert said.index("c begins") > said.index("a ends")


def test_a_request_that_is_given_up_takes_no_place() -> None:
    async def test(world: Served) -> bool:
        limit = RateLimit(world.clock, per_second=1000, burst=1000, at_once=1)
        await limit.enter(Priority.READ)
        tasks = Tasks()
        tasks.start("given up", limit.enter(Priority.READ))
        await asyncio.sleep(0.1)
        await tasks.close()
        limit.leave(Priority.READ)
        await limit.enter(Priority.READ)
        return True

    assert served(test)


def test_a_server_that_answers_late_gets_half_as_many_at_once_and_more_again_while_it_answers() -> None:
    async def test(world: Served) -> list[int]:
        limit = RateLimit(world.clock, per_second=1e6, burst=1_000_000, at_once=16)

        async def how_many(late: bool) -> int:
            tasks, entered = Tasks(), 0

            async def enter() -> None:
                nonlocal entered
                await limit.enter(Priority.READ)
                entered += 1

            for _ in range(32):
                tasks.start("enter", enter())
            await asyncio.sleep(1)
            await tasks.close()
            found = entered
            for number in range(found):
                limit.leave(Priority.READ, late=late and number < 3)
            return found

        found = []
        for late in (*[True] * 6, *[False] * 40):
            found.append(await how_many(late))
            await asyncio.sleep(10)
        return found

    found = served(test)
    assert found[0] == 16
    assert found[1] in (8, 9)  # three were late, and the number was halved once
    assert found[6] in (4, 5)
    assert found[-1] == 16
