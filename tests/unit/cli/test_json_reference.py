"""Everything that commands print as JSON says its kind and version, and its fields are in the reference."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from joiner.cli.main import cli

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
LEFT_OVER = "examples/18-why-a-pod-is-left-over"
HALF_EMPTY = "tests/data/consolidation/half-empty.yaml"
COMMANDS = {
    "PlanReport": ["plan", "-f", LEFT_OVER, "--costs", "--bound"],
    "PodReport": ["plan", "-f", "examples/17-a-first-plan", "--explain", "web-0"],
    "ConsolidationReport": ["consolidate", "-f", HALF_EMPTY],
    "NodeReport": ["explain", "node", "node-3", "-f", HALF_EMPTY],
    "NodePoolReport": ["explain", "nodepool", "default", "-f", HALF_EMPTY],
    "CatalogReport": ["catalog", "-f", "examples/06-conflicting-overlays"],
    "ValidationReport": ["validate", "examples/16-mistakes"],
    "StoryReport": ["simulate", "tests/stories/batching.yaml"],
    "HuntReport": ["simulate", "--hunt", "1", "--jobs", "1"],
    "VersionReport": ["version"],
}


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def section(kind: str) -> str:
    return PAGE.split(f"## {kind}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("kind", COMMANDS)
def test_every_field_is_in_the_reference(kind: str) -> None:
    printed = json.loads(CliRunner().invoke(cli, [*COMMANDS[kind], "-o", "json"]).stdout)

    assert (printed.pop("apiVersion"), printed.pop("kind")) == ("joiner.dev/v1", kind)
    assert [field for field in printed if f"`{field}`" not in section(kind)] == []


def test_what_tables_say_of_remedies_is_in_the_data() -> None:
    drawn = CliRunner().invoke(cli, ["plan", "-f", LEFT_OVER]).stdout
    printed = json.loads(CliRunner().invoke(cli, ["plan", "-f", LEFT_OVER, "-o", "json"]).stdout)
    told = re.findall(r"(?m)^(.*) would have a place without ", drawn)

    assert told == [remedy["workload"] for remedy in printed["remedies"]]
    assert told
    assert all(change["constraints"] for remedy in printed["remedies"] for change in remedy["changes"])
