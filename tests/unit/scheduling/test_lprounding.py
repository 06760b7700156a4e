"""Planning from a fractional plan, where the answer can be seen."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import mixes
from tests.builders import VOCABULARY, instance_type, node_pool, offering

from joiner.catalog.build import Adjustments, build
from joiner.catalog.market import Offering
from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import CAPACITY_TYPE
from joiner.model.pod import Pod
from joiner.offline.scenario import reader
from joiner.scheduling.bound.dualprices import fractional_plan
from joiner.scheduling.bound.lowerbound import bound
from joiner.scheduling.bound.relaxation import relaxed
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.prepared import PreparedProblem
from joiner.scheduling.planners.lprounding import LpPriced, LpRounded
from joiner.scheduling.problem import PoolOption, Problem


def pods(name: str, count: int, cpu: str, memory: str, **spec: Any) -> list[Pod]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    written = {"containers": [container], **spec}
    return [
        decode({"metadata": {"name": f"{name}-{n}", "namespace": "default"}, "spec": written}, Pod)
        for n in range(count)
    ]


def problem(waiting: list[Pod], *more: Offering) -> Problem:
    machine = instance_type(
        "only", [offering(price=1.0), *more], capacity=resources.of(cpu=8, memory="32Gi", pods=100), overhead=None
    )
    pool = node_pool()
    option = PoolOption(pool=pool, catalog=build((machine,), Adjustments(), pool, VOCABULARY))
    return Problem(pods=tuple(waiting), pools=(option,), vocabulary=VOCABULARY)


def test_pods_that_leave_what_others_need_share_a_node() -> None:
    heads, bodies = pods("cpu", 20, "3", "2Gi"), pods("memory", 20, "1", "14Gi")

    run = LpRounded(problem([*heads, *bodies]), Unlimited())
    run.place()

    assert not run.left_over().total()
    assert len(run.claims) == 10


def test_both_planners_of_a_relaxation_share_its_solution() -> None:
    asked = problem([*pods("cpu", 20, "3", "2Gi"), *pods("memory", 20, "1", "14Gi")])
    prepared = PreparedProblem(asked)

    alone = LpPriced(asked, Unlimited())
    alone.place()
    for planner in (LpRounded, LpPriced):
        run = planner(asked, Unlimited(), prepared)
        run.place()

    assert len(prepared.relaxed) == 2  # the relaxation, and its solution
    assert run.price() == alone.price()


def test_what_does_not_fill_a_node_is_bought_as_well() -> None:
    run = LpRounded(problem(pods("one", 1, "1", "1Gi")), Unlimited())
    run.place()

    assert len(run.claims) == 1


def test_nothing_to_do_is_done() -> None:
    run = LpRounded(problem([]), Unlimited())
    run.place()

    assert not run.claims


def test_who_can_only_use_what_is_paid_for_asks_for_nothing_on_the_market() -> None:
    held = pods("held", 9, "1", "1Gi", nodeSelector={CAPACITY_TYPE: "reserved"})
    market = pods("market", 16, "1", "1Gi", nodeSelector={CAPACITY_TYPE: "on-demand"})
    relaxation = relaxed(problem([*held, *market], offering("reserved", price=1.0, available=2, reservation="cr-1")))

    pieces = fractional_plan(relaxation, 60)

    bought = dict(zip(relaxation.pods, np.round(pieces.pods.sum(axis=1), 6), strict=True))
    assert bought == {"default/held-0": 0, "default/market-0": 16}
    assert np.round(pieces.nodes, 6).sum() == 2


@pytest.mark.parametrize(("count", "services"), [(2_000, 40), (2_100, 60), (2_500, 40)])
def test_a_few_who_need_dear_nodes_do_not_make_those_of_the_others_dear(count: int, services: int) -> None:
    mix = reader.read(json.dumps(mixes.deployments(count, services=services, types=200)).encode(), Path()).problem

    run = LpRounded(mix, Unlimited())
    run.place()

    assert not run.left_over().total()
    assert run.price() <= 1.1 * bound(mix).price
