"""`joiner consolidate` on a dump of five half-empty nodes."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from joiner.cli.main import cli

DUMP = str(Path(__file__).resolve().parents[2] / "data" / "consolidation" / "half-empty.yaml")


def asked(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["consolidate", *arguments], prog_name="joiner")


def test_moves_are_shown_in_order_with_savings_costs_and_the_bound() -> None:
    found = json.loads(asked("-f", DUMP, "-o", "json").stdout)

    assert found["kind"] == "ConsolidationReport"
    assert found["moves"][0]["nodes"] == ["node-4"]
    assert all(len(move["nodes"]) <= 2 for move in found["moves"])
    assert found["summary"]["bound"] <= found["summary"]["hourlyAfter"] < found["summary"]["hourlyBefore"]
    saved = sum(move["saves"] for move in found["moves"])
    assert found["summary"]["hourlyBefore"] - saved == pytest.approx(found["summary"]["hourlyAfter"], abs=1e-5)


def test_the_table_ends_with_how_near_the_end_is_to_the_bound() -> None:
    assert "no cluster for these pods costs less" in asked("-f", DUMP).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Name manifests with -f"),
        (("-f", DUMP, "--horizon", "0s"), "longer than zero"),
        (("-f", DUMP, "--eviction-cost", "soon"), "or 0s"),
        (("-f", DUMP, "--context", "x"), "--cluster"),
    ],
)
def test_mistakes_are_told_with_what_is_allowed(arguments: tuple[str, ...], words: str) -> None:
    result = asked(*arguments)

    assert result.exit_code == 2
    assert words in result.output


def test_files_without_nodes_are_told_what_to_give(tmp_path: Path) -> None:
    pool = tmp_path / "pool.yaml"
    pool.write_text(Path(DUMP).read_text(encoding="utf-8").split("\n---\n")[0], encoding="utf-8")
    result = asked("-f", str(pool), "--instance-types", "kwok")

    assert result.exit_code == 1
    assert "joiner dump" in result.output
