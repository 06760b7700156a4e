"""How many requests are sent: so many a second, so many at once, and the important ones first.

A lease that is not renewed in time costs the leadership, and a deletion frees money: neither waits behind a crowd of events.

A server that does not answer in time has more to do than it can: half as many requests are sent at once from then on, and more
again while answers come. Without that the requests that are tried again keep it from ever answering, also about the lease.
"""

import asyncio
import heapq
from enum import IntEnum
from typing import Final

from joiner.clock import Clock

AT_ONCE: Final = 100
"""How many requests are under way at the most; watches and the lease do not count."""
AT_ONCE_LEAST: Final = 4
"""How many may be under way however busy the server is."""
HALVED_S: Final = 5.0
"""Requests that were sent together come back late together: the number is halved only once in this time."""


class Priority(IntEnum):
    """What goes first."""

    LEASE = 0
    REMOVE = 1
    WRITE = 2
    READ = 3
    EVENT = 4


class RateLimit:
    """A bucket that fills with time, and a line of those who wait for it, ordered by priority and then by arrival."""

    def __init__(self, clock: Clock, *, per_second: float, burst: int, at_once: int = AT_ONCE) -> None:
        self._clock, self._per_second, self._burst = clock, per_second, float(burst)
        self._level, self._at = float(burst), clock.monotonic()
        self._most, self._at_once, self._under_way = float(at_once), float(at_once), 0
        self._halved_at = -HALVED_S
        self._line: list[tuple[int, int, asyncio.Future[None]]] = []
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, priority: Priority) -> None:
        """Wait until the request may be sent. `leave` must follow."""
        future = asyncio.get_running_loop().create_future()
        self._number += 1
        heapq.heappush(self._line, (priority, self._number, future))
        self._serve()
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.leave(priority)
            raise

    def leave(self, priority: Priority, *, late: bool = False) -> None:
        """The request is over; `late`: there was no answer in time."""
        if priority is Priority.LEASE:
            return
        self._under_way -= 1
        now = self._clock.monotonic()
        if not late:
            self._at_once = min(self._most, self._at_once + 1.0 / self._at_once)
        elif now >= self._halved_at + HALVED_S:
            self._at_once, self._halved_at = max(self._at_once / 2.0, min(AT_ONCE_LEAST, self._most)), now
        self._serve()

    def _serve(self) -> None:
        self._fill()
        while self._line:
            priority, _, future = self._line[0]
            if future.done():
                heapq.heappop(self._line)
                continue
            if priority != Priority.LEASE:
                if self._under_way >= int(self._at_once):
                    return
                if self._level < 1.0:
                    self._later()
                    return
                self._under_way += 1
            self._level -= 1.0
            heapq.heappop(self._line)
            future.set_result(None)

    def _fill(self) -> None:
        now = self._clock.monotonic()
        self._level = min(self._burst, self._level + (now - self._at) * self._per_second)
        self._at = now

    def _later(self) -> None:
        if self._timer is None:
            wait = max((1.0 - self._level) / self._per_second, 0.001)
            self._timer = asyncio.get_running_loop().call_later(wait, self._due)

    def _due(self) -> None:
        self._timer = None
        self._serve()
