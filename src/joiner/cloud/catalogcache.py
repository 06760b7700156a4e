"""The generation cache: one frozen catalogue per NodePool, built again exactly when something it depends on moves.

The pipeline is provider types, settings, overlays, pool; this is the only cache on that way. Generations are compared as
tuples and never combined by arithmetic: two counters that move together would cancel out under an exclusive or.
"""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from joiner.catalog.build import Adjustments, Catalog, Pipeline
from joiner.catalog.market import InstanceType
from joiner.clock import Clock
from joiner.cloud.errors import Transient
from joiner.model import labels
from joiner.model.labels import Vocabulary
from joiner.model.meta import Value
from joiner.model.nodepool import NodePool

_RETRY_S_MIN: Final = 1.0
_RETRY_S_MAX: Final = 60.0


class Supplier(Protocol):
    """What of a provider the cache needs. See `CloudProvider`, which can do all of it."""

    def vocabulary(self) -> Vocabulary:
        """The labels it knows."""
        ...

    def generation(self, pool: NodePool) -> Hashable:
        """A value that differs whenever `instance_types` of the pool would."""
        ...

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        """All types the pool's NodeClass can launch."""
        ...


class CacheStats(Value):
    """How the cache did for one pool, and what it serves now."""

    nodepool: str
    hits: int
    misses: int
    refetches: int
    """Misses that had to ask the provider; the others only rebuilt from types already at hand."""
    stale_serves: int
    build_seconds: float
    """Total time spent building, over all misses."""
    stale: bool
    """Whether the provider could not be asked when it should have been, so that the last good types are served."""
    generation: Hashable
    moved: tuple[str, ...]
    """What made the last build necessary."""


class _Entry:
    """What is known of one pool. The only mutable thing here, with one address: the cache's table."""

    def __init__(self) -> None:
        self.catalog: Catalog | None = None
        self.pool: NodePool | None = None
        self.adjustments: Adjustments | None = None
        self.generation: Hashable = None
        self.raw: tuple[InstanceType, ...] | None = None
        self.moved: tuple[str, ...] = ()
        self.hits = self.misses = self.refetches = self.stale_serves = 0
        self.build_seconds = 0.0
        self.stale = False
        self.torn = False
        """Whether the generation moved during the fetch: should it come back, the types are not those of then."""
        self.fetched_at: datetime | None = None
        self.retry_at = 0.0
        self.retry_s = 0.0

    def is_for(self, pool: NodePool) -> bool:
        """Whether the pool is the one that was built for, as far as the catalogue depends on it."""
        known = self.pool
        return known is pool or (
            known is not None and known.name == pool.name and known.spec.template == pool.spec.template
        )


class _Failure(NamedTuple):
    """A fetch without an answer, and when there may be another one."""

    problem: str
    retry_s: float
    retry_at: float


