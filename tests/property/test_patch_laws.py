"""Laws of merge patches."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from joiner.model import codec, patch
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.taints import Taint

KEYS = st.sampled_from(["a", "b", "c", "d"])
LEAVES = st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
TAINTS = st.builds(
    Taint, key=KEYS, effect=st.sampled_from(["NoSchedule", "NoExecute"]), value=st.sampled_from(["", "v"])
)
LISTS = st.lists(TAINTS, max_size=4, unique_by=lambda taint: (taint.key, taint.effect)).map(tuple)


def strict(document: Any) -> str:
    """A text in which true and 1 differ."""
    return repr(document)


@given(DOCUMENTS, DOCUMENTS)
def test_applying_the_difference_gives_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    result = patch.apply(patch.diff(before, after), before)

    assert result == after
    assert patch.diff(result, after) == {}


@given(DOCUMENTS)
def test_nothing_changed_is_an_empty_patch(document: dict[str, Any]) -> None:
    assert patch.diff(document, document) == {}


@given(DOCUMENTS, DOCUMENTS)
def test_neither_document_is_touched(before: dict[str, Any], after: dict[str, Any]) -> None:
    shown = strict(before), strict(after)
    patch.apply(patch.diff(before, after), before)

    assert (strict(before), strict(after)) == shown


@given(DOCUMENTS, DOCUMENTS)
def test_applying_twice_is_applying_once(before: dict[str, Any], after: dict[str, Any]) -> None:
    change = patch.diff(before, after)
    once = patch.apply(change, before)

    assert strict(patch.apply(change, once)) == strict(once)


@given(LISTS, LISTS)
def test_a_change_arrives_and_unknown_fields_survive(had: tuple[Taint, ...], wanted: tuple[Taint, ...]) -> None:
    before = Node()
    before = replace(before, spec=replace(before.spec, taints=had))
    after = replace(before, spec=replace(before.spec, taints=wanted))
    live = codec.encode(before) | {"novel": {"kept": True}}
    for entry in live.get("spec", {}).get("taints", ()):
        entry["timeAdded"] = entry["key"] + entry["effect"]

    result = patch.apply(patch.changes(before, after, live), live)

    assert codec.decode(result, Node) == after
    assert result["novel"] == {"kept": True}
    known = {(taint.key, taint.effect) for taint in had}
    for taint, entry in zip(wanted, result.get("spec", {}).get("taints", ()), strict=True):
        assert ("timeAdded" in entry) == ((taint.key, taint.effect) in known)
