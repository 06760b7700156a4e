"""How many replicas autoscaled workloads are planned for with."""

from typing import Any

import pytest

from joiner.model.codec import decode
from joiner.model.workload import Deployment, HorizontalPodAutoscaler
from joiner.offline.workloads.autoscalers import Autoscalers, Load
from joiner.offline.workloads.expand import wanted


def deployment(**spec: Any) -> Deployment:
    return decode({"metadata": {"name": "web", "namespace": "default"}, "spec": spec}, Deployment)


def autoscaler(name: str = "web", namespace: str = "default") -> HorizontalPodAutoscaler:
    target = {"kind": "Deployment", "name": name}
    spec = {"scaleTargetRef": target, "minReplicas": 6, "maxReplicas": 30}
    return decode({"metadata": {"name": "hpa", "namespace": namespace}, "spec": spec}, HorizontalPodAutoscaler)


@pytest.mark.parametrize(
    ("spec", "load", "replicas"),
    [
        ({}, "stated", 6),
        ({"replicas": 9}, "stated", 9),
        ({"replicas": 50}, "stated", 30),
        ({"replicas": 9}, "min", 6),
        ({"replicas": 9}, "max", 30),
        ({"replicas": 0}, "max", 0),
    ],
    ids=["none stated", "within the bounds", "above them", "minimum", "maximum", "switched off"],
)
def test_replicas_are_within_the_bounds_of_the_autoscaler(spec: dict[str, Any], load: Load, replicas: int) -> None:
    scaled = Autoscalers([autoscaler()], load).scaled(deployment(**spec))

    assert wanted(scaled) == replicas


@pytest.mark.parametrize("other", [autoscaler("api"), autoscaler(namespace="prod")], ids=["another name", "elsewhere"])
def test_an_autoscaler_scales_only_its_target(other: HorizontalPodAutoscaler) -> None:
    autoscalers = Autoscalers([other], "max")

    assert wanted(autoscalers.scaled(deployment(replicas=2))) == 2
    assert not autoscalers.notes


def test_another_number_than_the_stated_one_is_told() -> None:
    autoscalers = Autoscalers([autoscaler()], "stated")
    autoscalers.scaled(deployment())

    assert autoscalers.notes == [
        "Deployment web is planned for with 6 replicas, not 1: HorizontalPodAutoscaler hpa keeps it between 6 and 30"
    ]
