"""Paid-for capacity comes first: the reserved-price law over the whole EC2 catalogue."""

from functools import lru_cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joiner.catalog.market import InstanceType, Offering
from joiner.cloud.sources import ec2, facts
from joiner.cloud.sources.reservation import Reservation

REGIONS = sorted(facts.load().regions)


@lru_cache(maxsize=4)
def reserved_everywhere(region: str) -> tuple[InstanceType, ...]:
    """The catalogue of a region with a reservation of every type."""
    sold = facts.load().regions[region].types
    reservations = [
        Reservation(id=f"cr-{name}", instance_type=name, zone=sold[name].zones[0], count=1) for name in sold
    ]
    return ec2.instance_types(facts.load(), region, reservations=reservations)


@lru_cache(maxsize=4)
def split(region: str) -> tuple[list[Offering], list[Offering]]:
    """Reserved offerings, and all others that have a price."""
    offerings = [o for t in reserved_everywhere(region) for o in t.offerings if o.price is not None]
    return [o for o in offerings if o.reserved], [o for o in offerings if not o.reserved]


@pytest.mark.parametrize("region", REGIONS)
def test_every_type_can_be_reserved(region: str) -> None:
    reserved, others = split(region)

    assert len(reserved) == len(reserved_everywhere(region))
    assert all(offering.launchable for offering in reserved)
    assert others


@pytest.mark.parametrize("region", REGIONS)
def test_the_dearest_reserved_offering_is_below_the_cheapest_other(region: str) -> None:
    reserved, others = split(region)

    assert max(o.cost for o in reserved) < min(o.cost for o in others)
    assert max(o.order for o in reserved) < min(o.order for o in others)


@pytest.mark.parametrize("region", REGIONS)
def test_reserved_offerings_keep_the_order_of_their_on_demand_prices(region: str) -> None:
    on_demand = [
        (price, o)
        for t in reserved_everywhere(region)
        for o in t.offerings
        if o.reserved and (price := next((m.price for m in t.offerings if m.capacity_type == "on-demand"), None))
    ]
    by_price = sorted(on_demand, key=lambda pair: pair[0])

    assert len(on_demand) > 800
    for (low, cheap), (high, dear) in pairwise(by_price):
        assert cheap.price == low
        assert (cheap.cost < dear.cost, cheap.order < dear.order) == (low < high, low < high)


@given(st.data())
def test_any_reserved_offering_comes_before_any_other(data: st.DataObject) -> None:
    reserved, others = split(data.draw(st.sampled_from(REGIONS)))
    paid, market = data.draw(st.sampled_from(reserved)), data.draw(st.sampled_from(others))

    assert paid.cost < market.cost
    assert min((market, paid), key=lambda offering: offering.order) is paid
