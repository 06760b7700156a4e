"""Where everybody has a place on nodes that are there, or none anywhere, nobody needs to plan."""

from typing import Any

import pytest
from tests.builders import Heard, away_from, bound_volume, existing_node, node_pool, pod, pods, problem, requirement

from joiner.model.labels import ZONE
from joiner.model.pod import Pod
from joiner.scheduling.planners.firstfitvariants import AtHome
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.problem import Problem, Storage
from joiner.scheduling.schedule import schedule

TEAM = "example.com/team"
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


def any_of(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": [term]} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


NOWHERE, IN_B = requirement(ZONE, "In", "nowhere"), requirement(ZONE, "In", "b")


@pytest.mark.parametrize(
    ("hopeful", "pool"),
    [
        pytest.param(pod("new", cpu="8"), node_pool(), id="a node can be bought"),
        pytest.param(pod("new", cpu="3"), FULL, id="others took its place"),
        pytest.param(pod("new", affinity=away_from("web", ZONE)), FULL, id="only topology is against it"),
        pytest.param(pod("new", nodeSelector={TEAM: "x"}), node_pool(), id="another pod may bring the label"),
        pytest.param(pod("new", affinity=any_of(NOWHERE, IN_B)), node_pool(), id="another term is possible"),
        pytest.param(pod("new", claims=["far", "anywhere"]), node_pool(), id="another place is possible"),
        pytest.param(pod("new", claims=["labelled"]), node_pool(), id="another pod may bring the label of a volume"),
    ],
)
def test_a_pod_that_might_have_a_place_is_planned_for(hopeful: Pod, pool: Any) -> None:
    places = {
        "far": [NOWHERE, IN_B],
        "anywhere": [requirement(ZONE, "Exists")],
        "labelled": [requirement(TEAM, "In", "x")],
    }
    claims, volumes = zip(*(bound_volume(name, *terms) for name, terms in places.items()), strict=True)
    storage = Storage(claims=claims, volumes=volumes)
    asked = problem([*pods(2, labels={"app": "web"}), hopeful], pool, nodes=(existing_node(),), storage=storage)

    assert ways(asked) > 1


def test_pods_that_are_alike_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = AtHome.could_be_on_node

    def could_be_on_node(self: AtHome, each: PodClass, step: Step) -> bool:
        asked.append(each.pod.name)
        return real(self, each, step)

    monkeypatch.setattr(AtHome, "could_be_on_node", could_be_on_node)

    plan = schedule(problem([*pods(2), *pods(50, "huge", cpu="1000")], nodes=(existing_node(),)))

    assert asked == ["huge-0"]
    assert len(plan.refusals) == 50


def test_who_could_have_gone_first_is_planned_for_though_nothing_can_be_bought() -> None:
    asked = problem([*pods(2, cpu="2"), pod("late", cpu="1")], FULL, nodes=(existing_node(),))

    assert ways(asked) > 1
    assert len(schedule(asked).refusals) == 1
