"""Merge patches: what we change arrives, what we do not know stays."""

from typing import Any

import pytest

from joiner.model import patch
from joiner.model.codec import decode
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.quantity import parse
from joiner.model.taints import DISRUPTED, Taint

LIVE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"a": "1"}, "managedFields": [{"manager": "kubelet"}]},
    "spec": {
        "podCIDR": "10.0.0.0/24",
        "taints": [{"key": "gpu", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}],
    },
    "status": {
        "capacity": {"memory": "1024Mi"},
        "conditions": [{"type": "Ready", "status": "False", "novel": "kept", "reason": "Old"}],
    },
}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {}, {"a": None}),
        ({}, {"a": {}}, {"a": {}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
        ({"a": 1}, {"a": True}, {"a": True}),
    ],
    ids=["nothing", "change", "removal", "empty map", "inside", "list", "shape", "true is not one"],
)
def test_a_patch_has_only_what_changed(before: Any, after: Any, expected: Any) -> None:
    assert patch.diff(before, after) == expected
    assert patch.apply(expected, before) == after


def test_unknown_fields_survive_a_change_of_their_neighbours() -> None:
    node = decode(LIVE, Node)
    changed = replace(node, metadata=replace(node.metadata, labels={"a": "1", "b": "2"}))

    change = patch.changes(node, changed)

    assert change == {"metadata": {"labels": {"b": "2"}}}
    assert patch.apply(change, LIVE)["metadata"]["managedFields"] == LIVE["metadata"]["managedFields"]


def test_a_value_that_did_not_change_is_not_rewritten_in_our_spelling() -> None:
    node = decode(LIVE, Node)

    assert patch.changes(node, node, LIVE) == {}


def test_entries_of_a_list_keep_fields_we_do_not_know() -> None:
    node = decode(LIVE, Node)
    changed = replace(node, spec=replace(node.spec, taints=(*node.spec.taints, DISRUPTED)))

    assert patch.changes(node, changed, LIVE) == {
        "spec": {"taints": [LIVE["spec"]["taints"][0], {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}
    }


def test_a_changed_entry_keeps_fields_we_do_not_know() -> None:
    node = decode(LIVE, Node)
    ready = replace(node.status.conditions[0], status="True", reason="")
    changed = replace(node, status=replace(node.status, conditions=(ready,)))

    assert patch.changes(node, changed, LIVE) == {
        "status": {"conditions": [{"type": "Ready", "status": "True", "novel": "kept"}]}
    }


def test_a_taint_with_another_effect_is_another_taint() -> None:
    node = decode(LIVE, Node)
    changed = replace(node, spec=replace(node.spec, taints=(Taint(key="gpu", effect="NoExecute"),)))

    assert patch.changes(node, changed, LIVE) == {"spec": {"taints": [{"key": "gpu", "effect": "NoExecute"}]}}


def test_a_list_that_becomes_empty_is_removed() -> None:
    node = decode(LIVE, Node)
    changed = replace(node, spec=replace(node.spec, taints=()))

    assert patch.changes(node, changed, LIVE) == {"spec": {"taints": None}}


def test_a_map_that_becomes_empty_loses_only_what_we_saw_in_it() -> None:
    node = decode(LIVE, Node)
    changed = replace(node, metadata=replace(node.metadata, labels={}))

    assert patch.changes(node, changed, LIVE) == {"metadata": {"labels": {"a": None}}}


def test_amounts_in_a_patch_are_written_as_people_write_them() -> None:
    node = decode(LIVE, Node)
    changed = replace(node, status=replace(node.status, capacity={**node.status.capacity, "cpu": parse("1.5")}))

    assert patch.changes(node, changed, LIVE) == {"status": {"capacity": {"cpu": "1500m"}}}
