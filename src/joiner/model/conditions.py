"""Status conditions: what is true of an object, since when, and the one condition that sums the others up.

Every kind has a root (`Ready`) and a fixed list of dependents; any other condition is independent. The root is never set
directly: it is computed from the dependents. All functions take and return conditions; the time is passed in.
"""

from datetime import UTC, datetime
from typing import Final, Literal

from joiner.model.meta import ObjectMeta, Value, replace

Status = Literal["True", "False", "Unknown"]

READY: Final = "Ready"
AWAITING_RECONCILIATION: Final = "AwaitingReconciliation"
UNHEALTHY_DEPENDENTS: Final = "UnhealthyDependents"
RECONCILING_DEPENDENTS: Final = "ReconcilingDependents"

_BEGINNING: Final = datetime(1, 1, 1, tzinfo=UTC)


class Condition(Value, omit_defaults=False):
    """One observation. Its reason and message are written even when empty: the API server insists on them."""

    type: str
    status: Status
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    """When the status, not merely the reason, last became what it is."""
    observed_generation: int = 0


Conditions = tuple[Condition, ...]


def find(conditions: Conditions, kind: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((condition for condition in conditions if condition.type == kind), None)


def is_true(conditions: Conditions, kind: str) -> bool:
    """Whether the condition is there and True."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "True"


def _since(condition: Condition) -> datetime:
    return condition.last_transition_time or _BEGINNING


class ConditionSet(Value):
    """The root and dependent conditions of a kind, and how the root follows from the dependents."""

    root: str = READY
    dependents: tuple[str, ...] = ()

    def initialised(self, conditions: Conditions, metadata: ObjectMeta, now: datetime) -> Conditions:
        """The same with every missing root and dependent added as Unknown."""
        for kind in (*self.dependents, self.root):
            if find(conditions, kind) is None:
                conditions, _ = self.set_unknown(conditions, kind, metadata, now)
        return conditions

    def set_true(
        self,
        conditions: Conditions,
        kind: str,
        metadata: ObjectMeta,
        now: datetime,
        *,
        reason: str = "",
        message: str = "",
    ) -> tuple[Conditions, bool]:
        """Set to True; without a reason the type itself is the reason."""
        wanted = Condition(type=kind, status="True", reason=reason or kind, message=message)
        return self.set(conditions, wanted, metadata, now)

    def set_false(
        self, conditions: Conditions, kind: str, metadata: ObjectMeta, now: datetime, *, reason: str, message: str
    ) -> tuple[Conditions, bool]:
        """Set to False, which always needs a reason."""
        return self.set(conditions, Condition(type=kind, status="False", reason=reason, message=message), metadata, now)

    def set_unknown(
        self,
        conditions: Conditions,
        kind: str,
        metadata: ObjectMeta,
        now: datetime,
        *,
        reason: str = AWAITING_RECONCILIATION,
        message: str = "not looked at yet",
    ) -> tuple[Conditions, bool]:
        """Set to Unknown; without a reason, because no controller has looked yet."""
        return self.set(
            conditions, Condition(type=kind, status="Unknown", reason=reason, message=message), metadata, now
        )

    def set(
        self, conditions: Conditions, wanted: Condition, metadata: ObjectMeta, now: datetime
    ) -> tuple[Conditions, bool]:
        """The conditions with one set and the root recomputed, and whether that changed anything.

        The generation and the transition time of `wanted` are filled in here. On an object that is being deleted the other
        conditions count as observed too, because the controllers that set them may already have stopped.
        """
        old = find(conditions, wanted.type)
        new = replace(
            wanted,
            observed_generation=metadata.generation,
            last_transition_time=self._moment(old, wanted, metadata, now),
        )
        if new == old:
            return conditions, False
        others = (condition for condition in conditions if condition.type != wanted.type)
        if metadata.deletion_timestamp is not None:
            others = (replace(condition, observed_generation=metadata.generation) for condition in others)
        changed = self._ordered((*others, new))
        if wanted.type != self.root:
            changed, _ = self.set(changed, self._root_after(changed, metadata.generation), metadata, now)
        return changed, True

    def clear(self, conditions: Conditions, kind: str) -> tuple[Conditions, bool]:
        """The conditions without an independent one, and whether it was there."""
        if kind == self.root or kind in self.dependents:
            raise ValueError(f"condition {kind} is always present and cannot be cleared; set it to Unknown instead")
        remaining = tuple(condition for condition in conditions if condition.type != kind)
        return remaining, len(remaining) != len(conditions)

    def _moment(self, old: Condition | None, wanted: Condition, metadata: ObjectMeta, now: datetime) -> datetime | None:
        if old is not None and old.status == wanted.status:
            return old.last_transition_time
        if old is None and wanted.type in self.dependents:
            # Its first "transition" was the creation of the object, so that time-outs count from there.
            return metadata.creation_timestamp or now
        return now

    def _ordered(self, conditions: Conditions) -> Conditions:
        return tuple(sorted(conditions, key=lambda condition: (condition.type == self.root, _since(condition))))

    def _root_after(self, conditions: Conditions, generation: int) -> Condition:
        unhealthy = [
            condition
            for condition in conditions
            if condition.type in self.dependents
            and (condition.status != "True" or condition.observed_generation != generation)
        ]
        if not unhealthy:
            return Condition(type=self.root, status="True", reason=self.root)
        latest_first = sorted(unhealthy, key=_since, reverse=True)
        message = ", ".join(f"{condition.type}={condition.status}" for condition in latest_first)
        if any(c.status == "False" and c.observed_generation == generation for c in unhealthy):
            return Condition(type=self.root, status="False", reason=UNHEALTHY_DEPENDENTS, message=message)
        return Condition(type=self.root, status="Unknown", reason=RECONCILING_DEPENDENTS, message=message)
