"""Writing status conditions: set what is known, and send it only if that changed anything."""

from datetime import datetime
from typing import Any, Generic, TypeVar, cast

from joiner.kube.client import Writer
from joiner.model.conditions import Condition, find, is_true
from joiner.model.customobject import CustomObject
from joiner.model.meta import replace

C = TypeVar("C", bound=CustomObject)


class StatusEdit(Generic[C]):
    """The conditions of one object while a reconcile decides about them; missing ones are there as Unknown from the start."""

    def __init__(self, thing: C, now: datetime) -> None:
        self._thing = cast(Any, thing)
        self._now = now
        known = self._thing.status.conditions
        self.conditions = thing.condition_set.initialised(known, thing.metadata, now)

    def find(self, kind: str) -> Condition | None:
        """The condition as it stands now."""
        return find(self.conditions, kind)

    def is_true(self, kind: str) -> bool:
        """Whether it is True as it stands now."""
        return is_true(self.conditions, kind)

    def true(self, kind: str, *, reason: str = "", message: str = "") -> bool:
        """Set to True; tells whether that changed anything."""
        self.conditions, changed = self._thing.condition_set.set_true(
            self.conditions, kind, self._thing.metadata, self._now, reason=reason, message=message
        )
        return bool(changed)

    def false(self, kind: str, *, reason: str, message: str = "") -> bool:
        """Set to False; tells whether that changed anything."""
        self.conditions, changed = self._thing.condition_set.set_false(
            self.conditions, kind, self._thing.metadata, self._now, reason=reason, message=message
        )
        return bool(changed)

    def unknown(self, kind: str, *, reason: str, message: str = "") -> bool:
        """Set to Unknown; tells whether that changed anything."""
        self.conditions, changed = self._thing.condition_set.set_unknown(
            self.conditions, kind, self._thing.metadata, self._now, reason=reason, message=message
        )
        return bool(changed)

    def clear(self, kind: str) -> bool:
        """Take it away; tells whether it was there."""
        self.conditions, changed = self._thing.condition_set.clear(self.conditions, kind)
        return bool(changed)

    def result(self, **status: Any) -> C:
        """The object with these conditions, and with other fields of its status."""
        thing: C = replace(self._thing, status=replace(self._thing.status, conditions=self.conditions, **status))
        return thing

    async def write(self, client: Writer, **status: Any) -> C:
        """Send what changed, if anything did. Locked: two writers of conditions must not undo each other."""
        after = self.result(**status)
        if after == self._thing:
            return after
        return await client.patch_status(self._thing, after, locked=True)
