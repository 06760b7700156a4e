"""What ends the search for a better plan, and that the plan says so."""

import pytest
from tests.builders import Heard, existing_node, near_to, pods, problem, spread_over

from joiner.model.meta import replace
from joiner.scheduling import plan as ends
from joiner.scheduling.effort import Tries
from joiner.scheduling.planners.table import TINY
from joiner.scheduling.problem import Policy, Problem
from joiner.scheduling.schedule import ASKED_FROM, GOOD_ENOUGH, WAYS, first_plan, schedule

CHARGED = Policy(node_price=0.01)


def tried(asked: Problem) -> list[str]:
    heard = Heard()
    schedule(asked, reporter=heard)
    return [attempt.planner for attempt in heard.attempts]


ENDS = {
    "existing nodes suffice": (problem(pods(2), nodes=(existing_node(),)), ends.AT_HOME),
    "first fit alone": (problem(pods(2), policy=Policy(planning="FirstFit")), ends.FIRST_FIT_ONLY),
    "one node": (problem(pods(3, cpu="100m", affinity=near_to("web"))), ends.AGREED),
    "as cheap as can be": (problem(pods(20, cpu="3.5")), ends.NEAR_BOUND),
    "as cheap as can be, with a charge for nodes": (problem(pods(20, cpu="3.5"), policy=CHARGED), ends.NEAR_BOUND),
    "topology by domain": (
        problem(pods(20, cpu="3.5", topologySpreadConstraints=[spread_over("web")])),
        ends.ALL_TRIED,
    ),
    "nodes that take some": (problem(pods(20, cpu="3.5"), nodes=(existing_node(),)), ends.ALL_TRIED),
    "too many ways": (
        problem([each for app in range(9) for each in pods(2, f"app-{app}", cpu=f"{3 + app / 10}")]),
        ends.ALL_TRIED,
    ),
    "too many pods": (problem(pods(TINY + 1, cpu="3.5")), ends.ALL_TRIED),
}


@pytest.mark.parametrize(("asked", "ended"), ENDS.values(), ids=ENDS)
def test_the_plan_says_what_ended_the_search(asked: Problem, ended: str) -> None:
    assert schedule(asked).ended == ended


def test_a_plan_that_is_proven_to_be_good_enough_ends_the_search_after_two_planners() -> None:
    asked = problem(pods(20, cpu="3.5"))

    assert tried(asked) == ["worth", "first-fit"]
    assert schedule(asked).price == pytest.approx(20 * 4 * 0.04)


def test_what_ends_the_search_is_as_cheap_as_what_a_whole_search_finds() -> None:
    asked = problem(pods(20, cpu="3.5"))
    whole = problem(pods(20, cpu="3.5"), nodes=(existing_node("full", allocatable={}),))

    assert tried(whole)[:2] != tried(asked)
    assert schedule(asked).price <= GOOD_ENOUGH * schedule(whole).price


def test_for_two_or_three_pods_no_bound_is_worth_its_time() -> None:
    few, more = (pods(count, cpu="9") for count in (ASKED_FROM - 1, ASKED_FROM))

    assert schedule(problem(few)).ended == ends.ALL_TRIED
    assert schedule(problem(more)).ended == ends.NEAR_BOUND


def test_as_many_ways_to_serve_pods_are_gone_through_as_the_limit_says() -> None:
    def classes(count: int) -> Problem:  # 2 ways for each class of one pod
        return problem([each for app in range(count) for each in pods(1, f"app-{app}", cpu=f"{15 + app / 100}")])

    assert WAYS == 2**8
    assert schedule(classes(8)).ended == ends.NEAR_BOUND
    assert schedule(classes(9)).ended == ends.ALL_TRIED


def test_a_plan_says_that_its_effort_was_spent() -> None:
    assert schedule(problem(pods(20, cpu="3")), effort=Tries(8)).ended == ends.OUT_OF_EFFORT


def test_a_quick_plan_says_that_it_is_one() -> None:
    assert first_plan(problem(pods(20, cpu="3"))).ended == ends.TWO_TRIED
    assert first_plan(problem(pods(2), nodes=(existing_node(),))).ended == ends.AT_HOME


def test_a_run_that_is_sure_to_cost_more_than_the_best_is_cut_short() -> None:
    # Few want memory only, so that buying by value is far better than filling up whatever is open.
    some = (*pods(TINY, "cpu", cpu="900m", memory="100Mi"), *pods(TINY, "memory", cpu="100m", memory="3500Mi"))
    heard = Heard()

    plan = schedule(problem(some), reporter=heard)

    assert any(attempt.outcome == "dearer" for attempt in heard.attempts)
    assert all(attempt.price >= plan.price for attempt in heard.attempts if attempt.outcome == "complete")


def test_what_ended_the_search_is_no_part_of_where_pods_go() -> None:
    plan = schedule(problem(pods(3)))

    assert replace(plan, ended="") != plan
    assert replace(plan, ended="").claims == plan.claims
