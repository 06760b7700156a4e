"""The hash of a pool's template: what moves it, and what does not."""

from typing import Any

import pytest
from tests.builders import node_pool, requirement

from joiner.model.codec import decode
from joiner.model.labels import ZONE
from joiner.model.nodepool import NodePool
from joiner.state.hashing import nodepool_hash

REFERENCE = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
TAINTS = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule", "value": "c"}]


def hashed(metadata: dict[str, Any] | None = None, **spec: Any) -> str:
    template = {"metadata": metadata or {}, "spec": {"nodeClassRef": REFERENCE, **spec}}
    return nodepool_hash(decode({"metadata": {"name": "p"}, "spec": {"template": template}}, NodePool))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"metadata": {"labels": {"team": "a"}}}, id="labels"),
        pytest.param({"metadata": {"annotations": {"team": "a"}}}, id="annotations"),
        pytest.param({"taints": TAINTS}, id="taints"),
        pytest.param({"startupTaints": TAINTS}, id="startup taints"),
        pytest.param({"nodeClassRef": {**REFERENCE, "name": "other"}}, id="node class"),
        pytest.param({"expireAfter": "1h"}, id="expiry"),
        pytest.param({"expireAfter": "Never"}, id="no expiry"),
        pytest.param({"terminationGracePeriod": "1h"}, id="grace period"),
    ],
)
def test_whatever_makes_nodes_differ_moves_the_hash(changed: dict[str, Any]) -> None:
    assert hashed(**changed) != hashed()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            {"requirements": [requirement(ZONE, "In", "a")]}, {"requirements": []}, id="requirements are compared apart"
        ),
        pytest.param({"taints": TAINTS}, {"taints": TAINTS[::-1]}, id="order of taints"),
        pytest.param({"taints": []}, {}, id="an empty list"),
        pytest.param({"metadata": {"labels": {}}}, {}, id="no labels"),
        pytest.param({"expireAfter": "60m"}, {"expireAfter": "1h"}, id="another spelling"),
    ],
)
def test_what_nodes_cannot_show_does_not_move_the_hash(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert hashed(**one) == hashed(**other)


def test_a_taint_is_not_mistaken_for_a_startup_taint() -> None:
    assert hashed(taints=TAINTS) != hashed(startupTaints=TAINTS)


def test_the_hash_is_a_decimal_number_that_does_not_know_the_name_of_the_pool() -> None:
    assert nodepool_hash(node_pool("a")) == nodepool_hash(node_pool("b"))
    assert nodepool_hash(node_pool()).isdecimal()
