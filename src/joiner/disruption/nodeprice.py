"""What a running node costs by the hour: the price of the offering that its labels name.

Settings and overlays count, as they do for what is bought. An offering that they dropped is priced as the provider prices it, and
a machine that the provider no longer lists has no known price.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from joiner.catalog.build import Catalog
from joiner.catalog.market import InstanceType, Offering
from joiner.model import labels
from joiner.model.meta import Value

RESERVED_SHARE: Final = 0.1
"""Which part of its on-demand price a place in a reservation is worth to other users, once it is free."""


class NodePrice(Value):
    """What is paid for a node, and what it holds of what is paid for anyway."""

    bill: float = 0.0
    """Dollars an hour; nothing for a reserved machine, which is paid for whether it runs or not."""
    reserved: float = 0.0
    """The on-demand price that a reserved machine stands for."""
    known: bool = True

    @property
    def ranked(self) -> float:
        """The number by which nodes are ordered."""
        return self.bill or self.reserved * RESERVED_SHARE


UNKNOWN: Final = NodePrice(known=False)


def of_offering(offering: Offering) -> NodePrice:
    """The price of a node that is bought this way."""
    price = offering.price if offering.price is not None else 0.0
    return NodePrice(reserved=price) if offering.reserved else NodePrice(bill=price)


def of_node(own: Mapping[str, str], catalog: Catalog | None) -> NodePrice:
    """The price of the node with these labels, in a pool with that catalogue."""
    if catalog is None:
        return UNKNOWN
    key = catalog.market.vocabulary.reservation_id
    for types in (catalog.types, catalog.market.raw):
        found = _offering(own, types, key)
        if found is not None:
            return of_offering(found)
    return UNKNOWN


def _offering(own: Mapping[str, str], types: Iterable[InstanceType], reservation_key: str) -> Offering | None:
    """The offering by type, zone and capacity type; where several differ in nothing else, the one of the same reservation."""
    name, zone, capacity_type = own.get(labels.INSTANCE_TYPE), own.get(labels.ZONE), own.get(labels.CAPACITY_TYPE)
    for each in types:
        if each.name != name:
            continue
        ways = [way for way in each.offerings if way.zone == zone and way.capacity_type == capacity_type]
        ways = [way for way in ways if way.price is not None]
        reservation = own.get(reservation_key)
        same = [way for way in ways if reservation and way.requirements.at(reservation_key).has(reservation)]
        return next(iter(same or ways), None)
    return None


def total(prices: Iterable[NodePrice]) -> NodePrice:
    """What several nodes cost together."""
    known = tuple(prices)
    return NodePrice(
        bill=sum(each.bill for each in known),
        reserved=sum(each.reserved for each in known),
        known=all(each.known for each in known),
    )


def saved(gone: NodePrice, new: NodePrice) -> float:
    """What a move saves by the hour.

    A place in a reservation is free against the market. Among reserved places a smaller one saves a part of the difference: the
    larger one may serve others. What raises the bill saves nothing.
    """
    if new.bill > gone.bill:
        return gone.bill - new.bill
    return gone.bill - new.bill + RESERVED_SHARE * max(0.0, gone.reserved - new.reserved)
