"""The choice between plans: nobody left out whom first fit would place, and never dearer."""

import pytest
from tests.builders import node_pool, pod, pods, problem, requirement

from joiner.model.labels import CAPACITY_TYPE, ZONE
from joiner.model.meta import replace
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.problem import Problem
from joiner.scheduling.report.plannedclaims import to_plan
from joiner.scheduling.schedule import schedule


def first_fit(asked: Problem) -> float:
    run = FirstFit(asked, Unlimited())
    run.place()
    return to_plan(run).price


def test_a_few_picky_pods_do_not_make_everybody_elses_nodes_dear() -> None:
    picky = pods(4, "picky", "250m", nodeSelector={CAPACITY_TYPE: "on-demand"})
    asked = problem([*picky, *pods(60, "easy", "1")])

    assert schedule(asked).price < 0.75 * first_fit(asked)


def test_first_fit_is_kept_where_it_is_asked_for_however_dear() -> None:
    asked = problem([*pods(4, "picky", "250m", nodeSelector={CAPACITY_TYPE: "on-demand"}), *pods(60, "easy", "1")])
    plain = replace(asked, policy=replace(asked.policy, planning="FirstFit"))

    assert schedule(plain).price == first_fit(asked) > schedule(asked).price
    assert schedule(plain, effort=Unlimited()).price == first_fit(asked)


def test_a_claim_is_opened_where_it_is_cheapest() -> None:
    plan = schedule(problem(pods(3, cpu="16", memory="1Gi")))

    assert {claim.options[0].offering.zone for claim in plan.claims} == {"a"}
    assert {claim.options[0].offering.capacity_type for claim in plan.claims} == {"spot"}


def test_a_price_does_not_lead_to_a_lighter_pool() -> None:
    dear = node_pool("dear", [requirement(CAPACITY_TYPE, "In", "on-demand")], weight=10)

    assert {claim.nodepool for claim in schedule(problem(pods(5), dear, node_pool("cheap"))).claims} == {"dear"}


@pytest.mark.parametrize("count", [1, 7, 33])
def test_nothing_is_bought_larger_than_it_needs_to_be(count: int) -> None:
    plan = schedule(problem(pods(count, cpu="1", memory="4Gi"), node_pool(requirements=[requirement(ZONE, "In", "a")])))

    assert plan.price == pytest.approx(count * 0.04)


def test_pods_that_keep_to_themselves_get_a_small_node_each() -> None:
    plan = schedule(problem([pod(f"p-{n}", "100m", ports=[80]) for n in range(5)]))

    assert [claim.options[0].name for claim in plan.claims] == ["m-1"] * 5
