import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from joiner.sim import virtualtime as loops
from joiner.sim.virtualtime import EPOCH, Deadlock, Standstill, VirtualClock, VirtualLoop, run

WORLD = """
import asyncio
from random import Random
from tests.apiworld import Served, served
from tests.builders import pod
from joiner.kube.tasks import Tasks
from joiner.model.pod import Pod

async def main(world: Served) -> str:
    tasks, names = Tasks(), {f"pod-{number}" for number in range(40)}
    async def live(name: str) -> None:
        made = await world.client.create(pod(name, labels={"of": name}))
        await world.client.bind("default", name, node="a")
        await asyncio.sleep(Random(name).random())
        await world.client.delete(Pod, name, "default")
    for name in sorted(names):
        tasks.start(name, live(name))
    await asyncio.sleep(0.5)
    await tasks.close()
    return world.trace.digest()

print(served(main, shuffle=True))
"""


def test_time_jumps_to_what_is_due() -> None:
    async def main(loop: VirtualLoop) -> float:
        await asyncio.sleep(3600)
        return loop.time()

    assert run(main) == 3600


def test_what_is_due_at_the_same_time_keeps_its_order() -> None:
    async def main(loop: VirtualLoop) -> list[int]:
        seen: list[int] = []
        for number in range(50):
            loop.call_at(7.0, seen.append, number)
        await asyncio.sleep(8)
        return seen

    assert run(main) == list(range(50))


def test_a_cancelled_timer_is_not_waited_for() -> None:
    async def main(loop: VirtualLoop) -> float:
        loop.call_later(10, lambda: None).cancel()
        await asyncio.sleep(20)
        return loop.time()

    assert run(main) == 20


def test_thousands_of_cancelled_timers_are_swept_away() -> None:
    async def main(loop: VirtualLoop) -> int:
        kept = [loop.call_later(60, lambda: None) for _ in range(5000)]
        for handle in kept[1:]:
            handle.cancel()
        return len(loop._timers)

    assert run(main) < 2500


def test_a_deadlock_names_who_waits() -> None:
    async def main(loop: VirtualLoop) -> None:
        loop.create_task(asyncio.Event().wait(), name="the other")
        await loop.create_future()

    with pytest.raises(Deadlock, match="main, the other"):
        run(main)


def test_going_round_in_circles_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MOST_ROUNDS", 1000)

    async def main(loop: VirtualLoop) -> None:
        await asyncio.sleep(60)
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Standstill, match=r"at 60\.0 s; ready: main"):
        run(main)


def test_an_error_while_ending_is_raised() -> None:
    async def main(loop: VirtualLoop) -> None:
        async def work() -> None:
            try:
                await asyncio.sleep(100)
            finally:
                raise ValueError("cannot let go")

        loop.create_task(work())
        await asyncio.sleep(1)

    with pytest.raises(ValueError, match="cannot let go"):
        run(main)


def test_an_error_in_a_callback_ends_the_run() -> None:
    async def main(loop: VirtualLoop) -> None:
        loop.call_later(1, lambda: 1 // 0)
        await asyncio.sleep(5)

    with pytest.raises(ZeroDivisionError):
        run(main)


def test_what_main_raises_is_raised() -> None:
    async def main(loop: VirtualLoop) -> None:
        await asyncio.sleep(1)
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        run(main)


def test_tasks_that_are_left_end_the_oldest_first() -> None:
    ended: list[int] = []

    async def work(number: int) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(number)

    async def main(loop: VirtualLoop) -> None:
        tasks = [loop.create_task(work(number)) for number in range(20)]
        await asyncio.sleep(1)
        assert len(tasks) == len(loop.tasks()) - 1

    run(main)

    assert ended == list(range(20))


def turns(seed: int | None) -> list[int]:
    """In which order ten tasks, all ready at the same time, take their first turn."""

    async def main(loop: VirtualLoop) -> list[int]:
        seen: list[int] = []

        async def work(number: int) -> None:
            seen.append(number)

        for task in [loop.create_task(work(number)) for number in range(10)]:
            await task
        return seen

    return run(main, shuffle=None if seed is None else Random(seed))


def test_without_a_seed_tasks_take_turns_in_order() -> None:
    assert turns(None) == list(range(10))


def test_a_seed_shuffles_turns_and_always_the_same_way() -> None:
    assert turns(1) == [6, 8, 9, 7, 5, 3, 0, 4, 1, 2]  # on every version of Python
    assert turns(1) != turns(2)
    assert sorted(turns(1)) == list(range(10))


def test_callbacks_that_are_no_tasks_keep_their_order_even_when_shuffled() -> None:
    async def main(loop: VirtualLoop) -> list[int]:
        seen: list[int] = []
        for number in range(30):
            loop.call_soon(seen.append, number)
        await asyncio.sleep(0)
        return seen

    assert run(main, shuffle=Random(5)) == list(range(30))


def test_cancelling_and_waiting_work_when_shuffled() -> None:
    async def main(loop: VirtualLoop) -> int:
        event, woken = asyncio.Event(), []

        async def wait(number: int) -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await event.wait()
                woken.append(number)

        tasks = [loop.create_task(wait(number)) for number in range(10)]
        await asyncio.sleep(1)
        tasks[3].cancel()
        event.set()
        for task in tasks:
            await task
        return len(woken)

    assert {run(main, shuffle=Random(seed)) for seed in range(5)} == {9}


def test_the_clock_follows_the_loop_and_can_be_set() -> None:
    async def main(loop: VirtualLoop) -> None:
        clock = VirtualClock(loop)
        await asyncio.sleep(90.5)
        assert (clock.now() - EPOCH).total_seconds() == 90.5
        clock.step(-30)
        assert (clock.now() - EPOCH).total_seconds() == 60.5
        assert clock.monotonic() == 90.5

    run(main)


def test_ten_thousand_wake_ups_come_in_order() -> None:
    async def main(loop: VirtualLoop) -> list[float]:
        random, seen = Random(1), []

        async def sleep() -> None:
            for _ in range(200):
                await asyncio.sleep(random.random() * 60)
                seen.append(loop.time())

        for task in [loop.create_task(sleep()) for _ in range(50)]:
            await task
        return seen

    times = run(main)

    assert len(times) == 10_000
    assert times == sorted(times)


def test_one_seed_is_one_trace_under_every_hash_seed() -> None:
    root = Path(__file__).parents[3]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", WORLD],
            check=True, capture_output=True, text=True, cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}"},
        ).stdout
        for seed in ("0", "1")
    }  # fmt: skip

    assert len(outputs) == 1
    assert len(outputs.pop().strip()) == 64
