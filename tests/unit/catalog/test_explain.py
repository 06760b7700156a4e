"""What settings and overlays did, as far as it concerns the pool."""

from tests.builders import VOCABULARY, instance_type, node_pool, offering, overlay, requirement, settings

from joiner.catalog.build import Adjustments, Catalog, build
from joiner.catalog.explain import changes, effects, place
from joiner.model.labels import CAPACITY_TYPE, PRICE
from joiner.model.meta import replace
from joiner.requirements import Requirements

TYPES = (
    instance_type(
        "small",
        [
            offering("spot", "a", 0.4),
            offering("on-demand", "a", 1.0),
            offering("on-demand", "b", 2.0),
            offering("on-demand", "c", None),
            offering("reserved", "a", 1.0, available=1, reservation="cr-1", divisor=10_000_000),
        ],
    ),
)


def catalog(*kinds: str, **adjustments: object) -> Catalog:
    pool = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", *kinds)])
    return build(TYPES, Adjustments(**adjustments), pool, VOCABULARY)  # type: ignore[arg-type]


def test_only_offerings_the_pool_can_buy_are_counted() -> None:
    found = catalog("on-demand", overlays=(overlay(pricePercent=50),))

    (effect,) = effects(found)
    assert (effect.types, effect.offerings, effect.before, effect.after) == (1, 2, ("1", "2"), ("0.5", "1"))
    assert [change.buyable for change in changes(found, found.types[0])] == [False, True, True, False, False]


def test_reserved_prices_are_on_a_line_of_their_own() -> None:
    found = effects(catalog("on-demand", "reserved", overlays=(overlay(pricePercent=50),)))

    assert [(each.reserved, each.offerings, each.after) for each in found] == [
        (False, 2, ("0.5", "1")),
        (True, 1, ("5e-08", "5e-08")),
    ]


def test_devices_of_reserved_machines_are_counted_with_the_others() -> None:
    found = effects(catalog("on-demand", "reserved", overlays=(overlay(capacity={"a.example/device": 1}),)))

    assert [(each.reserved, each.offerings) for each in found] == [(False, 3)]


def test_a_type_that_settings_took_away_is_still_told_of() -> None:
    found = catalog("on-demand", settings=(settings("small", offerings=[{CAPACITY_TYPE: "spot", PRICE: "0.1"}]),))

    assert not found.eligible
    assert [(each.field, each.offerings) for each in effects(found)] == [("offering", 2)]


def test_a_type_the_pool_excludes_has_no_cheapest_offering() -> None:
    pool = node_pool(requirements=[requirement("kubernetes.io/arch", "In", "arm64")])
    found = build(TYPES, Adjustments(), pool, VOCABULARY)

    assert found.cheapest(found.types[0]) == {}


def test_only_a_reserved_offering_is_named_with_a_reservation() -> None:
    own = Requirements.of_labels({"example.com/my-reservation-id": "cr-1"})
    reserved, bought = offering("reserved", "a"), offering("on-demand", "a")

    assert place(replace(reserved, requirements=reserved.requirements & own)) == "reserved/a/cr-1"
    assert place(replace(bought, requirements=bought.requirements & own)) == "on-demand/a"
