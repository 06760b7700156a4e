"""Planning, for every controller that plans: where it runs, how much may be tried, and how long it takes."""

from collections.abc import Awaitable, Callable

from joiner.clock import Clock
from joiner.observe.metrics import Metrics
from joiner.observe.planningduration import Planning
from joiner.scheduling.effort import Effort
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import schedule

Compute = Callable[[Problem, Effort | None], Awaitable[Plan]]
"""Where plans are made: in the event loop, or in another process."""


async def inline(problem: Problem, effort: Effort | None) -> Plan:
    """Make the plan in the event loop."""
    return schedule(problem, effort=effort)


class Planner:
    """Makes the plans of one controller, one after the other, and measures them."""

    def __init__(self, controller: str, *, compute: Compute, metrics: Metrics, clock: Clock) -> None:
        self._compute = compute
        self._measured = Planning(metrics, clock, controller).measured

    async def plan(self, problem: Problem, effort: Effort | None = None) -> Plan:
        """The plan for a problem."""
        with self._measured(len(problem.pods)):
            return await self._compute(problem, effort)
