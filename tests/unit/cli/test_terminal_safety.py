"""What comes from a file never steers a terminal: control characters are spelled out in every form of output."""

import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.cli.test_plan_command import POOL

from joiner.cli.main import cli

HOSTILE = "x\\x1b]0;owned\\x07\\u009b31m\\u202e"
POD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: "web{HOSTILE}"}}
spec:
  nodeSelector: {{foo: "{HOSTILE}"}}
  containers: [{{name: web, resources: {{requests: {{cpu: "900"}}}}}}]
"""
UNKNOWN_KIND = f'apiVersion: karpenter.sh/v1\nkind: "NodePool{HOSTILE}"\nmetadata: {{name: a}}\n'
COMMANDS = {
    "plan": ["plan", "-f", "objects.yaml"],
    "plan as JSON": ["plan", "-f", "objects.yaml", "-o", "json"],
    "plan with costs and bound": ["plan", "-f", "objects.yaml", "--costs", "--bound"],
    "explain": ["plan", "-f", "objects.yaml", "--explain", "webx\x1b]0;owned\x07\x9b31m\u202e"],
    "explain a pod that is not there": ["plan", "-f", "objects.yaml", "--explain", "other"],
    "catalog of no pool": ["catalog", "-f", "pod.yaml"],
    "validate": ["validate", "kind.yaml"],
    "validate as JSON": ["validate", "kind.yaml", "-o", "json"],
    "plan for an unknown kind": ["plan", "-f", "kind.yaml"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_control_characters_of_a_file_are_spelled_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "objects.yaml").write_text(f"{POOL}---{POD}", encoding="utf-8")
    (tmp_path / "pod.yaml").write_text(POD, encoding="utf-8")
    (tmp_path / "kind.yaml").write_text(UNKNOWN_KIND, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    printed = CliRunner().invoke(cli, COMMANDS[name]).output

    assert printed
    assert not [c for c in printed if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"]
