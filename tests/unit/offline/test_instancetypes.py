"""Manifests for a cloud that is not at hand, tried on a catalogue."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from joiner.cli.main import cli

POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: aws}
spec:
  template:
    spec:
      requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}]
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: main}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: main}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
  role: nodes
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: web, image: web, resources: {requests: {cpu: "1", memory: 1Gi}}}]
"""


@pytest.fixture
def manifests(tmp_path: Path) -> str:
    (tmp_path / "all.yaml").write_text(POOL)
    return str(tmp_path)


def test_a_pool_of_another_cloud_buys_from_the_catalogue_that_was_named(manifests: str) -> None:
    result = CliRunner().invoke(cli, ["plan", "-f", manifests, "--instance-types", "ec2/us-west-2", "-o", "json"])

    (claim,) = json.loads(result.stdout)["claims"]
    assert claim["options"][0]["instanceType"] == "m5.large"


def test_the_catalogue_command_takes_it_too(manifests: str) -> None:
    result = CliRunner().invoke(cli, ["catalog", "-f", manifests, "--instance-types", "ec2/us-east-1", "-o", "json"])

    names = {each["name"] for each in json.loads(result.stdout)["nodePools"][0]["types"]}
    assert "m5.large" in names
    assert all(name.startswith("m5.") for name in names)


def test_without_it_the_message_says_how(manifests: str) -> None:
    result = CliRunner().invoke(cli, ["catalog", "-f", manifests])

    assert result.exit_code == 1
    assert "add --instance-types ec2/us-east-1 or ec2/us-west-2" in result.output


def test_an_unknown_catalogue_is_refused_by_name(manifests: str) -> None:
    result = CliRunner().invoke(cli, ["catalog", "-f", manifests, "--instance-types", "ec2/mars-1"])

    assert result.exit_code == 1
    assert "mars-1" in result.output


@pytest.mark.parametrize(("kubelet", "pods"), [("", "29"), ("kubelet: {maxPods: 7, clusterDNS: [10.0.0.10]}", "7")])
def test_the_kubelet_settings_of_the_other_cloud_count(kubelet: str, pods: str, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(POOL.replace("role: nodes", f"role: nodes\n  {kubelet}"))
    arguments = ["plan", "-f", str(tmp_path), "--instance-types", "ec2/us-west-2", "-o", "json"]

    (claim,) = json.loads(CliRunner().invoke(cli, arguments).stdout)["claims"]
    assert claim["allocatable"]["pods"] == pods


def test_kubelet_settings_that_make_no_sense_are_told(tmp_path: Path) -> None:
    kubelet = "kubelet: {evictionHard: {memory.available: banana}}"
    (tmp_path / "all.yaml").write_text(POOL.replace("role: nodes", f"role: nodes\n  {kubelet}"))
    result = CliRunner().invoke(cli, ["plan", "-f", str(tmp_path), "--instance-types", "kwok"])

    assert result.exit_code == 1
    assert "EC2NodeClass/main: spec.kubelet.evictionHard" in result.output


RESERVED = POOL.replace("role: nodes", "role: nodes\n  capacityReservationSelectorTerms: [{id: cr-1}]")
RESERVATIONS = {
    "CapacityReservations": [
        {
            "CapacityReservationId": "cr-1",
            "InstanceType": "m5.2xlarge",
            "AvailabilityZone": "us-east-1b",
            "AvailableInstanceCount": 1,
        }
    ]
}


def plan(folder: Path, *more: str) -> tuple[dict[str, Any], str]:
    arguments = ["plan", "-f", str(folder / "all.yaml"), "--instance-types", "ec2/us-east-1", "-o", "json", *more]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), result.stderr


