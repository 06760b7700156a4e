"""How much may be tried."""

from typing import Protocol


class Effort(Protocol):
    """How much may be tried: it counts work, not seconds, so that the same problem gives the same plan everywhere."""

    def spent(self) -> bool:
        """Whether it is time to stop; asked once for each pod that is tried."""
        ...


class Tries:
    """So many pods may be tried, in all ways of planning together: with few, first fit is all there is."""

    def __init__(self, most: int) -> None:
        self._left = most

    def spent(self) -> bool:
        """Once so many have been."""
        self._left -= 1
        return self._left < 0


class Unlimited:
    """As much as it takes."""

    def spent(self) -> bool:
        """Never."""
        return False
