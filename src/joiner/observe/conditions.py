"""Metrics of status conditions: how they stand, and how they turn. Once for each kind, and for most kinds together."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from joiner.clock import Clock
from joiner.model import labels
from joiner.model.capacitybuffer import CapacityBuffer
from joiner.model.conditions import Condition
from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.typesettings import InstanceTypeSettings
from joiner.observe.declare import CALLS, Family, doubling

PREFIX: Final = "operator"
TRANSITIONS: Final = doubling(0.5, 15)
"""Half a second to more than two hours."""
Objects = Callable[[], Iterable[Any]]

_KIND: Final = ("group", "kind")
_OBJECT: Final = ("namespace", "name")
_TOLD: Final = ("type", "status", "reason")
_COUNT: Final = ("status_condition_count", "A condition as it stands.")
_STANDING: Final = ("status_condition_current_status_seconds", "For how long a condition has stood so.")
_GOING: Final = ("termination_current_time_seconds", "For how long an object has been going.")
_TURNS: Final = ("status_condition_transitions_total", "How often conditions turned.")
_STOOD: Final = ("status_condition_transition_seconds", "How long conditions had stood before they turned.")
_GONE: Final = ("termination_duration_seconds", "How long objects took from deletion to being gone.")


class Watched(NamedTuple):
    """A kind whose conditions are told."""

    kind: type[KubeObject]
    labels: tuple[str, ...] = ()
    """Labels of its objects that its own metrics carry."""
    together: bool = True
    """Whether it is in the metrics of all kinds, too."""

    @property
    def prefix(self) -> str:
        """What the names of its own metrics begin with."""
        return f"{PREFIX}_{self.kind.kind.lower()}"

    @property
    def names(self) -> tuple[str, ...]:
        """Its labels as metrics write them."""
        return tuple(_written(each) for each in self.labels)

    def values(self, thing: KubeObject) -> tuple[str, ...]:
        """What an object has for them."""
        return tuple(thing.metadata.labels.get(each, "") for each in self.labels)


def watched_kinds(
    node_classes: Iterable[type[KubeObject]], *, overlays: bool = True, buffers: bool = True
) -> tuple[Watched, ...]:
    """Everything that has conditions. There are many nodes, and they are told only by themselves."""
    classes = tuple(node_classes)
    named = tuple(f"{kind.group}/{kind.kind.lower()}" for kind in classes)
    return (
        Watched(NodeClaim, (*named, labels.NODEPOOL)),
        Watched(NodePool),
        Watched(Node, (*named, labels.NODEPOOL, labels.INITIALIZED), together=False),
        *(Watched(kind) for kind in classes),
        *((Watched(NodeOverlay),) if overlays else ()),
        Watched(InstanceTypeSettings),
        *((Watched(CapacityBuffer),) if buffers else ()),
    )


class ConditionCollector(Collector):
    """Conditions as they stand when they are scraped. Nothing is left of objects that are gone."""

    def __init__(self, clock: Clock, kinds: Mapping[Watched, Objects]) -> None:
        self._clock, self._kinds = clock, kinds

    def collect(self) -> Iterator[Metric]:
        """Everything, as of now."""
        now = self._clock.now()
        together = _Standing(PREFIX, _KIND)
        for watched, objects in self._kinds.items():
            apart = _Standing(watched.prefix, watched.names)
            for thing in objects():
                apart.add(thing, watched.values(thing), now)
                if watched.together:
                    together.add(thing, (watched.kind.group, watched.kind.kind), now)
            yield from apart.families
        yield from together.families


class _Standing:
    """How conditions stand, of one kind or of all."""

    def __init__(self, prefix: str, more: tuple[str, ...]) -> None:
        known = (*_OBJECT, *_TOLD, *more)
        self._count = GaugeMetricFamily(f"{prefix}_{_COUNT[0]}", _COUNT[1], labels=known)
        self._standing = GaugeMetricFamily(f"{prefix}_{_STANDING[0]}", _STANDING[1], labels=known)
        self._going = GaugeMetricFamily(f"{prefix}_{_GOING[0]}", _GOING[1], labels=(*_OBJECT, *more))
        self.families = (self._count, self._standing, self._going)

    def add(self, thing: Any, more: tuple[str, ...], now: datetime) -> None:
        """Take in one object."""
        metadata = thing.metadata
        named = (metadata.namespace, metadata.name)
        for each in thing.status.conditions:
            said = (*named, each.type, each.status, each.reason, *more)
            self._count.add_metric(said, 1.0)
            if each.last_transition_time is not None:
                self._standing.add_metric(said, (now - each.last_transition_time).total_seconds())
        if metadata.deletion_timestamp is not None:
            self._going.add_metric((*named, *more), (now - metadata.deletion_timestamp).total_seconds())


class Transitions:
    """How often conditions turned, how long they had stood before, and how long objects took to go."""

    def __init__(self, registry: CollectorRegistry, clock: Clock, kinds: Iterable[Watched] = ()) -> None:
        self._clock = clock
        self._all = _Turning(registry, PREFIX, _KIND, CALLS)
        self._each = {each.kind: (each, _Turning(registry, each.prefix, each.names, TRANSITIONS)) for each in kinds}

    def turned(self, thing: KubeObject, old: Condition | None, new: Condition) -> None:
        """A condition has another status, or came."""
        stood: float | None = None
        if old is not None and old.last_transition_time is not None and new.last_transition_time is not None:
            stood = max(0.0, (new.last_transition_time - old.last_transition_time).total_seconds())
        for turning, more in self._families(thing):
            turning.total.labels(new.type, new.status, new.reason, *more).inc()
            if old is not None and stood is not None:
                turning.seconds.labels(new.type, old.status, new.status, *more).observe(stood)

    def gone(self, thing: KubeObject) -> None:
        """An object is gone."""
        if thing.metadata.deletion_timestamp is None:
            return
        took = max(0.0, (self._clock.now() - thing.metadata.deletion_timestamp).total_seconds())
        for turning, more in self._families(thing):
            (turning.going.labels(*more) if more else turning.going).observe(took)

    def _families(self, thing: KubeObject) -> Iterator[tuple["_Turning", tuple[str, ...]]]:
        watched, own = self._each[type(thing)]
        yield own, watched.values(thing)
        if watched.together:
            yield self._all, (thing.group, thing.kind)


class _Turning:
    """How conditions turn, of one kind or of all."""

    def __init__(
        self, registry: CollectorRegistry, prefix: str, more: tuple[str, ...], buckets: tuple[float, ...]
    ) -> None:
        self.total = Counter(f"{prefix}_{_TURNS[0]}", _TURNS[1], (*_TOLD, *more), registry=registry)
        self.seconds = Histogram(
            f"{prefix}_{_STOOD[0]}",
            _STOOD[1],
            ("type", "status", "to_status", *more),
            registry=registry,
            buckets=buckets,
        )
        self.going = Histogram(f"{prefix}_{_GONE[0]}", _GONE[1], more, registry=registry, buckets=buckets)


def _written(label: str) -> str:
    """A label of an object as the label of a metric."""
    return label.replace("/", "_").replace(".", "_").replace("-", "_")


def condition_families(prefix: str, more: tuple[str, ...], buckets: tuple[float, ...]) -> tuple[Family, ...]:
    """The metrics of one kind, or of all."""
    stand, turn = (*_OBJECT, *_TOLD, *more), (*_TOLD, *more)
    return (
        Family(f"{prefix}_{_COUNT[0]}", "gauge", stand, _COUNT[1]),
        Family(f"{prefix}_{_STANDING[0]}", "gauge", stand, _STANDING[1]),
        Family(f"{prefix}_{_TURNS[0]}", "counter", turn, _TURNS[1]),
        Family(f"{prefix}_{_STOOD[0]}", "histogram", ("type", "status", "to_status", *more), _STOOD[1], buckets),
        Family(f"{prefix}_{_GOING[0]}", "gauge", (*_OBJECT, *more), _GOING[1]),
        Family(f"{prefix}_{_GONE[0]}", "histogram", more, _GONE[1], buckets),
    )


TOGETHER: Final = condition_families(PREFIX, _KIND, CALLS)
"""The metrics of all kinds together, for the reference page."""
