"""`joiner dump`, completion and exit codes: what surrounds the commands."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from joiner.cli.main import cli
from joiner.offline.manifests import KUBERNETES

KUBECTL = """\
#!/bin/sh
case "$*" in
  *api-resources*) printf '%s\\n' pods nodepools.karpenter.sh ec2nodeclasses.karpenter.k8s.aws widgets.example.com ;;
  *) printf '%s\\n' "$@" ;;
esac
"""
"""Stands in for kubectl: a cluster with Karpenter, and none of the kinds that only Joiner has."""


def asked(folder: Path, *arguments: str, there: str = KUBECTL) -> list[str]:
    """What kubectl is asked for by the shell that runs the line."""
    line = CliRunner().invoke(cli, ["dump", *arguments]).stdout
    program = folder / "kubectl"
    program.write_text(there, encoding="utf-8")
    program.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    ended = subprocess.run(["sh", "-ec", line], env={"PATH": path}, capture_output=True, text=True, check=True)
    return ended.stdout.splitlines()


def test_every_kind_of_kubernetes_that_plans_read_is_dumped(tmp_path: Path) -> None:
    get, kinds, *rest = asked(tmp_path)

    assert (get, rest) == ("get", ["--all-namespaces", "-o", "yaml"])
    assert {kind.plural for kind in KUBERNETES} <= {name.partition(".")[0] for name in kinds.split(",")}
    assert "daemonsets.apps" in kinds.split(",")


def test_of_other_kinds_those_that_the_cluster_has_are_dumped(tmp_path: Path) -> None:
    own = [name for name in asked(tmp_path)[1].split(",") if "." in name and not name.endswith((".k8s.io", ".apps"))]

    assert {"nodepools.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"} <= set(own)
    assert not {"instancetypes.karpenter.sh", "kwoknodeclasses.karpenter.kwok.sh", "widgets.example.com"} & set(own)


def test_a_cluster_without_such_kinds_is_dumped_all_the_same(tmp_path: Path) -> None:
    kinds = asked(tmp_path, there=KUBECTL.replace("nodepools.karpenter.sh ec2nodeclasses.karpenter.k8s.aws", ""))[1]

    assert all(kinds.split(","))


def test_the_context_of_kubectl_can_be_named(tmp_path: Path) -> None:
    assert asked(tmp_path, "--context", "a b")[:3] == ["--context", "a b", "get"]


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
