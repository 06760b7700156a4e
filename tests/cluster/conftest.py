"""A cluster of its own for Joiner, the chart's permissions in it, and Joiner itself as a process."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.case import Case
from tests.cluster.controller import USER, Controller
from tests.realcluster import kept
from tools.controlplane.binaries import binaries
from tools.controlplane.cluster import Cluster
from tools.controlplane.toolchain import KUBERNETES, CannotBuild

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "joiner"
STAGES = Path(__file__).parent / "stages.yaml"
GATES = ("nodeRepair", "staticCapacity", "capacityBuffer")


def helm(*arguments: str) -> str:
    """What a real helm prints."""
    try:
        program = binaries("helm") / "helm"
    except CannotBuild as error:
        pytest.fail(f"There is no helm: {error}", pytrace=False)
    answer = subprocess.run([str(program), *arguments], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def rendered(*flags: str, namespace: str = "kube-system") -> list[Any]:
    """The objects of the chart."""
    text = helm("template", "joiner", str(CHART), "--namespace", namespace, "--kube-version", KUBERNETES, *flags)
    return [each for each in yaml.safe_load_all(text) if each]


def permissions(provider: str = "kwok") -> list[Any]:
    """What the chart grants, with the feature gates that the cases use; without the role for people."""
    flags = [flag for gate in GATES for flag in ("--set", f"settings.featureGates.{gate}=true")]
    flags += ["--set", f"settings.provider={provider}"]
    kinds = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    return [each for each in rendered(*flags) if each["kind"] in kinds and each["metadata"]["name"] == "joiner"]


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """The cluster that Joiner runs in, with the permissions of the chart and a NodeClass."""
    found = kept(request, tmp_path_factory, "joiner", "--audited", USER, "--stages", str(STAGES))
    for each in permissions():
        found.apply(each)
    found.apply(
        {
            "apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass",
            "metadata": {"name": "default"},
            "spec": {},
        }
    )
    return found


@pytest.fixture(scope="session")
def joiner(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """Joiner, running for all cases. One that kills it starts it again."""
    controller = Controller(cluster, tmp_path_factory.mktemp("joiner"))
    controller.start()
    yield controller
    controller.stop()


@pytest.fixture
def case(cluster: Cluster, joiner: Controller, request: pytest.FixtureRequest) -> Iterator[Case]:
    """A namespace and a NodePool of its own; what it made is gone afterwards."""
    name = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
    made = Case(cluster, name[-40:].strip("-"))  # the end tells cases of one test apart
    yield made
    made.close()
