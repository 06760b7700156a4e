"""How well the machines of a pool join: the last few outcomes, and what they say together."""

from collections import deque
from typing import Final

SIZE: Final = 4
UNHEALTHY: Final = 2
"""So many failures among the last outcomes are too many."""


class Outcomes:
    """The last outcomes of launches of one pool, newest last."""

    def __init__(self, known: bool | None = None) -> None:
        """Begin with what is known from before: a pool that was unhealthy does not become healthy by a restart."""
        self._last: deque[bool] = deque(maxlen=SIZE)
        if known is not None:
            self._last.extend([known] * (SIZE if known else UNHEALTHY))

    def add(self, joined: bool) -> None:
        """One more."""
        self._last.append(joined)

    @property
    def healthy(self) -> bool | None:
        """Whether few enough failed; nothing before the first outcome."""
        if not self._last:
            return None
        return sum(not joined for joined in self._last) < UNHEALTHY
