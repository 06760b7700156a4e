"""minValues: how many different values of a label a claim must leave possible.

For labels that offerings carry, the values of launchable offerings count; for all others the values of types that can be
launched. Flexibility that cannot be launched is not flexibility.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from joiner.bitset import NO_UNITS, UnitSet
from joiner.catalog.units import Stock
from joiner.requirements import Requirement, Requirements


class _Values(NamedTuple):
    """The values of a label that a requirement allows."""

    having: tuple[tuple[str, UnitSet], ...]
    """Value to the units that have it, in order of value."""
    units: UnitSet
    """All of these units."""
    disjoint: bool
    """Whether no unit has several of the values."""
    one_each: bool
    """Whether each value belongs to a unit of its own: then there are as many values as units."""


class Flexibility:
    """Counts values over sets of units; each label's table is made once, and what was counted before is remembered."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._known: dict[tuple[str, int, UnitSet, Requirements, tuple[str, ...]], int] = {}
        self._missing: dict[
            tuple[int, UnitSet, Requirements, tuple[str, ...]], tuple[Mapping[str, int], dict[str, int]]
        ] = {}
        """By the identity of the minValues, which are kept with the answer: claims of a pool share theirs."""
        self._tables: dict[str, tuple[tuple[str, UnitSet], ...]] = {}
        self._allowed: dict[tuple[str, Requirement | None], _Values] = {}
        self._sold: dict[tuple[str, str, Requirements], tuple[UnitSet, tuple[tuple[str, UnitSet], ...]]] = {}
        """What can be bought with a value of a label under some requirements, and the machines that reservations have then."""

    def counts(
        self, keys: Mapping[str, int], units: UnitSet, requirements: Requirements, reservable: Collection[str] = ()
    ) -> dict[str, int]:
        """For each key, how many values the units leave under the requirements: all of them, or as many as are asked for.

        Reserved machines count only out of reservations that are still to be had.
        """
        found: dict[str, int] = {}
        for key, least in keys.items():
            question = (key, least, units, requirements, tuple(reservable))
            if question not in self._known:
                self._known[question] = self._count(*question)
            found[key] = self._known[question]
        return found

    def _count(
        self, key: str, least: int, units: UnitSet, requirements: Requirements, reservable: tuple[str, ...]
    ) -> int:
        allowed = self._values(key, requirements.get(key))
        offered = key in self._stock.offering_keys
        if allowed.one_each and not offered:
            return min(least, (allowed.units & units).bit_count())
        found = 0
        for value, having in allowed.having:
            left = having & units
            if left and (not offered or self._launchable(key, value, left, requirements, reservable)):
                found += 1
                if found == least:
                    break
        return found

    def missing(
        self, keys: Mapping[str, int], units: UnitSet, requirements: Requirements, reservable: Collection[str] = ()
    ) -> Mapping[str, int]:
        """The keys that have too few values left, with the count that is left."""
        if not keys:
            return {}
        question = (id(keys), units, requirements, tuple(reservable))
        known = self._missing.get(question)
        if known is None:
            counts = self.counts(keys, units, requirements, reservable)
            known = self._missing[question] = (keys, {key: n for key, n in counts.items() if n < keys[key]})
        return known[1]

    def _values(self, key: str, wanted: Requirement | None) -> _Values:
        found = self._allowed.get((key, wanted))
        if found is None:
            having = tuple((value, units) for value, units in self._table(key) if wanted is None or wanted.has(value))
            together = NO_UNITS
            for _, units in having:
                together |= units
            disjoint = sum(units.bit_count() for _, units in having) == together.bit_count()
            found = _Values(having, together, disjoint, disjoint and together.bit_count() == len(having))
            self._allowed[key, wanted] = found
        return found

    def units_least(self, keys: Mapping[str, int]) -> int:
        """How many units, at the least, must be left for so many values of each key."""
        return max((least for key, least in keys.items() if self._values(key, None).disjoint), default=1)

    def _launchable(
        self, key: str, value: str, units: UnitSet, requirements: Requirements, reservable: Collection[str]
    ) -> bool:
        """Whether some unit can be had with that value of a label that offerings carry."""
        sold = self._sold.get((key, value, requirements))
        if sold is None:
            pinned = requirements & Requirements([Requirement(key, (value,))])
            machines = (*self._stock.reserved(pinned), *self._stock.counted(pinned))
            sold = self._sold[key, value, requirements] = (self._stock.for_sale(pinned), machines)
        return bool(sold[0] & units) or any(there & units for name, there in sold[1] if name in reservable)

    def _table(self, key: str) -> tuple[tuple[str, UnitSet], ...]:
        table = self._tables.get(key)
        if table is None:
            by_value: dict[str, UnitSet] = {}
            for number, unit in enumerate(self._stock.units):
                values: set[str] = set()
                if key in self._stock.offering_keys:
                    for offering in unit.offerings:
                        if offering.launchable and key in offering.requirements:
                            values |= offering.requirements[key].values
                elif key in unit.requirements and not unit.requirements[key].complement:
                    values |= unit.requirements[key].values
                for value in values:
                    by_value[value] = by_value.get(value, NO_UNITS) | UnitSet(1 << number)
            table = self._tables[key] = tuple(sorted(by_value.items()))
        return table
