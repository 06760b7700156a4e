"""Time, as the shell sees it: a protocol, which the simulation implements with virtual time."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where the time of day and elapsed time come from."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never runs backwards."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never runs backwards."""
        return time.monotonic()
