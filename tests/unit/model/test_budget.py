"""What budgets allow."""

from datetime import UTC, datetime

import pytest

from joiner.model import budget
from joiner.model.budget import UNLIMITED, BudgetError
from joiner.model.duration import Duration
from joiner.model.nodepool import Budget

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
EIGHT_HOURS = Duration.parse("8h")
BROKEN = Budget(nodes="5", schedule="0 0 * * sat-sun", duration=EIGHT_HOURS)


@pytest.mark.parametrize(
    ("nodes", "total", "count"),
    [
        ("5%", 10, 1),
        ("10%", 3, 1),
        ("0", 10, 0),
        ("0%", 10, 0),
        ("100%", 7, 7),
        ("10%", 0, 0),
        ("7", 3, 7),
        ("34%", 3, 2),
    ],
)
def test_shares_are_rounded_up_and_numbers_taken_as_they_are(nodes: str, total: int, count: int) -> None:
    assert budget.allowed_by(nodes, total) == count


@pytest.mark.parametrize("nodes", ["", "-1", "101%", "5.5", "ten", "10 %"])
def test_other_numbers_of_nodes_are_refused(nodes: str) -> None:
    with pytest.raises(BudgetError, match="neither a number of nodes"):
        budget.allowed_by(nodes, 10)


@pytest.mark.parametrize(
    ("schedule", "duration", "active"),
    [
        (None, None, True),
        ("0 9 * * *", "8h", True),
        ("0 9 * * *", "2h", False),
        ("0 9 * * *", "3h", False),
        ("0 9 * * *", "3h1m", True),
        ("0 12 * * *", "1m", True),
        ("1 12 * * *", "23h", False),
        ("0 9 * * mon-tue", "8h", False),
        ("@daily", "24h", True),
        ("0 0 30 2 *", "1m", True),
    ],
)
def test_a_budget_is_in_force_from_each_hit_for_its_duration(
    schedule: str | None, duration: str | None, active: bool
) -> None:
    length = None if duration is None else Duration.parse(duration)

    assert budget.is_active(schedule, length, NOON) is active


@pytest.mark.parametrize(
    ("schedule", "duration"), [("@daily", None), (None, EIGHT_HOURS)], ids=["schedule", "duration"]
)
def test_half_a_window_is_refused(schedule: str | None, duration: Duration | None) -> None:
    with pytest.raises(BudgetError, match="come together"):
        budget.is_active(schedule, duration, NOON)


def test_the_strictest_budget_in_force_decides() -> None:
    night = Budget(nodes="0", schedule="0 22 * * *", duration=EIGHT_HOURS)
    drift = Budget(nodes="1", reasons=("Drifted",))
    budgets = (Budget(nodes="50%"), night, drift)

    assert budget.allowed(budgets, "Empty", 10, NOON) == 5
    assert budget.allowed(budgets, "Drifted", 10, NOON) == 1
    assert budget.allowed(budgets, "Empty", 10, NOON.replace(hour=23)) == 0


def test_without_a_budget_in_force_there_is_no_limit() -> None:
    night = Budget(nodes="0", schedule="0 22 * * *", duration=EIGHT_HOURS)

    assert budget.allowed((night,), "Empty", 10, NOON) == UNLIMITED
    assert budget.allowed((), "Empty", 10, NOON) == UNLIMITED


def test_what_is_already_away_is_taken_off() -> None:
    assert budget.remaining((Budget(nodes="3"),), "Empty", 10, 1, NOON) == 2
    assert budget.remaining((Budget(nodes="3"),), "Empty", 10, 5, NOON) == 0


def test_a_budget_that_cannot_be_read_stops_every_reason() -> None:
    budgets = (Budget(nodes="5"), Budget(nodes="5", schedule=BROKEN.schedule, duration=EIGHT_HOURS, reasons=("Empty",)))

    assert budget.remaining(budgets, "Drifted", 10, 0, NOON) == 0
    with pytest.raises(BudgetError, match=r"schedule .*runs backwards"):
        budget.allowed((BROKEN,), "Drifted", 10, NOON)
