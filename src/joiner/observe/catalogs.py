"""Metrics of the cache of catalogues. Names and labels are an interface: dashboards are built on them.

Counters that sit on a hot path are kept as plain integers where they are counted, and are only read when they are scraped.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from joiner.catalog.market import InstanceType
from joiner.model.quantity import MILLI
from joiner.model.resources import CPU, MEMORY
from joiner.observe.declare import PREFIX, Family

CATALOG_METRICS: Final[tuple[tuple[str, str, str], ...]] = (
    ("hits", "joiner_catalog_cache_hits", "Catalogues served without building anything."),
    ("misses", "joiner_catalog_cache_misses", "Catalogues that had to be built."),
    (
        "refetches",
        "joiner_catalog_cache_refetches",
        "Builds that had to ask the cloud provider for its instance types.",
    ),
    (
        "stale_serves",
        "joiner_catalog_cache_stale_serves",
        "Catalogues served from old types while the provider failed.",
    ),
    ("build_seconds", "joiner_catalog_build_seconds", "Time spent building catalogues."),
)
"""Field of the statistics, metric name (counters end in `_total` when scraped) and meaning."""

CATALOG_STALE: Final = ("joiner_catalog_stale", "Whether the catalogue of a pool is built on old types: 1 when it is.")


class CatalogStats(Protocol):
    """What the catalogue cache counts for one pool."""

    @property
    def nodepool(self) -> str:
        """The pool."""
        ...

    @property
    def stale(self) -> bool:
        """Whether old types are served."""
        ...


class CatalogCollector(Collector):
    """The counters of the catalogue cache, read at scrape time."""

    def __init__(self, read: Callable[[], Iterable[CatalogStats]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Every family, one sample per pool."""
        stats = tuple(self._read())
        for field, name, meaning in CATALOG_METRICS:
            counter = CounterMetricFamily(name, meaning, labels=["nodepool"])
            for each in stats:
                counter.add_metric([each.nodepool], float(getattr(each, field)))
            yield counter
        gauge = GaugeMetricFamily(*CATALOG_STALE, labels=["nodepool"])
        for each in stats:
            gauge.add_metric([each.nodepool], float(each.stale))
        yield gauge


_TYPE: Final = ("instance_type",)
_OFFERING: Final = ("instance_type", "capacity_type", "zone")
_NAME: Final = f"{PREFIX}cloudprovider_instance_type_"
OFFERING_FAMILIES: Final = (
    Family(f"{_NAME}cpu_cores", "gauge", _TYPE, "Cores of an instance type."),
    Family(f"{_NAME}memory_bytes", "gauge", _TYPE, "Memory of an instance type."),
    Family(f"{_NAME}offering_available", "gauge", _OFFERING, "Whether an offering can be bought now: 1 when it can."),
    Family(f"{_NAME}offering_price_estimate", "gauge", _OFFERING, "What an offering costs by the hour."),
)  # fmt: skip
"""What `OfferingCollector` gives, for the reference page."""
Types = tuple[InstanceType, ...]


class OfferingCollector(Collector):
    """What the provider sells. There are thousands of offerings; one option leaves them out."""

    def __init__(self, read: Callable[[], tuple[Types, ...]]) -> None:
        self._read = read
        self._known: tuple[Types, ...] = ()
        self._families: tuple[GaugeMetricFamily, ...] = ()

    def collect(self) -> Iterator[Metric]:
        """Everything; made anew only when the provider told something new."""
        types = self._read()
        if not self._families or [id(each) for each in types] != [id(each) for each in self._known]:
            self._known, self._families = types, _offerings(types)
        yield from self._families


def _offerings(markets: Iterable[Types]) -> tuple[GaugeMetricFamily, ...]:
    """Where NodeClasses see a type differently, the first one's word holds; an offering is there if any pool can buy it."""
    cores, memory, available, price = (
        GaugeMetricFamily(each.name, each.meaning, labels=each.labels) for each in OFFERING_FAMILIES
    )
    types: dict[str, InstanceType] = {}
    sold: dict[tuple[str, str, str], tuple[bool, float]] = {}
    for each in (found for market in markets for found in market):
        types.setdefault(each.name, each)
        for offering in each.offerings:
            said = (each.name, offering.capacity_type, offering.zone)
            known = sold.get(said, (False, math.inf))
            sold[said] = (known[0] or offering.launchable, min(known[1], offering.cost))
    for name in sorted(types):
        cores.add_metric((name,), types[name].capacity.get(CPU, 0) / MILLI)
        memory.add_metric((name,), types[name].capacity.get(MEMORY, 0) / MILLI)
    for said in sorted(sold):
        available.add_metric(said, float(sold[said][0]))
        if sold[said][1] < math.inf:
            price.add_metric(said, sold[said][1])
    return (cores, memory, available, price)
