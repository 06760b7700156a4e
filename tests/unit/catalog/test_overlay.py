"""What NodeOverlays do to offerings."""

from typing import Any

import pytest
from tests.builders import MEMORY_LABEL, VOCABULARY, instance_type, node_pool, offering, overlay, requirement

from joiner.catalog.build import Adjustments, Catalog, build
from joiner.catalog.overlay import adjusted
from joiner.model import labels, resources
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool

SPOT = {labels.CAPACITY_TYPE: "spot"}
TYPES = (
    instance_type("small", [offering("spot", "a", 0.4), offering("on-demand", "a", 1.0)], {MEMORY_LABEL: "2048"}),
    instance_type("large", [offering("spot", "a", 0.8), offering("on-demand", "b", 2.0)], {MEMORY_LABEL: "4096"}),
)


def catalog(*overlays: NodeOverlay, pool: NodePool | None = None) -> Catalog:
    return build(TYPES, Adjustments(overlays=overlays), pool or node_pool(), VOCABULARY)


def prices(of: Catalog) -> dict[str, float | None]:
    return {f"{t.name}/{o.capacity_type}": o.price for t in of.types for o in t.offerings}


@pytest.mark.parametrize(
    ("price", "spec", "result"),
    [
        (10, {"priceAdjustment": "-10%"}, 9),
        (10, {"priceAdjustment": "+100%"}, 20),
        (1.5, {"priceAdjustment": "-25%"}, 1.125),
        (10, {"priceAdjustment": "-100%"}, 0),
        (10, {"priceAdjustment": "-15"}, 0),
        (1.25, {"priceAdjustment": "+0.75"}, 2),
        (0.001, {"priceAdjustment": "+100"}, 100.001),
        (3, {"price": "5.00"}, 5),
        (3, {}, 3),
        (10, {"pricePercent": 90}, 9),
        (10, {"pricePercent": 0}, 0),
        (None, {"pricePercent": 90}, None),
        (None, {"price": "0.3"}, 0.3),
    ],
)
def test_price_adjustments(price: float | None, spec: dict[str, Any], result: float | None) -> None:
    assert adjusted(price, overlay(**spec)) == result


def test_an_empty_selector_means_everything() -> None:
    assert prices(catalog(overlay(pricePercent=50))) == {
        "small/spot": 0.2,
        "small/on-demand": 0.5,
        "large/spot": 0.4,
        "large/on-demand": 1.0,
    }


def test_a_selector_matches_single_offerings() -> None:
    assert prices(catalog(overlay(match=SPOT, price="0.1"))) == {
        "small/spot": 0.1,
        "small/on-demand": 1.0,
        "large/spot": 0.1,
        "large/on-demand": 2.0,
    }


def test_both_spellings_of_a_selector_say_the_same() -> None:
    expression = requirement(MEMORY_LABEL, "Gt", "2048")
    new = catalog(overlay(requirements=[expression], price="9"))
    old = catalog(overlay(selector={"matchExpressions": [expression]}, price="9"))

    assert prices(new) == prices(old)
    assert prices(new)["large/spot"] == 9
    assert prices(new)["small/spot"] == 0.4


@pytest.mark.parametrize("key", ["karpenter.sh/nodepool", "karpenter.sh/node-pool"])
def test_the_pools_name_can_be_selected_in_both_spellings(key: str) -> None:
    mine = overlay(match={key: "default"}, price="7")

    assert prices(catalog(mine))["small/spot"] == 7
    assert prices(catalog(mine, pool=node_pool("other")))["small/spot"] == 0.4


def test_the_node_class_can_be_selected() -> None:
    assert prices(catalog(overlay(match={"karpenter.kwok.sh/kwoknodeclass": "default"}, price="7")))["small/spot"] == 7


def test_labels_of_the_pool_can_be_selected() -> None:
    red = node_pool(labels={"team": "red"})

    assert prices(catalog(overlay(match={"team": "red"}, price="7"), pool=red))["small/spot"] == 7
    assert prices(catalog(overlay(match={"team": "red"}, price="7")))["small/spot"] == 0.4


@pytest.mark.parametrize(("allowed", "matches"), [(["red"], True), (["red", "blue"], True), (["red", "green"], False)])
def test_a_pools_requirement_matches_when_every_value_it_leaves_does(allowed: list[str], matches: bool) -> None:
    pool = node_pool(requirements=[requirement("team", "In", *allowed)])

    result = catalog(overlay(requirements=[requirement("team", "In", "red", "blue")], price="7"), pool=pool)

    assert (prices(result)["small/spot"] == 7) == matches


