"""Computations in a child process: the answer comes back, failures are told, and the loop goes on meanwhile."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from tests.builders import node_pool
from tests.unit.disruption.fleets import machine, on, situation

from joiner.cli.run.childprocess import ChildFailed, in_child
from joiner.cli.run.process import PODS_APART, scraped
from joiner.disruption.consolidation.memory import Memory
from joiner.disruption.consolidation.search import consolidate, still_pays
from joiner.kube.tasks import Tasks
from joiner.observe import processmetrics

FREE: dict[str, Any] = {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}}


def test_the_answer_comes_from_another_process_that_has_our_objects() -> None:
    big = {"here": list(range(1000))}

    pid, found = asyncio.run(in_child(lambda: (os.getpid(), big)))

    assert pid != os.getpid()
    assert found == big
    assert found is not big


class Writer(Collector):
    """The process that writes the metrics, as one of them."""

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("writer", "", os.getpid())


def test_the_metrics_of_many_pods_are_written_in_another_process_and_tell_of_ours() -> None:
    registry = CollectorRegistry()
    processmetrics.register(registry)
    registry.register(Writer())

    def told(pods: int) -> dict[str, float]:
        text = asyncio.run(scraped(lambda: processmetrics.text(registry), pods=pods)).decode()
        return {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if not line.startswith("#")}

    few, many = told(0), told(PODS_APART)

    assert few["writer"] == os.getpid() != many["writer"]
    assert many.keys() == few.keys()
    assert many["process_start_time_seconds"] == few["process_start_time_seconds"]


def test_what_is_to_be_consolidated_comes_back_as_it_was_decided() -> None:
    asked = situation(machine("a"), machine("b"), on("one", "a"), on("two", "b"), pool=node_pool("default", **FREE))

    shared = asked.things
    there, here = asyncio.run(in_child(lambda: consolidate(asked, Memory()), shared)), consolidate(asked, Memory())

    assert (there.memory, there.target, there.reasons) == (here.memory, here.target, here.reasons)
    [moved], [expected] = there.decision.moves, here.decision.moves
    assert (moved.candidates, moved.claims, moved.payback) == (expected.candidates, expected.claims, expected.payback)
    assert still_pays(moved, asked, there.memory)[0] is not None
    assert moved.tried is not None
    assert moved.candidates[0].state is asked.by_claim[moved.candidates[0].claim.name]
    assert {id(each) for each in moved.tried.question.bound} <= {id(each) for each in asked.snapshot.bound}


def test_objects_that_are_shared_come_back_as_the_very_same() -> None:
    mine, other = [1], [2]

    found = asyncio.run(in_child(lambda: (mine, {"mine": mine}, other), (mine,)))

    assert found[0] is mine
    assert found[1]["mine"] is mine
    assert found[2] == other
    assert found[2] is not other


def test_a_search_that_found_nothing_in_a_child_is_not_repeated_while_nothing_changes() -> None:
    asked = situation(machine("a", "small"), on("one", "a"), pool=node_pool("default", **FREE))
    shared = asked.things

    first = asyncio.run(in_child(lambda: consolidate(asked, Memory()), shared))
    second = consolidate(asked, first.memory)

    assert first.memory.of(("default",)).quiet is not None
    assert second.memory.turns == first.memory.turns


def test_a_large_answer_comes_whole() -> None:
    assert len(asyncio.run(in_child(lambda: b"x" * 5_000_000))) == 5_000_000


def test_a_failure_is_told_with_its_words() -> None:
    def fail() -> None:
        raise ValueError("cannot be planned")

    with pytest.raises(ChildFailed, match="ValueError: cannot be planned"):
        asyncio.run(in_child(fail))


def test_a_child_that_is_killed_is_a_failure() -> None:
    with pytest.raises(ChildFailed, match="without an answer"):
        asyncio.run(in_child(lambda: os.kill(os.getpid(), signal.SIGKILL)))


def test_the_loop_goes_on_while_the_child_works() -> None:
    async def main() -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.01)
                turns += 1

        tasks = Tasks()
        tasks.start("count", count())
        await in_child(lambda: time.sleep(0.5))
        await tasks.close()
        return turns

    assert asyncio.run(main()) >= 3


def test_a_computation_that_is_given_up_is_ended() -> None:
    async def main() -> int:
        reading, writing = os.pipe()

        def work() -> None:
            os.write(writing, str(os.getpid()).encode())
            time.sleep(60)

        tasks = Tasks()
        tasks.start("work", in_child(work))
        await asyncio.sleep(0.05)
        pid = int(os.read(reading, 20))
        await tasks.close()
        return pid

    with pytest.raises(ProcessLookupError):
        os.kill(asyncio.run(main()), 0)
