"""Where limits leave few nodes, a plan of larger nodes is found that costs little more than one without limits."""

import json
from collections import Counter
from pathlib import Path

import pytest
from benchmarks import mixes

from joiner.model.meta import replace
from joiner.model.resources import of
from joiner.offline.scenario import reader
from joiner.scheduling.problem import PoolOption, Problem
from joiner.scheduling.reporter import Attempt
from joiner.scheduling.schedule import PROMISING, schedule
from joiner.scheduling.tuning import NODE_PRICE, charge


def limited(option: PoolOption, nodes: int) -> PoolOption:
    spec = replace(option.pool.spec, limits=of(nodes=nodes))
    return replace(option, pool=replace(option.pool, spec=spec))


def mix(pods: int, services: int, types: int) -> Problem:
    written = mixes.deployments(pods, services=services, types=types)
    return reader.read(json.dumps(written).encode(), Path()).problem


def under_a_limit(free: Problem, nodes: int) -> Problem:
    return replace(free, pools=tuple(limited(each, nodes) for each in free.pools))


@pytest.mark.parametrize(
    ("pods", "services", "nodes"), [(300, 20, 18), (900, 40, 26), (2_100, 60, 38), (2_100, 60, 36), (3_000, 80, 40)]
)
def test_a_limit_of_nodes_costs_little(pods: int, services: int, nodes: int) -> None:
    free = mix(pods, services, 200)
    without = schedule(free)

    plan = schedule(under_a_limit(free, nodes))

    assert len(without.claims) > nodes
    assert not plan.refusals
    assert plan.price <= 1.1 * without.price


@pytest.mark.parametrize(("pods", "services", "nodes"), [(2_100, 60, 35), (3_000, 80, 38)])
def test_with_as_few_nodes_as_pods_that_keep_apart_leave_plans_are_still_chosen_by_price(
    pods: int, services: int, nodes: int
) -> None:
    free = mix(pods, services, 200)

    plan = schedule(under_a_limit(free, nodes))

    assert not plan.refusals
    assert plan.price <= 2 * schedule(free).price


def test_a_dear_plan_within_the_limits_is_no_reason_not_to_look_for_a_cheaper_one() -> None:
    free = mix(300, 20, 60)

    plan = schedule(under_a_limit(free, 39))

    assert not plan.refusals
    assert plan.price <= 1.5 * schedule(free).price


def test_the_usual_charge_is_tried_where_a_smaller_one_leads_to_too_many_nodes() -> None:
    free = mix(600, 25, 60)

    limits = under_a_limit(free, 90)
    plan = schedule(replace(limits, policy=replace(limits.policy, node_price=0.0001)))

    assert not plan.refusals
    assert plan.price <= 1.1 * schedule(free).price


def test_a_planner_that_is_far_from_the_best_plan_is_not_tried_with_another_charge() -> None:
    tried = Counter[str]()

    class Listener:
        def trying(self, planner: str) -> None:
            tried[planner] += 1

        def tried(self, attempt: Attempt) -> None:
            if attempt.price:
                prices[attempt.planner] = attempt.price + charge(problem) * attempt.nodes

    prices: dict[str, float] = {}
    free = mix(100, 14, 100)
    problem = replace(free, policy=replace(free.policy, node_price=NODE_PRICE))
    plan = schedule(problem, reporter=Listener())
    again = {name.partition(", node price")[0] for name in tried if "node price" in name}

    assert again
    assert all(prices[name] <= PROMISING * min(prices.values()) + 1e-9 for name in again)
    assert plan.price + charge(problem) * len(plan.claims) <= prices["worth"]


def test_where_nodes_are_not_charged_a_few_pods_are_planned_without_a_charge() -> None:
    begun: list[str] = []

    class Listener:
        def trying(self, planner: str) -> None:
            begun.append(planner)

        def tried(self, attempt: Attempt) -> None:
            pass

    schedule(mix(100, 14, 100), reporter=Listener())

    assert "rounded" in begun
    assert not [name for name in begun if "node price" in name]
