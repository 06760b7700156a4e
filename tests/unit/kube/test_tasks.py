import asyncio
from random import Random

import pytest

from joiner.kube.tasks import Tasks
from joiner.sim.virtualtime import VirtualLoop, run


@pytest.mark.parametrize("seed", [None, 1, 2], ids=["in order", "shuffled", "shuffled otherwise"])
def test_all_have_ended_when_closing_ends(seed: int | None) -> None:
    async def main(loop: VirtualLoop) -> int:
        tasks, ended = Tasks(), []

        async def work(number: int) -> None:
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(number)
                ended.append(number)

        for number in range(5):
            tasks.start(f"work {number}", work(number))
        await asyncio.sleep(1)
        await tasks.close()
        assert len(tasks) == 0
        return len(ended)

    assert run(main, shuffle=None if seed is None else Random(seed)) == 5


def test_tasks_are_cancelled_in_the_order_they_were_started() -> None:
    async def main(loop: VirtualLoop) -> list[int]:
        tasks, ended = Tasks(), []

        async def work(number: int) -> None:
            try:
                await asyncio.sleep(100)
            finally:
                ended.append(number)

        for number in range(30):
            tasks.start("work", work(number))
        await asyncio.sleep(1)
        await tasks.close()
        return ended

    assert run(main) == list(range(30))


def test_an_error_is_told_with_the_name_of_its_task() -> None:
    async def main(loop: VirtualLoop) -> list[tuple[str, str]]:
        told: list[tuple[str, str]] = []
        tasks = Tasks(failed=lambda name, error: told.append((name, str(error))))

        async def work() -> None:
            raise ValueError("broken")

        tasks.start("work", work())
        await asyncio.sleep(1)
        await tasks.close()
        return told

    assert run(main) == [("work", "broken")]


def test_an_error_that_nobody_asked_for_is_not_lost() -> None:
    async def main(loop: VirtualLoop) -> None:
        async def work() -> None:
            raise ValueError("broken")

        Tasks().start("work", work())
        await asyncio.sleep(1)

    with pytest.raises(ValueError, match="broken") as raised:
        run(main)
    assert "work" in raised.value.__notes__[0]


def test_nothing_is_started_after_the_end() -> None:
    async def main(loop: VirtualLoop) -> bool:
        tasks, begun = Tasks(), asyncio.Event()

        async def work() -> None:
            begun.set()

        await tasks.close()
        tasks.start("late", work())
        await asyncio.sleep(1)
        return begun.is_set()

    assert not run(main)
