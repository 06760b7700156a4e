"""What a provider counts by itself: plain numbers, since it knows no metrics library. They are read when they are scraped.

A provider that counts has `counts`; the names, labels and sentences of its metrics stand in its `families`.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol, runtime_checkable


class Counted(NamedTuple):
    """One metric of a provider."""

    name: str
    """The whole name; that of a counter ends in `_total`."""
    type: Literal["counter", "histogram"]
    labels: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()
    """Of a histogram, the upper ends."""


class Tally:
    """The numbers of one metric, by the values of its labels."""

    def __init__(self, about: Counted) -> None:
        self.about = about
        self.totals: dict[tuple[str, ...], float] = {}
        """Of a counter, how many; of a histogram, the sum."""
        self.filled: dict[tuple[str, ...], list[int]] = {}
        """Of a histogram, how many fell into each bucket and beyond the last."""

    def add(self, *values: str, amount: float = 1.0) -> None:
        """Count one more, or observe an amount."""
        self.totals[values] = self.totals.get(values, 0.0) + amount
        if self.about.type == "histogram":
            filled = self.filled.setdefault(values, [0] * (len(self.about.buckets) + 1))
            filled[bisect_left(self.about.buckets, amount)] += 1


@runtime_checkable
class HasCounts(Protocol):
    """A provider that counts something by itself."""

    def counts(self) -> Iterable[Tally]:
        """Everything it counts."""
        ...


def counts_of(provider: object) -> tuple[Tally, ...]:
    """What a provider counts by itself; nothing where it does not."""
    return tuple(provider.counts()) if isinstance(provider, HasCounts) else ()
