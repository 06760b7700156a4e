"""Pods and what makes them, judged as an API server would."""

from typing import Any

import pytest

from joiner.admission.pods import problems, spec_problems
from joiner.model.codec import decode
from joiner.model.meta import KubeObject
from joiner.model.pod import Pod, PodSpec
from joiner.model.podpolicy import RuntimeClass
from joiner.model.workload import DaemonSet, Deployment, Job, PodTemplate, ReplicationController, StatefulSet

ZONE = "topology.kubernetes.io/zone"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NEGATIVE = {"containers": [{"resources": {"requests": {"cpu": "-1"}}}]}
SPREAD = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


def spread(**more: Any) -> dict[str, Any]:
    return {"topologySpreadConstraints": [{**SPREAD, **more}]}


def port(**more: Any) -> dict[str, Any]:
    return {"containers": [{"ports": [more]}]}


def near(**more: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, **more}]}}}


def liked(weight: int) -> dict[str, Any]:
    return {
        "affinity": {"podAntiAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": {"topologyKey": ZONE}}]}}
    }


def chosen(operator: str, *values: str) -> dict[str, Any]:
    return near(labelSelector={"matchExpressions": [{"key": "app", "operator": operator, "values": list(values)}]})


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("request", NEGATIVE, "containers[0].resources.requests.cpu: -1 is less than 0; 0 or more is allowed"),
    ("limit", {"initContainers": [{"resources": {"limits": {"memory": "-1Gi"}}}]},
     "initContainers[0].resources.limits.memory: -1Gi is less than 0"),
    ("of the pod", {"resources": {"requests": {"cpu": "-1m"}}}, "resources.requests.cpu: -1m is less than 0"),
    ("a request above its limit", {"containers": [{"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}}]},
     "containers[0].resources.requests.memory: 2Gi is more than the limit of 1Gi"),
    ("a device above its limit", {"initContainers": [{"resources": {"requests": {"a.b/c": 2}, "limits": {"a.b/c": 1}}}]},
     "initContainers[0].resources.requests[a.b/c]: 2 is more than the limit of 1"),
    ("overhead", {"overhead": {"a.b/c": "-2"}}, "overhead[a.b/c]: -2 is less than 0"),
    ("host port", port(hostPort=70000), "containers[0].ports[0].hostPort: 70000 is not between 1 and 65535"),
    ("protocol", port(hostPort=80, protocol="tcp"), "ports[0].protocol: 'tcp' is not one of the allowed values"),
    ("operator", {"tolerations": [{"key": "a", "operator": "Equals"}]},
     "tolerations[0].operator: 'Equals' is not one of the allowed values; did you mean Equal?"),
    ("effect", {"tolerations": [{"operator": "Exists", "effect": "Maybe"}]},
     "tolerations[0].effect: 'Maybe' is not one of the allowed values; allowed: NoSchedule, PreferNoSchedule, NoExecute"),
    ("a value for Exists", {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "takes no value"),
    ("no key", {"tolerations": [{"effect": "NoSchedule"}]}, "without a key the operator must be Exists"),
    ("skew", spread(maxSkew=0), "topologySpreadConstraints[0].maxSkew: 0 is less than 1; 1 or more is allowed"),
    ("when", spread(whenUnsatisfiable="Never"),
     "whenUnsatisfiable: 'Never' is not one of the allowed values; allowed: DoNotSchedule, ScheduleAnyway"),
    ("few domains", spread(minDomains=0), "minDomains: 0 is less than 1"),
    ("idle domains", spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway"), "goes only with whenUnsatisfiable"),
    ("no topology", spread(topologyKey=""), "topologySpreadConstraints[0].topologyKey: is missing"),
    ("affinity policy", spread(nodeAffinityPolicy="Yes"), "allowed: Honor, Ignore"),
    ("taints policy", spread(nodeTaintsPolicy="Honour"), "did you mean Honor?"),
    ("a term without topology", near(topologyKey=""), f"podAffinity.{REQUIRED}[0].topologyKey: is missing"),
    ("a weight too small", liked(0), f"podAntiAffinity.{PREFERRED}[0].weight: 0 is not between 1 and 100"),
    ("a weight of nodes", {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 101}]}}}, "101 is not between 1 and 100"),
    ("In without values", chosen("In"), "labelSelector.matchExpressions[0].values: operator In needs at least one value"),
    ("Exists with values", chosen("Exists", "a"), "operator Exists takes no values"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "words"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_what_an_api_server_refuses_is_one_problem_with_its_place(spec: dict[str, Any], words: str) -> None:
    (problem,) = spec_problems(decode(spec, PodSpec))

    assert words in str(problem)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="nothing"),
        pytest.param(port(hostPort=80), id="a host port without a protocol"),
        pytest.param(port(containerPort=80, hostPort=0, protocol=""), id="no host port"),
        pytest.param({"tolerations": [{"operator": "Exists"}, {"key": "a", "operator": ""}]}, id="tolerations"),
        pytest.param({"tolerations": [{"key": "a", "operator": "Gt", "value": "1"}]}, id="an operator to come"),
        pytest.param(spread(minDomains=1), id="a spread"),
        pytest.param(liked(100), id="a weight"),
        pytest.param({"containers": [{"resources": {"requests": {"cpu": 0}}}]}, id="no amount"),
        pytest.param({"containers": [{"resources": {"requests": {"cpu": 1}, "limits": {"cpu": 1}}}]}, id="a limit"),
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": 1}, "limits": {"memory": 1}}}]}, id="of another"
        ),
    ],
)
def test_what_an_api_server_accepts_is_no_problem(spec: dict[str, Any]) -> None:
    assert not list(spec_problems(decode(spec, PodSpec)))


