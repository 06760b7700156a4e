"""minValues: how many different values of a label a claim must leave possible.

For labels that offerings carry, the values of launchable offerings count; for all others the values of types that can be
launched. Flexibility that cannot be launched is not flexibility.
"""

from collections.abc import Collection, Mapping

from joiner.catalog.units import Stock
from joiner.requirements import Requirement, Requirements


class Flexibility:
    """Counts values over sets of units; each label's table is made once, and what was counted before is remembered."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._known: dict[tuple[str, int, Requirements, tuple[str, ...]], int] = {}
        self._tables: dict[str, tuple[tuple[str, int], ...]] = {}

    def counts(
        self, keys: Mapping[str, int], units: int, requirements: Requirements, reservable: Collection[str] = ()
    ) -> dict[str, int]:
        """For each key, how many values the units leave under the requirements.

        Reserved machines count only out of reservations that are still to be had.
        """
        found: dict[str, int] = {}
        for key in keys:
            question = (key, units, requirements, tuple(reservable))
            if question not in self._known:
                self._known[question] = self._count(*question)
            found[key] = self._known[question]
        return found

    def _count(self, key: str, units: int, requirements: Requirements, reservable: tuple[str, ...]) -> int:
        wanted = requirements.get(key)
        possible = [(v, having & units) for v, having in self._table(key) if wanted is None or wanted.has(v)]
        return sum(1 for v, left in possible if left and self._launchable(key, v, left, requirements, reservable))

    def missing(
        self, keys: Mapping[str, int], units: int, requirements: Requirements, reservable: Collection[str] = ()
    ) -> dict[str, int]:
        """The keys that have too few values left, with the count that is left."""
        if not keys:
            return {}
        counts = self.counts(keys, units, requirements, reservable)
        return {key: counts[key] for key, least in keys.items() if counts[key] < least}

    def _launchable(
        self, key: str, value: str, units: int, requirements: Requirements, reservable: Collection[str]
    ) -> bool:
        """Whether some unit can be had with that value; only offerings' labels need a second look."""
        if key not in self._stock.offering_keys:
            return True
        pinned = requirements & Requirements([Requirement(key, (value,))])
        if self._stock.for_sale(pinned) & units:
            return True
        return any(reserved & units for name, reserved in self._stock.reserved(pinned) if name in reservable)

    def _table(self, key: str) -> tuple[tuple[str, int], ...]:
        table = self._tables.get(key)
        if table is None:
            by_value: dict[str, int] = {}
            for number, unit in enumerate(self._stock.units):
                values: set[str] = set()
                if key in self._stock.offering_keys:
                    for offering in unit.offerings:
                        if offering.launchable and key in offering.requirements:
                            values |= offering.requirements[key].values
                elif key in unit.requirements and not unit.requirements[key].complement:
                    values |= unit.requirements[key].values
                for value in values:
                    by_value[value] = by_value.get(value, 0) | 1 << number
            table = self._tables[key] = tuple(sorted(by_value.items()))
        return table
