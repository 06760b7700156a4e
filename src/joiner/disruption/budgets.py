"""How many nodes of a pool may go now: its budgets, held against the nodes it has and those that are away already."""

from collections.abc import Collection, Iterable
from datetime import datetime

from joiner.disruption.repair import REASON as UNHEALTHY
from joiner.model.budget import remaining
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


def left(
    pool: NodePool,
    nodes: Iterable[StateNode],
    reason: str,
    now: datetime,
    queued: Collection[str] = frozenset(),
) -> int:
    """How many more nodes of the pool may go for that reason. `queued`: claims that a command is about already."""
    counted = [each for each in nodes if each.nodepool == pool.name and counts(each)]
    away = sum(is_away(each, reason) or (each.claim is not None and each.claim.name in queued) for each in counted)
    return remaining(pool.spec.disruption.budgets, reason, len(counted), away, now)
