"""Laws of the catalogue: order never matters, inputs are never touched, the fast answer is the plain one."""

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st
from tests.builders import VOCABULARY, node_pool
from tests.strategies import markets, overlay_sets, questions, settings_sets

from joiner.catalog.build import Adjustments, Catalog, Pipeline, build
from joiner.catalog.index import Index
from joiner.catalog.market import InstanceType
from joiner.model.labels import CAPACITY_TYPE, ZONE
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.typesettings import InstanceTypeSettings
from joiner.requirements import Requirement, Requirements

POOL = node_pool(labels={"team": "1"})
shuffled_overlays = overlay_sets().flatmap(lambda each: st.tuples(st.just(each), st.permutations(each)))


def outcome(catalog: Catalog) -> object:
    return catalog.types, catalog.eligible, catalog.market.conflicts, catalog.market.settings


@given(markets, shuffled_overlays)
def test_the_order_of_overlays_does_not_matter(
    market: tuple[InstanceType, ...], overlays: tuple[list[NodeOverlay], list[NodeOverlay]]
) -> None:
    one, other = (build(market, Adjustments(overlays=tuple(each)), POOL, VOCABULARY) for each in overlays)

    assert outcome(one) == outcome(other)


@given(markets, settings_sets(), overlay_sets())
def test_inputs_are_never_touched(
    market: tuple[InstanceType, ...], settings: list[InstanceTypeSettings], overlays: list[NodeOverlay]
) -> None:
    adjustments = Adjustments(settings=tuple(settings), overlays=tuple(overlays))
    before = deepcopy((market, adjustments, POOL))

    build(market, adjustments, POOL, VOCABULARY)

    assert (market, adjustments, POOL) == before


@given(markets, settings_sets(), overlay_sets())
def test_a_pipeline_that_remembers_answers_like_one_that_does_not(
    market: tuple[InstanceType, ...], settings: list[InstanceTypeSettings], overlays: list[NodeOverlay]
) -> None:
    adjustments = Adjustments(settings=tuple(settings), overlays=tuple(overlays))
    pipeline = Pipeline(VOCABULARY)

    for pool in (node_pool("x"), node_pool("y", labels={"a": "1"}), POOL):
        remembered = pipeline.catalog(market, adjustments, pool)
        assert outcome(remembered) == outcome(build(market, adjustments, pool, VOCABULARY))


def plain(types: tuple[InstanceType, ...], wanted: Requirements) -> list[str]:
    """The readable version of `Index.select`."""
    return [
        each.name
        for each in types
        if each.requirements.intersects(wanted)
        and any(o.launchable and wanted.compatible(o.requirements, VOCABULARY.well_known) for o in each.offerings)
    ]


joint_questions = st.builds(
    lambda zone, kind, more: Requirements([Requirement(ZONE, (zone,)), Requirement(CAPACITY_TYPE, (kind,))]) & more,
    st.sampled_from(["1", "2", "3"]),
    st.sampled_from(["spot", "on-demand", "reserved"]),
    st.just(Requirements()) | questions,
)
"""What only a single offering can answer: a zone and a capacity type together."""


@given(markets, settings_sets(), questions | joint_questions)
def test_the_index_agrees_with_the_plain_check(
    market: tuple[InstanceType, ...], settings: list[InstanceTypeSettings], wanted: Requirements
) -> None:
    types = build(market, Adjustments(settings=tuple(settings)), POOL, VOCABULARY).types
    index = Index(types, VOCABULARY.well_known)

    assert [each.name for each in index.members(index.select(wanted))] == plain(types, wanted)


@given(markets, settings_sets())
def test_settings_never_conjure_capacity(
    market: tuple[InstanceType, ...], settings: list[InstanceTypeSettings]
) -> None:
    result = build(market, Adjustments(settings=tuple(settings)), POOL, VOCABULARY)

    for raw, settled in zip(market, result.types, strict=True):
        assert {o.available for o in settled.offerings} <= {o.available for o in raw.offerings}


@given(markets, settings_sets(), overlay_sets())
def test_allocatable_is_never_negative_and_never_more_than_the_machine_has(
    market: tuple[InstanceType, ...], settings: list[InstanceTypeSettings], overlays: list[NodeOverlay]
) -> None:
    result = build(market, Adjustments(settings=tuple(settings), overlays=tuple(overlays)), POOL, VOCABULARY)

    for each in result.types:
        for offering in each.offerings:
            capacity = {**each.capacity, **offering.capacity}
            assert all(0 <= amount <= capacity[name] for name, amount in each.allocatable(offering).items())
