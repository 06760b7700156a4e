"""The chart, rendered by a real helm and installed into the real API server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.conftest import CHART, helm, rendered
from tools.controlplane.cluster import Cluster

from joiner.cloud.aws import settings as aws_settings
from joiner.cloud.aws.settings import AwsSettings
from joiner.options import Options, flag_of

pytestmark = pytest.mark.cluster
NAMESPACE = "chart-joiner"


@pytest.fixture(scope="module")
def installed(real_cluster: Cluster) -> Iterator[Cluster]:
    where = ("--namespace", NAMESPACE, "--kubeconfig", str(real_cluster.kubeconfig))
    helm("install", "joiner", str(CHART), "--create-namespace", *where)
    yield real_cluster
    helm("uninstall", "joiner", *where)


def of(objects: list[Any], kind: str) -> Any:
    [found] = [each for each in objects if each["kind"] == kind]
    return found


def container(*flags: str) -> Any:
    [found] = of(rendered(*flags), "Deployment")["spec"]["template"]["spec"]["containers"]
    return found


def test_the_api_server_takes_every_object(installed: Cluster) -> None:
    for each in rendered(namespace=NAMESPACE):
        each["metadata"].setdefault("namespace", NAMESPACE)
        status, answer = installed.request("GET", installed.path_of(each))

        assert status == 200, answer
    role = installed.request("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/joiner")[1]
    assert not [rule for rule in role["rules"] if "*" in (*rule["verbs"], *rule["resources"], *rule["apiGroups"])]


def test_two_replicas_keep_apart_and_can_do_no_harm() -> None:
    objects = rendered()
    spec = of(objects, "Deployment")["spec"]
    pod = spec["template"]["spec"]
    own = of(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
    [apart] = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    [spread] = pod["topologySpreadConstraints"]

    assert spec["replicas"] == 2
    assert apart["labelSelector"]["matchLabels"] == spread["labelSelector"]["matchLabels"] == own
    assert own == spec["selector"]["matchLabels"] == of(objects, "Service")["spec"]["selector"]
    context = pod["containers"][0]["securityContext"]
    assert context["runAsNonRoot"] is context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert pod["priorityClassName"] == "system-cluster-critical"


KARPENTERS = {
    "podDisruptionBudget": {"name": "karpenter", "maxUnavailable": 1},
    "terminationGracePeriodSeconds": None,
    "logLevel": "info",
    "settings": {
        "batchMaxDuration": "10s",
        "batchIdleDuration": "1s",
        "preferencePolicy": "Respect",
        "minValuesPolicy": "Strict",
        "schedulerConfig": "podTopologySpread: {}",
        "clusterCABundle": "LS0t",
        "clusterName": "prod",
        "clusterEndpoint": "https://prod.example",
        "isolatedVPC": True,
        "eksControlPlane": False,
        "vmMemoryOverheadPercent": 0,
        "interruptionQueue": "prod",
        "reservedENIs": "1",
        "ignoreDRARequests": True,
        "disableClusterStateObservability": False,
        "disableDryRun": True,
        "featureGates": {"nodeRepair": True, "spotToSpotConsolidation": False, "drift": True},
    },
}
"""Values of Karpenter's chart for AWS."""


def test_values_of_karpenter_work_and_every_variable_is_one_that_joiner_reads(tmp_path: Path) -> None:
    known = {flag_of(name).upper().replace("-", "_") for name in Options.__dataclass_fields__}
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(KARPENTERS), encoding="utf-8")

    found = {each["name"]: each.get("value") for each in container("--values", str(values))["env"]}

    own = {
        "CLUSTER_CA_BUNDLE": "LS0t",
        "CLUSTER_NAME": "prod",
        "CLUSTER_ENDPOINT": "https://prod.example",
        "ISOLATED_VPC": "true",
        "VM_MEMORY_OVERHEAD_PERCENT": "0",
        "INTERRUPTION_QUEUE": "prod",
        "RESERVED_ENIS": "1",
        "DISABLE_DRY_RUN": "true",
    }
    assert {name: found[name] for name in own} == own
    assert found.keys() <= known | own.keys() | {"POD_NAME", "SYSTEM_NAMESPACE"}
    assert aws_settings.read(found) == AwsSettings(
        cluster_name="prod",
        cluster_endpoint="https://prod.example",
        cluster_ca_bundle="LS0t",
        isolated_vpc=True,
        vm_memory_overhead_percent=0.0,
        interruption_queue="prod",
        reserved_enis=1,
        disable_dry_run=True,
    )


def test_settings_that_only_a_cloud_has_are_not_given_to_kwok() -> None:
    names = {each["name"] for each in container()["env"]}

    assert "PLANNING_POLICY" in names
    assert not names & {"CLUSTER_NAME", "VM_MEMORY_OVERHEAD_PERCENT", "RESERVED_ENIS"}


def test_feature_gates_are_written_as_one_text() -> None:
    env = {
        each["name"]: each.get("value") for each in container("--set", "settings.featureGates.nodeRepair=true")["env"]
    }

    gates = dict(each.split("=") for each in env["FEATURE_GATES"].split(","))
    assert (gates["NodeRepair"], gates["StaticCapacity"]) == ("true", "false")


def test_a_provider_is_named_on_the_command_line() -> None:
    assert container()["args"] == ["run"]
    assert container("--set", "settings.provider=kwok")["args"] == ["run", "--provider=kwok"]


def test_a_service_monitor_comes_only_when_it_is_wanted() -> None:
    assert not [each for each in rendered() if each["kind"] == "ServiceMonitor"]
    assert of(rendered("--set", "serviceMonitor.enabled=true"), "ServiceMonitor")["spec"]["endpoints"]


@pytest.mark.parametrize(
    ("flag", "field"),
    [("replicsa=3", "replicsa"), ("settings.batchMaxDuration=soon", "batchMaxDuration"), ("logLevel=loud", "logLevel")],
)
def test_a_value_that_makes_no_sense_is_refused_by_name(flag: str, field: str) -> None:
    with pytest.raises(AssertionError, match=field):
        rendered("--set", flag)
