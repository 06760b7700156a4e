"""Tokens of launches: which one a claim has next, and whether a call of the claim may have launched a machine unnoticed.

EC2 remembers the answer to a token and says it again. So a call whose answer was lost is repeated with its token, and one that
found nothing is followed by another token.
"""

from typing import Final

from joiner.clock import Clock
from joiner.cloud.provider import UNLISTED_S

_STUCK_S: Final = 300.0
"""After so long a token whose first call nothing came of is given up for another one."""
_REMEMBERED: Final = 10_000
"""So many claims are remembered; most of those that found nothing are never tried again."""


class _Claim:
    def __init__(self) -> None:
        self.attempt = 0
        self.stuck_since: float | None = None
        self.unanswered_at: float | None = None


class Tokens:
    """The tokens of all claims, by UID."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._claims: dict[str, _Claim] = {}

    def of(self, uid: str) -> str:
        """The token of the next call: the UID, and from the second token on its number."""
        known = self._claims.get(uid)
        return uid if known is None or not known.attempt else f"{uid}-{known.attempt}"

    def answered(self, uid: str) -> None:
        """The token has an answer without a machine: asked again with it, EC2 would say the same for ever."""
        self._move(uid, self._claim(uid).attempt + 1)

    def ended(self, uid: str, count: int) -> None:
        """So many machines of the claim have ended: their tokens would be answered with them."""
        if count and self._claim(uid).attempt < count:
            self._move(uid, count)

    def unanswered(self, uid: str) -> None:
        """A call may have launched a machine, or not."""
        self._claim(uid).unanswered_at = self._clock.monotonic()

    def mismatched(self, uid: str) -> None:
        """An unanswered call with the token asked for something else: its machine will show by its tag, or never was."""
        known, now = self._claim(uid), self._clock.monotonic()
        known.stuck_since = now if known.stuck_since is None else known.stuck_since
        if now - known.stuck_since >= _STUCK_S:
            self._move(uid, known.attempt + 1)

    def is_open(self, uid: str) -> bool:
        """Whether a machine may have been launched that no list shows yet."""
        known = self._claims.get(uid)
        at = known.unanswered_at if known is not None else None
        return at is not None and self._clock.monotonic() - at < UNLISTED_S

    def forget(self, uid: str) -> None:
        """The claim has its machine."""
        self._claims.pop(uid, None)

    def _claim(self, uid: str) -> _Claim:
        known = self._claims.pop(uid, None) or _Claim()
        self._claims[uid] = known  # the last one used is the last one forgotten
        if len(self._claims) > _REMEMBERED:
            del self._claims[next(iter(self._claims))]
        return known

    def _move(self, uid: str, attempt: int) -> None:
        known = self._claim(uid)
        known.attempt, known.stuck_since, known.unanswered_at = attempt, None, None
