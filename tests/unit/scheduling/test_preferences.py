"""Preferences: what is given up first, and what never is."""

from typing import Any

import pytest
from tests.builders import existing_node, near_term, node_pool, pod, pods, problem, requirement, spread_over

from joiner.model.codec import decode
from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from joiner.model.nodepool import NodePool
from joiner.scheduling.plan import Plan
from joiner.scheduling.pods.preferences import steps, wishes
from joiner.scheduling.problem import Policy
from joiner.scheduling.schedule import schedule

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def liked_nodes(*rows: dict[str, Any]) -> dict[str, Any]:
    terms = [{"weight": weight, "preference": {"matchExpressions": [row]}} for weight, row in enumerate(rows, 1)]
    return {"nodeAffinity": {PREFERRED: terms}}


def term(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(rows)}


def zone(plan: Plan) -> frozenset[str]:
    return plan.claims[0].requirements[ZONE].values


FULL = pod(
    affinity={
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [term(requirement(ZONE, "In", "a")), term(requirement(ZONE, "In", "b"))]},
            PREFERRED: [{"weight": 1, "preference": term()}, {"weight": 9, "preference": term()}],
        },
        "podAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": near_term("x", ZONE)}]},
        "podAntiAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": near_term("y", ZONE)}]},
    },
    topologySpreadConstraints=[spread_over("web", whenUnsatisfiable="ScheduleAnyway"), spread_over("web")],
)


def test_one_thing_is_given_up_at_a_time_in_the_stated_order() -> None:
    found = list(steps(wishes(FULL.spec, respected=True), some_pool_is_disliked=True))

    held = [
        (
            len(step.terms),
            len(step.liked_near),
            len(step.liked_away),
            len(step.liked_nodes),
            len(step.liked_spread),
            step.endures_disliked_taints,
        )
        for step in found
    ]
    assert held == [
        (2, 1, 1, 2, 1, False),
        (1, 1, 1, 2, 1, False),
        (1, 0, 1, 2, 1, False),
        (1, 0, 0, 2, 1, False),
        (1, 0, 0, 1, 1, False),
        (1, 0, 0, 0, 1, False),
        (1, 0, 0, 0, 0, False),
        (1, 0, 0, 0, 0, True),
        (1, 0, 0, 0, 0, True),
        (1, 0, 0, 0, 0, True),
    ]
    assert [step.terms for step in found[-2:]] == [found[0].terms[:1], found[0].terms[1:]]
    assert {len(step.spread) for step in found} == {1}


def test_the_heaviest_preference_goes_first() -> None:
    asked = wishes(FULL.spec, respected=True)

    assert [liked.weight for liked in asked.liked_nodes] == [9, 1]


def test_without_a_disliked_pool_the_last_step_is_not_taken() -> None:
    found = list(steps(wishes(FULL.spec, respected=True), some_pool_is_disliked=False))

    assert not any(step.endures_disliked_taints for step in found)


def test_preferences_can_be_ignored_altogether() -> None:
    asked = wishes(FULL.spec, respected=False)

    assert (asked.liked_nodes, asked.liked_near, asked.liked_away, asked.liked_spread) == ((), (), (), ())
    assert len(asked.terms) == 2


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([requirement(ZONE, "In", "c")], {"c"}),
        ([requirement(ZONE, "In", "b"), requirement(ZONE, "In", "c")], {"c"}),
        ([requirement(ZONE, "In", "b"), requirement(ZONE, "In", "nowhere")], {"b"}),
    ],
    ids=["a wish that can be met", "the heavier of two", "the lighter where the heavier cannot be met"],
)
def test_a_preferred_zone_is_kept_where_it_can_be(rows: list[dict[str, Any]], expected: set[str]) -> None:
    assert zone(schedule(problem([pod(affinity=liked_nodes(*rows))]))) == expected


def test_a_wish_that_nobody_can_meet_is_given_up() -> None:
    plan = schedule(problem([pod(affinity=liked_nodes(requirement("example.com/unheard-of", "In", "x")))]))

    assert len(plan.claims) == 1


