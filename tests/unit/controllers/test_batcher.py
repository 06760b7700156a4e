"""The window in which pods gather."""

import asyncio
from collections.abc import Sequence

import pytest

from joiner.controllers.provisioning.batcher import Batcher
from joiner.sim.virtualtime import VirtualLoop, run


def closed_at(triggers: Sequence[tuple[float, str]], within_s: float | None = None) -> tuple[bool, float]:
    """When the window closes for triggers at these times, and whether it was one of them that opened it."""

    async def main(loop: VirtualLoop) -> tuple[bool, float]:
        batcher = Batcher(idle_s=1.0, most_s=10.0)
        for at, uid in triggers:
            loop.call_at(at, batcher.trigger, uid)
        return await batcher.wait(within_s), loop.time()

    return run(main)


@pytest.mark.parametrize(
    ("triggers", "closes"),
    [
        pytest.param([(2.0, "a")], 3.0, id="one pod, then quiet"),
        pytest.param([(2.0, "a"), (2.5, "b")], 3.5, id="a second pod keeps it open"),
        pytest.param([(2.0, "a"), (2.5, "a")], 3.0, id="the same pod does not"),
        pytest.param([(number / 2, str(number)) for number in range(40)], 10.0, id="at most ten seconds"),
    ],
)
def test_a_window_closes_when_nothing_new_comes_or_after_long(triggers: list[tuple[float, str]], closes: float) -> None:
    assert closed_at(triggers) == (True, closes)


def test_nobody_waits_longer_than_was_said_when_nothing_comes() -> None:
    assert closed_at([(60.0, "a")], within_s=5.0) == (False, 5.0)


def test_what_comes_while_a_plan_is_made_opens_the_next_window() -> None:
    async def main(loop: VirtualLoop) -> list[float]:
        batcher = Batcher(idle_s=1.0, most_s=10.0)
        batcher.trigger("a")
        await batcher.wait()
        batcher.trigger("a")
        await asyncio.sleep(5)
        await batcher.wait()
        return [loop.time()]

    assert run(main) == [7.0]
