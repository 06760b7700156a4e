"""Odd and huge questions: an answer, whatever comes in."""

from collections import Counter
from typing import Any

import pytest
from tests.builders import (
    SHELF,
    away_from,
    existing_node,
    instance_type,
    near_term,
    near_to,
    node_pool,
    offering,
    pod,
    pods,
    problem,
    requirement,
)

from joiner.catalog.market import RESERVED_DIVISOR
from joiner.model.labels import CAPACITY_TYPE, ZONE
from joiner.model.meta import replace
from joiner.model.pod import Pod
from joiner.scheduling.effort import Tries, Unlimited
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import schedule

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERMS = [near_term(f"app-{number}", ZONE) for number in range(500)]


def copies(original: Pod, count: int) -> tuple[Pod, ...]:
    metas = (replace(original.metadata, name=f"copy-{n}", uid=f"copy-{n}") for n in range(count))
    return tuple(replace(original, metadata=each) for each in metas)


def test_of_ten_thousand_pods_that_stay_apart_one_takes_the_reservation() -> None:
    ways = [offering("reserved", "a", 1.0, 1, "cr-1", divisor=RESERVED_DIVISOR), offering(zone="a", price=1.0)]
    lonely = copies(pod(labels={"app": "lonely"}, affinity=away_from("lonely")), 10_000)

    plan = schedule(problem(lonely, types=(SHELF[0], instance_type("paid", ways))))

    assert [len(claim.pods) for claim in plan.claims] == [1] * 10_000
    assert Counter(claim.reservations for claim in plan.claims) == {("cr-1",): 1, (): 9_999}


def test_a_pod_that_asks_for_a_billion_cores_is_refused_and_nobody_else() -> None:
    plan = schedule(problem([pod("greedy", "1000000000"), pod("modest")]))

    assert [each.pod for each in plan.refusals] == ["default/greedy"]
    assert [claim.pods for claim in plan.claims] == [("default/modest",)]


def test_a_hundred_thousand_impossible_pods_are_told_one_reason() -> None:
    plan = schedule(problem(copies(pod(cpu="1000"), 100_000)))

    assert len(plan.refusals) == 100_000
    assert len({each.reasons for each in plan.refusals[::1000]}) == 1


@pytest.mark.parametrize(
    ("affinity", "placed"),
    [
        pytest.param({"podAffinity": {REQUIRED: TERMS}}, 0, id="needs 500 apps that are nowhere"),
        pytest.param({"podAntiAffinity": {REQUIRED: TERMS}}, 1, id="keeps away from 500"),
        pytest.param(
            {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term} for term in TERMS]}}, 1, id="likes 500"
        ),
        pytest.param(
            {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [requirement("example.com/n", "In", str(n))]} for n in range(500)
                        ]
                    }
                }
            },
            0,
            id="500 node terms",
        ),
    ],
)
def test_a_pod_with_five_hundred_terms_gets_an_answer(affinity: dict[str, Any], placed: int) -> None:
    plan = schedule(problem([pod(affinity=affinity)]))

    assert len(plan.claims) == placed
    assert len(plan.refusals) == 1 - placed


@pytest.mark.parametrize(
    "affinity",
    [
        {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term} for term in TERMS]}},
        {
            "nodeAffinity": {
                PREFERRED: [
                    {"weight": 1, "preference": {"matchExpressions": [requirement(ZONE, "In", f"zone-{n}")]}}
                    for n in range(500)
                ]
            }
        },
    ],
    ids=["pods that are nowhere", "nodes that there are none of"],
)
def test_what_nobody_can_give_is_asked_for_once_and_not_for_every_pod(
    affinity: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Step] = []
    real = FirstFit.on_claim

    def on_claim(self: FirstFit, each: PodClass, position: int, step: Step) -> bool:
        asked.append(step)
        return real(self, each, position, step)

    monkeypatch.setattr(FirstFit, "on_claim", on_claim)
    run = FirstFit(problem(copies(pod(cpu="100m", affinity=affinity), 100)), Unlimited())
    run.place()

    assert not run.left_over()
    assert len(asked) <= 500 + 100


def test_pods_that_wait_for_one_another_are_refused_without_end() -> None:
    waiting = [
        pod(one, labels={"app": one}, affinity=near_to(other)) for one, other in (("a", "b"), ("b", "c"), ("c", "a"))
    ]

    assert len(schedule(problem(waiting)).refusals) == 3