def test_reservations_of_an_ec2_class_are_planned_with_when_their_counts_are_given(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(RESERVED)
    (tmp_path / "reservations.json").write_text(json.dumps(RESERVATIONS))
    without, told = plan(tmp_path)
    given, silent = plan(tmp_path, "--capacity-reservations", str(tmp_path / "reservations.json"))

    assert "spec.capacityReservationSelectorTerms is not used" in told
    assert "capacityReservationSelectorTerms" not in silent
    assert [claim["options"][0]["capacityType"] for claim in without["claims"]] == ["spot"]
    option = given["claims"][0]["options"][0]
    assert (option["instanceType"], option["capacityType"]) == ("m5.2xlarge", "reserved")


def test_reservations_in_the_status_count_as_well(tmp_path: Path) -> None:
    status = """
status:
  subnets: [{id: subnet-1, zone: us-east-1b, zoneID: use1-az1}]
  capacityReservations:
    - {id: cr-1, instanceType: m5.2xlarge, availabilityZone: us-east-1b, availableInstanceCount: 1}
---
apiVersion: v1
"""
    (tmp_path / "all.yaml").write_text(RESERVED.replace("\n---\napiVersion: v1\n", status))
    given, told = plan(tmp_path)

    assert given["claims"][0]["options"][0]["capacityType"] == "reserved"
    assert "subnetSelectorTerms" not in told


def test_volumes_of_an_ec2_class_count(tmp_path: Path) -> None:
    mapping = "blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 200Gi}}]"
    (tmp_path / "all.yaml").write_text(
        POOL.replace("role: nodes", f"role: nodes\n  {mapping}").replace(
            "memory: 1Gi", "memory: 1Gi, ephemeral-storage: 50Gi"
        )
    )
    given, _ = plan(tmp_path)

    assert len(given["claims"]) == 1


def test_fields_that_need_an_account_are_told_in_a_line_each(tmp_path: Path) -> None:
    unread = """role: nodes
  amiFamily: AL2
  userData: "--max-pods 7"
  placementGroupSelector: {name: close}
  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {snapshotID: snap-1}}]"""
    text = POOL.replace("role: nodes", unread).replace("{alias: al2023@latest}", "{id: ami-1}")
    (tmp_path / "all.yaml").write_text(text)
    _, told = plan(tmp_path)

    for field in (
        "subnetSelectorTerms", "amiSelectorTerms", "userData", "placementGroupSelector", "blockDeviceMappings"
    ):  # fmt: skip
        assert told.count(f"EC2NodeClass main: spec.{field} is not used") == 1, field


def test_a_class_says_its_region_with_its_status(tmp_path: Path) -> None:
    status = "\nstatus: {subnets: [{id: subnet-1, zone: us-west-2b, zoneID: usw2-az1}]}\n---\napiVersion: v1\n"
    (tmp_path / "all.yaml").write_text(POOL.replace("\n---\napiVersion: v1\n", status))

    result = CliRunner().invoke(cli, ["plan", "-f", str(tmp_path), "-o", "json"])

    assert result.exit_code == 0, result.output
    options = json.loads(result.stdout)["claims"][0]["options"]
    assert {option["zone"] for option in options} == {"us-west-2b"}


def test_the_names_of_eks_auto_mode_choose_types_as_those_of_karpenter_do(tmp_path: Path) -> None:
    auto = POOL.replace("karpenter.k8s.aws/instance-family", "eks.amazonaws.com/instance-family").replace("m5", "c6a")
    chosen = auto.replace("  containers", '  nodeSelector: {eks.amazonaws.com/instance-cpu: "4"}\n  containers')
    (tmp_path / "all.yaml").write_text(chosen)

    result = CliRunner().invoke(cli, ["plan", "-f", str(tmp_path), "--instance-types", "ec2/us-west-2", "-o", "json"])

    (claim,) = json.loads(result.stdout)["claims"]
    assert [option["instanceType"] for option in claim["options"]] == ["c6a.xlarge"]
    assert "warning" not in result.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("ec2/us-eat-1", "did you mean ec2/us-east-1?"),
        ("nofile.json", "--instance-types: there is no catalogue or file nofile.json"),
    ],
)
def test_a_catalogue_that_is_not_there_is_blamed_on_the_option(given: str, said: str, manifests: str) -> None:
    result = CliRunner().invoke(cli, ["plan", "-f", manifests, "--instance-types", given])

    assert result.exit_code == 1
    assert said in result.output
    assert "spec.instanceTypes" not in result.output


def test_a_group_that_is_not_that_of_the_kind_is_corrected(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(POOL.replace("group: karpenter.k8s.aws", "group: karpenter.k8s.awss"))

    alone = CliRunner().invoke(cli, ["plan", "-f", str(tmp_path)])
    tried = CliRunner().invoke(cli, ["plan", "-f", str(tmp_path), "--instance-types", "ec2/us-east-1"])

    assert "write spec.template.spec.nodeClassRef.group: karpenter.k8s.aws" in alone.output
    assert "kwok" not in alone.output
    assert "there is no EC2NodeClass main of karpenter.k8s.awss in these files" in tried.stderr


GCE = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gce}
spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.gcp, kind: GCENodeClass, name: main}}}}
---
apiVersion: karpenter.k8s.gcp/v1
kind: GCENodeClass
metadata: {name: main}
spec: {role: nodes, tags: {a: b}, subnetSelectorTerms: [{id: s}], blockDeviceMappings: [], fantasy: 1}
"""


def test_fields_of_the_other_cloud_that_would_change_a_plan_are_named(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(GCE)
    arguments = ["plan", "-f", str(tmp_path), "--instance-types", "ec2/us-west-2", "-o", "json"]

    def fields(*given: str) -> list[str]:
        return [each["field"] for each in json.loads(CliRunner().invoke(cli, [*arguments, *given]).stdout)["ignored"]]

    assert fields() == ["spec.blockDeviceMappings", "spec.fantasy", "spec.subnetSelectorTerms"]
    assert fields("--zones", "us-west-2a") == ["spec.blockDeviceMappings", "spec.fantasy"]
