"""How many nodes of a pool may go now: its budgets, held against the nodes it has and those that are away already."""

from collections.abc import Collection, Iterable
from datetime import datetime

from joiner.disruption.repair import REASON as UNHEALTHY
from joiner.model.budget import BudgetError, active_until, allowed_by, applies, is_active, remaining
from joiner.model.claimconditions import INSTANCE_TERMINATING, REBOOTING, holds
from joiner.model.node import is_ready
from joiner.model.nodepool import NodePool
from joiner.state.statenode import StateNode


def is_rebooting(state_node: StateNode) -> bool:
    """Whether the machine is being restarted."""
    return state_node.claim is not None and holds(state_node.claim, REBOOTING)


def counts(state_node: StateNode) -> bool:
    """Whether it is one of the nodes that shares are taken of: complete, or to be complete again after a restart."""
    if state_node.claim is None or state_node.node is None or holds(state_node.claim, INSTANCE_TERMINATING):
        return False
    return state_node.initialized or is_rebooting(state_node)


def is_away(state_node: StateNode, reason: str) -> bool:
    """Whether it uses up a budget. A node that is not ready does so for every reason but that it is broken."""
    if state_node.deleting or is_rebooting(state_node):
        return True
    return reason != UNHEALTHY and state_node.node is not None and not is_ready(state_node.node)


def told(
    pool: NodePool,
    nodes: Iterable[StateNode],
    reason: str,
    now: datetime,
    queued: Collection[str] = frozenset(),
) -> list[str]:
    """The budgets in force for that reason, in words, the strictest first: what each allows, and how many nodes are away."""
    total, away = _numbers(pool, nodes, reason, queued)
    found = []
    for number, budget in enumerate(pool.spec.disruption.budgets):
        try:
            if not applies(budget.reasons, reason) or not is_active(budget.schedule, budget.duration, now):
                continue
            allows, until = allowed_by(budget.nodes, total), active_until(budget.schedule, budget.duration, now)
        except BudgetError as error:
            found.append((0, f"budget {number + 1} cannot be read, so no node may go: {error}"))
            continue
        ends = f" until {until:%Y-%m-%dT%H:%M:%SZ}" if until is not None else ""
        found.append(
            (
                allows,
                f"budget {number + 1} (nodes: {budget.nodes}) allows {allows} of {total}{ends}, and {away} are away",
            )
        )
    return [text for _, text in sorted(found)]


def left(
    pool: NodePool,
    nodes: Iterable[StateNode],
    reason: str,
    now: datetime,
    queued: Collection[str] = frozenset(),
) -> int:
    """How many more nodes of the pool may go for that reason. `queued`: claims that a command is about already."""
    total, away = _numbers(pool, nodes, reason, queued)
    return remaining(pool.spec.disruption.budgets, reason, total, away, now)


def _numbers(pool: NodePool, nodes: Iterable[StateNode], reason: str, queued: Collection[str]) -> tuple[int, int]:
    """How many nodes shares are taken of, and how many of them are away."""
    counted = [each for each in nodes if each.nodepool == pool.name and counts(each)]
    away = sum(is_away(each, reason) or (each.claim is not None and each.claim.name in queued) for each in counted)
    return len(counted), away
