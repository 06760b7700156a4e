"""Offerings that ran dry: remembered for a while, then tried again.

A mark that expires changes what can be bought just as much as a new one does, so both move the generation. Time is the
monotonic one: a clock that is set back must not make a shortage last for ever.
"""

import heapq
from collections.abc import Collection
from datetime import timedelta
from typing import Final

from joiner.catalog.market import InstanceType, Offering
from joiner.clock import Clock
from joiner.model import labels
from joiner.model.meta import replace
from joiner.requirements import Requirements

REMEMBERED: Final = timedelta(minutes=3)
_ALL: Final = ""
"""In the place of a type: every type."""


class Unavailable:
    """Which offerings the cloud said it has none of, and until when we believe it."""

    def __init__(self, clock: Clock, remembered: timedelta = REMEMBERED) -> None:
        self._clock = clock
        self._remembered_s = remembered.total_seconds()
        self._until: dict[tuple[str, Requirements], float] = {}
        self._due: list[tuple[float, int, tuple[str, Requirements]]] = []
        self._moves = 0
        self._marks = 0

    def mark(self, instance_type: str, offering: Offering) -> None:
        """The cloud has none left; a mark that is made again lasts longer."""
        self._mark((instance_type, offering.requirements))

    def mark_capacity_type(self, capacity_type: str) -> None:
        """The cloud sells nothing of this capacity type, whatever the type and the zone."""
        self._mark((_ALL, Requirements.of_labels({labels.CAPACITY_TYPE: capacity_type})))

    def _mark(self, key: tuple[str, Requirements]) -> None:
        until = self._clock.monotonic() + self._remembered_s
        self._until[key] = until
        self._marks += 1
        heapq.heappush(self._due, (until, self._marks, key))
        self._moves += 1

    def generation(self) -> int:
        """Moves with every new mark and with every one that expires."""
        self._expire(self._clock.monotonic())
        return self._moves

    def _expire(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            until, _, key = heapq.heappop(self._due)
            if self._until.get(key) == until:  # else it was marked again meanwhile
                del self._until[key]
                self._moves += 1

    def apply(self, types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
        """The types with nothing available where a mark stands; the very same objects where none does."""
        self.generation()
        if not self._until:
            return types
        marked = {name for name, _ in self._until}
        kinds = {kind.at(labels.CAPACITY_TYPE).any() for name, kind in self._until if name == _ALL}
        return tuple(self._without(each, kinds) if kinds or each.name in marked else each for each in types)

    def _without(self, instance_type: InstanceType, kinds: Collection[str | None]) -> InstanceType:
        name = instance_type.name
        offerings = tuple(
            replace(each, available=0)
            if each.capacity_type in kinds or (name, each.requirements) in self._until
            else each
            for each in instance_type.offerings
        )
        return replace(instance_type, offerings=offerings)
