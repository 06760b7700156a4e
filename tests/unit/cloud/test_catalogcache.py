"""The generation cache: when it serves, when it builds, and what it does when the provider stumbles."""

import asyncio
from collections.abc import Hashable
from datetime import UTC, datetime, timedelta
from operator import xor

import pytest
from tests.builders import VOCABULARY, instance_type, node_pool, offering, overlay, settings

from joiner.catalog.build import Adjustments
from joiner.catalog.market import InstanceType
from joiner.cloud.catalogcache import Catalogs
from joiner.cloud.errors import NodeClassNotReady, Transient
from joiner.cloud.unavailable import Unavailable
from joiner.model.labels import Vocabulary
from joiner.model.meta import replace
from joiner.model.nodepool import NodePool


class HandClock:
    """A clock that a test turns by hand."""

    def __init__(self) -> None:
        self.at = datetime(2030, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def forward(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


class TinyCloud:
    """A provider with two counters, a shortage memory and a temper, all in the hands of the test."""

    def __init__(self, clock: HandClock) -> None:
        self.unavailable = Unavailable(clock)
        self.base = self.offering = 0
        self.types: tuple[InstanceType, ...] = (instance_type("small"), instance_type("large", [offering(price=2.0)]))
        self.fetches = 0
        self.error: Exception | None = None
        self.gate: asyncio.Event | None = None

    def vocabulary(self) -> Vocabulary:
        return VOCABULARY

    def generation(self, pool: NodePool) -> Hashable:
        return (self.base, self.offering, self.unavailable.generation())

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        self.fetches += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.unavailable.apply(self.types)


class Bench:
    """A cache, its provider, its clock, and the adjustments people make."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.cloud = TinyCloud(self.clock)
        self.adjustments = Adjustments()
        self.catalogs = Catalogs(self.cloud, lambda: self.adjustments, self.clock)
        self.pool = node_pool()

    async def get(self) -> object:
        return await self.catalogs.get(self.pool)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_two_calls_under_one_generation_return_the_same_object(bench: Bench) -> None:
    async def story() -> None:
        assert await bench.get() is await bench.get()

    asyncio.run(story())
    assert bench.cloud.fetches == 1
    assert (bench.catalogs.stats()[0].hits, bench.catalogs.stats()[0].misses) == (1, 1)


@pytest.mark.parametrize("counter", ["base", "offering"])
def test_a_moved_counter_fetches_again(bench: Bench, counter: str) -> None:
    async def story() -> None:
        before = await bench.get()
        setattr(bench.cloud, counter, 1)
        assert await bench.get() is not before

    asyncio.run(story())
    assert bench.cloud.fetches == 2


def test_counters_that_would_cancel_out_under_exclusive_or_serve_fresh_data(bench: Bench) -> None:
    async def story() -> None:
        bench.cloud.base, bench.cloud.offering = 1, 2
        await bench.get()
        bench.cloud.base, bench.cloud.offering = 3, 0
        bench.cloud.types = (instance_type("fresh"),)
        assert [each.name for each in (await bench.catalogs.get(bench.pool)).types] == ["fresh"]

    assert xor(1, 2) == xor(3, 0)
    asyncio.run(story())


def test_an_insufficient_capacity_mark_and_its_expiry_both_move_the_generation(bench: Bench) -> None:
    async def names() -> list[str]:
        return [each.name for each in (await bench.catalogs.get(bench.pool)).members()]

    async def story() -> None:
        assert await names() == ["small", "large"]
        bench.cloud.unavailable.mark("large", bench.cloud.types[1].offerings[0])
        assert await names() == ["small"]
        bench.clock.forward(179)
        assert await names() == ["small"]
        bench.clock.forward(1)
        assert await names() == ["small", "large"]

    asyncio.run(story())
    assert bench.catalogs.stats()[0].moved == ("provider",)


def test_an_overlay_edit_rebuilds_but_never_fetches(bench: Bench) -> None:
    async def story() -> None:
        await bench.get()
        bench.adjustments = Adjustments(overlays=(overlay(pricePercent=50),))
        assert (await bench.catalogs.get(bench.pool)).types[0].offerings[0].price == 0.5

    asyncio.run(story())
    assert bench.cloud.fetches == 1
    assert bench.catalogs.stats()[0].moved == ("overlays",)


def test_a_settings_edit_is_told_as_such(bench: Bench) -> None:
    async def story() -> None:
        await bench.get()
        bench.adjustments = Adjustments(settings=(settings("small", resources={"cpu": 1}),))
        await bench.get()

    asyncio.run(story())
    assert bench.catalogs.stats()[0].moved == ("settings",)


def test_an_edit_of_the_pool_rebuilds(bench: Bench) -> None:
    async def story() -> None:
        before = await bench.get()
        bench.pool = node_pool(labels={"team": "red"})
        assert await bench.get() is not before

    asyncio.run(story())
    assert bench.catalogs.stats()[0].moved == ("pool",)


def test_a_pool_object_that_only_looks_new_is_a_hit(bench: Bench) -> None:
    async def story() -> None:
        before = await bench.get()
        bench.pool = replace(bench.pool, metadata=replace(bench.pool.metadata, resource_version="2"))
        assert await bench.get() is before

    asyncio.run(story())


def test_concurrent_misses_fetch_once(bench: Bench) -> None:
    async def story() -> None:
        bench.cloud.gate = asyncio.Event()
        others = [node_pool(f"pool-{number}") for number in range(5)]
        tasks = [asyncio.create_task(bench.catalogs.get(pool)) for pool in [bench.pool, bench.pool, *others]]
        await asyncio.sleep(0)
        bench.cloud.gate.set()
        results = await asyncio.gather(*tasks)
        assert results[0] is results[1]
        assert len({id(result.market) for result in results}) == 1

    asyncio.run(story())
    assert bench.cloud.fetches == 1


def test_a_cancelled_fetch_does_not_take_the_others_with_it(bench: Bench) -> None:
    async def story() -> None:
        bench.cloud.gate = asyncio.Event()
        first, second = (asyncio.create_task(bench.catalogs.get(bench.pool)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        bench.cloud.gate.set()
        assert (await second).nodepool == "default"

    asyncio.run(story())


def test_a_generation_that_moves_during_the_fetch_means_one_more_fetch_later(bench: Bench) -> None:
    async def story() -> None:
        bench.cloud.gate = asyncio.Event()
        fetching = asyncio.create_task(bench.catalogs.get(bench.pool))
        await asyncio.sleep(0)
        bench.cloud.base += 1
        bench.cloud.gate.set()
        await fetching
        await bench.get()

    asyncio.run(story())
    assert bench.cloud.fetches == 2


def test_a_transient_error_keeps_the_last_good_types_and_backs_off(bench: Bench) -> None:
    async def story() -> None:
        await bench.get()
        bench.cloud.base, bench.cloud.error = 1, Transient("throttled")
        assert (await bench.catalogs.get(bench.pool)).types[0].name == "small"
        await bench.get()
        assert bench.cloud.fetches == 2
        bench.clock.forward(1)
        await bench.get()
        assert bench.cloud.fetches == 3
        bench.cloud.error = None
        bench.clock.forward(2)
        await bench.get()

    asyncio.run(story())
    stats = bench.catalogs.stats()[0]
    assert (stats.stale, stats.stale_serves, bench.cloud.fetches) == (False, 3, 4)


def test_overlays_take_effect_even_while_the_provider_is_out_of_reach(bench: Bench) -> None:
    async def story() -> None:
        await bench.get()
        bench.cloud.base, bench.cloud.error = 1, Transient("throttled")
        bench.adjustments = Adjustments(overlays=(overlay(price="9"),))
        assert (await bench.catalogs.get(bench.pool)).types[0].offerings[0].price == 9

    asyncio.run(story())
    assert bench.catalogs.stats()[0].stale


def test_the_provider_may_ask_for_a_longer_pause(bench: Bench) -> None:
    async def story() -> None:
        await bench.get()
        bench.cloud.base, bench.cloud.error = 1, Transient("throttled", after_s=30)
        await bench.get()
        bench.clock.forward(29)
        await bench.get()

    asyncio.run(story())
    assert bench.cloud.fetches == 2


def test_a_first_fetch_that_fails_says_so(bench: Bench) -> None:
    bench.cloud.error = Transient("throttled")

    with pytest.raises(Transient):
        asyncio.run(bench.get())


def test_a_node_class_that_is_not_ready_passes_through(bench: Bench) -> None:
    async def story() -> None:
        await bench.get()
        bench.cloud.base, bench.cloud.error = 1, NodeClassNotReady("default", "gone")
        await bench.get()

    with pytest.raises(NodeClassNotReady, match="gone"):
        asyncio.run(story())


def test_a_forgotten_pool_is_built_anew(bench: Bench) -> None:
    async def story() -> None:
        before = await bench.get()
        bench.catalogs.forget("default")
        assert await bench.get() is not before

    asyncio.run(story())


def test_a_provider_that_fails_is_asked_once_for_all_pools_of_a_generation(bench: Bench) -> None:
    bench.cloud.error = Transient("throttled")

    async def ask(name: str) -> str:
        try:
            await bench.catalogs.get(node_pool(name))
        except Transient as error:
            return f"{error} {error.after_s:g}"
        return "answered"

    async def story() -> None:
        told = await asyncio.gather(*(ask(f"pool-{number}") for number in range(20)))
        assert (bench.cloud.fetches, set(told)) == (1, {"throttled 1"})
        bench.clock.forward(0.5)
        assert (await ask("pool-0"), bench.cloud.fetches) == ("throttled 0.5", 1)
        bench.clock.forward(0.5)
        assert (await ask("pool-1"), await ask("pool-2"), bench.cloud.fetches) == ("throttled 2", "throttled 2", 2)
        bench.cloud.error = None
        bench.clock.forward(2)
        assert (await ask("pool-1"), await ask("pool-2"), bench.cloud.fetches) == ("answered", "answered", 3)

    asyncio.run(story())


def test_failures_of_generations_that_have_passed_are_forgotten(bench: Bench) -> None:
    async def story() -> None:
        bench.cloud.error = Transient("throttled")
        for number in range(1_000):
            bench.cloud.base = number
            with pytest.raises(Transient):
                await bench.get()
            bench.clock.forward(10)
        assert len(bench.catalogs._failures) < 20

    asyncio.run(story())


def test_a_generation_that_comes_back_does_not_bring_back_what_was_fetched_in_between(bench: Bench) -> None:
    """A reservation was full, empty while its count was fetched, and is full again."""

    async def story() -> None:
        bench.cloud.gate = asyncio.Event()
        fetching = asyncio.ensure_future(bench.get())
        await asyncio.sleep(0)
        bench.cloud.base = 1
        bench.cloud.gate.set()
        between = await fetching
        bench.cloud.base = 0
        bench.cloud.types = bench.cloud.types[:1]

        assert await bench.get() is not between
        assert bench.cloud.fetches == 2
        assert await bench.get() is await bench.get()
        assert bench.cloud.fetches == 2

    asyncio.run(story())


def test_types_that_could_not_be_fetched_do_not_count_as_current_when_the_generation_comes_back(bench: Bench) -> None:
    async def story() -> None:
        await bench.get()
        bench.cloud.base, bench.cloud.error = 1, Transient("throttled")
        await bench.get()
        bench.cloud.base, bench.cloud.error = 0, None
        bench.clock.forward(60)
        await bench.get()

        assert bench.cloud.fetches == 3
        assert not bench.catalogs.stats_of(bench.pool.name).stale

    asyncio.run(story())
