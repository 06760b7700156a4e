"""What a provider may say about broken machines."""

from typing import Any

import pytest

from joiner.cloud.repair import REBOOT, RepairPolicy, policy_problems
from joiner.model.duration import Duration


def policy(**said: Any) -> RepairPolicy:
    """A policy that will do, unless said otherwise."""
    good: dict[str, Any] = {"condition_type": "Bad", "condition_status": "True", "toleration": Duration(0)}
    return RepairPolicy(**{**good, "reason_regex": ".*", **said})


FALLBACK = policy(reason_regex="")


@pytest.mark.parametrize(
    ("policies", "problems"),
    [
        pytest.param((policy(), FALLBACK), [], id="all is well"),
        pytest.param((policy(condition_type=""), FALLBACK), ["type is empty"], id="no condition"),
        pytest.param((policy(condition_status="Maybe"), FALLBACK), ["'Maybe' is none of"], id="no such status"),
        pytest.param((policy(toleration=Duration(-1)), FALLBACK), ["negative"], id="patience below zero"),
        pytest.param((policy(termination_grace_period=Duration(-1)), FALLBACK), ["negative"], id="bound below zero"),
        pytest.param((policy(priority=101), FALLBACK), ["priority 101"], id="too important"),
        pytest.param((policy(priority=-1), FALLBACK), ["priority -1"], id="too unimportant"),
        pytest.param((policy(action="Pray"), FALLBACK), ["'Pray' is neither"], id="no such action"),
        pytest.param((policy(reason_regex="("), FALLBACK), ["does not compile"], id="no regex"),
        pytest.param((policy(),), ["found 0"], id="no fallback"),
        pytest.param((FALLBACK, FALLBACK), ["found 2"], id="two fallbacks"),
        pytest.param(
            (policy(reason_regex="", action=REBOOT),), ["fallback policy must"], id="a fallback that restarts"
        ),
        pytest.param((policy(priority=101, reason_regex="("),), ["101", "compile", "found 0"], id="all at once"),
    ],
)
def test_policies_are_checked_and_every_problem_is_told(
    policies: tuple[RepairPolicy, ...], problems: list[str]
) -> None:
    told = policy_problems(policies)

    assert len(told) == len(problems)
    assert all(part in each for part, each in zip(problems, told, strict=True))
