"""Metrics of status conditions that turn: in a general form, and once for each kind."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from joiner.clock import Clock
from joiner.model.conditions import Condition
from joiner.model.meta import KubeObject, ObjectMeta
from joiner.observe.families import SECONDS


class Transitions:
    """How often conditions turned, how long they had stood before, and how long objects took to go."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self._clock = clock
        known = ("group", "kind", "type", "status", "reason")
        self.total = Counter(
            "operator_status_condition_transitions_total", "How often conditions turned.", known, registry=registry
        )
        self.seconds = Histogram(
            "operator_status_condition_transition_seconds",
            "How long conditions had stood before they turned.",
            ("group", "kind", "type", "status", "to_status"),
            registry=registry,
            buckets=SECONDS,
        )
        self.going = Histogram(
            "operator_termination_duration_seconds",
            "How long objects took from deletion to being gone.",
            ("group", "kind"),
            registry=registry,
            buckets=SECONDS,
        )

    def turned(self, kind: type[KubeObject], old: Condition, new: Condition) -> None:
        """A condition has another status."""
        self.total.labels(kind.group, kind.kind, new.type, new.status, new.reason).inc()
        if old.last_transition_time is not None and new.last_transition_time is not None:
            stood = (new.last_transition_time - old.last_transition_time).total_seconds()
            self.seconds.labels(kind.group, kind.kind, new.type, old.status, new.status).observe(max(0.0, stood))

    def gone(self, kind: type[KubeObject], metadata: ObjectMeta) -> None:
        """An object is gone."""
        if metadata.deletion_timestamp is not None:
            took = (self._clock.now() - metadata.deletion_timestamp).total_seconds()
            self.going.labels(kind.group, kind.kind).observe(max(0.0, took))