def test_contradicting_parts_of_a_selector_match_nothing() -> None:
    both = overlay(match=SPOT, requirements=[requirement(labels.CAPACITY_TYPE, "In", "on-demand")], price="7")

    assert prices(catalog(both)) == prices(catalog())


def test_a_label_nobody_defines_is_only_matched_by_negative_operators() -> None:
    assert prices(catalog(overlay(requirements=[requirement("gpu", "Exists")], price="7")))["small/spot"] == 0.4
    assert prices(catalog(overlay(requirements=[requirement("gpu", "DoesNotExist")], price="7")))["small/spot"] == 7


def test_the_highest_weight_wins_each_field_and_nothing_stacks() -> None:
    low = overlay("low", pricePercent=90, overhead={"memory": "10Mi"})
    high = overlay(
        "high", weight=1, requirements=[requirement(MEMORY_LABEL, "Gt", "2048")], overhead={"memory": "50Mi"}
    )

    small, large = catalog(low, high).types

    assert resources.written(small.offerings[0].overhead) == {"memory": "10Mi"}
    assert resources.written(large.offerings[0].overhead) == {"memory": "50Mi"}
    assert large.offerings[0].price == pytest.approx(0.72)


def test_resources_of_one_field_merge_one_by_one() -> None:
    fuse = overlay("fuse", capacity={"smarter-devices/fuse": 1})
    pages = overlay("pages", capacity={"hugepages-1Gi": "2Gi"})

    result = catalog(fuse, pages)

    assert resources.written(result.types[0].offerings[0].capacity) == {
        "hugepages-1Gi": "2Gi",
        "smarter-devices/fuse": "1",
    }
    assert result.market.conflicts == ()


def test_capacity_holds_for_the_matching_offerings_only() -> None:
    small = catalog(overlay(match=SPOT, capacity={"smarter-devices/fuse": 1})).types[0]

    assert [small.allocatable(each).get("smarter-devices/fuse", 0) for each in small.offerings] == [1000, 0]


def test_huge_pages_come_out_of_memory() -> None:
    small = catalog(overlay(capacity={"hugepages-2Mi": "1Gi"})).types[0]

    assert resources.written(small.allocatable(small.offerings[0]))["memory"] == "7Gi"


def test_overlapping_overlays_of_equal_weight_fail_open_and_the_later_name_wins() -> None:
    first = overlay("a", requirements=[requirement(labels.INSTANCE_TYPE, "In", "small", "large")], price="3", weight=10)
    second = overlay("b", requirements=[requirement(labels.INSTANCE_TYPE, "In", "small")], price="4", weight=10)

    result = catalog(second, first)

    assert prices(result)["small/spot"] == 4
    assert prices(result)["large/spot"] == 3
    assert [(c.loser, c.winner, c.field, c.example) for c in result.market.conflicts] == [("a", "b", "price", "small")]


def test_every_overlay_of_a_weight_is_looked_at_for_conflicts() -> None:
    a, b, c = (overlay(name, capacity={resource: 1}) for name, resource in [("a", "r1"), ("b", "r2"), ("c", "r1")])

    assert [(each.loser, each.winner, each.field) for each in catalog(a, b, c).market.conflicts] == [
        ("a", "c", "capacity.r1")
    ]


def test_the_three_ways_to_say_a_price_are_one_field() -> None:
    result = catalog(overlay("a", price="3"), overlay("b", pricePercent=50), overlay("c", priceAdjustment="+1"))

    assert prices(result)["small/on-demand"] == 2.0
    assert {each.field for each in result.market.conflicts} == {"price"}


def test_disjoint_overlays_of_equal_weight_are_no_conflict() -> None:
    spot, other = (
        overlay("a", match=SPOT, price="1"),
        overlay("b", match={labels.CAPACITY_TYPE: "on-demand"}, price="2"),
    )

    assert catalog(spot, other).market.conflicts == ()


def test_an_overlay_keeps_every_other_field_of_an_offering() -> None:
    reserved = offering("reserved", "a", 2.0, available=3, reservation="cr-1", divisor=10_000_000)
    raw = (instance_type("small", [reserved]),)

    result = (
        build(raw, Adjustments(overlays=(overlay(pricePercent=50),)), node_pool(), VOCABULARY).types[0].offerings[0]
    )

    assert (result.available, result.divisor, result.price, result.reserved) == (3, 10_000_000, 1.0, True)


def test_untouched_types_stay_the_same_objects() -> None:
    result = catalog(overlay(match={labels.INSTANCE_TYPE: "large"}, price="1"))

    assert result.types[0] is TYPES[0]
    assert result.types[1] is not TYPES[1]
