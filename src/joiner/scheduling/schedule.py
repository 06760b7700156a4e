"""Pods in, plan out: every way of planning is tried, and the best valid plan wins."""

from joiner.scheduling.effort import Effort, Unlimited
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.run import Desk, Run
from joiner.scheduling.worth import PricedRun

PLANNERS: tuple[type[Run], ...] = (PricedRun, Run)
"""The ways to plan. First fit is the last and the net under all others: no plan is ever dearer, or places fewer pods."""


def schedule(problem: Problem, *, effort: Effort | None = None) -> Plan:
    """Where every pod goes, and what has to be bought for it."""
    granted = effort or Unlimited()
    desk = Desk(problem)
    plans = [planner(problem, granted, desk).plan() for planner in PLANNERS]
    return min(plans, key=_order)


def _order(plan: Plan) -> tuple[int, float, int]:
    """Better plans first: fewer pods left over, then cheaper, then fewer nodes. Prices are rounded: no float tie decides."""
    return (len(plan.refusals) + len(plan.not_attempted), round(plan.price, 9), len(plan.claims))
