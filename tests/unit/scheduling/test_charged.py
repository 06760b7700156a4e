"""Where limits leave few nodes, a plan of larger nodes is found that costs little more than one without limits."""

import json
from pathlib import Path

import pytest
from benchmarks import mixes

from joiner.cli import scenario
from joiner.model.meta import replace
from joiner.model.resources import of
from joiner.scheduling.problem import PoolOption
from joiner.scheduling.schedule import schedule


def limited(option: PoolOption, nodes: int) -> PoolOption:
    spec = replace(option.pool.spec, limits=of(nodes=nodes))
    return replace(option, pool=replace(option.pool, spec=spec))


@pytest.mark.parametrize(("pods", "services", "share"), [(2_100, 60, 0.75), (3_000, 80, 0.75), (3_000, 80, 0.6)])
def test_a_limit_of_nodes_costs_little(pods: int, services: int, share: float) -> None:
    free = scenario.read(json.dumps(mixes.deployments(pods, services=services, types=200)).encode(), Path()).problem
    without = schedule(free)

    few = int(len(without.claims) * share)
    plan = schedule(replace(free, pools=tuple(limited(each, few) for each in free.pools)))

    assert not plan.refusals
    assert plan.price <= 1.1 * without.price
