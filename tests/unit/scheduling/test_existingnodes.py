"""Why nodes that are there do not take a pod."""

from typing import Any

import pytest
from tests.builders import away_from, existing_node, pod, pods, problem

from joiner.model import resources
from joiner.model.labels import ZONE
from joiner.model.pod import ContainerPort
from joiner.model.taints import Taint
from joiner.scheduling.schedule import schedule
from joiner.scheduling.whatif.existingnodes import objections

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "taints": ({"taints": (Taint(key="x", effect="NoSchedule"),)}, {}, "taints", "the pod does not tolerate x:NoSchedule"),
    "room": (
        {"used": resources.of(cpu="3500m", pods=1)}, {}, "resources", "cpu 1 is asked for and 0.5 is free"
    ),
    "labels": (
        {}, {"nodeSelector": {ZONE: "b"}}, "requirements", f"it needs {ZONE} In [b], and the node has {ZONE} In [a]"
    ),
    "ports": ({"ports": (ContainerPort(host_port=80),)}, {"ports": [80]}, "ports", "a host port is taken"),
}  # fmt: skip


@pytest.mark.parametrize(("node", "spec", "rule", "message"), CASES.values(), ids=CASES)
def test_a_node_says_what_it_has_against_a_pod(
    node: dict[str, Any], spec: dict[str, Any], rule: str, message: str
) -> None:
    question = problem([pod(**spec)], nodes=(existing_node(**node),))

    (found,) = objections(question, schedule(question), "default/web")

    assert (found.object, found.rule, found.message) == ("Node node-a", rule, message)


def test_topology_is_told_with_its_counts() -> None:
    old = pod("old", labels={"app": "old"}, nodeName="node-a")
    question = problem([pod(affinity=away_from("old", ZONE))], nodes=(existing_node(),), bound=(old,))

    (found,) = objections(question, schedule(question), "default/web")

    assert found.rule == "topology"
    assert found.had == "a 1 (not for it: b 0, c 0)"


def test_nodes_are_asked_as_the_plan_leaves_them() -> None:
    question = problem(pods(5), nodes=(existing_node(),))
    plan = schedule(question)
    (placed,) = plan.placements.values()
    (left,) = {f"default/web-{n}" for n in range(5)} - set(placed)

    (found,) = objections(question, plan, left)

    assert found.message == "cpu 1 is asked for and 0 is free"


def test_a_node_that_takes_the_pod_has_nothing_against_it() -> None:
    question = problem([pod()], nodes=(existing_node(),))

    assert objections(question, schedule(question), "default/web") == ()
