"""What a source hands over: instance types, and how far they can be trusted."""

from collections.abc import Iterable
from typing import Final

from joiner.catalog.market import InstanceType
from joiner.model.meta import Value

NO_DATE: Final = "no date"
"""Said of data that carries none: a user's own file, or prices that a formula made."""


class CatalogueError(ValueError):
    """The catalogue that was asked for cannot be had; the message says why and what can."""


class DataDate(Value):
    """How old one part of the data is."""

    source: str
    """Who gathered it, with the version."""
    gives: str
    """Which part of the catalogue it is."""
    date: str

    def __str__(self) -> str:
        return f"{self.gives}: {self.source}, {self.date}"


class Origin(Value):
    """Where a catalogue comes from, and how old it is."""

    name: str
    region: str
    """Empty where a source knows no regions."""
    dates: tuple[DataDate, ...]

    @property
    def price_date(self) -> str:
        """The day the prices were true, to be shown beside each of them."""
        return next((part.date for part in self.dates if "price" in part.gives), NO_DATE)

    @property
    def prices(self) -> str:
        """Whose prices these are and of which day, short enough to stand beside them."""
        place = f"{self.name} {self.region}".strip()
        return f"{place} ({NO_DATE})" if self.price_date == NO_DATE else f"{place}, prices of {self.price_date}"

    @property
    def sources(self) -> tuple[str, ...]:
        """Where each part of the data comes from, in full."""
        return tuple(str(part) for part in self.dates)


class Catalogue(Origin):
    """The types one source offers in one place."""

    types: tuple[InstanceType, ...]
    unpriced: int
    """How many types have no price at all. They are there, and nothing can be bought of them."""


def unpriced(types: Iterable[InstanceType]) -> int:
    """The number of types none of whose market offerings has a known price; a paid-for reservation does not count."""
    return sum(all(o.price is None or o.reserved for o in instance_type.offerings) for instance_type in types)
