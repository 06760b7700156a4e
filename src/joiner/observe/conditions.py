"""Metrics of status conditions that turn: for all kinds together, and once for each kind."""

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from joiner.clock import Clock
from joiner.model.conditions import Condition
from joiner.model.meta import KubeObject, ObjectMeta

BUCKETS: Final = tuple(0.5 * 2.0**power for power in range(15))
"""Half a second to more than two hours."""
_KIND: Final = ("group", "kind")


class Transitions:
    """How often conditions turned, how long they had stood before, and how long objects took to go."""

    def __init__(self, registry: CollectorRegistry, clock: Clock, kinds: Iterable[type[KubeObject]] = ()) -> None:
        self._clock = clock
        self._all = _Families(registry, "operator", _KIND)
        self._each = {kind: _Families(registry, f"operator_{kind.kind.lower()}", ()) for kind in kinds}

    def turned(self, kind: type[KubeObject], old: Condition | None, new: Condition) -> None:
        """A condition has another status, or came."""
        stood: float | None = None
        if old is not None and old.last_transition_time is not None and new.last_transition_time is not None:
            stood = max(0.0, (new.last_transition_time - old.last_transition_time).total_seconds())
        for families, said in self._families(kind):
            families.total.labels(*said, new.type, new.status, new.reason).inc()
            if old is not None and stood is not None:
                families.seconds.labels(*said, new.type, old.status, new.status).observe(stood)

    def gone(self, kind: type[KubeObject], metadata: ObjectMeta) -> None:
        """An object is gone."""
        if metadata.deletion_timestamp is None:
            return
        took = max(0.0, (self._clock.now() - metadata.deletion_timestamp).total_seconds())
        for families, said in self._families(kind):
            (families.going.labels(*said) if said else families.going).observe(took)

    def _families(self, kind: type[KubeObject]) -> Iterable[tuple["_Families", tuple[str, ...]]]:
        yield self._all, (kind.group, kind.kind)
        if kind in self._each:
            yield self._each[kind], ()


class _Families:
    """The metrics of one kind, or of all."""

    def __init__(self, registry: CollectorRegistry, prefix: str, known: tuple[str, ...]) -> None:
        self.total = Counter(
            f"{prefix}_status_condition_transitions_total",
            "How often conditions turned.",
            (*known, "type", "status", "reason"),
            registry=registry,
        )
        self.seconds = Histogram(
            f"{prefix}_status_condition_transition_seconds",
            "How long conditions had stood before they turned.",
            (*known, "type", "status", "to_status"),
            registry=registry,
            buckets=BUCKETS,
        )
        self.going = Histogram(
            f"{prefix}_termination_duration_seconds",
            "How long objects took from deletion to being gone.",
            known,
            registry=registry,
            buckets=BUCKETS,
        )
