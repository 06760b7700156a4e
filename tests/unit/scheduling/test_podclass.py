"""Classes: pods that no rule can tell apart are one, however their cluster has marked them."""

from typing import Any

import pytest
from tests.builders import away_from, existing_node, pod, problem, spread_over

from joiner.model.pod import Pod
from joiner.scheduling.engine.prepared import PreparedProblem


def classes(*waiting: Pod, bound: tuple[Pod, ...] = ()) -> int:
    nodes = tuple(existing_node(each.spec.node_name) for each in bound)
    return len(PreparedProblem(problem(waiting, bound=bound, nodes=nodes)).classes)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"volumes": [{"name": "kube-api-access-4x2"}]}, {"volumes": [{"name": "kube-api-access-9k7"}]}, 1),
        ({"labels": {"app": "db", "pod-index": "0"}}, {"labels": {"app": "db", "pod-index": "1"}}, 1),
        ({"nodeName": "one-that-goes"}, {"nodeName": "another"}, 1),
        ({"nodeSelector": {"a": "1", "b": "2"}}, {"nodeSelector": {"b": "2", "a": "1"}}, 1),
        ({"affinity": {}, "resources": {}}, {}, 1),
        ({"cpu": "1"}, {"cpu": "2"}, 2),
        ({"claims": ["data-0"]}, {"claims": ["data-1"]}, 2),
        ({"namespace": "a"}, {"namespace": "b"}, 2),
    ],
    ids=[
        "names of volumes",
        "labels nobody looks at",
        "nodes they leave",
        "order",
        "what is empty",
        "amounts",
        "claims",
        "namespaces",
    ],
)
def test_pods_are_told_apart_by_what_rules_see(one: dict[str, Any], other: dict[str, Any], expected: int) -> None:
    assert classes(pod("a", **one), pod("b", **other)) == expected


COLOURS = [pod(colour, labels={"colour": colour}) for colour in ("red", "blue")]


@pytest.mark.parametrize(
    "asked",
    [
        {"topologySpreadConstraints": [spread_over("web", matchLabelKeys=["colour"])]},
        {"affinity": away_from("web", mismatchLabelKeys=["colour"])},
        {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"labelSelector": {"matchLabels": {"colour": "red"}}, "topologyKey": "zone"}}
        ]}}},
    ],
    ids=["spread", "anti-affinity", "a preference"],
)  # fmt: skip
def test_a_label_that_some_selector_looks_at_tells_pods_apart(asked: dict[str, Any]) -> None:
    assert classes(*COLOURS) == 1
    assert classes(*COLOURS, pod("other", cpu="2", **asked)) == 3


def test_a_pod_that_runs_and_keeps_others_away_looks_at_their_labels_too() -> None:
    keeper = pod("keeper", nodeName="node-a", affinity=away_from("web"))
    waiting = pod("a", labels={"app": "web"}), pod("b", labels={"app": "api"})

    assert classes(*waiting) == 1
    assert classes(*waiting, bound=(keeper,)) == 2
