"""What the kubelet keeps back."""

import pytest

from joiner.model import kubelet
from joiner.model.codec import decode
from joiner.model.kubelet import Kubelet
from joiner.model.quantity import QuantityError, parse
from joiner.model.resources import EPHEMERAL_STORAGE, MEMORY


@pytest.mark.parametrize(
    ("text", "capacity", "amount"),
    [
        ("100Mi", "4Gi", "100Mi"),
        ("10%", "1000", "100"),
        ("5%", "101", "6"),
        ("0.5%", "1000", "5"),
        ("0%", "1000", "0"),
        ("100%", "1000", "0"),
        (0, "1000", "0"),
    ],
)
def test_a_threshold_is_an_amount_or_a_share_rounded_up(text: str | int, capacity: str, amount: str) -> None:
    assert kubelet.threshold(text).amount_of(parse(capacity)) == parse(amount)


@pytest.mark.parametrize("text", ["101%", "-1%", "x%", "%", "1.23456%", "1e1%", "-5Mi", "5MB"])
def test_other_thresholds_are_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        kubelet.threshold(text)


def test_both_spellings_of_thresholds_are_read_and_the_kubelets_own_wins() -> None:
    block = decode(
        {
            "evictionHard": {"memory.available": "200Mi", "pid.available": "10%"},
            "evictionThreshold": {"hard": {"memoryAvailable": "100Mi", "nodefsAvailable": "10%"}},
        },
        Kubelet,
    )

    assert block.hard_thresholds() == {MEMORY: kubelet.threshold("200Mi"), EPHEMERAL_STORAGE: kubelet.threshold("10%")}


def test_soft_thresholds_take_nothing_from_pods() -> None:
    block = decode(
        {"evictionSoft": {"memory.available": "1Gi"}, "evictionThreshold": {"soft": {"memoryAvailable": "1Gi"}}},
        Kubelet,
    )

    assert block.hard_thresholds() == {}


@pytest.mark.parametrize(
    ("raw", "cpu", "pods"),
    [
        ({}, "4", None),
        ({"maxPods": 50}, "4", "50"),
        ({"podsPerCore": 10}, "4", "40"),
        ({"podsPerCore": 10, "maxPods": 30}, "4", "30"),
        ({"podsPerCore": 10}, "1900m", "10"),
        ({"podsPerCore": 0, "maxPods": 30}, "4", "30"),
    ],
    ids=str,
)
def test_the_smaller_cap_on_pods_holds(raw: object, cpu: str, pods: str | None) -> None:
    assert decode(raw, Kubelet).pods_limit(parse(cpu)) == (None if pods is None else parse(pods))
