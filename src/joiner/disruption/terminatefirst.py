"""Nodes that have to go before their replacement can come, because it needs the very place they hold in a reservation.

Pods are never put off to a later plan here, so a plan with the place given back is already the plan that will be made once the
node is gone: a pod that finds a place in it will have one. No stricter way of planning is needed.
"""

from collections.abc import Iterable
from operator import is_
from typing import Final

from joiner.catalog.build import Catalog, Market
from joiner.catalog.market import InstanceType, Offering
from joiner.model import labels
from joiner.model.labels import Vocabulary
from joiner.model.meta import replace
from joiner.scheduling.problem import PoolOption
from joiner.state.statenode import StateNode

AT_LIMIT: Final = "static-at-limit"
NO_RESERVED_CAPACITY: Final = "no-reserved-capacity"


def reservation_of(state_node: StateNode, vocabulary: Vocabulary) -> str:
    """The reservation that a node holds a place of; empty if it holds none."""
    reserved = state_node.labels.get(labels.CAPACITY_TYPE) == labels.RESERVED
    return state_node.labels.get(vocabulary.reservation_id, "") if reserved else ""


def is_full(catalog: Catalog) -> bool:
    """Whether a pool can only buy out of reservations, and nothing is left of them.

    What could be bought otherwise counts even while there is none of it: that may change without a node's going.
    """
    return not catalog.eligible and all(offering.reserved for offering in _compatible(catalog))


def offers(catalog: Catalog, reservation: str) -> bool:
    """Whether the pool can still buy out of a reservation once it has a place."""
    key = catalog.market.vocabulary.reservation_id
    return any(_is_of(offering, key, reservation) and offering.price is not None for offering in _compatible(catalog))


def _compatible(catalog: Catalog) -> Iterable[Offering]:
    wanted, well_known = catalog.requirements, catalog.market.vocabulary.well_known
    for each in catalog.index.members(catalog.index.described(wanted)):
        yield from (way for way in each.offerings if wanted.compatible(way.requirements, well_known))


def credited(options: tuple[PoolOption, ...], reservation: str) -> tuple[PoolOption, ...]:
    """The same pools with one place more in a reservation; the very same value where no pool offers it."""
    markets: dict[int, Market] = {}
    richer = tuple(_richer(option, reservation, markets) for option in options)
    return options if all(new is old for new, old in zip(richer, options, strict=True)) else richer


def _richer(option: PoolOption, reservation: str, markets: dict[int, Market]) -> PoolOption:
    catalog, known = option.catalog, id(option.catalog.market)
    if known not in markets:  # pools share markets, and making one takes a while
        markets[known] = _credited(catalog.market, reservation)
    market = markets[known]
    return option if market is catalog.market else replace(option, catalog=catalog.on(market))


def _credited(market: Market, reservation: str) -> Market:
    key = market.vocabulary.reservation_id
    types = tuple(_with_a_place(each, key, reservation) for each in market.types)
    return market if all(map(is_, types, market.types)) else market.selling(types)


def _with_a_place(instance_type: InstanceType, key: str, reservation: str) -> InstanceType:
    if not any(_is_of(way, key, reservation) for way in instance_type.offerings):
        return instance_type
    ways = tuple(
        replace(way, available=way.available + 1) if _is_of(way, key, reservation) else way
        for way in instance_type.offerings
    )
    return replace(instance_type, offerings=ways)


def _is_of(offering: Offering, key: str, reservation: str) -> bool:
    return offering.reserved and offering.requirements.at(key).values == {reservation}
