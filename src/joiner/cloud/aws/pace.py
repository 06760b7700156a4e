"""How fast AWS is asked: a bucket of tokens in front of launches, and calls about single machines that become one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from joiner.clock import Clock

T = TypeVar("T")
LAUNCHES_AT_ONCE: Final = 50
LAUNCHES_A_SECOND: Final = 5.0
"""What EC2 takes of CreateFleet by default: so many calls at once, then so many a second."""
IDLE_S: Final = 0.1
LONGEST_S: Final = 1.0
MOST: Final = 500
"""Questions are gathered until none came for a moment, for a second at most, or until there are so many."""


class Bucket:
    """Lets so many through at once, and then so many a second, in the order in which they came."""

    def __init__(self, clock: Clock, size: int = LAUNCHES_AT_ONCE, per_second: float = LAUNCHES_A_SECOND) -> None:
        self._clock, self._size, self._per_second = clock, float(size), per_second
        self._level, self._at = self._size, clock.monotonic()

    async def take(self) -> None:
        """Wait for a token."""
        now = self._clock.monotonic()
        self._level = min(self._size, self._level + (now - self._at) * self._per_second) - 1.0
        self._at = now
        if self._level < 0:
            await asyncio.sleep(-self._level / self._per_second)


class Gathered(Generic[T]):
    """Asks about many machines in one call. A caller asks about one, and gets the answer about that one."""

    def __init__(
        self, clock: Clock, ask: Callable[[Sequence[str]], Awaitable[dict[str, T]]], done: Callable[[int, float], None]
    ) -> None:
        """`ask` gives what it found by id; `done` is told how many were asked about together and how long they waited."""
        self._clock, self._ask, self._done = clock, ask, done
        self._waiting: dict[str, asyncio.Future[T | None]] = {}
        self._closing: dict[asyncio.Task[None], None] = {}
        self._first = self._last = 0.0

    async def about(self, identity: str) -> T | None:
        """What is known of a machine; nothing where the call for all of them did not tell. Raises what the call raises."""
        known = self._waiting.get(identity)
        if known is None:
            known = self._waiting[identity] = asyncio.get_running_loop().create_future()
        self._last = self._clock.monotonic()
        if len(self._waiting) == 1:
            self._first = self._last
            task = asyncio.get_running_loop().create_task(self._close(), name="aws gathering")
            self._closing[task] = None
            task.add_done_callback(self._closing.pop)
        return await asyncio.shield(known)

    async def _close(self) -> None:
        while len(self._waiting) < MOST:
            now = self._clock.monotonic()
            wait = min(self._last + IDLE_S, self._first + LONGEST_S) - now
            if wait <= 0:
                break
            await asyncio.sleep(wait)
        waiting, self._waiting = self._waiting, {}
        self._done(len(waiting), self._clock.monotonic() - self._first)
        try:
            found = await self._ask(sorted(waiting))
        except Exception as error:  # told to all callers
            for each in waiting.values():
                each.set_exception(error)
                each.exception()  # one whose caller has gone is no unhandled error
            return
        for identity, each in waiting.items():
            each.set_result(found.get(identity))