def test_one_that_is_there_already_breaks_the_circle() -> None:
    waiting = [pod(one, labels={"app": one}, affinity=near_to(other)) for one, other in (("a", "b"), ("b", "a"))]
    running = pod("old", labels={"app": "a"}, nodeName="node-a")

    plan = schedule(problem(waiting, bound=(running,), nodes=(existing_node(),)))

    assert plan.placements == {"node-a": ("default/a", "default/b")}


@pytest.mark.parametrize(
    ("types", "pools"),
    [((), (node_pool(),)), (SHELF, ()), ((instance_type("bare", []),), (node_pool(),))],
    ids=["no types", "no pools", "no offerings"],
)
def test_where_nothing_can_be_bought_pods_still_go_to_nodes(types: Any, pools: Any) -> None:
    plan = schedule(problem(pods(5), types=types, pools=pools, nodes=(existing_node(),)))

    assert {name: len(members) for name, members in plan.placements.items()} == {"node-a": 4}
    assert [bool(each.reasons) for each in plan.refusals] == [True]


def test_a_pool_that_allows_none_of_its_types_does_not_stop_the_other() -> None:
    nothing = node_pool("nothing", [requirement(ZONE, "In", "nowhere")], weight=100)

    assert [claim.nodepool for claim in schedule(problem(pods(1), nothing, node_pool("fine"))).claims] == ["fine"]


def test_what_costs_nothing_is_bought() -> None:
    types = (instance_type("free", [offering(price=0.0)]), instance_type("dear", [offering(price=5.0)]))

    plan = schedule(problem(pods(7), types=types))

    assert (plan.price, len(plan.refusals)) == (0.0, 0)


def test_no_pods_need_nothing() -> None:
    plan = schedule(problem(()))

    assert (plan.claims, plan.placements, plan.refusals) == ((), {}, ())


def test_a_pod_without_requests_takes_a_place_among_the_pods_of_a_node() -> None:
    plan = schedule(problem([pod(f"idle-{n}", None, None) for n in range(9)], types=SHELF[:1]))

    assert sorted(len(claim.pods) for claim in plan.claims) == [1, 8]


@pytest.mark.parametrize("coins", [0, 1, 3, 10])
def test_effort_that_runs_out_keeps_what_was_found(coins: int) -> None:
    plan = schedule(problem(pods(6, cpu="900m", affinity=away_from("web"))), effort=Tries(coins))

    placed = sum(len(claim.pods) for claim in plan.claims)
    assert placed + len(plan.not_attempted) == 6
    assert placed >= min(coins, 6)
    assert not plan.refusals


def test_with_more_effort_more_pods_are_planned_for_and_then_at_a_lower_price() -> None:
    waiting = [*pods(30, "fixed", cpu="900m", nodeSelector={CAPACITY_TYPE: "on-demand"}), *pods(60, cpu="300m")]
    asked = problem(waiting)

    plans = [schedule(asked, effort=Tries(count)) for count in (20, 50, 90, 2_000)]

    placed = [sum(len(claim.pods) for claim in plan.claims) for plan in plans]
    assert placed == [20, 50, 90, 90]
    assert [len(plan.not_attempted) for plan in plans] == [70, 40, 0, 0]
    assert plans[3].price <= plans[2].price
    assert schedule(asked).price == plans[3].price


def test_more_effort_never_places_fewer_when_there_is_no_room_for_all() -> None:
    terms = [{"matchExpressions": [requirement(ZONE, "In", zone)]} for zone in "ab"]
    liked = {"weight": 1, "preference": {"matchExpressions": [requirement("nope", "In", "x")]}}
    nodes = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
        "preferredDuringSchedulingIgnoredDuringExecution": [liked],
    }
    pool = node_pool(limits={"cpu": "12"}, requirements=[requirement(ZONE, "In", "a")])
    asked = problem((*pods(6, "u", affinity={"nodeAffinity": nodes}), *pods(12, "v")), pool)

    placed = [len(asked.pods) - len(_not_placed(asked, tries)) for tries in range(1, 260)]

    assert placed == sorted(placed)
    assert placed[-1] == 12


def _not_placed(asked: Problem, tries: int) -> set[str]:
    plan = schedule(asked, effort=Tries(tries))
    return {*(refusal.pod for refusal in plan.refusals), *plan.not_attempted}
