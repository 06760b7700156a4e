"""Label selectors."""

import pytest

from joiner.model import selector
from joiner.model.codec import decode
from joiner.model.selector import LabelSelector

LABELS = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]}, True),
        ({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}, True),
    ],
    ids=str,
)
def test_a_selector_chooses_by_labels(raw: object, answer: bool) -> None:
    assert selector.chooses(decode(raw, LabelSelector), LABELS) is answer


def test_no_selector_chooses_nothing() -> None:
    assert not selector.chooses(None, LABELS)
