"""The two values of the market: what comes first, and what is left for pods."""

import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest
from tests.builders import offering

from joiner.catalog.build import Adjustments, build
from joiner.catalog.market import RESERVED_DIVISOR
from joiner.cloud.sources import ec2, generated, testcatalog
from joiner.model.codec import decode
from joiner.model.labels import Vocabulary
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.typesettings import InstanceTypeSettings
from joiner.requirements import Requirements


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


# -- what callers share --------------------------------------------------------------------------------------------------

SETTINGS = {"metadata": {"name": "m5.large"}, "spec": {"resources": {"memory": "7Gi"}, "overhead": {"memory": "1Gi"}}}
OVERLAY = {
    "metadata": {"name": "more"},
    "spec": {"capacity": {"example.com/device": "1"}, "overhead": {"memory": "9Mi"}},
}


def mappings(value: Any) -> Iterator[Mapping[Any, Any]]:
    """Every mapping inside a value, at any depth."""
    if isinstance(value, tuple):
        for each in value:
            yield from mappings(each)
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from mappings(getattr(value, field))
    elif isinstance(value, Mapping) and not isinstance(value, Requirements):
        yield value
    else:
        assert not isinstance(value, (list, set, bytearray)), value


@pytest.mark.parametrize("source", [testcatalog.catalogue, generated.catalogue, lambda: ec2.catalogue("us-west-2")])
def test_nothing_inside_a_type_can_be_written(source: Any) -> None:
    raw = source().types
    adjustments = Adjustments(
        settings=(decode(SETTINGS, InstanceTypeSettings),), overlays=(decode(OVERLAY, NodeOverlay),)
    )
    catalog = build(raw, adjustments, decode({"metadata": {"name": "p"}}, NodePool), Vocabulary())

    found = [*mappings(raw), *mappings(catalog.types)]
    assert len(found) > len(raw)
    for each in found:
        with pytest.raises(TypeError):
            each["cpu"] = 1  # type: ignore[index]
        for write in ("clear", "pop", "popitem", "setdefault", "update", "__delitem__", "__ior__"):
            if hasattr(each, write):
                with pytest.raises(TypeError):
                    getattr(each, write)("cpu")


def test_a_type_is_the_same_in_another_process() -> None:
    first = testcatalog.catalogue().types[0]

    assert pickle.loads(pickle.dumps(first)) == first
