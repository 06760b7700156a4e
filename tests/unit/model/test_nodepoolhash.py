"""The hash of a pool's template: what moves it, and what does not."""

from typing import Any

import pytest
from tests.builders import node_pool, requirement

from joiner.model.codec import decode
from joiner.model.labels import NODEPOOL_HASH, NODEPOOL_HASH_VERSION, ZONE
from joiner.model.nodepool import NodePool
from joiner.model.nodepoolhash import nodepool_hash

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


@pytest.mark.parametrize(
    ("metadata", "spec", "known"),
    [
        pytest.param({}, {}, "12745407319442031341", id="nothing but a class"),
        pytest.param({}, {"expireAfter": "Never"}, "7428780003907761376", id="no expiry"),
        pytest.param({}, {"expireAfter": "0s"}, "13546070544088512816", id="expiry at once"),
        pytest.param({}, {"terminationGracePeriod": "0s"}, "16848824146983765585", id="no grace"),
        pytest.param(
            {"labels": {"team": "a", "tier": "b"}, "annotations": {"x": "y"}}, {}, "11082748109233115973", id="metadata"
        ),
        pytest.param(
            {},
            {
                "taints": TAINTS,
                "startupTaints": [{"key": "s", "effect": "NoExecute"}],
                "terminationGracePeriod": "1h",
            },
            "12719496908342081676",
            id="taints and grace",
        ),
    ],
)
def test_the_hash_is_the_one_karpenter_gives(metadata: dict[str, Any], spec: dict[str, Any], known: str) -> None:
    assert hashed(metadata, **spec) == known


@pytest.mark.parametrize(
    ("written", "version", "kept"),
    [
        pytest.param("845502862369909111", "v3", True, id="taints: []"),
        pytest.param("5327702334917744615", "v3", True, id="labels: {}"),
        pytest.param("8292130947916762421", "v3", True, id="everything empty and written"),
        pytest.param("845502862369909111", "v2", False, id="other rules"),
        pytest.param("1", "v3", False, id="another template"),
    ],
)
def test_what_a_pool_says_of_itself_stands_if_it_is_true_in_some_spelling(
    written: str, version: str, kept: bool
) -> None:
    template = {"spec": {"nodeClassRef": REFERENCE}}
    metadata = {"name": "p", "annotations": {NODEPOOL_HASH: written, NODEPOOL_HASH_VERSION: version}}
    pool = decode({"metadata": metadata, "spec": {"template": template}}, NodePool)
    assert nodepool_hash(pool) == (written if kept else hashed())
