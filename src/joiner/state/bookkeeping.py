"""What only we know, because we did it: promises, decisions and times that no API object carries.

All of it may be lost: docs/design/state-and-restarts.md says what follows from that.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from joiner.model.pod import Pod
from joiner.state.podindex import PodKey


class PodTimes:
    """How far we have come with one pod."""

    __slots__ = ("attempted", "claim", "disappointed", "moved_from", "promised_at", "schedulable", "seen", "uid")

    def __init__(self, uid: str, seen: datetime) -> None:
        self.uid = uid
        self.seen = seen
        self.attempted: datetime | None = None
        """The first plan that had the pod in it."""
        self.schedulable: datetime | None = None
        """The first plan that had a place for it."""
        self.promised_at: datetime | None = None
        self.disappointed = 0
        """How often a node that was promised to it joined, and did not take it."""
        self.claim = ""
        """The claim it was last promised to; empty when it was a node that was there, or nothing."""
        self.moved_from = ""
        """The node that goes for whose sake it needs the claim; empty for a pod that waits."""


class SettledClaim(NamedTuple):
    """What became of a claim that we wrote."""

    claim: str
    launched: bool | None
    """Whether it got its machine, or is gone without one; nothing if there never was such a claim."""


class _Nomination(NamedTuple):
    """Since when and until when a node is left alone."""

    since: datetime
    until: datetime

    def holds(self, now: datetime) -> bool:
        """Whether it is now; the clock may have been set back since."""
        return abs(now - self.since) < self.until - self.since


class Bookkeeping:
    """The bookkeeping. Names of claims stand for themselves and for their nodes."""

    def __init__(self) -> None:
        self._nominated: dict[str, _Nomination] = {}
        self._times: dict[PodKey, PodTimes] = {}
        self._promised: dict[str, dict[PodKey, None]] = {}
        self._reserved: dict[str, int] = {}
        self._launching: set[str] = set()
        self.on_settled: list[Callable[[SettledClaim], None]] = []
        """Called with each claim that we wrote once it got its machine, or is gone without one."""
        self.marked: set[str] = set()
        """Claims and claimless nodes that a controller has decided to remove."""
        self.buffered: Mapping[str, int] = {}
        """Node to how many virtual pods of buffers count on it."""

    # -- nodes --------------------------------------------------------------------------------------------------------

    def nominate(self, name: str, until: datetime, now: datetime) -> None:
        """Pods were promised room there: it is not disrupted until then."""
        known = self._nominated.get(name)
        if known is None or not known.holds(now) or known.until < until:
            self._nominated[name] = _Nomination(now, until)

    def is_nominated(self, name: str, now: datetime) -> bool:
        """Whether pods were promised room there not long ago."""
        known = self._nominated.get(name)
        return known is not None and known.holds(now)

    def forget(self, name: str) -> None:
        """The claim or node is gone."""
        self._nominated.pop(name, None)
        self.marked.discard(name)
        for key in self._promised.pop(name, ()):
            self._times[key].claim = ""

    def launching(self, claim: str) -> None:
        """We wrote a claim: listeners will be told what became of it."""
        self._launching.add(claim)

    def never_was(self, claim: str) -> None:
        """A claim that we may have written was not: nothing is learned from it."""
        self._settle(claim, None)

    def launched(self, claim: str, *, failed: bool = False) -> None:
        """A claim got its machine, or is gone without one."""
        self._settle(claim, not failed)

    def _settle(self, claim: str, launched: bool | None) -> None:
        if claim in self._launching:
            self._launching.discard(claim)
            for listener in self.on_settled:
                listener(SettledClaim(claim, launched))

    # -- pods ---------------------------------------------------------------------------------------------------------

    def seen(self, pod: Pod, now: datetime) -> PodTimes:
        """What is known of a pod, from the first time that we see it."""
        key = (pod.metadata.namespace, pod.name)
        found = self._times.get(key)
        if found is None or found.uid != pod.metadata.uid:
            self.forget_pod(key)
            found = self._times[key] = PodTimes(pod.metadata.uid, now)
        return found

    def times(self, key: PodKey) -> PodTimes | None:
        """What is known of a pod, if anything."""
        return self._times.get(key)

    def promise(self, pod: Pod, claim: str, now: datetime, moved_from: str = "", *, again: bool = False) -> None:
        """The pod is to go to the node of that claim; again, if the one before joined and did not take it."""
        key, times = (pod.metadata.namespace, pod.name), self.seen(pod, now)
        times.promised_at, times.disappointed = now, times.disappointed + again
        if times.claim:
            self._promised.get(times.claim, {}).pop(key, None)
        times.claim, times.moved_from = claim, moved_from
        self._promised.setdefault(claim, {})[key] = None

    def promised(self, claim: str) -> tuple[PodKey, ...]:
        """The pods that were promised to a claim, by namespace and name."""
        return tuple(sorted(self._promised.get(claim, ())))

    def forget_pod(self, key: PodKey) -> str:
        """The pod is gone; gives the claim it was promised to."""
        times = self._times.pop(key, None)
        if times is None or not times.claim:
            return ""
        pods = self._promised.get(times.claim, {})
        pods.pop(key, None)
        if not pods:
            self._promised.pop(times.claim, None)
        return times.claim

    def all_times(self) -> Iterable[tuple[PodKey, PodTimes]]:
        """Every pod that we know something of."""
        return self._times.items()

    # -- pools -------------------------------------------------------------------------------------------------

    def reserve(self, pool: str, wanted: int, left: int) -> int:
        """Take up to so many nodes of what a pool's limit leaves; gives how many there were to take."""
        granted = max(0, min(wanted, left - self._reserved.get(pool, 0)))
        if granted:
            self._reserved[pool] = self._reserved.get(pool, 0) + granted
        return granted

    def release(self, pool: str, count: int) -> None:
        """Give back what was reserved: the claims are written, or will not be."""
        left = self._reserved.get(pool, 0) - count
        if left > 0:
            self._reserved[pool] = left
        else:
            self._reserved.pop(pool, None)
