"""What was given, is not used and could change the answer is named, grouped, in every command, and is in the data."""

import json
from typing import Any

import pytest
from click.testing import CliRunner
from tests.unit.cli.test_plan_command import POOL, deployment, pod

from joiner.cli.main import cli
from joiner.offline import ignored
from joiner.offline.ignored import Ignored
from joiner.offline.manifests import KUBERNETES


def thing(kind: str, version: str = "example.com/v1", name: str = "x", **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more}


def webhook(*resources: str) -> dict[str, Any]:
    hooks = [{"name": "a", "rules": [{"resources": list(resources)}]}]
    return thing("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1", webhooks=hooks)


def told(*others: dict[str, Any]) -> tuple[str, ...]:
    return ignored.lines(ignored.objects(others, KUBERNETES))


# -- objects -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (thing("Rollout"), "Rollout x is passed over: plans do not read such objects"),
        (thing("Deploymet", "apps/v1"), "did you mean Deployment?"),
        (thing("Deployment", "apps/v1beta1"), "its apiVersion is apps/v1beta1; only apps/v1 is read"),
        (thing("Application", "argoproj.io/v1alpha1"), "render it and give the manifests"),
        (webhook("pods"), "sidecars it adds, is not planned for"),
        (thing("Prometheus", "monitoring.coreos.com/v1"), "Prometheus x is passed over"),
    ],
)
def test_an_object_that_might_matter_is_named(given: dict[str, Any], said: str) -> None:
    (line,) = told(given)

    assert said in line


def test_a_longer_name_is_no_misspelling() -> None:
    assert "did you mean" not in told(thing("FlinkDeployment"))[0]


@pytest.mark.parametrize(
    "given",
    [
        thing("ConfigMap", "v1"),
        thing("ServiceMonitor", "monitoring.coreos.com/v1"),
        thing("Certificate", "cert-manager.io/v1"),
        thing("EC2NodeClass", "karpenter.k8s.aws/v1"),
        webhook("certificates"),
        thing("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1", webhooks=[7, {"rules": "a"}]),
    ],
    ids=lambda given: given["kind"],
)
def test_what_does_not_matter_is_passed_over_in_silence(given: dict[str, Any]) -> None:
    assert told(given) == ()


def test_many_kinds_that_are_not_read_share_a_line() -> None:
    lines = told(*(thing(f"Kind{number}", name=f"n{copy}") for number in range(9) for copy in range(5)))

    assert len(lines) == 1
    assert lines[0].startswith("45 objects of 9 kinds are passed over: ")
    assert "Kind0 n0, n1, n2 and 2 more; " in lines[0]
    assert lines[0].endswith("; and 3 more kinds")


# -- fields --------------------------------------------------------------------------------------------------------------


