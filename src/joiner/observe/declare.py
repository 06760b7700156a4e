"""How a metric is made: by name, with its labels and the sentence that explains it, and listed for the reference page."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import Metric
from prometheus_client.metrics_core import SummaryMetricFamily
from prometheus_client.registry import Collector

from joiner.clock import Clock

PREFIX: Final = "karpenter_"
SECONDS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75, 2.0,
    2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0, 150.0, 300.0,
    450.0, 600.0,
)  # fmt: skip
"""Buckets of durations: five milliseconds to ten minutes."""
CALLS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Buckets of what should take a moment: five milliseconds to ten seconds."""
QUANTILES: Final = (0.0, 0.5, 0.9, 0.99, 1.0)
REMEMBERED: Final = 1_000
REMEMBERED_S: Final = 600.0
"""Of how many observations, and for how long, a summary tells the quantiles."""


def doubling(first: float, count: int) -> tuple[float, ...]:
    """So many buckets, each twice as wide as the one before."""
    return tuple(first * 2.0**power for power in range(count))


class Family(NamedTuple):
    """One metric, as the reference page tells of it."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()
    """Of a histogram, the upper ends."""


class Quantiles(Collector):
    """A summary with quantiles over its last observations, which the metrics library does not have.

    What is older than ten minutes counts in the sum and not in the quantiles; without a clock nothing grows old.
    """

    def __init__(self, name: str, meaning: str, labels: tuple[str, ...], clock: Clock | None = None) -> None:
        self._name, self._meaning, self._labels, self._clock = name, meaning, labels, clock
        self._seen: dict[tuple[str, ...], deque[tuple[float, float]]] = {}
        self._total: dict[tuple[str, ...], tuple[int, float]] = {}

    def observe(self, value: float, **labels: str) -> None:
        """Take one in."""
        key = tuple(labels[name] for name in self._labels)
        self._seen.setdefault(key, deque(maxlen=REMEMBERED)).append((self._now(), value))
        count, total = self._total.get(key, (0, 0.0))
        self._total[key] = (count + 1, total + value)

    def collect(self) -> Iterator[Metric]:
        """The summary as it stands."""
        family = SummaryMetricFamily(self._name, self._meaning, labels=self._labels)
        for key in sorted(self._seen):
            count, total = self._total[key]
            family.add_metric(key, count_value=count, sum_value=total)
            values = sorted(value for at, value in self._seen[key] if at > self._now() - REMEMBERED_S)
            for quantile in QUANTILES if values else ():
                labels = dict(zip(self._labels, key, strict=True)) | {"quantile": f"{quantile:g}"}
                family.add_sample(self._name, labels, values[min(len(values) - 1, int(quantile * len(values)))])
        yield family

    def _now(self) -> float:
        return 0.0 if self._clock is None else self._clock.monotonic()


class Families:
    """Makes metrics and remembers what was made."""

    def __init__(self, registry: CollectorRegistry, clock: Clock | None = None) -> None:
        self._registry, self._clock = registry, clock
        self.made: list[Family] = []

    def counter(self, name: str, meaning: str, *labels: str) -> Counter:
        """A number that only grows."""
        self._list(name, "counter", labels, meaning)
        return Counter(PREFIX + name, meaning, labels, registry=self._registry)

    def gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        """A number that goes up and down."""
        self._list(name, "gauge", labels, meaning)
        return Gauge(PREFIX + name, meaning, labels, registry=self._registry)

    def histogram(self, name: str, meaning: str, *labels: str, buckets: Iterable[float] = SECONDS) -> Histogram:
        """How often values fell into ranges."""
        self._list(name, "histogram", labels, meaning, tuple(buckets))
        return Histogram(PREFIX + name, meaning, labels, registry=self._registry, buckets=tuple(buckets))

    def summary(self, name: str, meaning: str, *labels: str) -> Quantiles:
        """Quantiles of the last values."""
        self._list(name, "summary", labels, meaning)
        made = Quantiles(PREFIX + name, meaning, labels, self._clock)
        self._registry.register(made)
        return made

    def _list(
        self, name: str, kind: str, labels: tuple[str, ...], meaning: str, buckets: tuple[float, ...] = ()
    ) -> None:
        self.made.append(Family(PREFIX + name, kind, labels, meaning, buckets))
