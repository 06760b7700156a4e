"""`--capacity-type` and `--zones`: what if NodePools could buy only that."""

import json
from typing import Any

import pytest
from click.testing import CliRunner
from tests.unit.cli.test_plan_command import POOL, deployment

from joiner.cli.main import cli

BOTH = POOL.replace("values: [on-demand]", "values: [on-demand, spot]")


def run(*arguments: str, pools: str = BOTH, command: str = "plan") -> Any:
    given = [command, "-f", "-", "-o", "json", *arguments]
    return CliRunner().invoke(cli, given, input=f"{pools}---\n{deployment()}")


def bought(*arguments: str) -> set[tuple[str, str]]:
    claims = json.loads(run(*arguments).stdout)["claims"]
    return {(each["capacityType"], each["zone"]) for claim in claims for each in claim["options"]}


def test_only_a_capacity_type_is_bought() -> None:
    assert {kind for kind, _ in bought("--capacity-type", "on-demand")} == {"on-demand"}
    assert {kind for kind, _ in bought("--capacity-type", "spot")} == {"spot"}


@pytest.mark.parametrize(
    "given", [("--zones", "test-zone-b,test-zone-c"), ("--zones", "test-zone-b", "--zones", "test-zone-c")]
)
def test_only_these_zones_are_bought_in(given: tuple[str, ...]) -> None:
    assert {zone for _, zone in bought(*given)} <= {"test-zone-b", "test-zone-c"}


@pytest.mark.parametrize("flag", ["--zones", "--capacity-type"])
@pytest.mark.parametrize("value", ["", " , "])
def test_an_option_without_a_value_does_not_mean_everything(flag: str, value: str) -> None:
    result = run(flag, value)

    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{flag}: is empty; name a value, or leave the option out" in result.stderr


def test_a_pool_that_is_left_with_nothing_is_named() -> None:
    report = json.loads(run("--capacity-type", "spot", pools=POOL).stdout)

    assert report["summary"]["leftOver"] == 3
    assert any("NodePool default can buy nothing with --capacity-type spot" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--zones", "test-zone-z"), "--zones: no instance type is sold in zone test-zone-z"),
        (("--capacity-type", "spots"), "did you mean spot?"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "catalog"])
def test_a_word_that_is_not_known_is_an_error_with_those_that_are(
    given: tuple[str, ...], said: str, command: str
) -> None:
    result = run(*given, command=command)

    assert result.exit_code == 1
    assert said in result.output


def test_a_catalogue_is_narrowed_too_and_nothing_to_buy_is_an_error_with_its_reason() -> None:
    assert run("--capacity-type", "spot", command="catalog").exit_code == 0
    result = run("--capacity-type", "spot", pools=POOL, command="catalog")

    assert result.exit_code == 1
    (pool,) = json.loads(result.stdout)["nodePools"]
    assert pool["funnel"][-1]["types"] == 0
    drawn = CliRunner().invoke(cli, ["catalog", "-f", "-", "--capacity-type", "spot"], input=POOL).output
    assert "nothing can be bought" in drawn
    assert "How the choice narrows" in drawn
