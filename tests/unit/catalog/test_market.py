"""The two values of the market: what comes first, and what is left for pods."""

from tests.builders import offering

from joiner.catalog.market import RESERVED_DIVISOR


def test_reserved_capacity_comes_first_whatever_its_price() -> None:
    reserved = offering("reserved", price=9.0, available=1, reservation="cr-1")

    assert sorted([offering("spot", price=0.0), reserved], key=lambda each: each.order)[0] is reserved


def test_among_reserved_capacity_the_price_it_stands_for_decides() -> None:
    small, large = (
        offering("reserved", price=price, available=1, reservation="cr", divisor=RESERVED_DIVISOR)
        for price in (1.0, 2.0)
    )

    assert small.order < large.order


def test_what_has_no_price_or_nothing_left_cannot_be_launched() -> None:
    assert not offering(price=None).launchable
    assert not offering(available=0).launchable
    assert offering(price=0.0).launchable
