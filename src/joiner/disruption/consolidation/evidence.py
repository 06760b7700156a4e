"""How long a cluster has been as it is: the horizon within which a move has to be paid back grows with it.

A workload is steady while the number of its pods does not change. That pods are moved, by us or by others, changes nothing about
it. A node's horizon is as long as all workloads on it have been steady, between the shortest and the longest that the rules name.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from joiner.disruption.consolidation.memory import Owner, Workload
from joiner.disruption.situation import Situation
from joiner.model import podrules
from joiner.model.pod import Pod

STEPS_H: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 24.0)
"""A horizon grows in steps, so that a part is asked again only when it comes to the next one."""


def owner_of(pod: Pod) -> Owner:
    """What a pod belongs to: its first owner, or itself."""
    return (pod.metadata.namespace, next((owner.name for owner in pod.metadata.owner_references), pod.name))


def observed(situation: Situation, known: Mapping[Owner, Workload]) -> Mapping[Owner, Workload]:
    """Since when each workload has had as many pods as now; nothing where horizons do not grow.

    Of a workload that is seen for the first time its youngest pod tells, and when pods came to its nodes or left them last.
    """
    rules, now = situation.rules, situation.now
    if rules.longest_horizon <= rules.horizon:
        return {}
    counts: Counter[Owner] = Counter()
    last: dict[Owner, datetime] = {}
    for each in situation.snapshot.nodes:
        moved = each.claim.status.last_pod_event_time if each.claim is not None else None
        for pod in each.pods:
            if podrules.is_reschedulable(pod):
                owner = owner_of(pod)
                counts[owner] += 1
                if owner not in known:
                    last[owner] = max(_moments(last.get(owner), moved, pod.metadata.creation_timestamp), default=now)
    for pod in (*situation.snapshot.waiting, *situation.snapshot.held):
        if not pod.spec.node_name:
            counts[owner_of(pod)] += 1
    found = {}
    for owner in sorted(counts):
        before = known.get(owner)
        if before is not None and before.count == counts[owner]:
            found[owner] = before
        else:
            since = now if before is not None else min(now, last.get(owner, now))
            found[owner] = Workload(count=counts[owner], since=since)
    return found


def _moments(*each: datetime | None) -> Iterable[datetime]:
    return [moment for moment in each if moment is not None]


def horizon_h(pods: Iterable[Pod], situation: Situation, known: Mapping[Owner, Workload]) -> float:
    """Within how many hours the removal of a node with these pods has to be paid back."""
    least = situation.rules.horizon.seconds / 3600.0
    if not known:
        return least
    most = situation.rules.longest_horizon.seconds / 3600.0
    steady = [known[owner].since for owner in map(owner_of, pods) if owner in known]
    hours = (situation.now - max(steady)).total_seconds() / 3600.0 if steady else 0.0
    step = max((each for each in STEPS_H if each <= hours), default=0.0)
    return max(least, min(most, step))
