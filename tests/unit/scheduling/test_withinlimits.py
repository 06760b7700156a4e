"""Limits that do not bind change no plan."""

from typing import Any

import pytest
from tests.builders import SHELF, node_pool, pods, problem, spread_over

from joiner.model.labels import HOSTNAME
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Policy
from joiner.scheduling.schedule import schedule

APART: dict[str, Any] = {
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "podAffinityTerm": {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}},
                }
            ]
        }
    }
}


def planned(limits: dict[str, Any], *, policy: Policy | None = None, **more: Any) -> Plan:
    return schedule(problem(pods(10, cpu="500m", **more), node_pool(limits=limits), policy=policy or Policy()))


def told(plan: Plan) -> object:
    claims = [(claim.pods, claim.price, claim.options[0]) for claim in plan.claims]
    return claims, plan.refusals, plan.given_up, plan.planner


def most(plan: Plan, resource: str = "cpu") -> int:
    sizes = {each.name: each.capacity[resource] for each in SHELF}
    return sum(max(sizes[option.name] for option in claim.options) for claim in plan.claims)


CASES = [
    pytest.param({}, id="plain"),
    pytest.param(APART, id="a preference"),
    pytest.param({"topologySpreadConstraints": [spread_over("web")]}, id="spread"),
]


@pytest.mark.parametrize("more", CASES)
@pytest.mark.parametrize("limits", [{"cpu": 1000}, {"cpu": 40}, {"cpu": 30, "nodes": 10}], ids=str)
def test_limits_that_do_not_bind_change_no_plan(limits: dict[str, Any], more: dict[str, Any]) -> None:
    free, plan = planned({}, **more), planned(limits, **more)

    assert told(plan) == told(free)
    assert most(plan) <= limits["cpu"] * 1000


def test_far_from_limits_claims_keep_all_their_types() -> None:
    free, plan = planned({}, **APART), planned({"cpu": 1000}, **APART)

    assert [len(claim.options) for claim in plan.claims] == [len(claim.options) for claim in free.claims]


def test_near_limits_types_are_shared_out_evenly() -> None:
    plan = planned({"cpu": 30}, **APART)

    assert {len(claim.options) for claim in plan.claims} == {2, 3}


def test_spot_width_has_a_claim_on_the_room_that_limits_leave() -> None:
    plan = planned({"cpu": 45}, policy=Policy(spot_width=3, spot_width_cost=0.05), **APART)

    assert min(len(claim.options) for claim in plan.claims) == 3


def test_limits_that_bind_are_kept() -> None:
    plan = planned({"cpu": 4})

    assert most(plan) <= 4000
    assert len(plan.refusals) == 2
    assert "limits" in str(plan.refusals[0])
