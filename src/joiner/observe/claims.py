"""What is counted whenever somebody decides that a claim has to go."""

from joiner.model import labels
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.observe.metrics import Metrics


def termination_mode(claim: NodeClaim) -> str:
    """How a drain of the claim's node ends: when all pods have left, by force at once, or by force in the end."""
    period = claim.spec.termination_grace_period
    if period is None:
        return "graceful"
    return "forceful" if period <= 0 else "eventual"


def mode_labels(claim: NodeClaim, pool: NodePool | None) -> dict[str, str]:
    """The labels of metrics about claims that are removed."""
    return {
        "nodepool": claim.metadata.labels.get(labels.NODEPOOL, ""),
        "capacity_type": claim.metadata.labels.get(labels.CAPACITY_TYPE, ""),
        "consolidation_policy": "" if pool is None else pool.spec.disruption.consolidation_policy,
        "termination_mode": termination_mode(claim),
    }


def count_disrupted(metrics: Metrics, claim: NodeClaim, pool: NodePool | None, reason: str) -> None:
    """Count a claim that was removed for a reason, in lower case."""
    metrics.nodeclaims_disrupted_total.labels(reason=reason, **mode_labels(claim, pool)).inc()
