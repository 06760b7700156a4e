"""Faults between the controllers and the world, drawn from the seed and counted by name.

Only the controllers suffer from them: the simulated users and control plane have good connections. After the last span of
faults nothing goes wrong any more, and everything must come right.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from joiner.cloud.errors import Transient
from joiner.kube.client import WatchEvent
from joiner.kube.errors import Conflict, Throttled, Unreachable
from joiner.model.meta import Value
from joiner.sim.apiserver.client import Call, WatchedChange
from joiner.sim.virtualtime import VirtualLoop

Spans = Sequence[tuple[float, float]]
"""Times from when until when, in seconds of the world."""
WRITES: Final = frozenset({"create", "patch", "status", "delete", "evict", "bind"})


class Chances(Value):
    """How often each thing goes wrong, as a share of the calls or events it can happen to."""

    conflict: float = 0.02
    throttled: float = 0.01
    unreachable: float = 0.01
    lost: float = 0.01
    """It was done, and the answer was lost."""
    slow: float = 0.02
    stale: float = 0.3
    late: float = 0.02
    again: float = 0.02
    broken: float = 0.005
    cloud_transient: float = 0.05
    cloud_lost: float = 0.03
    cloud_slow: float = 0.05


API_FAULTS: Final = ("conflict", "throttled", "unreachable", "lost", "slow", "stale", "late", "again", "broken")
CLOUD_FAULTS: Final = ("cloud_transient", "cloud_lost", "cloud_slow")


class RandomFaults:
    """Makes calls to the API and to the cloud fail, until a given time."""

    def __init__(
        self,
        loop: VirtualLoop,
        random: Random,
        chances: Chances,
        until_s: float,
        *,
        api_away: Spans = (),
        cloud_away: Spans = (),
    ) -> None:
        self._loop, self._random, self._chances, self._until = loop, random, chances, until_s
        self._api_away, self._cloud_away = api_away, cloud_away
        self.counts: Counter[str] = Counter()
        """How often each fault occurred."""
        self.cloud = _CloudFaults(self)

    def strikes(self, fault: str) -> bool:
        """Whether the fault occurs this time; it is counted if so."""
        if self._loop.time() >= self._until or self._random.random() >= getattr(self._chances, fault):
            return False
        self.counts[fault] += 1
        return True

    def _is_away(self, fault: str, spans: Spans) -> bool:
        now = self._loop.time()
        if not any(start <= now < end for start, end in spans):
            return False
        self.counts[fault] += 1
        return True

    def cloud_is_away(self) -> bool:
        """Whether the cloud does not answer at all now."""
        return self._is_away("cloud_away", self._cloud_away)

    def some(self, least: float, most: float) -> float:
        """A number between two."""
        return self._random.uniform(least, most)

    # -- the API --------------------------------------------------------------------------------------------------

    def before(self, call: Call) -> float:
        """Spoil a request, or slow it down."""
        if self._is_away("api_away", self._api_away):
            raise Unreachable("the API server does not answer")
        if call.verb in WRITES and self.strikes("conflict"):
            raise Conflict(f"{call.kind.kind} {call.key}: another writer was faster")
        if self.strikes("throttled"):
            raise Throttled("too many requests", after_s=self.some(0.1, 3.0))
        if self.strikes("unreachable"):
            raise Unreachable("the connection broke before the request was sent")
        return self.some(0.1, 8.0) if self.strikes("slow") else 0.0

    def after(self, call: Call) -> float:
        """Lose an answer, or slow it down."""
        if call.verb != "watch" and self.strikes("lost"):
            raise Unreachable("the connection broke before the answer came")
        return self.some(0.1, 8.0) if self.strikes("slow") else 0.0

    def behind(self, call: Call) -> int:
        """Answer a list with what was."""
        return int(self.some(1, 200)) if self.strikes("stale") else 0

    def event(self, call: Call, event: WatchEvent[Any]) -> WatchedChange:
        """Delay events, repeat them, or break the watch."""
        if self.strikes("broken"):
            return WatchedChange(broken=True)
        delay = self.some(0.1, 12.0) if self.strikes("late") else 0.0
        return WatchedChange(delay_s=delay, again=int(self.some(1, 6)) if self.strikes("again") else 0)


class _CloudFaults:
    """The same faults on the way to the cloud."""

    def __init__(self, faults: RandomFaults) -> None:
        self._faults = faults

    def before(self, call: str, about: str) -> float:
        """Spoil a request, or slow it down."""
        if self._faults.cloud_is_away():
            raise Transient(f"{call} {about}: the cloud does not answer", after_s=1.0)
        if self._faults.strikes("cloud_transient"):
            raise Transient(f"{call} {about}: the cloud is busy", after_s=self._faults.some(0.5, 5.0))
        return self._faults.some(1.0, 30.0) if self._faults.strikes("cloud_slow") else 0.0

    def after(self, call: str, about: str) -> float:
        """Lose an answer."""
        if self._faults.strikes("cloud_lost"):
            raise Transient(f"{call} {about}: no answer came")
        return 0.0
