"""Who may be chosen at all: what about a node, or a pod on it, forbids to touch it now. Reasons are told as sentences."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from joiner.disruption.budgets import is_rebooting
from joiner.model import labels, podrules
from joiner.model.pod import Pod
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.state.pods import protects
from joiner.state.statenode import StateNode

Budgets = Mapping[str, Sequence[PodDisruptionBudget]]
"""Namespace to its disruption budgets, by name."""


def is_out_of_reach(state_node: StateNode) -> bool:
    """Whether another controller is at work on the node: it goes, it is being restarted, or it has not come yet."""
    if state_node.node is None or state_node.claim is None or not state_node.registered:
        return True
    going = state_node.deleting or state_node.node.metadata.deletion_timestamp is not None
    return going or is_rebooting(state_node)


def pods_object(pods: Iterable[Pod], budgets: Budgets, now: datetime) -> str:
    """Why a pod forbids to empty its node now; nothing if none does."""
    for pod in pods:
        name = pod.key
        if not podrules.is_disruptable(pod, now):
            return f"pod {name} has the annotation {labels.DO_NOT_DISRUPT}"
        protecting = [each for each in budgets.get(pod.metadata.namespace, ()) if protects(each, pod)]
        if not podrules.is_evictable(pod, now):
            continue
        if len(protecting) > 1:
            names = ", ".join(each.name for each in protecting)
            return f"pod {name} is covered by more than one PodDisruptionBudget: {names}"
        if any(each.status.disruptions_allowed <= 0 for each in protecting):
            return f"PodDisruptionBudget {protecting[0].name} does not let pod {name} go"
    return ""


def repair_objection(state_node: StateNode, budgets: Budgets, now: datetime, *, bounded: bool) -> str:
    """Why a broken node must be left alone now; nothing if it may be repaired.

    The node's own do-not-disrupt does not count: a broken node serves no pod. Pods have no say once the drain has an end.
    """
    assert state_node.node is not None
    if state_node.node.metadata.annotations.get(labels.DO_NOT_REPAIR) == "true":
        return f"it has the annotation {labels.DO_NOT_REPAIR}"
    if not state_node.nodepool:
        return "its claim belongs to no NodePool"
    return "" if bounded else pods_object(state_node.pods, budgets, now)
