"""The drain of a node: which pods still have to go, which of them now, and when to look again.

Pods leave in four tiers, each only when the one before is gone: plain pods, plain daemons, critical pods, critical daemons.
Where the node has a deadline, a pod whose own grace period no longer fits before it is taken out of turn, by force.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from joiner.model import labels, podrequests, podrules, resources
from joiner.model.duration import Duration
from joiner.model.meta import Value
from joiner.model.pod import Pod
from joiner.model.storage import VolumeAttachment
from joiner.state.storage import claims_of

DEFAULT_GRACE_S: Final = 30
LEAST_GRACE: Final = timedelta(seconds=1)
EXCLUDE_FROM_LOAD_BALANCERS: Final = "node.kubernetes.io/exclude-from-external-load-balancers"
EXCLUDED_BY: Final = "karpenter"
LEAST_DRAIN: Final = timedelta(seconds=5)
"""A drain takes no less, so that pods which were bound at the last moment are seen."""


class Drain(Value):
    """Where the drain of a node stands."""

    waiting: tuple[Pod, ...] = ()
    """Pods that must be gone before the drain is over."""
    evict: tuple[Pod, ...] = ()
    """Those whose turn it is."""
    force: tuple[Pod, ...] = ()
    """Those that are deleted without asking a budget."""
    again_at: datetime | None = None
    """When something may be different although nothing happens."""


def plan(pods: Iterable[Pod], deadline: datetime | None, now: datetime) -> Drain:
    """Where a drain stands and what comes next. Large pods go first, while there is room for them; small ones fit between."""
    ordered = sorted(pods, key=_size)
    waiting = tuple(pod for pod in ordered if podrules.is_waiting_eviction(pod, now))
    forced = tuple(pod for pod in waiting if must_be_forced(pod, deadline, now))
    taken = {id(pod) for pod in forced}
    asked = tuple(pod for pod in waiting if id(pod) not in taken)
    first = min((_tier(pod) for pod in asked), default=None)
    turn = tuple(pod for pod in asked if _tier(pod) == first and podrules.is_evictable(pod, now))
    moments = [moment for pod in waiting for moment in _turns(pod, deadline) if moment > now]
    return Drain(waiting=waiting, evict=turn, force=forced, again_at=min(moments, default=None))


def _size(pod: Pod) -> tuple[int, int, str, str]:
    """The key of an order in which the largest pods come first, as in planning."""
    asked = podrequests.of_pod(pod)
    cpu, memory = asked.get(resources.CPU, 0), asked.get(resources.MEMORY, 0)
    return (-cpu, -memory, pod.metadata.namespace, pod.name)


def _tier(pod: Pod) -> tuple[bool, bool]:
    return (podrules.is_critical(pod), podrules.is_daemon(pod))


def grace(pod: Pod) -> timedelta:
    """How long the pod may take to end."""
    asked = pod.spec.termination_grace_period_seconds
    return timedelta(seconds=DEFAULT_GRACE_S if asked is None else asked)


def must_be_forced(pod: Pod, deadline: datetime | None, now: datetime) -> bool:
    """Whether the pod would outlive the deadline if it were only asked to go.

    A pod that has been cut down to the shortest grace there is needs nothing more.
    """
    if deadline is None:
        return False
    if pod.metadata.deletion_timestamp is not None:
        return pod.metadata.deletion_timestamp > max(deadline, now + LEAST_GRACE)
    return now > deadline - grace(pod)


def forced_grace_s(deadline: datetime, now: datetime) -> int:
    """The grace period of a forced deletion: what is left until the deadline."""
    return max(int(LEAST_GRACE.total_seconds()), int((deadline - now).total_seconds()))


def protected_until(pod: Pod) -> datetime | None:
    """When a do-not-disrupt annotation that names a duration ends; nothing if it does not, or is not known yet."""
    text = pod.metadata.annotations.get(labels.DO_NOT_DISRUPT)
    started = pod.status.start_time
    if text in (None, "true") or started is None or podrules.do_not_disrupt_problem(pod) is not None:
        return None
    return started + Duration.parse(str(text)).timedelta


def _turns(pod: Pod, deadline: datetime | None) -> Iterable[datetime]:
    """The moments at which a drain sees the pod differently."""
    deleted = pod.metadata.deletion_timestamp
    moment = timedelta(milliseconds=1)
    if deleted is not None:
        yield deleted + podrules.STUCK_AFTER + moment
    elif deadline is not None:
        yield deadline - grace(pod) + moment
    until = protected_until(pod)
    if until is not None:
        yield until


def attached(
    attachments: Iterable[VolumeAttachment],
    pods: Iterable[Pod],
    volume_of: Mapping[tuple[str, str], str],
    now: datetime,
) -> tuple[str, ...]:
    """The volumes that must still be detached, by name.

    Not those that belong to pods which stay to the end. `volume_of` leads from the namespace and name of a
    PersistentVolumeClaim to its volume.
    """
    staying = {
        volume_of.get(claim, "") for pod in pods if not podrules.is_drainable(pod, now) for claim in claims_of(pod)
    }
    names = (each.spec.source.persistent_volume_name for each in attachments)
    return tuple(sorted({name for name in names if name and name not in staying}))
