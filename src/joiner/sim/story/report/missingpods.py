"""How long pods of workloads were missing: pods that had been ready, were still wanted, and were not ready at the time.

A workload that starts or grows misses none until its pods have been ready once: how long they wait for a node is another number.
"""

from dataclasses import dataclass

from joiner.model.meta import Value


class Missing(Value):
    """How many pods of a workload were missing, how often and for how long, in seconds."""

    workload: str
    times: int
    """How often the workload had missing pods, from the first one to the moment at which none was missing."""
    seconds: float
    """How long some were missing, in all."""
    longest: float
    most: int
    """The most that were missing at once."""
    pod_seconds: float
    """The same time, of each missing pod by itself."""


@dataclass
class _Workload:
    """What is known of one workload so far."""

    reached: int = 0
    """How many pods were ready at once, and are still wanted."""
    missing: int = 0
    since: float = 0.0
    """When the number that is missing last changed."""
    began: float = 0.0
    times: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    most: int = 0
    pod_seconds: float = 0.0

    def move(self, now: float, missing: int) -> None:
        """So many are missing from now on."""
        self.pod_seconds += self.missing * (now - self.since)
        self.seconds += (now - self.since) if self.missing else 0.0
        if missing and not self.missing:
            self.times, self.began = self.times + 1, now
        if self.missing:
            self.longest = max(self.longest, now - self.began)
        self.missing, self.since, self.most = missing, now, max(self.most, missing)


class MissingPods:
    """Counts missing pods by workload."""

    def __init__(self) -> None:
        self._workloads: dict[str, _Workload] = {}

    def look(self, workload: str, *, ready: int, wanted: int, now: float) -> None:
        """A workload has so many pods that are ready, and should have so many."""
        known = self._workloads.setdefault(workload, _Workload(since=now))
        known.reached = min(wanted, max(known.reached, ready))
        missing = max(0, known.reached - ready)
        if missing != known.missing:
            known.move(now, missing)

    def report(self, now: float) -> tuple[Missing, ...]:
        """The workloads of which pods were missing, by name, as of the end."""
        for known in self._workloads.values():
            known.move(now, known.missing)
        return tuple(
            Missing(
                workload=name,
                times=known.times,
                seconds=known.seconds,
                longest=known.longest,
                most=known.most,
                pod_seconds=known.pod_seconds,
            )
            for name, known in sorted(self._workloads.items())
            if known.times
        )
