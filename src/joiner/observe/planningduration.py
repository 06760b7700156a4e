"""How long plans take, and how many pods wait for the one in work."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from joiner.clock import Clock
from joiner.observe.metrics import Metrics


class Planning:
    """Measures the plans of one controller, which makes one after the other."""

    def __init__(self, metrics: Metrics, clock: Clock, controller: str) -> None:
        self._metrics, self._clock, self._controller = metrics, clock, controller
        self._numbers = count(1)
        self._last = ""

    @contextmanager
    def measured(self, pods: int) -> Iterator[None]:
        """Around the making of a plan for so many pods. The empty queue stays to be seen until the next plan begins."""
        waiting, unfinished = self._metrics.scheduler_queue_depth, self._metrics.scheduler_unfinished_work_seconds
        if self._last:
            waiting.remove(self._controller, self._last)
        number = self._last = str(next(self._numbers))
        depth, began = waiting.labels(self._controller, number), self._clock.monotonic()
        depth.set(pods)
        unfinished.labels(self._controller, number).set_function(lambda: self._clock.monotonic() - began)
        try:
            yield
        finally:
            depth.set(0)
            unfinished.remove(self._controller, number)
            took = self._clock.monotonic() - began
            self._metrics.scheduler_scheduling_duration_seconds.labels(self._controller).observe(took)
