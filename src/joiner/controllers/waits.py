"""How long something has been waited for, also when the clock of a machine is set back.

Times in API objects are times of day, written by this process, by one before it or by the API server. Compared with a clock that
was set back by an hour, each of them is an hour further away: a wait of minutes would take an hour longer. So a wait also ends
once this process has seen as much time pass as the wait is for.
"""

from collections.abc import Hashable, Iterable
from datetime import datetime, timedelta
from typing import Final

from joiner.clock import Clock
from joiner.disruption.repair import Ailment
from joiner.model.meta import replace
from joiner.model.node import Node

REMEMBERED_S: Final = 6 * 3600.0
"""How long a wait that is over stays known. A clock that was set back by no more has caught up by then."""
FORGET_FROM: Final = 1_000
"""With fewer waits than this none is forgotten."""
STEP: Final = timedelta(seconds=1)
"""By less than this a clock was not set back: the two clocks count in different grains."""


class Waits:
    """The waits of one controller, by keys of its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[Hashable, tuple[datetime, float]] = {}
        self._forget_from = FORGET_FROM

    def due(self, key: Hashable, since: datetime, timeout: timedelta) -> datetime:
        """When `timeout` after `since` is over, by the clock as it goes now: never further away than `timeout`.

        It is measured from the first call with the key and that `since`, so a wait is asked about when it begins.
        """
        now, passed = self._clock.now(), self._clock.monotonic()
        by_clock = since + timeout
        known = self._known.get(key)
        if known is None or known[0] != by_clock:
            self._forget(passed)
            known = self._known[key] = (by_clock, passed + min(by_clock - now, timeout).total_seconds())
        by_waiting = now + timedelta(seconds=known[1] - passed)
        return by_waiting if by_clock - by_waiting >= STEP else by_clock

    def left(self, key: Hashable, since: datetime, timeout: timedelta) -> float:
        """The same in seconds from now; zero or less once it is over."""
        return (self.due(key, since, timeout) - self._clock.now()).total_seconds()

    def _forget(self, passed: float) -> None:
        if len(self._known) >= self._forget_from:
            self._known = {key: each for key, each in self._known.items() if passed < each[1] + REMEMBERED_S}
            self._forget_from = max(FORGET_FROM, 2 * len(self._known))

    def __len__(self) -> int:
        return len(self._known)


def in_time(waits: Waits, node: Node, ailments: Iterable[Ailment]) -> tuple[Ailment, ...]:
    """What ails a node, each to be acted upon no later than its policy tolerates it."""
    found: list[Ailment] = []
    for each in ailments:
        tolerated = each.policy.toleration.timedelta
        key = (node.metadata.uid, each.condition.type, each.policy.reason_regex, each.policy.action)
        found.append(replace(each, since=waits.due(key, each.since - tolerated, tolerated)))
    return tuple(found)
