"""What is counted whenever a controller decides that a claim has to go."""

import re
from collections.abc import Iterable
from typing import Final

from joiner.model import labels, podrules
from joiner.model.duration import Duration
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.observe.metrics import Metrics

_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])")
"""Where a word begins inside a name."""


def termination_mode(claim: NodeClaim) -> str:
    """How a drain of the claim's node ends: when all pods have left, by force at once, or by force in the end."""
    period = claim.spec.termination_grace_period
    if period is None:
        return "graceful"
    return "forceful" if period <= 0 else "eventual"


def _mode_labels(claim: NodeClaim, consolidating: NodePool | None) -> dict[str, str]:
    """The labels of metrics about claims that are removed. Only a consolidation is by the policy of a pool."""
    policy = "" if consolidating is None else consolidating.spec.disruption.consolidation_policy
    return {
        "nodepool": claim.metadata.labels.get(labels.NODEPOOL, ""),
        "capacity_type": claim.metadata.labels.get(labels.CAPACITY_TYPE, ""),
        "consolidation_policy": snake(policy),
        "termination_mode": termination_mode(claim),
    }


def count_disrupted(
    metrics: Metrics,
    claim: NodeClaim,
    reason: str,
    *,
    pods: Iterable[Pod] = (),
    consolidating: NodePool | None = None,
) -> None:
    """Count a claim that was removed for a reason, in lower case, and those of its node's pods that need another place."""
    said = {"reason": reason, **_mode_labels(claim, consolidating)}
    metrics.nodeclaims_disrupted_total.labels(**said).inc()
    metrics.pods_disruption_initiated_total.labels(**said).inc(sum(map(podrules.is_reschedulable, pods)))


def count_unhealthy(metrics: Metrics, claim: NodeClaim, condition: str, bound: Duration | None) -> None:
    """Count a claim that was removed because of a condition of its node, and how its drain ends if it has so much time."""
    own = claim.spec.termination_grace_period
    drained = replace(claim, spec=replace(claim.spec, termination_grace_period=own if bound is None else bound))
    metrics.nodeclaims_unhealthy_disrupted_total.labels(
        condition=snake(condition),
        nodepool=claim.metadata.labels.get(labels.NODEPOOL, ""),
        capacity_type=claim.metadata.labels.get(labels.CAPACITY_TYPE, ""),
        image_id=claim.status.image_id,
        termination_mode=termination_mode(drained),
    ).inc()


def snake(name: str) -> str:
    """A name in camel case as values of labels have it."""
    return _WORD.sub("_", name).lower()
