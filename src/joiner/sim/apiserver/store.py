"""Where the pretend API server keeps its objects, and the history that watches read.

A watch holds a place in the history and asks for what comes next; the server knows no watches, only who waits. A
watcher that goes away therefore leaves nothing behind, and one that is too slow finds its place gone.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, Generic, NamedTuple, TypeVar

from joiner.kube.client import ADDED, BOOKMARK, DELETED, Happening, Key, WatchEvent, key_of
from joiner.kube.errors import Gone
from joiner.model.meta import KubeObject, ObjectMeta

K = TypeVar("K", bound=KubeObject)

HISTORY: Final = 1000
"""How many events of a kind are remembered, at least."""


class Entry(NamedTuple, Generic[K]):
    """One event of the history, and the object as it was before it."""

    version: int
    event: WatchEvent[K]
    before: K | None


class ObjectStore(Generic[K]):
    """All objects of one kind, and what happened to them lately."""

    def __init__(self, kind: type[K], history: int = HISTORY) -> None:
        self.kind = kind
        self.objects: dict[Key, K] = {}
        self.hangups = 0
        """How often all who watch were hung up on."""
        self._history: list[Entry[K]] = []
        self._most = history
        self._forgotten = 0
        """How many entries came before the first that is remembered."""
        self._oldest = 0
        """The version from which on everything is remembered."""
        self._waiting: list[asyncio.Future[None]] = []

    def put(self, version: int, happening: Happening, thing: K) -> None:
        """Take in what happened; waiting watches are woken."""
        key = key_of(thing)
        before = self.objects.get(key)
        if happening == DELETED:
            del self.objects[key]
        else:
            self.objects[key] = thing
        self._remember(Entry(version, WatchEvent(happening, thing), before))

    def bookmark(self, version: int) -> None:
        """Tell those who watch how far the history has come."""
        blank = self.kind(metadata=ObjectMeta(resource_version=str(version)))
        self._remember(Entry(version, WatchEvent(BOOKMARK, blank), None))

    def _remember(self, entry: Entry[K]) -> None:
        self._history.append(entry)
        if len(self._history) > 2 * self._most:
            self.forget(self._most)
        self._wake()

    def forget(self, keep: int = 0) -> None:
        """Drop the history but for its last entries, as compaction does."""
        drop = len(self._history) - keep
        if drop > 0:
            self._oldest = self._history[drop - 1].version
            self._forgotten += drop
            del self._history[:drop]

    def hang_up(self) -> None:
        """End every watch."""
        self.hangups += 1
        self._wake()

    def _wake(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    def place_after(self, version: int) -> int:
        """Where in the history a watch from that version begins."""
        if version < self._oldest:
            raise Gone(f"{self.kind.kind}: version {version} is too old; the oldest still known is {self._oldest}")
        return self._forgotten + bisect_right(self._history, version, key=lambda entry: entry.version)

    def at(self, place: int) -> Entry[K] | None:
        """The entry at that place; nothing if it is still to come."""
        index = place - self._forgotten
        if index < 0:
            raise Gone(f"{self.kind.kind}: the watch was too slow, and what it should see next is forgotten")
        return self._history[index] if index < len(self._history) else None

    def more(self) -> "asyncio.Future[None]":
        """Something to wait for until more happens."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    def as_of(self, version: int, now: int) -> tuple[dict[Key, K], int]:
        """The objects as they were at that version, or at the oldest one that is still known, and which one it is."""
        then = max(version, self._oldest)
        objects = dict(self.objects)
        for entry in self._undone(then):
            key = key_of(entry.event.object)
            if entry.before is None:
                objects.pop(key, None)
            else:
                objects[key] = entry.before
        return objects, min(then, now)

    def _undone(self, version: int) -> Iterator[Entry[K]]:
        for entry in reversed(self._history):
            if entry.version <= version:
                return
            yield entry


def happening_of(before: KubeObject | None) -> Happening:
    """What it is to those who watch when an object is put in the place of another one, or of none."""
    return ADDED if before is None else "MODIFIED"
