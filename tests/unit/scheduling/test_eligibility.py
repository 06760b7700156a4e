"""Pods that are not tried at all."""

from typing import Any

import pytest
from tests.builders import node_pool, pod, problem, requirement

from joiner.model.labels import ARCH, HOSTNAME, NODEPOOL, ZONE
from joiner.scheduling.schedule import schedule


def required(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    term = {"matchExpressions": list(rows), **more}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"affinity": required(requirement(NODEPOOL, "DoesNotExist"))}, "not for us"),
        ({"nodeSelector": {"karpenter.sh/initialized": "true"}}, "restricted"),
        ({"nodeSelector": {"not a key": "x"}}, "not a key"),
        ({"nodeSelector": {"example.com/team": "not a value!"}}, "not a value!"),
        ({"affinity": required(requirement("example.com/n", "Gt", "many"))}, "needs exactly one integer"),
        ({"affinity": required(requirement("example.com/n", "Lt", "1", "2"))}, "needs exactly one integer"),
        (
            {"affinity": required(matchFields=[requirement("metadata.name", "In", "node-a")])},
            "matchFields",
        ),
    ],
    ids=["not for us", "restricted label", "bad key", "bad value", "no number", "two numbers", "matchFields"],
)
def test_a_pod_that_is_not_for_us_or_makes_no_sense_is_ignored(spec: dict[str, Any], words: str) -> None:
    plan = schedule(problem([pod("odd", **spec), pod("fine")]))

    assert [(each.pod, each.ignored) for each in plan.refusals] == [("default/odd", True)]
    assert words in str(plan.refusals[0])
    assert [claim.pods for claim in plan.claims] == [("default/fine",)]


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"beta.kubernetes.io/arch": "amd64"}},
        {"nodeSelector": {ARCH: "amd64", ZONE: "a", NODEPOOL: "default"}},
        {"affinity": required(requirement(NODEPOOL, "Exists"))},
        {"affinity": required(requirement("example.com/n", "DoesNotExist"))},
    ],
    ids=["an old spelling", "well-known labels", "any pool", "a label that is not there"],
)
def test_sound_pods_are_tried(spec: dict[str, Any]) -> None:
    assert not schedule(problem([pod(**spec)], node_pool())).refusals


def test_a_pod_that_names_a_host_nobody_has_is_told_so() -> None:
    plan = schedule(problem([pod(nodeSelector={HOSTNAME: "node-a"})]))

    assert len(plan.refusals) == 1


def test_a_mistyped_label_of_ours_is_answered_with_the_right_one() -> None:
    plan = schedule(problem([pod(nodeSelector={"karpenter.sh/capacity-typ": "spot"})]))

    assert plan.refusals[0].reasons[0].hint == "did you mean karpenter.sh/capacity-type?"
