"""The pipeline: what is shared, what is eligible, and who changed what."""

from tests.builders import VOCABULARY, instance_type, node_pool, offering, overlay, requirement, settings

from joiner.catalog.build import Adjustments, Pipeline, build
from joiner.catalog.explain import changes
from joiner.model import labels

TYPES = (
    instance_type("small", [offering("spot", "a", 0.4), offering("on-demand", "a", 1.0)]),
    instance_type("large", [offering("spot", "b", 0.8), offering("on-demand", "b", 2.0)]),
    instance_type("gone", [offering("spot", "a", 0.1, available=0)]),
    instance_type("secret", [offering("spot", "a", None)]),
)


def test_pools_that_do_not_differ_share_one_market() -> None:
    pipeline = Pipeline(VOCABULARY)
    adjustments = Adjustments(overlays=(overlay(pricePercent=90),))

    one, two = (pipeline.catalog(TYPES, adjustments, node_pool(name)) for name in ("one", "two"))

    assert one.market is two.market


def test_pools_that_an_overlay_tells_apart_do_not() -> None:
    pipeline = Pipeline(VOCABULARY)
    adjustments = Adjustments(overlays=(overlay(pool="one", pricePercent=90),))

    one, two, three = (pipeline.catalog(TYPES, adjustments, node_pool(name)) for name in ("one", "two", "three"))

    assert one.market is not two.market
    assert two.types[0] is TYPES[0]
    assert two.types is not one.types
    assert three.types[0] is two.types[0]


def test_settings_come_before_overlays() -> None:
    adjustments = Adjustments(
        settings=(settings("small", offerings=[{labels.PRICE: "10"}]),), overlays=(overlay(pricePercent=50),)
    )

    assert build(TYPES, adjustments, node_pool(), VOCABULARY).types[0].offerings[0].price == 5


def test_only_what_can_be_bought_is_eligible() -> None:
    assert [each.name for each in build(TYPES, Adjustments(), node_pool(), VOCABULARY).members()] == ["small", "large"]


def test_zone_and_capacity_type_hold_together() -> None:
    pool = node_pool(
        requirements=[requirement(labels.ZONE, "In", "b"), requirement(labels.CAPACITY_TYPE, "In", "spot")]
    )

    assert [each.name for each in build(TYPES, Adjustments(), pool, VOCABULARY).members()] == ["large"]


def test_the_cheapest_offering_of_each_capacity_type() -> None:
    result = build(TYPES, Adjustments(), node_pool(), VOCABULARY)

    assert {kind: each.price for kind, each in result.cheapest(result.types[0]).items()} == {
        "spot": 0.4,
        "on-demand": 1.0,
    }


def test_every_change_names_the_object_that_made_it() -> None:
    adjustments = Adjustments(
        settings=(
            settings("small", resources={"cpu": 1}, offerings=[{labels.CAPACITY_TYPE: "spot", labels.PRICE: "0.5"}]),
        ),
        overlays=(overlay("cut", pricePercent=50), overlay("fuse", capacity={"smarter-devices/fuse": 1})),
    )
    result = build(TYPES, adjustments, node_pool(), VOCABULARY)

    told = [(c.offering, c.field, c.before, c.after, c.kind, c.name) for c in changes(result, result.types[0])]

    assert told == [
        ("", "capacity.cpu", "2", "1", "InstanceType", "small"),
        ("spot/a", "price", "0.4", "0.5", "InstanceType", "small"),
        ("on-demand/a", "offering", "offered", "removed", "InstanceType", "small"),
        ("spot/a", "price", "0.5", "0.25", "NodeOverlay", "cut"),
        ("spot/a", "capacity.smarter-devices/fuse", "0", "1", "NodeOverlay", "fuse"),
    ]


def test_an_untouched_type_has_no_changes() -> None:
    result = build(TYPES, Adjustments(), node_pool(), VOCABULARY)

    assert list(changes(result, result.types[1])) == []
