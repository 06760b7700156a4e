"""Amounts of resources as plain tuples, in one order for a whole run."""

from bisect import bisect_left
from collections.abc import Iterable

from joiner.bitset import NO_UNITS, UnitSet
from joiner.catalog.units import Ladder, Stock
from joiner.scheduling.problem import Amounts


class FitIndex:
    """Which units of a stock are large enough."""

    def __init__(self, stock: Stock, names: Iterable[str]) -> None:
        self._everyone = stock.everyone
        self._ladders: tuple[Ladder, ...] = stock.ladders(names)
        self._largest: dict[UnitSet, Amounts] = {}
        self._last: tuple[Amounts, UnitSet] = ((), NO_UNITS)
        """The last question with its answer: who finds out how many fit asks next what those fit on."""

    def large_enough(self, wanted: Amounts) -> UnitSet:
        """Units that hold these amounts; nothing holds a negative one."""
        if wanted == self._last[0]:
            return self._last[1]
        found = self._everyone
        for ladder, amount in zip(self._ladders, wanted, strict=True):
            if amount > 0:
                found &= ladder.units[bisect_left(ladder.steps, amount)]
            elif amount < 0:
                return NO_UNITS
        self._last = (wanted, found)
        return found

    def largest(self, units: UnitSet) -> Amounts:
        """The most that any of the units has of each resource."""
        found = self._largest.get(units)
        if found is None:
            found = self._largest[units] = tuple([ladder.largest(units) for ladder in self._ladders])
        return found

    def how_many(self, units: UnitSet, own: Amounts, pod_amounts: Amounts, most: int, least: int = 1) -> int:
        """How often, up to some number, the largest of the units hold one thing beside another: at least so many of them."""
        for top, there, more in zip(self.largest(units), own, pod_amounts, strict=True):
            if more and top - there < most * more:
                most = (top - there) // more
        low, high, middle = 0, most + 1, most
        while high - low > 1:
            together = tuple([there + middle * more for there, more in zip(own, pod_amounts, strict=True)])
            enough = (self.large_enough(together) & units).bit_count() >= least
            low, high = (middle, high) if enough else (low, middle)
            middle = (low + high) // 2
        return low
