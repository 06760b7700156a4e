"""Pods in, plan out: every way of planning is tried, and the best valid plan wins."""

from typing import Final

from joiner.scheduling.effort import Effort, Unlimited
from joiner.scheduling.guarded import GuardedRun, TightGuardedRun
from joiner.scheduling.lpround import RepricedRun, RoundedRun
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.run import Desk, Run, TooDear
from joiner.scheduling.worth import ConstrainedFirstRun, PricedRun

BY_HAND: Final[tuple[type[Run], ...]] = (PricedRun, ConstrainedFirstRun, GuardedRun, TightGuardedRun)
"""Ways to plan that need no linear programme: all there is time for when there are only a few pods."""
BY_PROGRAMME: Final[tuple[type[Run], ...]] = (RoundedRun, RepricedRun)
"""Ways to plan that first find out what each pod is worth when all are served together."""
TINY: Final = 60
"""Up to so many pods a plan is expected at once."""
SMALL: Final = 400
"""Up to so many pods everything is tried."""
LARGE: Final = 2_000
"""From so many pods on only the most promising way is tried."""
MANY_ALIKE: Final = 10
"""How many pods of a class make whole nodes of one pattern pay."""


def _planners(pods: int, classes: int) -> tuple[type[Run], ...]:
    """The ways that are worth their time, beside first fit, which is the net under all of them."""
    if pods <= 1:
        return ()  # first fit buys the cheapest node for a single pod; there is nothing to gain
    if pods <= TINY:
        return BY_HAND
    if pods <= SMALL:
        return (*BY_HAND, *BY_PROGRAMME)
    if pods < LARGE:
        return (PricedRun, RoundedRun)
    return (RoundedRun,) if pods >= MANY_ALIKE * classes else (PricedRun,)


def schedule(problem: Problem, *, effort: Effort | None = None) -> Plan:
    """Where every pod goes, and what has to be bought for it.

    A plan only counts if it leaves nobody out whom first fit would place; of those that do, the cheapest wins.
    """
    granted = effort or Unlimited()
    desk = Desk(problem)
    runs = [planner(problem, granted, desk) for planner in _planners(len(desk.keys), len(set(desk.keys)))]
    for run in runs:
        run.place()
    complete = [run for run in runs if run.sound and not run.left_over()]
    net = Run(problem, granted, desk, cost_max=min((run.price() for run in complete), default=None))
    try:
        net.place()
    except TooDear:
        return _best(complete)
    if net.left_over() and _limits_and_priorities(problem):
        return _by_priority(problem, granted, desk, net).plan()
    refused = net.left_over()
    return _best([net, *(run for run in runs if run.sound and run.left_over() <= refused)])


def _best(runs: list[Run]) -> Plan:
    """The plan of the best run; one that loses pods when its claims are written down makes way for the next."""
    plans: list[Plan] = []
    for run in sorted(runs, key=_order):
        plan = run.plan()
        if not plan.dropped:
            return plan
        plans.append(plan)
    return min(plans, key=lambda plan: len(plan.refusals))


class ImportantFirst(Run):
    """First fit, important pods first: for when limits leave no room for everybody."""

    planner = "first-fit, important first"
    by_priority = True


def _limits_and_priorities(problem: Problem) -> bool:
    priorities = {pod.spec.priority or 0 for pod in problem.pods}
    return len(priorities) > 1 and any(option.pool.spec.limits for option in problem.pools)


def _by_priority(problem: Problem, effort: Effort, desk: Desk, net: Run) -> Run:
    """Who is left out when limits bind is decided by priority, as long as no more pods are left out for it."""
    run = ImportantFirst(problem, effort, desk)
    run.place()
    fewer = run.left_over().total() <= net.left_over().total()
    return run if fewer and run.least_refused() < net.least_refused() else net


def _order(run: Run) -> tuple[int, int, float, int]:
    """Better plans first: fewer pods left over, more use of what is paid for already, then cheaper, then fewer nodes.

    Prices are rounded, so that no decision rests on the last digits of a sum.
    """
    return (run.left_over().total(), -run.reserved(), float(f"{run.price():.9g}"), len(run.claims))
