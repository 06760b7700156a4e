"""Where limits leave few nodes, a plan of larger nodes is found that costs little more than one without limits."""

import json
from pathlib import Path

from benchmarks import mixes

from joiner.cli import scenario
from joiner.model.meta import replace
from joiner.model.resources import of
from joiner.scheduling.problem import PoolOption
from joiner.scheduling.schedule import schedule


def limited(option: PoolOption, nodes: int) -> PoolOption:
    spec = replace(option.pool.spec, limits=of(nodes=nodes))
    return replace(option, pool=replace(option.pool, spec=spec))


def test_a_limit_of_nodes_costs_little() -> None:
    free = scenario.read(json.dumps(mixes.deployments(2_100, services=60, types=200)).encode(), Path()).problem
    without = schedule(free)

    few = len(without.claims) * 3 // 4
    plan = schedule(replace(free, pools=tuple(limited(each, few) for each in free.pools)))

    assert not plan.refusals
    assert plan.price <= 1.1 * without.price
