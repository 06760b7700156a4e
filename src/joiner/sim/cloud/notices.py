"""Interruption notices of the simulated cloud: a queue like SQS, and the NoticeQueue of the provider over it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar

from joiner.clock import Clock
from joiner.cloud.interruption import Kind, Notice
from joiner.model.nodeclaim import NodeClaim

T = TypeVar("T")
VISIBILITY_S: Final = 20.0
"""How long a notice that was received is hidden from others; one that is not acknowledged by then is given again."""
MOST: Final = 10
"""How many notices are given at once."""


class SentNotices:
    """What the cloud has sent and what was not acknowledged. It outlives every restart of the process that receives."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, tuple[Notice, float]] = {}
        """Notices by id, and from when on each is given."""
        self._number = 0
        self._waiting: asyncio.Future[None] | None = None
        self.muted = False
        """Whether the cloud sends nothing, as one without a queue for notices."""

    def send(self, kind: Kind, provider_id: str) -> None:
        """Send a notice about a machine."""
        if self.muted:
            return
        self._number += 1
        notice = Notice(id=f"notice-{self._number:05}", kind=kind, instances=(provider_id,), sent_at=self._clock.now())
        self._open[notice.id] = (notice, self._clock.monotonic())
        self._wake()

    async def arrival(self) -> None:
        """Wait until there is a notice to take."""
        loop = asyncio.get_running_loop()
        while not (moments := [moment for _, moment in self._open.values()]) or min(moments) > self._clock.monotonic():
            self._waiting = loop.create_future()
            timer = loop.call_later(min(moments) - self._clock.monotonic(), self._wake) if moments else None
            try:
                await self._waiting
            finally:
                if timer is not None:
                    timer.cancel()

    def take(self) -> tuple[Notice, ...]:
        """The next notices, hidden from now on for a while."""
        now = self._clock.monotonic()
        found = tuple(notice for notice, moment in self._open.values() if moment <= now)[:MOST]
        self._open.update({notice.id: (notice, now + VISIBILITY_S) for notice in found})
        return found

    def acknowledge(self, notice: Notice) -> None:
        """Never give the notice again."""
        self._open.pop(notice.id, None)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class Call(Protocol):
    """A call to the cloud, which takes its time and may fail."""

    def __call__(self, call: str, about: str, effect: Callable[[], T]) -> Awaitable[T]:
        """What the effect gives."""
        ...


class SimulatedNoticeQueue:
    """The notices as one process receives them."""

    def __init__(self, sent: SentNotices, call: Call, mark: Callable[[NodeClaim], Any]) -> None:
        self._sent, self._call, self._mark = sent, call, mark

    async def receive(self) -> tuple[Notice, ...]:
        """The next notices; waits until there are some."""
        await self._sent.arrival()
        return await self._call("receive", "", self._sent.take)

    def mark_unavailable(self, notice: Notice, claim: NodeClaim) -> None:
        """The cloud takes a spot machine back because it has too few of them."""
        if notice.kind == "spot_interrupted":
            self._mark(claim)

    async def acknowledge(self, notice: Notice) -> None:
        """The notice was handled."""
        await self._call("acknowledge", notice.id, lambda: self._sent.acknowledge(notice))
