"""Budgets of pods, and the small questions to nodes."""

import pytest

from joiner.model import node as nodes
from joiner.model.codec import decode
from joiner.model.node import Node
from joiner.model.podpolicy import PodDisruptionBudget


@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        ({"maxUnavailable": 0}, True),
        ({"maxUnavailable": "0%"}, True),
        ({"minAvailable": "100%"}, True),
        ({"maxUnavailable": 1}, False),
        ({"maxUnavailable": "10%"}, False),
        ({"minAvailable": 3}, False),
        ({}, False),
    ],
    ids=str,
)
def test_some_budgets_never_let_a_pod_go(spec: object, answer: bool) -> None:
    assert decode({"spec": spec}, PodDisruptionBudget).never_allows is answer


def test_unready_pods_may_be_outside_the_protection() -> None:
    allowing = decode({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}, PodDisruptionBudget)

    assert allowing.lets_unready_go
    assert not PodDisruptionBudget().lets_unready_go


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", False)])
def test_a_node_is_ready_when_it_says_so(status: str, ready: bool) -> None:
    assert nodes.is_ready(decode({"status": {"conditions": [{"type": "Ready", "status": status}]}}, Node)) is ready


def test_a_silent_node_is_not_ready() -> None:
    assert not nodes.is_ready(Node())
