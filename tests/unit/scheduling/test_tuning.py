"""The node price: a charge that is relative to what is for sale, and plans with fewer nodes for it."""

import pytest
from tests.builders import instance_type, node_pool, offering, pods, problem, requirement

from joiner.catalog.market import InstanceType
from joiner.model import resources
from joiner.model.labels import CAPACITY_TYPE
from joiner.model.meta import replace
from joiner.scheduling.problem import Policy, Problem
from joiner.scheduling.schedule import schedule
from joiner.scheduling.tuning import NODE_PRICE, SPOT_WIDTH, SPOT_WIDTH_COST, charge


def machine(cpu: int, price: float) -> InstanceType:
    capacity = resources.of(cpu=cpu, memory=f"{4 * cpu}Gi", pods=100)
    return instance_type(f"m-{cpu}", [offering(price=price)], capacity=capacity)


SHATTERING = (machine(2, 0.20), machine(4, 0.41), machine(16, 1.70))
"""The smaller, the cheaper for what it has, by a little."""


def asked(fraction: float, count: int = 16) -> Problem:
    return problem(pods(count, cpu="1", memory="1Gi"), types=SHATTERING, policy=Policy(node_price=fraction))


def test_both_dials_are_off_unless_somebody_turns_them() -> None:
    assert (Policy().node_price, Policy().spot_width, Policy().spot_width_cost) == (0, 0, 0)
    assert (NODE_PRICE, SPOT_WIDTH, SPOT_WIDTH_COST) == (0.01, 15, 0.05)


@pytest.mark.parametrize(("fraction", "dollars"), [(0.0, 0.0), (0.1, 0.041), (1.0, 0.41)])
def test_the_charge_is_a_fraction_of_the_median_price(fraction: float, dollars: float) -> None:
    assert charge(asked(fraction)) == pytest.approx(dollars)


def test_only_what_a_pool_can_buy_counts_for_the_charge() -> None:
    pool = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")])

    assert charge(problem(pods(1), pool, policy=Policy(node_price=1.0))) == pytest.approx(0.4)


def test_without_anything_to_buy_nothing_is_charged() -> None:
    assert charge(problem(pods(1), pools=(), policy=Policy(node_price=1.0))) == 0


@pytest.mark.parametrize(("fraction", "nodes", "price"), [(0.0, 8, 1.60), (0.001, 8, 1.60), (0.1, 1, 1.70)])
def test_fewer_nodes_are_bought_when_they_are_charged_for(fraction: float, nodes: int, price: float) -> None:
    plan = schedule(asked(fraction))

    assert len(plan.claims) == nodes
    assert plan.price == pytest.approx(price)


def test_whatever_a_node_is_charged_no_plan_is_dearer_than_first_fit() -> None:
    # First fit fills a node of 16 with 16 pods; a node more is the cheapest way to go on.
    plan = schedule(asked(1000.0, count=17))

    assert plan.price == pytest.approx(1.70 + 0.20)


def test_the_charge_moves_with_the_prices() -> None:
    doubled = tuple(
        replace(each, offerings=tuple(replace(o, price=2 * (o.price or 0)) for o in each.offerings))
        for each in SHATTERING
    )
    dear = problem(pods(16), types=doubled, policy=Policy(node_price=0.1))

    assert charge(dear) == pytest.approx(2 * charge(asked(0.1)))
    assert len(schedule(dear).claims) == 1
