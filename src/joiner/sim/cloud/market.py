"""How the market of the pretend cloud changes during a run: prices, what is sold and where, and how much there is of it."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from joiner.catalog.market import InstanceType, Offering
from joiner.model import labels
from joiner.model.meta import Value, replace
from joiner.requirements import Requirement, Requirements


class MarketSlice(Value):
    """A part of the market. A field that is empty stands for everything."""

    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""

    def holds(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        """Whether a way to buy a type is in the lot."""
        return (
            self.instance_type in ("", instance_type)
            and self.zone in ("", zone)
            and self.capacity_type in ("", capacity_type)
        )


class Scarcity(Value):
    """How many machines there are of a lot, for a time or always. None at all is a shortage."""

    lot: MarketSlice
    count: int = 0
    since: datetime | None = None
    until: datetime | None = None

    def limits(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        """Whether a way to buy a type is limited. Reserved machines are set aside: only a lot that names them limits them."""
        named = capacity_type != labels.RESERVED or self.lot.capacity_type == labels.RESERVED
        return named and self.lot.holds(instance_type, zone, capacity_type)

    def holds_at(self, now: datetime) -> bool:
        """Whether it is in force."""
        return (self.since is None or self.since <= now) and (self.until is None or now < self.until)


Way = tuple[str, str, str]
"""Instance type, zone and capacity type; empty for any."""


class SimulatedMarket:
    """What differs from the catalogue. Every change moves the version."""

    def __init__(self) -> None:
        self.version = 0
        self.scarcities: tuple[Scarcity, ...] = ()
        self._shares: dict[Way, tuple[MarketSlice, float]] = {}
        """Which part of the catalogue's price is asked for a lot; the last one that fits counts."""
        self._withdrawn: dict[Way, MarketSlice] = {}

    @property
    def repriced(self) -> bool:
        """Whether any price has changed since the beginning."""
        return bool(self._shares)

    def scale_price(self, lot: MarketSlice, share: float) -> None:
        """A lot costs this share of what the catalogue says."""
        key = _key(lot)
        self._shares.pop(key, None)  # what was said last holds over what was said before
        self._shares[key] = (lot, share)
        self.version += 1

    def withdraw(self, lot: MarketSlice) -> None:
        """A lot is no longer sold."""
        self._withdrawn[_key(lot)] = lot
        self.version += 1

    def restore(self, lot: MarketSlice) -> None:
        """A lot that was withdrawn is sold again."""
        if self._withdrawn.pop(_key(lot), None) is not None:
            self.version += 1

    def limit(self, scarcity: Scarcity) -> None:
        """There is only so much of a lot. Buyers find out when they buy."""
        self.scarcities = (*self.scarcities, scarcity)

    def left(
        self,
        instance_type: str,
        zone: str,
        capacity_type: str,
        running: Mapping[Way, int],
        now: datetime,
    ) -> bool:
        """Whether one more machine can be had."""
        way = (instance_type, zone, capacity_type)
        return all(
            sum(number for place, number in running.items() if each.limits(*place)) < each.count
            for each in self.scarcities
            if each.limits(*way) and each.holds_at(now)
        )

    def sells(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        """Whether a way to buy a type was not withdrawn."""
        return not any(lot.holds(instance_type, zone, capacity_type) for lot in self._withdrawn.values())

    def price(self, instance_type: str, zone: str, capacity_type: str, usual: float) -> float:
        """What a way to buy a type costs now, which costs so much in the catalogue."""
        return usual * _share(self._shares.values(), instance_type, zone, capacity_type)

    def apply(self, types: Iterable[InstanceType]) -> tuple[InstanceType, ...]:
        """The types of the catalogue as the market has them now, in their order."""
        changed = (self._changed(each) for each in types)
        return tuple(each for each in changed if each.offerings)

    def _changed(self, instance_type: InstanceType) -> InstanceType:
        name = instance_type.name
        shares = [(lot, share) for lot, share in self._shares.values() if lot.instance_type in ("", name)]
        withdrawn = [lot for lot in self._withdrawn.values() if lot.instance_type in ("", name)]
        if not shares and not withdrawn:
            return instance_type
        sold = (o for o in instance_type.offerings if not any(lot.holds(name, *_way(o)) for lot in withdrawn))
        offerings = tuple(_priced(name, offering, shares) for offering in sold)
        if len(offerings) == len(instance_type.offerings):
            return replace(instance_type, offerings=offerings)
        return replace(instance_type, offerings=offerings, requirements=_narrowed(instance_type, offerings))


def _key(lot: MarketSlice) -> Way:
    return lot.instance_type, lot.zone, lot.capacity_type


def _way(offering: Offering) -> tuple[str, str]:
    return offering.zone, offering.capacity_type


def _share(shares: Collection[tuple[MarketSlice, float]], *way: str) -> float:
    return next((share for lot, share in reversed([*shares]) if lot.holds(*way)), 1.0)


def _priced(name: str, offering: Offering, shares: Collection[tuple[MarketSlice, float]]) -> Offering:
    share = _share(shares, name, *_way(offering))
    return offering if offering.price is None or share == 1.0 else replace(offering, price=offering.price * share)


def _narrowed(instance_type: InstanceType, offerings: tuple[Offering, ...]) -> Requirements:
    """The type is only where it is still sold."""
    zones = Requirement(labels.ZONE, {each.zone for each in offerings})
    ways = Requirement(labels.CAPACITY_TYPE, {each.capacity_type for each in offerings})
    others = instance_type.requirements.without(labels.ZONE, labels.CAPACITY_TYPE)
    return Requirements((*others.values(), zones, ways))
