"""Pods in, plan out: every way of planning is tried, and the best valid plan wins."""

from collections import Counter

from joiner.scheduling.effort import Effort, Unlimited
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.run import Desk, Run
from joiner.scheduling.worth import PricedRun

PLANNERS: tuple[type[Run], ...] = (PricedRun,)
"""The ways to plan beside first fit, which is the net under all of them."""


def schedule(problem: Problem, *, effort: Effort | None = None) -> Plan:
    """Where every pod goes, and what has to be bought for it.

    A plan only counts if it leaves nobody out whom first fit would place; of those that do, the cheapest wins.
    """
    granted = effort or Unlimited()
    desk = Desk(problem)
    net = Run(problem, granted, desk).plan()
    others = [planner(problem, granted, desk).plan() for planner in PLANNERS]
    refused = _refused(net)
    return min([net, *(plan for plan in others if _refused(plan) <= refused)], key=_order)


def _refused(plan: Plan) -> Counter[int]:
    """How many pods of each kind are left over; which of several equal ones does not matter."""
    return Counter({kind: count for kind, count in plan.left_over.items() if count})


def _order(plan: Plan) -> tuple[int, float, int]:
    """Better plans first: fewer pods left over, then cheaper, then fewer nodes. Prices are rounded: no float tie decides."""
    return (sum(plan.left_over.values()), round(plan.price, 9), len(plan.claims))