def test_the_first_of_several_required_terms_that_can_be_met_counts() -> None:
    terms = [term(requirement(ZONE, "In", "nowhere")), term(requirement(ZONE, "In", "b"))]

    plan = schedule(problem([pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})]))

    assert zone(plan) == {"b"}


def test_ignored_preferences_do_not_narrow_a_claim() -> None:
    asked = [pod(affinity=liked_nodes(requirement(ZONE, "In", "c")))]

    plan = schedule(problem(asked, policy=Policy(preferences="Ignore")))

    assert ZONE not in plan.claims[0].requirements


def test_a_disliked_pool_is_taken_only_when_there_is_no_other() -> None:
    taints = [{"key": "slow", "effect": "PreferNoSchedule"}]
    slow = decode(
        {"metadata": {"name": "slow"}, "spec": {"weight": 50, "template": {"spec": {"taints": taints}}}}, NodePool
    )

    both, alone = (schedule(problem([pod()], *pools)) for pools in ((slow, node_pool("fast")), (slow,)))

    assert ([claim.nodepool for claim in both.claims], [c.nodepool for c in alone.claims]) == (["fast"], ["slow"])


def test_a_soft_spread_over_hosts_is_kept_while_new_hosts_can_be_had() -> None:
    soft = spread_over("web", HOSTNAME, whenUnsatisfiable="ScheduleAnyway")

    plan = schedule(problem(pods(3, cpu="100m", topologySpreadConstraints=[soft])))

    assert [len(claim.pods) for claim in plan.claims] == [1, 1, 1]


def test_a_soft_spread_is_given_up_where_a_limit_forbids_new_hosts() -> None:
    soft = spread_over("web", HOSTNAME, whenUnsatisfiable="ScheduleAnyway")

    plan = schedule(problem(pods(3, cpu="100m", topologySpreadConstraints=[soft]), node_pool(limits={"nodes": "1"})))

    assert [len(claim.pods) for claim in plan.claims] == [3]


def test_a_preference_is_given_up_rather_than_a_node_left_empty() -> None:
    asked = [pod(affinity=liked_nodes(requirement(CAPACITY_TYPE, "In", "spot")))]
    node = existing_node(labels={CAPACITY_TYPE: "on-demand"})

    assert schedule(problem(asked, pools=(), nodes=(node,))).placements == {"node-a": ("default/web",)}


# -- what is told of it ------------------------------------------------------------------------------------------------------


def test_a_plan_tells_who_gave_up_what_and_what_was_probably_meant() -> None:
    choosy = pods(2, affinity=liked_nodes(requirement(ZONE, "In", "aa")))
    modest = pod("modest", affinity=liked_nodes(requirement(ZONE, "In", "b")))

    (found,) = schedule(problem([*choosy, modest])).given_up

    assert found.pods == ("default/web-0", "default/web-1")
    assert found.wishes == (f"preferred node affinity {ZONE} In [aa]; {ZONE} is nowhere aa; did you mean a?",)


def test_wishes_for_company_are_told_too_and_another_alternative_is_none() -> None:
    either = {"nodeSelectorTerms": [term(requirement(ZONE, "In", "nowhere")), term(requirement(ZONE, "In", "a"))]}
    lonely = {"podAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": near_term("nobody", HOSTNAME)}]}}
    affinity = {"nodeAffinity": {REQUIRED: either}, **lonely}

    (found,) = schedule(problem([pod(affinity=affinity)])).given_up

    assert found.wishes == (f"preferred affinity to pods with app=nobody by {HOSTNAME}",)


def test_a_taint_that_only_asks_to_be_avoided_is_told_where_it_is_put_up_with() -> None:
    taints = [{"key": "slow", "effect": "PreferNoSchedule"}]
    slow = decode({"metadata": {"name": "default"}, "spec": {"template": {"spec": {"taints": taints}}}}, NodePool)

    (found,) = schedule(problem([pod()], slow)).given_up

    assert found.wishes == ("no taint that only asks to be avoided",)
