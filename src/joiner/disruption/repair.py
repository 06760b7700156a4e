"""Broken nodes: which policies a node's conditions call for, since when, what is to be done, and which node is first.

    condition ─ same type and status in some policy? ─ whose regex finds the reason? ── those policies
                                                              └── of none ── the fallback

A matching policy does nothing before its toleration has elapsed. Meanwhile it keeps the fallback away all the same.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from joiner.model.claimconditions import REBOOTING
from joiner.model.conditions import find
from joiner.model.duration import Duration
from joiner.model.meta import Value
from joiner.model.node import Node, NodeCondition
from joiner.model.nodeclaim import NodeClaim

REASON: Final = "Unhealthy"
REPLACE: Final = "ReplaceNode"
REBOOT: Final = "RebootNode"

MOST_BROKEN_PERCENT: Final = 20
"""When more of a pool's nodes are broken, something else is wrong, and replacing nodes would not help."""
HURRY: Final = timedelta(minutes=30)
"""A node that has waited so long counts as one rank more urgent."""
MOST_REBOOTS: Final = 2
"""How often a machine is restarted within `REBOOT_MEMORY` before it is replaced instead."""
REBOOT_MEMORY: Final = timedelta(hours=24)


class RepairRule(Protocol):
    """What a provider says about one condition; the values themselves are the provider's."""

    @property
    def condition_type(self) -> str:
        """The condition."""

    @property
    def condition_status(self) -> str:
        """Its status when something is wrong."""

    @property
    def reason_regex(self) -> str:
        """Which reasons are meant; empty in the one policy that is the fallback."""

    @property
    def toleration(self) -> Duration:
        """How long it is endured."""

    @property
    def termination_grace_period(self) -> Duration | None:
        """How long draining may take; nothing leaves that to the claim."""

    @property
    def priority(self) -> int:
        """The larger, the sooner."""

    @property
    def action(self) -> str:
        """What mends it."""


class Ailment(Value):
    """One policy that a condition of a node calls for, and from when on."""

    policy: RepairRule
    condition: NodeCondition
    since: datetime
    """When it may be acted upon."""


class Diagnosis(Value):
    """What is to be done about a node, all its ailments considered."""

    action: str
    condition: str
    reason: str
    """The condition that decided, and its reason."""
    bound: Duration | None
    """How long draining may take by the word of the policies."""
    score: float
    """The larger, the more urgent."""


def is_broken(node: Node, policies: Sequence[RepairRule]) -> bool:
    """Whether any condition is what some policy looks for, however young and whatever its reason."""
    pairs = {(each.condition_type, each.condition_status) for each in policies}
    return any((each.type, each.status) in pairs for each in node.status.conditions)


def too_many(broken: int, nodes: int) -> bool:
    """Whether so many of so many nodes are broken that none is repaired. Shares are rounded up: one of one is repaired."""
    return broken > -(-nodes * MOST_BROKEN_PERCENT // 100)


def ailments(node: Node, claim: NodeClaim | None, policies: Sequence[RepairRule]) -> tuple[Ailment, ...]:
    """Every policy that the node's conditions call for, those that still wait among them."""
    found: list[Ailment] = []
    for condition in node.status.conditions:
        for policy in _called_for(condition, policies):
            began = _began(node, claim, condition)
            if began is not None:
                found.append(Ailment(policy=policy, condition=condition, since=began + policy.toleration.timedelta))
    return tuple(found)


def _called_for(condition: NodeCondition, policies: Sequence[RepairRule]) -> tuple[RepairRule, ...]:
    pair = (condition.type, condition.status)
    alike = [each for each in policies if (each.condition_type, each.condition_status) == pair]
    if not alike:
        return ()
    meant = tuple(each for each in alike if each.reason_regex and re.search(each.reason_regex, condition.reason))
    return meant or tuple(each for each in policies if not each.reason_regex)


def _began(node: Node, claim: NodeClaim | None, condition: NodeCondition) -> datetime | None:
    """Since when the condition counts: not before the node was there, and not before its last restart was over."""
    moments = [condition.last_transition_time, node.metadata.creation_timestamp]
    rebooting = find(claim.status.conditions, REBOOTING) if claim is not None else None
    if rebooting is not None and rebooting.status == "False":
        moments.append(rebooting.last_transition_time)
    return max((each for each in moments if each is not None), default=None)


def next_due(found: Iterable[Ailment], now: datetime) -> datetime | None:
    """When the next ailment that still waits may be acted upon."""
    return min((each.since for each in found if each.since > now), default=None)


def ranks(policies: Iterable[RepairRule]) -> Mapping[int, int]:
    """Each priority there is to its place, the lowest having 0: how far apart they are does not matter."""
    return {priority: rank for rank, priority in enumerate(sorted({each.priority for each in policies}))}


def diagnose(found: Iterable[Ailment], policies: Sequence[RepairRule], now: datetime) -> Diagnosis | None:
    """What is to be done now; nothing while everything waits."""
    due = [each for each in found if each.since <= now]
    if not due:
        return None
    first = min(due, key=_gravity)
    bounds = [each.policy.termination_grace_period for each in due]
    places = ranks(policies)
    return Diagnosis(
        action=first.policy.action,
        condition=first.condition.type,
        reason=first.condition.reason,
        bound=min((each for each in bounds if each is not None), default=None),
        score=max(places[each.policy.priority] + (now - each.since) / HURRY for each in due),
    )


def _gravity(ailment: Ailment) -> tuple[bool, int, datetime, str]:
    return (ailment.policy.action != REPLACE, -ailment.policy.priority, ailment.since, ailment.condition.type)


def drain_bound(policy: Duration | None, claim: NodeClaim) -> Duration | None:
    """How long draining may take: the shorter of what policy and claim say; None if neither says anything."""
    known = [each for each in (policy, claim.spec.termination_grace_period) if each is not None]
    return min(known, default=None)


class Reboots:
    """Which machines were restarted lately, by UID of their claim. Forgotten with a restart of ours: then one more is tried."""

    def __init__(self) -> None:
        self._at: dict[str, tuple[datetime, ...]] = {}

    def note(self, uid: str, now: datetime) -> None:
        """A restart was decided."""
        self._at = {each: kept for each, times in self._at.items() if (kept := _recent(times, now))}
        self._at[uid] = (*self._at.get(uid, ()), now)

    def exhausted(self, uid: str, now: datetime) -> bool:
        """Whether restarting did not help often enough."""
        return len(_recent(self._at.get(uid, ()), now)) >= MOST_REBOOTS


def _recent(times: tuple[datetime, ...], now: datetime) -> tuple[datetime, ...]:
    return tuple(each for each in times if now - each < REBOOT_MEMORY)
