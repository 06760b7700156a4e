"""Where everybody has a place on nodes that are there, or none anywhere, nobody needs to plan."""

from typing import Any

import pytest
from tests.builders import Heard, away_from, existing_node, node_pool, pod, pods, problem

from joiner.model import resources
from joiner.model.labels import ZONE
from joiner.model.pod import Pod
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import schedule

FULL = node_pool(limits={"nodes": "0"})


def ways(asked: Problem) -> int:
    heard = Heard()
    schedule(asked, reporter=heard)
    return len(heard.attempts)


@pytest.mark.parametrize(
    ("hopeless", "pool"),
    [
        pytest.param(pod("huge", cpu="1000"), node_pool(), id="too large for everybody"),
        pytest.param(pod("far", nodeSelector={ZONE: "nowhere"}), node_pool(), id="asks for what is not there"),
        pytest.param(pod("large", cpu="8"), FULL, id="nothing may be bought"),
        pytest.param(pod("lone", cpu="8", affinity=away_from("web")), FULL, id="nothing may be bought, with topology"),
    ],
)
def test_a_pod_that_nobody_can_place_is_no_reason_to_plan(hopeless: Pod, pool: Any) -> None:
    asked = problem([*pods(2), hopeless], pool, nodes=(existing_node(),))

    plan = schedule(asked)

    assert ways(asked) == 1
    assert [each.pod for each in plan.refusals] == [f"default/{hopeless.name}"]
    assert plan.refusals[0].reasons
    assert plan.placements == {"node-a": ("default/web-0", "default/web-1")}


@pytest.mark.parametrize(
    ("hopeful", "node"),
    [
        pytest.param(pod("new", cpu="8"), {}, id="a node can be bought"),
        pytest.param(pod("new", cpu="2"), {"used": resources.of(cpu="1")}, id="others took its place"),
        pytest.param(pod("new", affinity=away_from("web", ZONE)), {}, id="only topology is against it"),
    ],
)
def test_a_pod_that_might_have_a_place_is_planned_for(hopeful: Pod, node: dict[str, Any]) -> None:
    asked = problem([*pods(2, labels={"app": "web"}), hopeful], nodes=(existing_node(**node),))

    assert ways(asked) > 1


def test_who_could_have_gone_first_is_planned_for_though_nothing_can_be_bought() -> None:
    asked = problem([*pods(2, cpu="2"), pod("late", cpu="1")], FULL, nodes=(existing_node(),))

    assert ways(asked) > 1
    assert len(schedule(asked).refusals) == 1
