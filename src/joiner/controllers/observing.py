"""What is counted as things change: how long pods waited, how conditions turned. Listeners, not reconcilers: they never write."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from joiner.kube.controller import Change
from joiner.kube.informer import Informers
from joiner.model.meta import KubeObject
from joiner.model.pod import Pod, condition
from joiner.observe.conditions import Transitions
from joiner.observe.metrics import Metrics
from joiner.state.cluster import Cluster


class PodWatch:
    """Observes when pods get a node and when they become ready."""

    def __init__(self, informers: Informers, cluster: Cluster, metrics: Metrics) -> None:
        self._cluster, self._metrics = cluster, metrics
        informers.of(Pod).listen(self._heard)

    def _heard(self, change: Change) -> None:
        """Only what happens before our eyes counts: at a start nobody knows how long ago it was."""
        before, after = change.before, change.after
        if before is None or after is None or after.metadata.creation_timestamp is None:
            return
        times = self._cluster.times(after.metadata.namespace, after.name)
        placed = times.schedulable if times is not None else None
        claims = str(bool(after.spec.resource_claims)).lower()
        if (moment := _turned(before, after, "PodScheduled")) is not None:
            waited = (moment - after.metadata.creation_timestamp).total_seconds()
            self._metrics.pods_bound_duration_seconds.labels(dynamic_resources=claims).observe(waited)
            if placed is not None:
                waited = max(0.0, (moment - placed).total_seconds())
                self._metrics.pods_provisioning_bound_duration_seconds.labels(dynamic_resources=claims).observe(waited)
        if (moment := _turned(before, after, "Ready")) is not None:
            waited = (moment - after.metadata.creation_timestamp).total_seconds()
            self._metrics.pods_startup_duration_seconds.observe(waited)
            if placed is not None:
                waited = max(0.0, (moment - placed).total_seconds())
                self._metrics.pods_provisioning_startup_duration_seconds.observe(waited)


def _turned(before: Pod, after: Pod, kind: str) -> datetime | None:
    """When a condition became True, if it just did."""
    had, has = condition(before, kind), condition(after, kind)
    if has is None or has.status != "True" or (had is not None and had.status == "True"):
        return None
    return has.last_transition_time


class ConditionWatch:
    """Counts how often, and after how long, conditions of our objects turn; and how long objects took to go."""

    def __init__(self, informers: Informers, transitions: Transitions, kinds: Iterable[type[KubeObject]]) -> None:
        self._transitions = transitions
        for kind in kinds:
            informers.of(kind).listen(self._heard)

    def _heard(self, change: Change) -> None:
        before, after = change.before, change.after
        if after is None:
            self._transitions.gone(type(before), before.metadata)
        elif before is not None and before.status.conditions != after.status.conditions:
            self._compare(before, after)

    def _compare(self, before: Any, after: Any) -> None:
        known = {each.type: each for each in before.status.conditions}
        for each in after.status.conditions:
            old = known.get(each.type)
            if old is None or old.status != each.status:
                self._transitions.turned(type(after), old, each)
