"""Manifests for a cloud that is not at hand, tried on a catalogue."""

import json
from pathlib import Path

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
spec: {role: nodes}
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
    assert "add --instance-types ec2/us-west-2" in result.output


def test_an_unknown_catalogue_is_refused_by_name(manifests: str) -> None:
    result = CliRunner().invoke(cli, ["catalog", "-f", manifests, "--instance-types", "ec2/mars-1"])

    assert result.exit_code == 1
    assert "mars-1" in result.output


@pytest.mark.parametrize(("kubelet", "pods"), [("", "29"), (", kubelet: {maxPods: 7, clusterDNS: [10.0.0.10]}", "7")])
def test_the_kubelet_settings_of_the_other_cloud_count(kubelet: str, pods: str, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(POOL.replace("role: nodes", f"role: nodes{kubelet}"))
    arguments = ["plan", "-f", str(tmp_path), "--instance-types", "ec2/us-west-2", "-o", "json"]

    (claim,) = json.loads(CliRunner().invoke(cli, arguments).stdout)["claims"]
    assert claim["allocatable"]["pods"] == pods


def test_kubelet_settings_that_make_no_sense_are_told(tmp_path: Path) -> None:
    kubelet = "kubelet: {evictionHard: {memory.available: banana}}"
    (tmp_path / "all.yaml").write_text(POOL.replace("role: nodes", kubelet))
    result = CliRunner().invoke(cli, ["plan", "-f", str(tmp_path), "--instance-types", "kwok"])

    assert result.exit_code == 1
    assert "EC2NodeClass main: spec.kubelet.evictionHard" in result.output
