"""The window in which pods gather before they are planned for together."""

import asyncio


class Batcher:
    """Collects triggers. The window opens with the first one; it closes when nothing new has come for a while, or after long."""

    def __init__(self, *, idle_s: float, most_s: float) -> None:
        self._idle_s = idle_s
        self._most_s = most_s
        self._seen: set[str] = set()
        self._last = 0.0
        self._waker: asyncio.Future[None] | None = None

    def trigger(self, uid: str) -> None:
        """Something wants to be planned for. Asking again does not keep the window open any longer."""
        if uid in self._seen:
            return
        self._seen.add(uid)
        self._last = asyncio.get_running_loop().time()
        self._wake()

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    async def wait(self, within_s: float | None = None) -> bool:
        """Until a window has closed, or so much time has passed without a trigger; tells which of the two."""
        if not self._seen:
            await self._first(within_s)
        if not self._seen:
            return False
        loop = asyncio.get_running_loop()
        opened = self._last = loop.time()
        while (due := min(self._last + self._idle_s, opened + self._most_s)) > loop.time():
            await asyncio.sleep(due - loop.time())
        self._seen.clear()
        return True

    async def _first(self, within_s: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._waker = loop.create_future()
        alarm = loop.call_later(within_s, self._wake) if within_s is not None else None
        try:
            await self._waker
        finally:
            self._waker = None
            if alarm is not None:
                alarm.cancel()
