"""What it costs to disturb pods: nothing that is paid, only an order in which nodes are let go."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from joiner.model.duration import NEVER
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod

DISRUPTION_COST: Final = "karpenter.sh/disruption-cost"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

_INT32: Final = 2**31
_MOST: Final = 10.0


def eviction_cost(pod: Pod, *, deletion_cost_is_ours: bool = False) -> float:
    """How much worse than an ordinary pod it is to evict this one, by its own word and by its priority.

    Where we write the deletion cost ourselves it says nothing about what users want.
    """
    annotations = pod.metadata.annotations
    text = annotations.get(DISRUPTION_COST)
    if text is None and not deletion_cost_is_ours:
        text = annotations.get(DELETION_COST)
    cost = 1.0 + _int32(text) / 2.0**27 + (pod.spec.priority or 0) / 2.0**25
    return max(-_MOST, min(_MOST, cost))


def _int32(text: str | None) -> int:
    """The number, and nothing where there is none."""
    try:
        number = int(text) if text is not None else 0
    except ValueError:
        return 0
    return number if -_INT32 <= number < _INT32 else 0


def lifetime_left(claim: NodeClaim, now: datetime) -> float:
    """Which part of its life a node still has before it; all of it when it never expires."""
    length, born = claim.spec.expire_after, claim.metadata.creation_timestamp
    if length == NEVER or born is None or length <= 0:
        return 1.0
    age = (now - born).total_seconds()
    return max(0.0, min(1.0, (length.seconds - age) / length.seconds))


def disturbance(pods: Iterable[Pod], claim: NodeClaim, now: datetime, *, deletion_cost_is_ours: bool = False) -> float:
    """What removing a node costs, by its pods and by how soon it would go anyway."""
    total = sum(eviction_cost(pod, deletion_cost_is_ours=deletion_cost_is_ours) for pod in pods)
    return total * lifetime_left(claim, now)
