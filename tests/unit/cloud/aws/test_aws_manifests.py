"""Manifests with the fields that public examples have: they pass unchanged, or are refused as an API server would refuse them.

Each was written for these tests after examples of Karpenter's documentation and of public repositories.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from joiner.cli.main import cli

FILES = sorted((Path(__file__).parents[3] / "data/ec2nodeclasses").glob("*.yaml"))
GOOD: dict[str, Any] = {
    "role": "nodes",
    "amiSelectorTerms": [{"alias": "al2023@latest"}],
    "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
    "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
}


@pytest.mark.parametrize("path", FILES, ids=lambda each: each.stem)
def test_what_users_write_passes_unchanged(path: Path) -> None:
    done = CliRunner().invoke(cli, ["validate", "-f", str(path)])

    assert done.exit_code == 0, done.output
    assert "no problems" in done.output


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "role and instanceProfile": ({"instanceProfile": "x"}, "exclude each other"),
    "neither": ({"role": None}, "write the role"),
    "an image without a family": ({"amiSelectorTerms": [{"id": "ami-1"}]}, "amiFamily"),
    "an alias and a name": ({"amiSelectorTerms": [{"alias": "al2023@latest"}, {"name": "x"}]}, "an alias stands alone"),
    "an alias of no family": ({"amiSelectorTerms": [{"alias": "ubuntu@latest"}]}, "the family of an alias is one of"),
    "another family than the alias": ({"amiFamily": "Bottlerocket"}, "family of the alias"),
    "Windows": ({"amiSelectorTerms": [{"alias": "windows2022@latest"}]}, "Windows nodes are not supported"),
    "an id with tags": ({"subnetSelectorTerms": [{"id": "subnet-1", "tags": {"a": "b"}}]}, "id stands alone"),
    "an empty term": ({"securityGroupSelectorTerms": [{}]}, "selected by tags, by id or by name"),
    "no terms": ({"subnetSelectorTerms": []}, "subnetSelectorTerms"),
    "a tag of ours": ({"tags": {"karpenter.sh/nodepool": "x"}}, "karpenter.sh/nodepool"),
    "two root volumes": (
        {"blockDeviceMappings": [
            {"deviceName": name, "rootVolume": True, "ebs": {"volumeSize": "20Gi"}} for name in ("/dev/a", "/dev/b")
        ]}, "only one volume",
    ),
    "a size that is none": ({"blockDeviceMappings": [{"ebs": {"volumeSize": "20 GB"}}]}, "a size like 100Gi"),
    "too many hops": ({"metadataOptions": {"httpPutResponseHopLimit": 65}}, "httpPutResponseHopLimit"),
    "a reservation by id and tags": (
        {"capacityReservationSelectorTerms": [{"id": "cr-1", "tags": {"a": "b"}}]}, "id stands alone"
    ),
    "a placement group by name and id": ({"placementGroupSelector": {"name": "a", "id": "pg-1"}}, "write one of them"),
    "interfaces without a first": (
        {"networkInterfaces": [{"networkCardIndex": 1, "deviceIndex": 0, "interfaceType": "interface"}]}, "the first interface"
    ),
    "an unknown setting of the kubelet": ({"kubelet": {"maxPodz": 5}}, "maxPods"),
    "a kubelet setting that only AL2023 takes": (
        {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}], "kubelet": {"serializeImagePulls": False}},
        "Bottlerocket does not take",
    ),
    "a number of pods as a rule": ({"kubelet": {"maxPods": "min(110, max_pods)"}}, "whole number"),
    "a tag of the cluster": ({"tags": {"kubernetes.io/cluster/prod": "owned"}}, "kubernetes.io/cluster"),
    "a role that YAML reads as no": ({"role": False}, "put it in quotes"),
    "a grace period without a threshold": ({"kubelet": {"evictionSoftGracePeriod": {"memory.available": "1m"}}}, "evictionSoft"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "words"), REFUSED.values(), ids=REFUSED)
def test_what_an_api_server_would_refuse_is_refused_with_the_reason(
    spec: dict[str, Any], words: str, tmp_path: Path
) -> None:
    whole = {key: value for key, value in {**GOOD, **spec}.items() if value is not None}
    path = tmp_path / "class.yaml"
    path.write_text(
        json.dumps(
            {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "a"}, "spec": whole}
        )
    )
    done = CliRunner().invoke(cli, ["validate", "-f", str(path)])

    assert done.exit_code != 0
    assert words in " ".join(done.output.split())
