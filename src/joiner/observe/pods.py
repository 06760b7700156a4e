"""Metrics that name single pods, read off the caches when they are scraped. One option leaves all of them out."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from joiner.clock import Clock
from joiner.model import labels, podrules
from joiner.model.node import Node
from joiner.model.pod import Pod, condition
from joiner.observe.declare import PREFIX, Family
from joiner.state.bookkeeping import PodTimes

_STATE: Final = Family(
    f"{PREFIX}pods_state",
    "gauge",
    (
        "name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch", "capacity_type", "instance_type",
        "phase", "ready", "managed",
    ),
    "A pod, its node and where it is in its life.",
)  # fmt: skip
_NAMED: Final = ("name", "namespace")
_BOUND: Final = (*_NAMED, "dynamic_resources")
_WAITS: Final = (
    ("pods_unstarted_time_seconds", _NAMED, "How long a pod that was never ready has been there."),
    ("pods_unbound_time_seconds", _BOUND, "How long a pod without a node has been there."),
    ("pods_provisioning_unbound_time_seconds", _BOUND, "How long a pod without a node has had a place in a plan."),
    ("pods_provisioning_unstarted_time_seconds", _NAMED, "How long a pod that was never ready has had a place in a plan."),
    ("pods_provisioning_scheduling_undecided_time_seconds", _NAMED, "How long a pod has been seen but not planned for."),
)  # fmt: skip
POD_FAMILIES: Final = (_STATE, *(Family(PREFIX + name, "gauge", known, text) for name, known, text in _WAITS))
"""What `PodCollector` gives, for the reference page."""

Times = Callable[[str, str], PodTimes | None]
"""Namespace and name of a pod to how far we have come with it."""


class PodCollector(Collector):
    """Every pod: where it is, and what it waits for."""

    def __init__(
        self,
        *,
        pods: Callable[[], Iterable[Pod]],
        nodes: Callable[[], Iterable[Node]],
        times: Times,
        starting: Callable[[Pod], bool],
        clock: Clock,
    ) -> None:
        """`starting` tells whether a pod has yet to become ready for the first time."""
        self._pods, self._nodes, self._times, self._starting, self._clock = pods, nodes, times, starting, clock

    def collect(self) -> Iterator[Metric]:
        """Everything, as of now."""
        now = self._clock.now()
        nodes = {node.name: node.metadata.labels for node in self._nodes()}
        state = GaugeMetricFamily(_STATE.name, _STATE.meaning, labels=_STATE.labels)
        waits = [GaugeMetricFamily(PREFIX + name, text, labels=known) for name, known, text in _WAITS]
        for pod in self._pods():
            state.add_metric(_words(pod, nodes.get(pod.spec.node_name, {})), 1.0)
            if not podrules.is_terminal(pod):
                self._add_waits(waits, pod, now)
        yield state
        yield from waits

    def _add_waits(self, families: list[GaugeMetricFamily], pod: Pod, now: datetime) -> None:
        """Each of these exists only while the pod is in that state."""
        starting, bound = self._starting(pod), bool(pod.spec.node_name)
        if bound and not starting:
            return
        times = self._times(pod.metadata.namespace, pod.name)
        if times is not None and times.uid != pod.metadata.uid:
            times = None
        placed = times.schedulable if times is not None else None
        undecided = times.seen if times is not None and times.attempted is None and not bound else None
        born = pod.metadata.creation_timestamp
        since = (
            born if starting else None,
            None if bound else born,
            None if bound else placed,
            placed if starting else None,
            undecided,
        )
        named = (pod.name, pod.metadata.namespace, str(bool(pod.spec.resource_claims)).lower())
        for family, (_, known, _), moment in zip(families, _WAITS, since, strict=True):
            if moment is not None:
                family.add_metric(named[: len(known)], (now - moment).total_seconds())


def _words(pod: Pod, node: Mapping[str, str]) -> tuple[str, ...]:
    ready = condition(pod, "Ready")
    return (
        pod.name,
        pod.metadata.namespace,
        _owner(pod),
        pod.spec.node_name,
        str(bool(pod.spec.node_name)).lower(),
        node.get(labels.NODEPOOL, ""),
        node.get(labels.ZONE, ""),
        node.get(labels.ARCH, ""),
        node.get(labels.CAPACITY_TYPE, ""),
        node.get(labels.INSTANCE_TYPE, ""),
        pod.status.phase,
        str(ready is not None and ready.status == "True").lower(),
        str(labels.NODEPOOL in node).lower(),
    )


def _owner(pod: Pod) -> str:
    """Where the API server has the first owner."""
    for each in pod.metadata.owner_references:
        return f"/apis/{each.api_version}/namespaces/{pod.metadata.namespace}/{each.kind.lower()}s/{each.name}"
    return ""
