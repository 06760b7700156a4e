"""Which nodes a method of disruption may choose, what each costs, and why others may not be touched now."""

from collections.abc import Callable, Iterable
from typing import Final

from joiner.disruption import nodeprice
from joiner.disruption.budgets import is_rebooting
from joiner.disruption.candidates import pods_object
from joiner.disruption.cost import eviction_cost
from joiner.disruption.nodeprice import NodePrice
from joiner.disruption.situation import Situation
from joiner.model import labels, podrules
from joiner.model.meta import Value
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.state.statenode import StateNode

GOING: Final = "it goes already"
STARTING: Final = "it is not initialized yet"
QUEUED: Final = "a command is about it already"
NOMINATED: Final = "pods are on their way to it"
PASSING: Final = frozenset({GOING, STARTING, QUEUED, NOMINATED})
"""Objections that end by themselves: no user has to hear of them."""


class Candidate(Value):
    """A node that may go."""

    state: StateNode
    claim: NodeClaim
    pool: NodePool
    price: NodePrice
    pods: tuple[Pod, ...]
    """Those that need another node when it goes."""
    weight: float
    """How much is disturbed: 1, and for each pod what its eviction costs, where that is more than nothing."""

    @property
    def name(self) -> str:
        """The node's name."""
        return self.state.name

    @property
    def identity(self) -> tuple[str, str]:
        """Name and UID of the claim: another node of the same name is not the same."""
        return (self.claim.name, self.claim.metadata.uid)

    @property
    def empty(self) -> bool:
        """Whether it has no pod whose eviction costs anything."""
        return self.weight <= 1.0

    @property
    def ratio(self) -> float:
        """What it costs for each unit of disturbance."""
        return self.price.ranked / self.weight


class Objection(Value):
    """Why a node, or the nodes of a pool, may not be touched now."""

    message: str
    nodes: tuple[StateNode, ...] = ()
    pool: str = ""
    reason: str = "DisruptionBlocked"
    dedupe: tuple[str, ...] = ()


def candidate(state_node: StateNode, situation: Situation) -> Candidate:
    """The node with what it costs. It must have a claim, and a pool that is there."""
    pool = situation.pool_of(state_node)
    assert pool is not None
    assert state_node.claim is not None
    ours = situation.rules.deletion_cost_is_ours
    pods = tuple(pod for pod in state_node.pods if podrules.is_reschedulable(pod))
    weight = 1.0 + sum(max(0.0, eviction_cost(pod, deletion_cost_is_ours=ours)) for pod in pods)
    price = nodeprice.of_node(state_node.labels, situation.catalogs.get(state_node.nodepool))
    return Candidate(state=state_node, claim=state_node.claim, pool=pool, price=price, pods=pods, weight=weight)


def objection(state_node: StateNode, situation: Situation, *, eventual: bool) -> str:
    """Why a node may not be touched now; nothing if it may.

    `eventual`: whether pods have no say where the claim's terminationGracePeriod ends every drain.
    """
    found = _of_node(state_node, situation)
    if found:
        return found
    assert state_node.claim is not None
    if eventual and state_node.claim.spec.termination_grace_period is not None:
        return ""
    return pods_object(state_node.pods, situation.pod_budgets, situation.now)


def _of_node(state_node: StateNode, situation: Situation) -> str:
    if state_node.claim is None:
        return "it has no NodeClaim"
    if state_node.node is None or not state_node.initialized:
        return STARTING
    if state_node.deleting or state_node.node.metadata.deletion_timestamp is not None:
        return GOING
    if is_rebooting(state_node):
        return "its machine is being restarted"
    if state_node.claim.name in situation.queued:
        return QUEUED
    if state_node.claim.name in situation.nominated:
        return NOMINATED
    if state_node.node.metadata.annotations.get(labels.DO_NOT_DISRUPT) == "true":
        return f"it has the annotation {labels.DO_NOT_DISRUPT}"
    if not state_node.nodepool:
        return "it belongs to no NodePool"
    if state_node.nodepool not in situation.pools:
        return f"NodePool {state_node.nodepool} is not there"
    if state_node.nodepool not in situation.catalogs:
        why = situation.unknown.get(state_node.nodepool, "it was not asked")
        return f"NodePool {state_node.nodepool}: what it can buy is not known: {why}"
    return ""


def may_still_go(chosen: Iterable[Candidate], situation: Situation, *, eventual: bool) -> bool:
    """Whether nothing has come to these nodes since they were chosen, and nothing else speaks against it now."""
    for each in chosen:
        now = situation.by_claim.get(each.claim.name)
        if now is None or now.claim is None or now.claim.metadata.uid != each.claim.metadata.uid:
            return False
        known = {pod.metadata.uid for pod in each.state.pods}
        if any(pod.metadata.uid not in known for pod in now.pods if podrules.is_reschedulable(pod)):
            return False
        if objection(now, situation, eventual=eventual):
            return False
    return True


def candidates(
    situation: Situation, wanted: Callable[[StateNode], bool], *, eventual: bool
) -> tuple[list[Candidate], list[Objection]]:
    """The nodes that a method wants and may have, by name; and why it may not have others."""
    found: list[Candidate] = []
    objections: list[Objection] = []
    for each in situation.snapshot.nodes:
        if each.claim is None or not wanted(each):
            continue
        message = objection(each, situation, eventual=eventual)
        if not message:
            found.append(candidate(each, situation))
        elif message not in PASSING:
            objections.append(Objection(message=f"it cannot be removed now: {message}", nodes=(each,)))
    return found, objections


def by_ratio(found: Iterable[Candidate]) -> list[Candidate]:
    """Those first that save most for the disturbance."""
    return sorted(found, key=lambda each: (-each.ratio, each.name))