@pytest.mark.parametrize(
    ("kind", "raw", "path"),
    [
        (Pod, {"spec": NEGATIVE}, "spec.containers[0].resources.requests.cpu"),
        (
            Deployment,
            {"spec": {"template": {"spec": NEGATIVE}}},
            "spec.template.spec.containers[0].resources.requests.cpu",
        ),
        (DaemonSet, {"spec": {"template": {"spec": {}}}}, "spec.template.spec.containers"),
        (PodTemplate, {"template": {"spec": {}}}, "template.spec.containers"),
        (RuntimeClass, {"overhead": {"podFixed": {"cpu": "-1"}}}, "overhead.podFixed.cpu"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_pods_are_judged_wherever_they_are_made(kind: type[KubeObject], raw: dict[str, Any], path: str) -> None:
    assert [problem.path for problem in problems(decode(raw, kind))] == [path]


@pytest.mark.parametrize(
    ("kind", "field"), [(Deployment, "replicas"), (Job, "parallelism"), (Job, "completions")], ids=str
)
def test_nobody_makes_fewer_pods_than_none(kind: type[KubeObject], field: str) -> None:
    template = {"spec": {"containers": [{"name": "c"}]}}
    (problem,) = problems(decode({"spec": {field: -5, "template": template}}, kind))

    assert str(problem) == f"spec.{field}: -5 is less than 0; 0 or more is allowed"


@pytest.mark.parametrize(
    ("kind", "selector", "labels", "told"),
    [
        (Deployment, {"matchLabels": {"app": "a"}}, {"app": "b"}, "they are app=b"),
        (DaemonSet, {"matchLabels": {"app": "a"}}, {}, "they are none"),
        (ReplicationController, {"app": "a"}, {"app": "b"}, "they are app=b"),
        (ReplicationController, {}, {"app": "b"}, ""),
        (StatefulSet, {"matchLabels": {"app": "a"}}, {"app": "a", "tier": "db"}, ""),
        (Deployment, None, {"app": "a"}, ""),
    ],
)
def test_a_workload_chooses_the_pods_it_makes(
    kind: type[KubeObject], selector: Any, labels: dict[str, str], told: str
) -> None:
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c"}]}}
    found = [str(problem) for problem in problems(decode({"spec": {"selector": selector, "template": template}}, kind))]

    assert bool(found) == bool(told)
    assert all(told in problem and problem.startswith("spec.template.metadata.labels: ") for problem in found)


def test_every_problem_of_a_pod_is_told_at_once() -> None:
    spec = {**NEGATIVE, **spread(maxSkew=0, whenUnsatisfiable="Never"), "overhead": {"cpu": "-1"}}

    assert len(list(problems(decode({"spec": spec}, Pod)))) == 4
