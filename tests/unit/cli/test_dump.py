"""`joiner dump`, completion and exit codes: what surrounds the commands."""

import re
import shlex

import pytest
from click.testing import CliRunner

from joiner.cli.main import cli
from joiner.offline.manifests import KUBERNETES


def words(*arguments: str) -> list[str]:
    return shlex.split(CliRunner().invoke(cli, ["dump", *arguments]).stdout)


def test_every_kind_of_kubernetes_that_plans_read_is_dumped() -> None:
    kubectl, get, kinds, *rest = words()

    assert (kubectl, get, rest) == ("kubectl", "get", ["--all-namespaces", "-o", "yaml"])
    assert {name.partition(".")[0] for name in kinds.split(",")} == {
        *(kind.plural for kind in KUBERNETES),
        "nodepools",
        "nodeclaims",
    }
    assert "daemonsets.apps" in kinds.split(",")


def test_kinds_that_not_every_cluster_has_are_dumped_when_asked_for() -> None:
    assert "nodeoverlays.karpenter.sh" not in words()[2]
    assert {"nodeoverlays.karpenter.sh", "kwoknodeclasses.karpenter.kwok.sh"} <= set(words("--all")[2].split(","))


def test_the_context_of_kubectl_can_be_named() -> None:
    assert words("--context", "a b")[:4] == ["kubectl", "--context", "a b", "get"]


@pytest.mark.parametrize(("typed", "names"), [("ec2/us-e", ["ec2/us-east-1"]), ("kw", ["kwok"])])
def test_names_of_catalogues_are_completed(typed: str, names: list[str]) -> None:
    variables = {
        "_JOINER_COMPLETE": "bash_complete",
        "COMP_WORDS": f"joiner plan --instance-types {typed}",
        "COMP_CWORD": "3",
    }
    result = CliRunner().invoke(cli, [], env=variables, prog_name="joiner", complete_var="_JOINER_COMPLETE")

    assert [line.partition(",")[2] for line in result.output.split()] == names


@pytest.mark.parametrize("code", ["70", "130", "141"])
def test_the_help_has_every_exit_code(code: str) -> None:
    assert re.search(rf"\n +{code}  ", CliRunner().invoke(cli, ["--help"]).output)
