"""How much may be tried."""

from typing import Protocol


class Effort(Protocol):
    """How much may be tried: it counts work, not seconds, so that the same problem gives the same plan everywhere."""

    def spent(self) -> bool:
        """Whether it is time to stop; asked once for each pod that is tried."""
        ...


class Unlimited:
    """As much as it takes."""

    def spent(self) -> bool:
        """Never."""
        return False
