import asyncio
from collections.abc import Callable

import pytest

from joiner.kube.controller import Backoff
from joiner.kube.queue import Queue
from joiner.sim.virtualtime import VirtualLoop, run


def with_queue(test: Callable[[Queue[str], VirtualLoop, list[float]], object], until: float = 100.0) -> list[float]:
    """Run a test on a queue; gives the moments at which something could be taken."""

    async def main(loop: VirtualLoop) -> list[float]:
        moments: list[float] = []
        queue: Queue[str] = Queue(Backoff(1, 60), lambda: moments.append(loop.time()))
        test(queue, loop, moments)
        await asyncio.sleep(until)
        return moments

    return run(main)


def fail(queue: Queue[str], soon_s: float | None = None) -> None:
    queue.take()
    queue.retry("a", soon_s=soon_s)
    queue.done("a")


def test_a_key_waits_once_however_often_it_is_added() -> None:
    def test(queue: Queue[str], *_: object) -> None:
        for key in ("b", "a", "b"):
            queue.add(key)
        assert [queue.take(), queue.take(), queue.take()] == ["b", "a", None]

    with_queue(test)


def test_a_key_in_work_comes_again_only_after_it_is_done() -> None:
    def test(queue: Queue[str], *_: object) -> None:
        queue.add("a")
        assert queue.take() == "a"
        queue.add("a")
        assert queue.take() is None
        queue.done("a")
        assert queue.take() == "a"
        queue.done("a")
        assert queue.take() is None

    with_queue(test)


def test_of_two_times_the_earlier_one_holds() -> None:
    def test(queue: Queue[str], *_: object) -> None:
        for seconds in (20, 10, 30):
            queue.add_after("a", seconds)

    assert with_queue(test) == [10]


def test_now_comes_before_later_and_instead_of_it() -> None:
    def test(queue: Queue[str], *_: object) -> None:
        queue.add_after("a", 10)
        queue.add("a")
        queue.add_after("a", 5)

    assert with_queue(test) == [0]


def test_no_time_at_all_is_now() -> None:
    assert with_queue(lambda queue, *_: queue.add_after("a", 0)) == [0]


def test_failures_wait_twice_as_long_each_time_until_one_goes_well() -> None:
    def test(queue: Queue[str], loop: VirtualLoop, moments: list[float]) -> None:
        queue.retry("a")
        loop.call_at(1.5, fail, queue)
        loop.call_at(4.0, queue.forget, "a")
        loop.call_at(4.0, fail, queue)

    assert with_queue(test) == [1, 3.5, 5]


def test_the_first_two_failures_may_be_tried_again_soon() -> None:
    def test(queue: Queue[str], loop: VirtualLoop, moments: list[float]) -> None:
        for at in (0, 10, 20):
            loop.call_at(at, fail, queue, 0.05)

    assert with_queue(test) == pytest.approx([0.05, 10.05, 24])


def test_a_closed_queue_sets_no_timers() -> None:
    def test(queue: Queue[str], *_: object) -> None:
        queue.add_after("a", 10)
        queue.close()
        queue.add_after("b", 10)

    assert with_queue(test) == []


def test_a_queue_knows_what_it_holds() -> None:
    def test(queue: Queue[str], *_: object) -> None:
        queue.add("now")
        queue.add("work")
        queue.add_after("later", 5)
        assert queue.take() == "now"
        assert all(key in queue for key in ("now", "work", "later"))
        assert "other" not in queue
        assert len(queue) == 1

    with_queue(test)
