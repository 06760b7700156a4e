"""What a claim can be bought as."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.builders import RESERVATION, SHELF, VOCABULARY, instance_type, node_pool, offering, overlay, requirement

from joiner.catalog import launchoptions
from joiner.catalog.build import Adjustments, Catalog, build
from joiner.model import labels, resources
from joiner.model.codec import decode
from joiner.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from joiner.model.nodeclaim import NodeClaim

REFERENCE = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


def claim(*requirements: Mapping[str, Any], pool: str = "default", **spec: Any) -> NodeClaim:
    named = {labels.NODEPOOL: pool} if pool else {}
    spec = {"requirements": list(requirements), "nodeClassRef": REFERENCE, **spec}
    return decode({"metadata": {"name": "c", "labels": named}, "spec": spec}, NodeClaim)


def catalog(*types: Any, **adjustments: Any) -> Catalog:
    return build(types or SHELF, Adjustments(**adjustments), node_pool(), VOCABULARY)


def names(*requirements: Mapping[str, Any], at: Catalog | None = None, **requests: str | int) -> list[str]:
    asked = launchoptions.requirements_of(claim(*requirements), VOCABULARY)
    found = launchoptions.options(at or catalog(), asked, resources.of(**requests))
    return [f"{each.name} {each.offering.capacity_type} {each.offering.zone}" for each in found]


def test_every_offering_is_an_option_and_the_cheapest_comes_first() -> None:
    found = names(requirement(INSTANCE_TYPE, "In", "m-1", "m-2"), requirement(ZONE, "In", "a", "b"))

    assert found[:3] == ["m-1 spot a", "m-1 spot b", "m-2 spot a"]
    assert len(found) == 8


def test_types_that_do_not_hold_the_requests_are_left_out() -> None:
    found = names(requirement(CAPACITY_TYPE, "In", "spot"), requirement(ZONE, "In", "a"), cpu=3)

    assert found == ["m-4 spot a", "m-8 spot a", "m-16 spot a"]


def test_a_resource_that_no_type_has_leaves_nothing() -> None:
    assert names(nvidia=1) == []


def test_what_cannot_be_launched_is_no_option() -> None:
    dry = instance_type("dry", [offering(available=0), offering(zone="b", price=None), offering(zone="c")])

    assert names(at=catalog(dry)) == ["dry on-demand c"]


def test_reserved_capacity_comes_before_a_lower_price() -> None:
    paid = instance_type("paid", [offering(labels.RESERVED, price=9.0, available=1, reservation="r-1")])
    cheap = instance_type("cheap", [offering(price=0.1)])

    assert names(at=catalog(cheap, paid)) == ["paid reserved a", "cheap on-demand a"]


def test_only_the_offerings_that_are_large_enough_are_options_of_a_type_that_an_overlay_split() -> None:
    both = instance_type("both", [offering(zone="a"), offering(zone="b")])
    gifted = overlay(match={ZONE: "b"}, capacity={"example.com/device": "1"})

    found = launchoptions.options(
        catalog(both, overlays=(gifted,)),
        launchoptions.requirements_of(claim(), VOCABULARY),
        {"example.com/device": 1000},
    )

    assert [each.offering.zone for each in found] == ["b"]


def test_an_offering_that_asks_for_a_label_is_for_claims_that_have_it() -> None:
    asked = launchoptions.requirements_of(claim(pool="gold"), VOCABULARY)

    assert asked[labels.NODEPOOL].values == {"gold"}


@pytest.mark.parametrize(
    ("wanted", "short"),
    [
        (requirement(INSTANCE_TYPE, "Exists", minValues=5), {}),
        (requirement(INSTANCE_TYPE, "Exists", minValues=6), {INSTANCE_TYPE: 5}),
        (requirement(INSTANCE_TYPE, "In", "m-1", "m-2", "none", minValues=3), {INSTANCE_TYPE: 2}),
        (requirement(ZONE, "In", "a", "b", minValues=2), {}),
        (requirement(ZONE, "In", "a", "nowhere", minValues=2), {ZONE: 1}),
        (requirement(CAPACITY_TYPE, "Exists", minValues=3), {CAPACITY_TYPE: 2}),
    ],
    ids=["as many types as asked", "one type too few", "unknown type", "zones of offerings", "unknown zone", "kinds"],
)
def test_the_options_must_leave_the_values_that_min_values_asks_for(
    wanted: Mapping[str, Any], short: Mapping[str, int]
) -> None:
    asked, shelf = launchoptions.requirements_of(claim(wanted), VOCABULARY), catalog()

    assert launchoptions.shortfall(shelf, asked, launchoptions.options(shelf, asked, {})) == short


def test_a_claim_into_a_reservation_needs_no_choice() -> None:
    paid = catalog(instance_type("paid", [offering(labels.RESERVED, available=1, reservation="r-1")]))
    wanted = (
        requirement(INSTANCE_TYPE, "Exists", minValues=3),
        requirement(CAPACITY_TYPE, "In", labels.RESERVED),
        requirement(RESERVATION, "In", "r-1"),
    )
    asked = launchoptions.requirements_of(claim(*wanted), VOCABULARY)

    assert launchoptions.shortfall(paid, asked, launchoptions.options(paid, asked, {})) == {}


def test_a_claim_is_bought_in_the_name_of_its_pool() -> None:
    pool = node_pool()

    assert launchoptions.buyer(claim(), pool) is pool


@pytest.mark.parametrize("named", ["gone", "default"], ids=["no pool", "a pool of another NodeClass"])
def test_a_claim_whose_pool_does_not_fit_is_bought_in_its_own_name(named: str) -> None:
    other = {**REFERENCE, "name": "other"}
    wanted = claim(requirement(ZONE, "In", "a"), nodeClassRef=other)

    made = launchoptions.buyer(wanted, node_pool() if named == "default" else None)

    assert made.name == "nodeclaim/c"
    assert made.spec.template.spec.node_class_ref.name == "other"
    assert made.spec.template.spec.requirements == wanted.spec.requirements


def test_a_machine_has_what_overlays_and_settings_say_of_its_offering() -> None:
    shop = catalog(overlays=(overlay(requirements=[requirement(ZONE, "In", "a")], capacity={"example.com/chip": 2}),))
    own = {INSTANCE_TYPE: "m-4", CAPACITY_TYPE: "spot"}

    with_chip = launchoptions.promised(shop, {**own, ZONE: "a"})
    without = launchoptions.promised(shop, {**own, ZONE: "b"})

    assert with_chip is not None
    assert with_chip[0]["example.com/chip"] == with_chip[1]["example.com/chip"] == 2000
    assert without is not None
    assert "example.com/chip" not in without[0]
    assert launchoptions.promised(shop, {**own, ZONE: "nowhere"}) is None
