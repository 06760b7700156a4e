"""Which pods their own controller should give up first when it has fewer to run: those on nodes that go, or should go soonest.

Nodes are ranked; all pods of a node have its rank as their deletion cost. The lowest one goes first:

    on their way out    drifted nodes within the budget    other nodes within the budget    everything else
    -2147483648         -n …                               … -1                             no cost of ours
"""

from collections.abc import Iterable
from typing import Final

from joiner.disruption.decision import DRIFTED, UNDERUTILIZED
from joiner.disruption.eligibility import Candidate, by_ratio, candidates
from joiner.disruption.methods.quota import Quota
from joiner.disruption.situation import Situation
from joiner.model import claimconditions
from joiner.model.claimconditions import holds
from joiner.model.duration import NEVER
from joiner.model.pod import Pod
from joiner.model.taints import DISRUPTED, is_among
from joiner.state.statenode import StateNode

FIRST: Final = -(2**31)
"""The cost of pods whose node goes."""
_SYSTEM: Final = "kube-system"
_CONTROLLERS: Final = frozenset({"ReplicaSet", "Job", "DaemonSet"})


def costs(situation: Situation) -> dict[str, int | None]:
    """Node to what its pods should cost; None where they should have no cost of ours."""
    found: dict[str, int | None] = {
        each.name: FIRST if _goes(each) else None for each in situation.snapshot.nodes if each.claim is not None
    }
    drifted, _ = candidates(situation, lambda each: _is_ranked(each, situation, drifted=True), eventual=True)
    normal, _ = candidates(situation, lambda each: _is_ranked(each, situation, drifted=False), eventual=False)
    ranked = [*_within(drifted, situation, DRIFTED), *_within(normal, situation, UNDERUTILIZED)]
    found.update({each.name: position - len(ranked) for position, each in enumerate(ranked)})
    return found


def is_managed(pod: Pod) -> bool:
    """Whether the pod's controller looks at deletion costs: only a ReplicaSet does."""
    return _controller(pod) == "ReplicaSet"


def _within(found: Iterable[Candidate], situation: Situation, reason: str) -> list[Candidate]:
    return Quota(situation, reason).within(each for each in by_ratio(found) if each.price.known)


def _goes(state_node: StateNode) -> bool:
    return state_node.deleting or (state_node.node is not None and is_among(DISRUPTED, state_node.node.spec.taints))


def _is_ranked(state_node: StateNode, situation: Situation, *, drifted: bool) -> bool:
    pool = situation.pool_of(state_node)
    if pool is None or state_node.claim is None or pool.spec.replicas is not None or _goes(state_node):
        return False
    if holds(state_node.claim, claimconditions.DRIFTED) != drifted:
        return False
    if not drifted and pool.spec.disruption.consolidate_after == NEVER:
        return False
    return all(map(_is_replaceable, state_node.pods))


def _is_replaceable(pod: Pod) -> bool:
    """Whether another one takes its place by itself, so that a node is emptied by giving up others."""
    return pod.metadata.namespace == _SYSTEM or _controller(pod) in _CONTROLLERS


def _controller(pod: Pod) -> str:
    return next((owner.kind for owner in pod.metadata.owner_references if owner.controller), "")
