"""Metrics and events on changes of objects: how long pods waited, how conditions turned, which finalizers were removed.

Listeners, not reconcilers: they never write.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from joiner.kube.client import Key, key_of
from joiner.kube.controller import Change
from joiner.kube.informer import Informers
from joiner.model import podrules
from joiner.model.conditions import Conditions
from joiner.model.customobject import CustomObject
from joiner.model.pod import Pod, condition, is_true
from joiner.observe.conditions import Transitions, Watched
from joiner.observe.events import Recorder
from joiner.observe.metrics import Metrics
from joiner.state.cluster import Cluster

PENDING: Final = "Pending"


class PodWatch:
    """Observes when pods get a node and when they first become ready."""

    def __init__(self, informers: Informers, cluster: Cluster, metrics: Metrics) -> None:
        self._cluster, self._metrics = cluster, metrics
        self._starting: set[str] = set()
        """The uids of pods that were seen pending and have not been ready since."""
        informers.of(Pod).listen(self._heard)

    def is_starting(self, pod: Pod) -> bool:
        """Whether the pod has yet to become ready for the first time."""
        return pod.metadata.uid in self._starting

    def _heard(self, change: Change) -> None:
        before, after = change.before, change.after
        if after is None or podrules.is_terminal(after):
            self._starting.discard(change.latest.metadata.uid)
        elif after.metadata.creation_timestamp is not None:
            if after.status.phase == PENDING:
                self._starting.add(after.metadata.uid)
            if before is not None and not is_true(before, "PodScheduled"):
                self._bound(after, after.metadata.creation_timestamp)
            if after.metadata.uid in self._starting and is_true(after, "Ready"):
                self._starting.discard(after.metadata.uid)
                self._started(after, after.metadata.creation_timestamp)

    def _bound(self, pod: Pod, born: datetime) -> None:
        """Only what is seen to happen counts: at a start it is not known how long ago it was."""
        moment = _since(pod, "PodScheduled")
        if moment is None:
            return
        claims = str(bool(pod.spec.resource_claims)).lower()
        waited = max(0.0, (moment - born).total_seconds())
        self._metrics.pods_bound_duration_seconds.labels(dynamic_resources=claims).observe(waited)
        placed = self._placed(pod)
        if placed is not None:
            waited = max(0.0, (moment - placed).total_seconds())
            self._metrics.pods_provisioning_bound_duration_seconds.labels(dynamic_resources=claims).observe(waited)

    def _started(self, pod: Pod, born: datetime) -> None:
        moment, placed = _since(pod, "Ready"), self._placed(pod)
        if moment is not None:
            self._metrics.pods_startup_duration_seconds.observe(max(0.0, (moment - born).total_seconds()))
        if moment is not None and placed is not None:
            waited = max(0.0, (moment - placed).total_seconds())
            self._metrics.pods_provisioning_startup_duration_seconds.observe(waited)

    def _placed(self, pod: Pod) -> datetime | None:
        times = self._cluster.times(pod.metadata.namespace, pod.name)
        return times.schedulable if times is not None and times.uid == pod.metadata.uid else None


def _since(pod: Pod, kind: str) -> datetime | None:
    """Since when a condition has been True, if it is."""
    found = condition(pod, kind)
    return found.last_transition_time if found is not None and found.status == "True" else None


class ConditionWatch:
    """Counts how often, and after how long, conditions of objects turn, and how long objects took to go; and tells of both."""

    def __init__(
        self, informers: Informers, transitions: Transitions, recorder: Recorder, kinds: Iterable[Watched]
    ) -> None:
        self._transitions, self._recorder = transitions, recorder
        self._held: dict[tuple[str, Key], tuple[str, ...]] = {}
        """The finalizers that objects had when they were last seen: of one that is gone nothing else tells of them."""
        for each in kinds:
            informers.of(each.kind).listen(self._heard)

    def _heard(self, change: Change) -> None:
        before, after = change.before, change.after
        self._let_go(change)
        if after is None:
            self._transitions.gone(before)
        elif before is not None and before.status.conditions != after.status.conditions:
            self._compare(before, after)

    def _let_go(self, change: Change) -> None:
        thing = change.latest
        address = (thing.kind, key_of(thing))
        left = thing.metadata.finalizers if change.after is not None else ()
        for each in self._held.get(address, ()):
            if each not in left:
                self._recorder.finalized(thing, each)
        if left:
            self._held[address] = left
        else:
            self._held.pop(address, None)

    def _compare(self, before: Any, after: Any) -> None:
        known = {each.type: each for each in _from_the_start(before)}
        for each in after.status.conditions:
            old = known.get(each.type)
            if each.status != (old.status if old is not None else "Unknown"):
                self._transitions.turned(after, old, each)
                if old is not None:
                    self._recorder.turned(after, old, each)


def _from_the_start(thing: Any) -> Conditions:
    """The conditions of an object, with those that it will have and that no controller has written yet."""
    conditions: Conditions = thing.status.conditions
    born = thing.metadata.creation_timestamp
    if born is None or not isinstance(thing, CustomObject) or not thing.condition_set.dependents:
        return conditions
    return thing.condition_set.initialised(conditions, thing.metadata, born)
