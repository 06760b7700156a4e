"""Pods in, plan out: every way of planning is tried, and the best valid plan wins."""

from typing import Final

from joiner.scheduling.effort import Effort, Unlimited
from joiner.scheduling.guarded import GuardedRun, TightGuardedRun
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.run import Desk, Run, TooDear
from joiner.scheduling.worth import ConstrainedFirstRun, PricedRun

PLANNERS: Final[tuple[type[Run], ...]] = (PricedRun,)
"""The ways to plan beside first fit, which is the net under all of them."""
MORE_PLANNERS: Final[tuple[type[Run], ...]] = (ConstrainedFirstRun, GuardedRun, TightGuardedRun)
"""Ways that take longer or win more rarely: for problems that are small enough to try them all."""
SMALL: Final = 400
"""Up to so many pods a problem is small."""


def schedule(problem: Problem, *, effort: Effort | None = None) -> Plan:
    """Where every pod goes, and what has to be bought for it.

    A plan only counts if it leaves nobody out whom first fit would place; of those that do, the cheapest wins.
    """
    granted = effort or Unlimited()
    desk = Desk(problem)
    planners = PLANNERS if len(problem.pods) > SMALL else (*PLANNERS, *MORE_PLANNERS)
    runs = [planner(problem, granted, desk) for planner in planners]
    for run in runs:
        run.place()
    complete = [run.price() for run in runs if not run.left_over()]
    net = Run(problem, granted, desk, cost_max=min(complete, default=None))
    try:
        net.place()
    except TooDear:
        return min((run for run in runs if not run.left_over()), key=_order).plan()
    refused = net.left_over()
    return min([net, *(run for run in runs if run.left_over() <= refused)], key=_order).plan()


def _order(run: Run) -> tuple[int, float, int]:
    """Better plans first: fewer pods left over, then cheaper, then fewer nodes. Prices are rounded: no float tie decides."""
    return (run.left_over().total(), round(run.price(), 9), len(run.claims))
