"""Why a pool can or cannot buy: the funnel, one type, one offering, and overlays that mean nothing."""

import pytest
from tests.builders import VOCABULARY, instance_type, node_pool, offering, overlay, requirement, settings

from joiner.catalog.build import Adjustments, Catalog, build
from joiner.catalog.exclusions import exclusions, funnel, idle, refusals
from joiner.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from joiner.model.nodeoverlay import NodeOverlay

TYPES = (
    instance_type("mixed", [offering("spot", "a", 0.4), offering("on-demand", "b", 1.0)]),
    instance_type("unpriced", [offering("spot", "a", None)]),
    instance_type("gone", [offering("spot", "a", 0.1, available=0)]),
    instance_type("nowhere", []),
)


def catalog(*demands: dict[str, object], adjustments: Adjustments | None = None) -> Catalog:
    return build(TYPES, adjustments or Adjustments(), node_pool(requirements=demands), VOCABULARY)


def why(of: Catalog, name: str) -> tuple[str, ...]:
    return exclusions(of, next(each for each in of.types if each.name == name))


def test_the_funnel_ends_with_what_can_be_bought() -> None:
    found = catalog(requirement(ZONE, "In", "a"), requirement(CAPACITY_TYPE, "In", "on-demand"))

    assert [(stage.types, stage.demand) for stage in funnel(found)] == [
        (4, "known to the provider"),
        (1, "something available at a known price"),
        (0, "all of these in one offering"),
    ]


@pytest.mark.parametrize(
    ("name", "demands", "reasons"),
    [
        ("mixed", [], ()),
        ("mixed", [requirement(ARCH, "In", "arm64")], (f"the pool wants {ARCH} In [arm64], and this type has amd64",)),
        (
            "mixed",
            [requirement(ZONE, "In", "a"), requirement(CAPACITY_TYPE, "In", "on-demand")],
            ("no offering of it meets all demands of the pool at once",),
        ),
        ("unpriced", [], ("its price is not known",)),
        ("gone", [], ("nothing of it is available",)),
        ("nowhere", [], ("it is not offered at all",)),
        (
            "gone",
            [requirement(ARCH, "In", "arm64"), requirement(INSTANCE_TYPE, "NotIn", "gone")],
            (
                f"the pool wants {ARCH} In [arm64], and this type has amd64",
                f"the pool wants {INSTANCE_TYPE} NotIn [gone], and this type has gone",
                "nothing of it is available",
            ),
        ),
    ],
    ids=["bought", "label", "together", "price", "dry", "nowhere", "all of it"],
)
def test_everything_that_excludes_a_type_is_told(
    name: str, demands: list[dict[str, object]], reasons: tuple[str, ...]
) -> None:
    assert why(catalog(*demands), name) == reasons


def test_a_demand_that_only_the_offerings_left_by_settings_fail_is_named() -> None:
    only_spot = Adjustments(settings=(settings("mixed", offerings=[{CAPACITY_TYPE: "spot"}]),))

    assert why(catalog(requirement(CAPACITY_TYPE, "In", "on-demand"), adjustments=only_spot), "mixed") == (
        f"the pool wants {CAPACITY_TYPE} In [on-demand], and what can be bought of this type has spot",
    )


def test_an_offering_is_refused_for_what_it_is_and_for_what_it_wants() -> None:
    narrowed = Adjustments(settings=(settings("mixed", offerings=[{"team": "red"}]),))
    found = catalog(requirement(ZONE, "In", "b"), adjustments=narrowed)
    mixed = found.types[0]

    assert refusals(found, mixed, mixed.offerings[0]) == (
        f"the pool wants {ZONE} In [b]",
        "it is only for nodes with team In [red]",
    )


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (overlay(pricePercent=90), None),
        (overlay(match={CAPACITY_TYPE: "on-demand"}, pricePercent=90), None),
        (overlay(match={CAPACITY_TYPE: "spot"}, pricePercent=90), f"{CAPACITY_TYPE} In [spot]"),
        (overlay(match={ARCH: "amd64", "team": "red"}, pricePercent=90), "team In [red]"),
        (overlay(match={INSTANCE_TYPE: "unpriced"}, pricePercent=90), f"{INSTANCE_TYPE} In [unpriced]"),
        (overlay(pool="other", pricePercent=90), f"{NODEPOOL} In [other]"),
    ],
    ids=["everything", "part", "another way", "no such label", "cannot be bought", "another pool"],
)
def test_an_overlay_that_means_nothing_the_pool_can_buy_is_found_with_the_reason(
    written: NodeOverlay, told: str | None
) -> None:
    adjustments = Adjustments(overlays=(written,))
    found = catalog(requirement(CAPACITY_TYPE, "In", "on-demand"), adjustments=adjustments)

    assert [each.excluded_by for each in idle(found, adjustments.overlays)] == ([] if told is None else [told])


def test_an_overlay_may_mean_nothing_only_by_all_of_its_labels_together() -> None:
    adjustments = Adjustments(overlays=(overlay(match={CAPACITY_TYPE: "spot", ZONE: "b"}, pricePercent=90),))

    assert [each.excluded_by for each in idle(catalog(adjustments=adjustments), adjustments.overlays)] == [""]


def test_a_price_that_makes_a_type_buyable_has_an_effect() -> None:
    adjustments = Adjustments(overlays=(overlay(match={INSTANCE_TYPE: "unpriced"}, price="0.5"),))

    assert idle(catalog(adjustments=adjustments), adjustments.overlays) == ()