def spec(**more: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c"}], **more}}}}


FIELDS: list[tuple[dict[str, Any], str]] = [
    (thing("Deployment", "apps/v1", **spec(schedulerName="mine")), "spec.template.spec.schedulerName"),
    (thing("Pod", "v1", spec={"schedulerName": "mine"}), "spec.schedulerName"),
    (thing("Deployment", "apps/v1", **spec(nodeName="n")), "spec.template.spec.nodeName"),
    (thing("ReplicaSet", "apps/v1", **spec(schedulingGates=[{"name": "g"}])), "spec.template.spec.schedulingGates"),
    (thing("DaemonSet", "apps/v1", **spec(os={"name": "windows"})), "spec.template.spec.os"),
    (
        thing("StatefulSet", "apps/v1", **spec(volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "v"}}])),
        "spec.template.spec.volumes.awsElasticBlockStore",
    ),
    (thing("Job", "batch/v1", spec={"managedBy": "kueue.x-k8s.io/multikueue"}), "spec.managedBy"),
    (thing("LimitRange", "v1", spec={"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}), "spec.limits of type Pod"),
    (thing("PersistentVolumeClaim", "v1", spec={"selector": {"matchLabels": {"a": "b"}}}), "spec.selector"),
    (
        {"kind": "Namespace", "metadata": {"name": "a", "labels": {"istio-injection": "enabled"}}},
        "the label istio-injection",
    ),
]


@pytest.mark.parametrize(("raw", "field"), FIELDS, ids=[field for _, field in FIELDS])
def test_a_field_that_plans_pass_over_is_named(raw: dict[str, Any], field: str) -> None:
    (found,) = ignored.fields(raw)

    assert (found.kind, found.field) == (raw["kind"], field)
    assert field in str(found)


@pytest.mark.parametrize(
    "raw",
    [
        thing("Deployment", "apps/v1", **spec(schedulerName="default-scheduler", volumes=[{"emptyDir": {}}])),
        thing("Job", "batch/v1", spec={"managedBy": "kubernetes.io/job-controller"}),
        thing("Pod", "v1", spec="text"),
        {"kind": "Namespace", "metadata": {"name": "a", "labels": {"istio-injection": "disabled"}}},
        {"kind": "LimitRange", "spec": {"limits": "none"}},
    ],
)
def test_what_is_as_usual_or_not_even_a_field_is_not_named(raw: dict[str, Any]) -> None:
    assert list(ignored.fields(raw)) == []


def test_the_same_field_of_many_objects_is_told_once() -> None:
    found = ignored.grouped(Ignored("Pod", (f"p{number}",), "why", "spec.a") for number in range(6))

    assert [str(each) for each in found] == ["Pod p0, p1, p2 and 3 more: spec.a is not used: why"]


# -- commands ------------------------------------------------------------------------------------------------------------

OTHERS = "apiVersion: example.com/v1\nkind: Rollout\nmetadata: {name: x}\n"
TYPO = POOL.replace("kubernetes.io/arch", "kubernetes.io/archh")


def data(*arguments: str, documents: tuple[str, ...]) -> tuple[dict[str, Any], str]:
    result = CliRunner().invoke(cli, [*arguments, "-f", "-", "-o", "json"], input="---\n".join(documents))
    return json.loads(result.stdout), result.stderr


@pytest.mark.parametrize("arguments", [("plan",), ("plan", "--explain", "p")])
def test_plans_have_the_same_as_data(arguments: tuple[str, ...]) -> None:
    other = pod("p").replace("spec: {", "spec: {schedulerName: mine, ")

    report, err = data(*arguments, documents=(TYPO, other, OTHERS))

    assert [(each["kind"], each["objects"], each["field"]) for each in report["ignored"]] == [
        ("Rollout", ["x"], None),
        ("Pod", ["p"], "spec.schedulerName"),
    ]
    assert [(each["severity"], each["nearest"]) for each in report["warnings"]] == [("warning", "kubernetes.io/arch")]
    assert all(
        note in report["notes"] for note in [line.removeprefix("note: ") for line in err.split("\n") if "note" in line]
    )


def test_the_catalogue_has_the_same_as_data() -> None:
    report, err = data(
        "catalog", documents=(TYPO, deployment().replace("containers", "schedulerName: mine, containers"))
    )

    assert report["findings"][0]["nearest"] == "kubernetes.io/arch"
    assert report["ignored"] == []
    assert "kubernetes.io/archh" in err


def test_validation_names_the_kinds_that_it_did_not_look_at() -> None:
    report, _ = data("validate", documents=(POOL, OTHERS, deployment("a"), deployment("b")))

    assert report["passedOver"] == {"Deployment": 2, "Rollout": 1}
    assert report["summary"]["passedOver"] == 3


def test_strict_validation_of_nothing_fails() -> None:
    assert CliRunner().invoke(cli, ["validate", "-f", "-"], input=deployment()).exit_code == 0
    assert CliRunner().invoke(cli, ["validate", "-f", "-", "--strict"], input=deployment()).exit_code == 1


def test_labels_of_which_no_type_says_anything_are_named() -> None:
    of_ec2 = "{key: karpenter.k8s.aws/instance-category, operator: In, values: [c]}"
    own = "{key: team, operator: In, values: [web]}"
    absent = "{key: karpenter.k8s.aws/instance-gpu-name, operator: DoesNotExist}"
    pool = POOL.replace("requirements:", f"requirements:\n      - {of_ec2}\n      - {own}\n      - {absent}")
    told, _ = data("plan", documents=(pool, deployment()))
    on_ec2, _ = data("plan", "--instance-types", "ec2/us-east-1", documents=(pool, deployment()))

    note = (
        "NodePool default: no instance type of this catalogue says anything of karpenter.k8s.aws/instance-category:"
        " requirements on such labels leave no type out"
    )
    assert note in told["notes"]
    assert not [each for each in on_ec2["notes"] if "says anything" in each]


@pytest.mark.parametrize("written", ["x86_64", "amd46"])
def test_values_that_no_type_has_are_named_with_those_there_are(written: str) -> None:
    pool = POOL.replace("values: [amd64]", f"values: [amd64, {written}]")
    report, _ = data("plan", documents=(pool, deployment()))

    assert (
        f"NodePool default: no instance type has kubernetes.io/arch {written}; there are amd64, arm64"
        in report["notes"]
    )