class _Flight:
    """A fetch under way, and how many wait for it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.passengers = 0


class Catalogs:
    """The catalogue of every pool, shared and frozen. Two calls under one generation return the same object."""

    def __init__(self, provider: Supplier, adjustments: Callable[[], Adjustments], clock: Clock) -> None:
        self._provider = provider
        self._adjustments = adjustments
        self._clock = clock
        self._pipeline = Pipeline(provider.vocabulary())
        self._entries: dict[str, _Entry] = {}
        self._flights: dict[Hashable, _Flight] = {}
        self._failures: dict[Hashable, _Failure] = {}
        """Generations that the provider could not be asked about a moment ago."""

    async def get(self, pool: NodePool) -> Catalog:
        """The catalogue of the pool as of now."""
        generation = self._provider.generation(pool)
        entry = self._entries.get(pool.metadata.name)
        if (
            entry is not None
            and entry.generation == generation
            and entry.adjustments is self._adjustments()
            and entry.is_for(pool)
            and not entry.stale
            and not entry.torn
        ):
            entry.hits += 1
            assert entry.catalog is not None
            return entry.catalog
        return await self._missed(pool, generation)

    def stats(self) -> tuple[CacheStats, ...]:
        """The counters of every pool, by name."""
        return tuple(map(self.stats_of, sorted(self._entries)))

    def stats_of(self, pool: str) -> CacheStats:
        """The counters of one pool that was asked for before."""
        entry = self._entries[pool]
        return CacheStats(
            nodepool=pool,
            hits=entry.hits,
            misses=entry.misses,
            refetches=entry.refetches,
            stale_serves=entry.stale_serves,
            build_seconds=entry.build_seconds,
            stale=entry.stale,
            generation=entry.generation,
            moved=entry.moved,
        )

    def stale_since(self, pool: str) -> datetime | None:
        """When the types that are served of a pool were asked for, if newer ones should be and could not be had."""
        entry = self._entries.get(pool)
        return entry.fetched_at if entry is not None and entry.stale else None

    def price(self, pool: str, labels_of: Mapping[str, str]) -> float | None:
        """What a machine that runs costs by the hour: the provider's own price, whether or not it is sold any more."""
        entry = self._entries.get(pool)
        named = labels_of.get(labels.INSTANCE_TYPE)
        found = next((each for each in entry.raw or () if each.name == named), None) if entry is not None else None
        wanted = (labels_of.get(labels.ZONE), labels_of.get(labels.CAPACITY_TYPE))
        offerings = found.offerings if found is not None else ()
        return next((each.price for each in offerings if (each.zone, each.capacity_type) == wanted), None)

    def supplies(self) -> tuple[tuple[InstanceType, ...], ...]:
        """What the provider said last, once for each supply that pools buy from."""
        found = (self._entries[pool].raw for pool in sorted(self._entries))
        return tuple({id(raw): raw for raw in found if raw is not None}.values())

    def forget(self, pool: str) -> None:
        """Drop what is known of a pool that is gone."""
        self._entries.pop(pool, None)

    async def _missed(self, pool: NodePool, generation: Hashable) -> Catalog:
        entry = self._entries.setdefault(pool.name, _Entry())
        # Pools of one NodeClass have one generation and wait for one fetch.
        flight = self._flights.setdefault(generation, _Flight())
        flight.passengers += 1
        try:
            async with flight.lock:
                raw, fresh = await self._raw(pool, generation, entry)
        finally:
            flight.passengers -= 1
            if not flight.passengers:
                del self._flights[generation]
        return self._built(entry, pool, raw, generation if fresh else entry.generation)

    async def _raw(self, pool: NodePool, generation: Hashable, entry: _Entry) -> tuple[tuple[InstanceType, ...], bool]:
        """The provider's types, and whether they are those of the generation."""
        for known in self._entries.values():
            torn = known.torn and self._provider.generation(pool) == generation
            if known.raw is not None and known.generation == generation and not known.stale and not torn:
                entry.stale, entry.fetched_at, entry.torn = False, known.fetched_at, known.torn
                return known.raw, True
        if entry.stale and entry.raw is not None and self._clock.monotonic() < entry.retry_at:
            entry.stale_serves += 1
            return entry.raw, False
        failure = self._failures.get(generation)
        if failure is not None and self._clock.monotonic() < failure.retry_at:
            return self._without_answer(entry, failure), False
        asked_at = self._clock.now()
        try:
            entry.refetches += 1
            raw = await self._provider.instance_types(pool)
        except Transient as error:
            return self._without_answer(entry, self._failed(generation, entry, error)), False
        self._failures.pop(generation, None)
        entry.torn = self._provider.generation(pool) != generation
        entry.stale, entry.retry_s, entry.fetched_at = False, 0.0, asked_at
        return raw, True

    def _failed(self, generation: Hashable, entry: _Entry, error: Transient) -> _Failure:
        """Remember that there was no answer: all pools of that generation wait before one of them asks again."""
        now = self._clock.monotonic()
        known = self._failures.get(generation)
        before = max(entry.retry_s, known.retry_s if known is not None else 0.0)
        retry_s = min(_RETRY_S_MAX, max(_RETRY_S_MIN, before * 2, error.after_s))
        self._failures = {key: each for key, each in self._failures.items() if now < each.retry_at + _RETRY_S_MAX}
        self._failures[generation] = failure = _Failure(str(error), retry_s, now + retry_s)
        return failure

    def _without_answer(self, entry: _Entry, failure: _Failure) -> tuple[InstanceType, ...]:
        """The last good types of a pool; raises Transient if it never had any."""
        if entry.raw is None:
            raise Transient(failure.problem, after_s=failure.retry_at - self._clock.monotonic())
        entry.stale = True
        entry.stale_serves += 1
        entry.retry_s, entry.retry_at = failure.retry_s, failure.retry_at
        return entry.raw

    def _built(self, entry: _Entry, pool: NodePool, raw: tuple[InstanceType, ...], generation: Hashable) -> Catalog:
        """Build, or find that another caller just did; what is stored is what the generation was *before* the fetch."""
        adjustments = self._adjustments()
        if (
            entry.catalog is not None
            and entry.raw is raw
            and entry.generation == generation
            and entry.adjustments is adjustments
            and entry.is_for(pool)
        ):
            return entry.catalog
        started = self._clock.monotonic()
        catalog = self._pipeline.catalog(raw, adjustments, pool)
        entry.moved = _moved(entry, generation, adjustments, pool)
        entry.misses += 1
        entry.build_seconds += self._clock.monotonic() - started
        entry.catalog, entry.raw, entry.generation = catalog, raw, generation
        entry.adjustments, entry.pool = adjustments, pool
        return catalog


def _moved(entry: _Entry, generation: Hashable, adjustments: Adjustments, pool: NodePool) -> tuple[str, ...]:
    if entry.catalog is None or entry.adjustments is None:
        return ("first build",)
    moved = [f"provider {part}".strip() for part in _differing(entry.generation, generation)]
    if entry.adjustments.settings != adjustments.settings:
        moved.append("settings")
    if entry.adjustments.overlays != adjustments.overlays:
        moved.append("overlays")
    if not entry.is_for(pool):
        moved.append("pool")
    return tuple(moved)


def _differing(before: Hashable, after: Hashable) -> list[str]:
    """The names of the parts that differ, if the provider names the parts of its generation."""
    if before == after:
        return []
    names = getattr(after, "_fields", None)
    if isinstance(before, tuple) and isinstance(after, tuple) and names and len(before) == len(after):
        return [name for name, old, new in zip(names, before, after, strict=True) if old != new]
    return [""]
