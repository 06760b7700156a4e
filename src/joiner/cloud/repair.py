"""Which node conditions mean a broken machine, how long they are endured, and what is done then."""

import re
from collections.abc import Iterable
from typing import Final, Literal

from joiner.model.duration import Duration
from joiner.model.meta import Value

REPLACE: Final = "ReplaceNode"
REBOOT: Final = "RebootNode"


class RepairPolicy(Value):
    """One condition that a provider knows how to mend."""

    condition_type: str
    condition_status: str
    toleration: Duration
    """How long the condition is endured."""
    reason_regex: str = ""
    """Which reasons are meant; empty marks the fallback for reasons that no other policy knows."""
    termination_grace_period: Duration | None = None
    """How long draining may take: nothing inherits the claim's own bound, zero drains nothing."""
    priority: int = 0
    action: Literal["ReplaceNode", "RebootNode"] = "ReplaceNode"


NOT_READY: Final = tuple(
    RepairPolicy(condition_type="Ready", condition_status=status, reason_regex=reason, toleration=Duration.parse("30m"))
    for status, reason in (("False", ""), ("Unknown", ".*"))
)
"""What holds for every cloud: a node that is not ready for half an hour is broken."""


def policy_problems(policies: Iterable[RepairPolicy]) -> tuple[str, ...]:
    """Everything that is wrong with a provider's set of policies; node repair refuses to start with any."""
    known = tuple(policies)
    problems = [problem for number, policy in enumerate(known) for problem in _problems(number, policy)]
    fallbacks = [policy for policy in known if not policy.reason_regex]
    if len(fallbacks) != 1:
        problems.append(f"exactly one policy must have an empty reason regex (the fallback), found {len(fallbacks)}")
    elif fallbacks[0].action != REPLACE:
        problems.append(f"the fallback policy must {REPLACE}, not {fallbacks[0].action}")
    return tuple(problems)


def _problems(number: int, policy: RepairPolicy) -> Iterable[str]:
    where = f"policy {number} ({policy.condition_type or 'unnamed'})"
    if not policy.condition_type:
        yield f"{where}: the condition type is empty"
    if policy.condition_status not in ("True", "False", "Unknown"):
        yield f"{where}: status {policy.condition_status!r} is none of True, False, Unknown"
    if policy.toleration < 0 or (policy.termination_grace_period or 0) < 0:
        yield f"{where}: durations cannot be negative"
    if not 0 <= policy.priority <= 100:
        yield f"{where}: priority {policy.priority} is not within 0 and 100"
    if policy.action not in (REPLACE, REBOOT):
        yield f"{where}: action {policy.action!r} is neither {REPLACE} nor {REBOOT}"
    try:
        re.compile(policy.reason_regex)
    except re.error as error:
        yield f"{where}: the reason regex does not compile: {error}"
