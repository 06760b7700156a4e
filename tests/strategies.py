"""Generated values: small alphabets, so that things meet."""

from typing import Any

from hypothesis import strategies as st

from joiner.catalog.market import UNLIMITED, InstanceType
from joiner.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, PRICE, ZONE
from joiner.model.meta import replace
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.typesettings import InstanceTypeSettings
from joiner.requirements import Requirement, Requirements
from tests.builders import instance_type, offering, overlay, settings

VALUES = ("a", "b", "c", "0", "1", "2", "3", "5", "9", "-1", "07", "+2")
NUMBERS = ("-1", "0", "1", "2", "3", "5", "9")


def requirements_on(key: str) -> st.SearchStrategy[Requirement]:
    """One requirement on the key: any operator, sometimes the intersection of two."""
    minimum = st.none() | st.integers(1, 3)
    listed = st.builds(
        lambda operator, values, least: Requirement.of(key, operator, *values, min_values=least),
        st.sampled_from(["In", "NotIn"]),
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=4, unique=True),
        minimum,
    )
    bare = st.builds(lambda operator: Requirement.of(key, operator), st.sampled_from(["Exists", "DoesNotExist"]))
    bounded = st.builds(
        lambda operator, bound: Requirement.of(key, operator, bound),
        st.sampled_from(["Gt", "Lt", "Gte", "Lte"]),
        st.sampled_from(NUMBERS),
    )
    single = listed | bare | bounded
    return single | st.builds(lambda left, right: left & right, single, single)


requirement_sets = st.lists(st.sampled_from(["a", "b", "c"]).flatmap(requirements_on), max_size=4).map(Requirements)

# -- markets ---------------------------------------------------------------------------------------------------------

KEYS = ("a", "b", ZONE, CAPACITY_TYPE, INSTANCE_TYPE)
_PLACES = st.tuples(st.sampled_from(["spot", "on-demand", "reserved"]), st.sampled_from(["1", "2", "3"]))


@st.composite
def instance_types(draw: st.DrawFn, name: str) -> InstanceType:
    """A type with odd labels and offerings, some of them unavailable or without a price."""
    places = draw(st.lists(_PLACES, max_size=4, unique=True))
    offerings = [
        offering(
            kind,
            zone,
            draw(st.none() | st.sampled_from([0.5, 1.0, 2.0])),
            draw(st.sampled_from([0, 1, UNLIMITED])),
            f"cr-{name}-{zone}" if kind == "reserved" else "",
        )
        for kind, zone in places
    ]
    own = draw(st.lists(st.sampled_from(["a", "b"]).flatmap(requirements_on), max_size=2))
    base = instance_type(name, offerings)
    return replace(base, requirements=base.requirements & Requirements(own))


markets = st.integers(0, 5).flatmap(lambda n: st.tuples(*(instance_types(name=f"type-{i}") for i in range(n))))
questions = st.lists(
    st.sampled_from(["a", "b", "c"]).flatmap(requirements_on)
    | st.builds(Requirement.of, st.just(ZONE), st.sampled_from(["In", "NotIn"]), st.sampled_from(["1", "2", "3", "4"]))
    | st.builds(
        Requirement.of, st.just(CAPACITY_TYPE), st.sampled_from(["In", "NotIn"]), st.sampled_from(["spot", "reserved"])
    )
    | st.builds(Requirement.of, st.just(INSTANCE_TYPE), st.just("In"), st.sampled_from(["type-0", "type-1", "other"])),
    max_size=4,
).map(Requirements)

_WRITTEN = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values},
    st.sampled_from(KEYS),
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from(["1", "2", "a", "spot", "type-0"]), min_size=1, max_size=2),
)
_PRICES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"price": "0.7"}, {"pricePercent": 50}, {"priceAdjustment": "+0.1"}, {"priceAdjustment": "-10%"}]
)


@st.composite
def overlay_sets(draw: st.DrawFn) -> list[NodeOverlay]:
    """Some overlays with different names that meet on weights, fields and offerings."""
    return [
        overlay(
            name,
            requirements=draw(st.lists(_WRITTEN, max_size=2)),
            weight=draw(st.integers(0, 2)),
            capacity=draw(st.sampled_from([{}, {"x/fuse": 1}, {"x/fuse": 2, "x/kvm": 1}])),
            overhead=draw(st.sampled_from([{}, {"memory": "1Mi"}])),
            **draw(_PRICES),
        )
        for name in draw(st.lists(st.sampled_from("abcdefgh"), max_size=5, unique=True))
    ]


@st.composite
def settings_sets(draw: st.DrawFn) -> list[InstanceTypeSettings]:
    """Settings for some of the types."""
    entry = st.dictionaries(
        st.sampled_from([ZONE, CAPACITY_TYPE, "team", PRICE]), st.sampled_from(["1", "2", "3"]), max_size=3
    )
    return [
        settings(
            name,
            **draw(st.fixed_dictionaries({}, optional={"offerings": st.lists(entry, max_size=3)})),
            resources=draw(st.sampled_from([{}, {"cpu": "3"}, {"x/foo": "1"}])),
        )
        for name in draw(st.lists(st.sampled_from(["type-0", "type-1", "nobody"]), max_size=2, unique=True))
    ]
