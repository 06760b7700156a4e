"""A work queue: one entry per key, however often it is added; later, sooner, or after a failure later still."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from joiner.kube.controller import Backoff

H = TypeVar("H", bound=Hashable)


class Queue(Generic[H]):
    """Keys that wait. A key in work is never handed out a second time until it is done.

    `ready` is called whenever a key has come that may be taken.
    """

    def __init__(self, backoff: Backoff, ready: Callable[[], None]) -> None:
        self._backoff = backoff
        self._ready = ready
        self._waiting: deque[H] = deque()
        self._queued: set[H] = set()
        self._working: set[H] = set()
        self._again: set[H] = set()
        self._later: dict[H, asyncio.TimerHandle] = {}
        self._failures: dict[H, int] = {}
        self._closed = False

    def add(self, key: H) -> None:
        """Now. A key that waits for later is done now instead."""
        handle = self._later.pop(key, None)
        if handle is not None:
            handle.cancel()
        if key in self._working:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._waiting.append(key)
            self._ready()

    def add_after(self, key: H, seconds: float) -> None:
        """Later; of two times the earlier one holds."""
        if seconds <= 0:
            self.add(key)
            return
        if self._closed or key in self._queued or key in self._again:
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        known = self._later.get(key)
        if known is not None:
            if known.when() <= due:
                return
            known.cancel()
        self._later[key] = loop.call_at(due, self._due, key)

    def _due(self, key: H) -> None:
        self._later.pop(key, None)
        self.add(key)

    def retry(self, key: H, soon_s: float | None = None) -> None:
        """After a failure: later each time, the first two times no later than what is said."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait = self._backoff.after(failures)
        self.add_after(key, wait if soon_s is None or failures > 2 else min(wait, soon_s))

    def forget(self, key: H) -> None:
        """It went well: the next failure is the first one."""
        self._failures.pop(key, None)

    def take(self) -> H | None:
        """The next key, which is in work until `done`; nothing when none waits."""
        if not self._waiting:
            return None
        key = self._waiting.popleft()
        self._queued.discard(key)
        self._working.add(key)
        return key

    def done(self, key: H) -> None:
        """The work is over. If the key was added meanwhile it is next in line."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Forget every timer, and set none any more."""
        self._closed = True
        for handle in self._later.values():
            handle.cancel()
        self._later.clear()

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, key: Any) -> bool:
        return key in self._queued or key in self._later or key in self._working
