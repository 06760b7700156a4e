"""Where limits leave few nodes, a plan of larger nodes is found that is no dearer than it must be."""

from tests.builders import node_pool, pods, pool_option, problem

from joiner.scheduling.desk import Desk
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.run import Run
from joiner.scheduling.schedule import schedule


def test_a_limit_of_nodes_costs_little_more_than_none() -> None:
    waiting = [pod for size in ("700m", "1500m", "3") for pod in pods(12, f"app-{size}", cpu=size)]
    free = schedule(problem(waiting, pool_option(node_pool())))
    few = problem(waiting, pool_option(node_pool(limits={"nodes": len(free.claims) - 1})))

    plan = schedule(few)

    first_fit = Run(few, Unlimited(), Desk(few))
    first_fit.place()
    assert not plan.refusals
    assert plan.price <= first_fit.price()
    assert plan.price <= free.price * 1.25
