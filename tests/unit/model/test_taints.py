"""Taints and tolerations."""

import pytest

from joiner.model import taints
from joiner.model.taints import Taint, Toleration

GPU = Taint(key="gpu", effect="NoSchedule", value="yes")


@pytest.mark.parametrize(
    ("toleration", "answer"),
    [
        (Toleration(key="gpu", value="yes", effect="NoSchedule"), True),
        (Toleration(key="gpu", value="yes"), True),
        (Toleration(key="gpu", operator="", value="yes"), True),
        (Toleration(key="gpu", value="no"), False),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="cpu", operator="Exists"), False),
        (Toleration(key="gpu", operator="Gt", value="yes"), False),
    ],
    ids=[
        "all fields",
        "any effect",
        "equal by default",
        "other value",
        "exists",
        "all",
        "effect",
        "key",
        "unknown operator",
    ],
)
def test_a_toleration_covers_a_taint(toleration: Toleration, answer: bool) -> None:
    assert toleration.tolerates(GPU) is answer


@pytest.mark.parametrize(
    ("taint", "answer"),
    [
        (Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"), True),
        (Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"), True),
        (Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"), False),
        (Taint(key="node.cloudprovider.kubernetes.io/uninitialized", effect="NoSchedule"), True),
        (Taint(key="readiness.k8s.io/network", effect="NoSchedule"), True),
        (taints.UNREGISTERED, True),
        (taints.DISRUPTED, False),
        (taints.REBOOTING, False),
        (GPU, False),
    ],
    ids=lambda value: value.key + value.effect if isinstance(value, Taint) else str(value),
)
def test_some_taints_go_away_by_themselves(taint: Taint, answer: bool) -> None:
    assert taints.is_ephemeral(taint) is answer


def test_key_and_effect_make_a_taint() -> None:
    assert taints.same(GPU, Taint(key="gpu", effect="NoSchedule"))
    assert not taints.same(GPU, Taint(key="gpu", effect="NoExecute", value="yes"))


def test_what_is_not_tolerated_keeps_a_pod_away() -> None:
    assert taints.untolerated((GPU, taints.DISRUPTED), (Toleration(key="gpu", operator="Exists"),)) == (
        taints.DISRUPTED,
    )


def test_merging_keeps_the_first_value() -> None:
    other = Taint(key="gpu", effect="NoSchedule", value="no")

    assert taints.merged((GPU,), (other, taints.DISRUPTED)) == (GPU, taints.DISRUPTED)


def test_removing_goes_by_key_and_effect() -> None:
    other = Taint(key="gpu", effect="NoSchedule", value="no")

    assert taints.without((GPU, taints.DISRUPTED), (other,)) == (taints.DISRUPTED,)
