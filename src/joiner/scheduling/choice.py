"""Which of two plans is better, and the plan of the best run."""

from collections.abc import Sequence

from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.engine.pricing import rounded
from joiner.scheduling.plan import ALL_TRIED, Plan
from joiner.scheduling.planners import spotflexibility, withinlimits
from joiner.scheduling.problem import PoolOption
from joiner.scheduling.report.plannedclaims import to_plan


def order(run: FirstFit, charged: float) -> tuple[int, float, float, int, int]:
    """Better plans first: fewer pods left over, cheaper on the market, smaller reserved machines, more of them, fewer nodes.

    Every planner takes what is paid for first, and it costs next to nothing: who uses more of it and is dearer buys in vain.
    """
    reserved = rounded(run.reserved_price())
    return (run.left_over().total(), charged_price(run, charged), reserved, -run.reserved(), len(run.claims))


def charged_price(run: FirstFit, charged: float) -> float:
    """What the plan costs with what its nodes are charged; those that are paid for already are not."""
    return rounded(run.compared_price() + charged * (len(run.claims) - run.reserved()))


def complete(runs: list[FirstFit]) -> list[FirstFit]:
    """Those that leave no pod over."""
    return [run for run in runs if run.sound and not run.left_over()]


def best_plan(
    runs: list[FirstFit], charged: float, limits: Sequence[PoolOption] = (), *, ended: str = ALL_TRIED
) -> Plan | None:
    """The plan of the best run; one that loses pods when its claims are written down makes way for the next.

    Where limits are given that the runs were made without: nothing if the plan is not within them.
    """
    plans: list[Plan] = []
    for run in sorted(runs, key=lambda run: order(run, charged)):
        spotflexibility.widen(run, run.compared_price() * run.policy.spot_width_cost)
        if limits and (run.stopped or not withinlimits.narrowed(run, limits)):
            return None
        plan = to_plan(run, ended)
        if not plan.dropped:
            return plan
        plans.append(plan)
    return min(plans, key=lambda plan: len(plan.refusals))


def as_asked_for(run: FirstFit, net: FirstFit) -> bool:
    """Whether a way by price gives up no more for limits than first fit, and has no more pods on lighter pools in vain."""
    return not run.weighs_prices or (spared(run) <= net.given_up.total() and run.demoted() <= net.demoted())


def spared(run: FirstFit) -> int:
    """How much pods give up in a run in which limits bind: fewer and smaller nodes would be cheaper than what they wish for."""
    return run.given_up.total() if run.given_up and run.limited() else 0


def dearer(run: FirstFit, net: FirstFit) -> bool:
    """Whether a plan that is no better than first fit's in any other way costs more."""
    return order(run, 0.0)[:2] > order(net, 0.0)[:2]
