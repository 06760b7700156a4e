"""The dials on the command line: on as stated for manifests, off for scenarios."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.unit.cli.test_plan_command import POOL, deployment

from joiner.cli.main import cli
from joiner.cli.plan import policy
from joiner.offline.scenario.reader import read
from joiner.scheduling.problem import Policy
from joiner.scheduling.tuning import NODE_PRICE, SPOT_WIDTH, SPOT_WIDTH_COST

SPOT = POOL.replace("values: [on-demand]", "values: [spot]")
MANY = deployment(replicas=200, cpu="1")


def summary(*arguments: str) -> dict[str, Any]:
    command = ["plan", "-f", "-", "-o", "json", *arguments]
    found = json.loads(CliRunner().invoke(cli, command, input="---\n".join((SPOT, MANY))).stdout)
    return {**found["summary"], "types": min(len(claim["options"]) for claim in found["claims"])}


def test_the_dials_stand_where_it_is_stated() -> None:
    usual = Policy(node_price=NODE_PRICE, spot_width=SPOT_WIDTH, spot_width_cost=SPOT_WIDTH_COST)

    assert policy.plan_options({}).policy == usual
    assert policy.plan_options({"node_price": 0, "spot_width": 0, "spot_width_cost": 0}).policy == Policy()


def test_spot_width_takes_claims_apart() -> None:
    off, on = summary("--node-price", "0", "--spot-width", "0"), summary("--spot-width", "12", "--spot-width-cost", "1")

    assert off["types"] < 12 <= on["types"]
    assert on["newNodes"] > off["newNodes"]


def test_a_high_node_price_leaves_fewer_nodes() -> None:
    off = summary("--node-price", "0", "--spot-width", "40", "--spot-width-cost", "9")
    on = summary("--node-price", "5", "--spot-width", "0")

    assert on["newNodes"] < off["newNodes"]


def test_scenarios_are_answered_with_both_dials_off() -> None:
    assert read(b'{"name": "empty"}', Path()).problem.policy == Policy()


@pytest.mark.parametrize(
    "more",
    [("--node-price", "0.1"), ("--spot-width", "3"), ("--spot-width-cost", "0.1"), ("--scheduler-config", "x.yaml")],
    ids=lambda more: more[0],
)
def test_a_scenario_stands_alone(more: tuple[str, str]) -> None:
    result = CliRunner().invoke(cli, ["plan", "--scenario", "-", *more], input="{}")

    assert result.exit_code == 2
    assert "--scenario stands alone" in result.output


@pytest.mark.parametrize(
    "more",
    [
        *(("--node-price", "-1"), ("--node-price", "nan"), ("--node-price", "inf")),
        *(("--spot-width", "1.5"), ("--spot-width-cost", "nan"), ("--spot-width-cost", "1e999")),
    ],
    ids=" ".join,
)
def test_a_dial_that_cannot_stand_there_is_wrong_usage(more: tuple[str, str]) -> None:
    result = CliRunner().invoke(cli, ["plan", "-f", "-", *more], input=POOL)

    assert result.exit_code == 2
    assert f"Invalid value for '{more[0]}': " in result.output
