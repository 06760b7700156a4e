"""Metrics, by name. Names and labels are an interface: dashboards are built on them.

Counters that sit on a hot path are kept as plain integers by whoever counts, and are only read when somebody scrapes.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

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
