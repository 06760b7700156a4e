"""Planning, for every controller that plans: where it runs, how much may be tried, and how long it takes."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol, TypeVar

from joiner.clock import Clock
from joiner.observe.metrics import Metrics
from joiner.observe.planningduration import Planning
from joiner.scheduling.effort import Effort
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import schedule

T = TypeVar("T")
Compute = Callable[[Problem, Effort | None], Awaitable[Plan]]
"""Where plans are made: in the event loop, or in another process."""


PLANNING_S: Final = 60.0
"""How long a plan may be worked on in a real cluster; what was not tried by then is told, and is tried again."""


async def inline(problem: Problem, effort: Effort | None) -> Plan:
    """Make the plan in the event loop."""
    return schedule(problem, effort=effort)


class Offload(Protocol):
    """Runs a computation where it holds up nothing."""

    async def __call__(self, work: Callable[[], T], shared: Iterable[object] = ()) -> T:
        """What the function gives. Where that names shared objects, they are the very same, not copies."""
        ...


async def here(work: Callable[[], T], shared: Iterable[object] = ()) -> T:
    """Run a computation in the event loop."""
    return work()


class Deadline:
    """So many seconds may be spent."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._until = clock, clock.monotonic() + seconds

    def spent(self) -> bool:
        """Once the time is over."""
        return self._clock.monotonic() >= self._until


def offloaded(run: Offload, clock: Clock, seconds: float = PLANNING_S) -> Compute:
    """Makes plans elsewhere, each within a deadline."""

    async def compute(problem: Problem, effort: Effort | None) -> Plan:
        return await run(lambda: schedule(problem, effort=effort or Deadline(clock, seconds)))

    return compute


class Planner:
    """Makes the plans of one controller, one after the other, and measures them."""

    def __init__(self, controller: str, *, compute: Compute, metrics: Metrics, clock: Clock) -> None:
        self._compute = compute
        self._measured = Planning(metrics, clock, controller).measured

    async def plan(self, problem: Problem, effort: Effort | None = None) -> Plan:
        """The plan for a problem."""
        with self._measured(len(problem.pods)):
            return await self._compute(problem, effort)
