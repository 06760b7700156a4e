"""Predicates of a single pod (provisionable, evictable, drainable …) that need only the pod and the time."""

from datetime import datetime, timedelta
from typing import Final

from joiner.model import labels, taints
from joiner.model.duration import Duration, DurationError
from joiner.model.pod import Pod, condition

STUCK_AFTER: Final = timedelta(minutes=1)
CRITICAL_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})


def is_terminal(pod: Pod) -> bool:
    """Whether it has run to its end."""
    return pod.status.phase in ("Failed", "Succeeded")


def is_terminating(pod: Pod) -> bool:
    """Whether it has a deletion timestamp."""
    return pod.metadata.deletion_timestamp is not None


def is_active(pod: Pod) -> bool:
    """Whether it is neither terminal nor terminating."""
    return not is_terminal(pod) and not is_terminating(pod)


def is_stuck_terminating(pod: Pod, now: datetime) -> bool:
    """Whether it should have been gone for a while: its kubelet no longer answers, so drains do not wait for it."""
    deleted = pod.metadata.deletion_timestamp
    return deleted is not None and now - deleted > STUCK_AFTER


def is_owned_by(pod: Pod, api_version: str, kind: str) -> bool:
    """Whether any owner is of that kind."""
    return any(owner.api_version == api_version and owner.kind == kind for owner in pod.metadata.owner_references)


def is_daemon(pod: Pod) -> bool:
    """Whether a DaemonSet made it: it comes with every node."""
    return is_owned_by(pod, "apps/v1", "DaemonSet")


def is_mirror(pod: Pod) -> bool:
    """Whether it stands for a static pod of a node, which no API call can move."""
    return is_owned_by(pod, "v1", "Node")


def is_stateful(pod: Pod) -> bool:
    """Whether a StatefulSet made it: its successor comes only after it has gone."""
    return is_owned_by(pod, "apps/v1", "StatefulSet")


def is_critical(pod: Pod) -> bool:
    """Whether it is drained last."""
    return pod.spec.priority_class_name in CRITICAL_CLASSES


def is_provisionable(pod: Pod) -> bool:
    """Whether it waits for a node that Joiner could launch."""
    scheduled = condition(pod, "PodScheduled")
    waits = scheduled is not None and scheduled.reason == "Unschedulable"
    placed = pod.spec.node_name or pod.status.nominated_node_name
    return waits and not placed and not is_daemon(pod) and not is_mirror(pod)


def is_reschedulable(pod: Pod) -> bool:
    """Whether it needs another node when its own is removed."""
    stays_or_returns = is_active(pod) or (is_stateful(pod) and is_terminating(pod))
    return stays_or_returns and not is_daemon(pod) and not is_mirror(pod)


def tolerates_disruption_taint(pod: Pod) -> bool:
    """Whether it tolerates the disruption taint: it is never evicted."""
    return taints.tolerates(pod.spec.tolerations, taints.DISRUPTED)


def is_evictable(pod: Pod, now: datetime) -> bool:
    """Whether it may be evicted now."""
    blocked = tolerates_disruption_taint(pod) or is_mirror(pod) or must_not_be_disrupted(pod, now)
    return is_active(pod) and not blocked


def is_drainable(pod: Pod, now: datetime) -> bool:
    """Whether a drain has to wait until it is gone; protected pods included."""
    return not (tolerates_disruption_taint(pod) or is_stuck_terminating(pod, now) or is_mirror(pod))


def is_waiting_eviction(pod: Pod, now: datetime) -> bool:
    """Whether a drain still waits for it."""
    return not is_terminal(pod) and is_drainable(pod, now)


def is_disruptable(pod: Pod, now: datetime) -> bool:
    """Whether it does not block the disruption of its node."""
    return not is_active(pod) or not must_not_be_disrupted(pod, now)


def must_not_be_disrupted(pod: Pod, now: datetime) -> bool:
    """Whether `karpenter.sh/do-not-disrupt` protects it now. A duration protects that long after its start."""
    text = pod.metadata.annotations.get(labels.DO_NOT_DISRUPT)
    if text is None or do_not_disrupt_problem(pod) is not None:
        return False
    if text == "true" or pod.status.start_time is None:
        return True
    return now - pod.status.start_time < Duration.parse(text).timedelta


def do_not_disrupt_problem(pod: Pod) -> str | None:
    """Why the do-not-disrupt annotation has no effect; None if it is valid or absent."""
    text = pod.metadata.annotations.get(labels.DO_NOT_DISRUPT)
    if text is None or text == "true":
        return None
    allowed = "it may be true, or how long the pod is protected after its start, like 30m"
    try:
        length = Duration.parse(text)
    except DurationError:
        return f"annotation {labels.DO_NOT_DISRUPT}={text!r} has no effect: {allowed}"
    if length <= 0 or text == "Never":
        return f"annotation {labels.DO_NOT_DISRUPT}={text!r} has no effect: {allowed}, and must be more than zero"
    return None
