"""What a provider counts by itself, as metrics: read when they are scraped."""

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from joiner.cloud.counts import Tally


class CountsCollector(Collector):
    """The numbers of a provider."""

    def __init__(self, tallies: Iterable[Tally]) -> None:
        self._tallies = tuple(tallies)

    def collect(self) -> Iterator[Metric]:
        """Every metric; one that never counted anything has no sample."""
        for each in self._tallies:
            yield _histogram(each) if each.about.type == "histogram" else _counter(each)


def _counter(tally: Tally) -> Metric:
    about = tally.about
    family = CounterMetricFamily(about.name.removesuffix("_total"), about.meaning, labels=about.labels)
    for values in sorted(tally.totals):
        family.add_metric(values, tally.totals[values])
    return family


def _histogram(tally: Tally) -> Metric:
    about = tally.about
    family = HistogramMetricFamily(about.name, about.meaning, labels=about.labels)
    ends = [*(f"{each:g}" for each in about.buckets), "+Inf"]
    for values in sorted(tally.totals):
        counts = [float(each) for each in accumulate(tally.filled[values])]
        family.add_metric(values, list(zip(ends, counts, strict=True)), tally.totals[values])
    return family
