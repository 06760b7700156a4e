"""What disruption budgets allow at a moment. The `Budget` value itself is part of the NodePool."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Protocol

from joiner.model import cron
from joiner.model.duration import Duration

UNLIMITED: Final = 2**31 - 1
"""How many nodes may be disrupted when no budget is in force."""

_NODES: Final = re.compile(r"(?:(100|[0-9]{1,2})%|([0-9]{1,10}))", re.ASCII)


class BudgetError(ValueError):
    """The budget cannot be read; the message says which field and what it may hold."""


class Budget(Protocol):
    """The fields of a budget."""

    @property
    def nodes(self) -> str:
        """A number of nodes, or a share of them like `10%`."""

    @property
    def schedule(self) -> str | None:
        """When the budget comes into force; absent together with the duration if it always is."""

    @property
    def duration(self) -> Duration | None:
        """How long it stays in force after each hit of the schedule."""

    @property
    def reasons(self) -> Sequence[str] | None:
        """Which reasons it limits; absent or empty means all."""


def is_active(schedule: str | None, duration: Duration | None, now: datetime) -> bool:
    """Whether the budget is in force.

    A schedule whose day never comes (30 February) counts as always in force: rather too strict than without effect.
    """
    if not schedule and duration is None:
        return True
    if not schedule or duration is None:
        raise BudgetError("schedule and duration come together: when the window opens, and for how long")
    try:
        parsed = cron.parse(schedule)
    except cron.CronError as problem:
        raise BudgetError(f"schedule {problem}") from None
    hit = cron.next_after(parsed, now - duration.timedelta)
    return hit is None or hit <= now


def active_until(schedule: str | None, duration: Duration | None, now: datetime) -> datetime | None:
    """When a budget that is in force and follows a schedule ends; None where it always is in force."""
    if not schedule or duration is None:
        return None
    hit = cron.next_after(cron.parse(schedule), now - duration.timedelta)
    return None if hit is None else hit + duration.timedelta


def allowed_by(nodes: str, total: int) -> int:
    """How many of `total` nodes the text permits; shares are rounded up."""
    match = _NODES.fullmatch(nodes)
    if match is None:
        raise BudgetError(
            f"nodes {nodes!r} is neither a number of nodes, like 5, nor a share from 0% to 100%, like 10%"
        )
    if match[2] is not None:
        return min(int(match[2]), UNLIMITED)
    return -(-total * int(match[1]) // 100)


def applies(reasons: Sequence[str] | None, reason: str) -> bool:
    """Whether a budget with these reasons limits disruption for that reason."""
    return not reasons or reason in reasons


def allowed(budgets: Iterable[Budget], reason: str, total: int, now: datetime) -> int:
    """How many nodes may be disrupted at once for that reason: the strictest budget in force decides.

    Raises `BudgetError` if any budget cannot be read, even one for other reasons.
    """
    least = UNLIMITED
    for budget in budgets:
        count = allowed_by(budget.nodes, total) if is_active(budget.schedule, budget.duration, now) else UNLIMITED
        if applies(budget.reasons, reason):
            least = min(least, count)
    return least


def remaining(budgets: Iterable[Budget], reason: str, total: int, consumed: int, now: datetime) -> int:
    """How many more nodes may be disrupted now. A budget that cannot be read allows none."""
    try:
        return max(0, allowed(budgets, reason, total, now) - consumed)
    except BudgetError:
        return 0
