"""The cluster as it would be without a node, and whether that would do."""

import pytest
from tests.builders import VOCABULARY, pod
from tests.unit.disruption.brokennodes import node, picture, running

from joiner.disruption import simulate
from joiner.model import labels
from joiner.model.meta import KubeObject, OwnerReference
from joiner.model.pod import Pod
from joiner.scheduling.plan import Plan, Refusal, RefusalReason
from joiner.scheduling.problem import Policy, Problem, Storage
from joiner.scheduling.schedule import schedule
from joiner.state.snapshot import Snapshot
from joiner.state.statenode import StateNode

DAEMON = (OwnerReference(api_version="apps/v1", kind="DaemonSet", name="d"),)


def without(*things: KubeObject, name: str = "n") -> tuple[Problem, tuple[StateNode, ...], Snapshot]:
    """The question of a cluster without one of its nodes."""
    snapshot = picture(*things)
    gone = tuple(each for each in snapshot.nodes if each.name == name)
    question = simulate.question_without(gone, snapshot, (), storage=Storage(), policy=Policy(), vocabulary=VOCABULARY)
    return question, gone, snapshot


def tried(*things: KubeObject) -> simulate.SimulatedPlan:
    question, gone, snapshot = without(*things)
    return simulate.judged(schedule(question), question, gone, snapshot)


def names(pods: tuple[Pod, ...]) -> list[str]:
    return [each.name for each in pods]


def test_its_pods_wait_and_it_is_no_place_any_more() -> None:
    question, _, _ = without(node(), node(name="other"), running(pod("web")), running(pod("stays"), "other"))

    assert names(question.pods) == ["web"]
    assert question.pods[0].spec.node_name == ""
    assert [each.name for each in question.nodes] == ["other"]
    assert names(question.bound) == ["stays"]


def test_daemons_do_not_move_but_are_still_seen() -> None:
    question, _, _ = without(node(), running(pod("daemon"), owner_references=DAEMON))

    assert names(question.pods) == []
    assert names(question.bound) == ["daemon"]
    assert question.bound_nodes["n"][labels.NODEPOOL] == "default"


def test_pods_that_may_not_be_evicted_now_need_a_place_all_the_same() -> None:
    question, _, _ = without(node(), running(pod("web"), annotations={labels.DO_NOT_DISRUPT: "true"}))

    assert names(question.pods) == ["web"]


def test_pods_that_fit_elsewhere_need_no_replacement() -> None:
    found = tried(node(), node(name="other"), running(pod("web")))

    assert (found.obstacle, found.replacements, found.moved) == ("", (), ("default/web",))
    assert found.plan.placements == {"other": ("default/web",)}


def test_a_pod_that_fits_nowhere_is_an_obstacle() -> None:
    assert "pod default/web would find no place" in tried(node(), running(pod("web"))).obstacle


def test_a_node_that_may_never_be_complete_is_no_place() -> None:
    unfinished = node(name="other", labels={labels.INITIALIZED: ""})

    assert "other, which is not complete yet" in tried(node(), unfinished, running(pod("web"))).obstacle


@pytest.mark.parametrize(("refused", "obstacle"), [("default/waited", False), ("default/web", True)])
def test_who_waited_before_is_no_obstacle(refused: str, obstacle: bool) -> None:
    question, gone, snapshot = without(node(), running(pod("web")))
    plan = Plan(refusals=(Refusal(pod=refused, reasons=(RefusalReason(rule="r", object="o", message="no"),)),))

    assert bool(simulate.judged(plan, question, gone, snapshot).obstacle) is obstacle


def test_what_was_not_tried_has_no_place() -> None:
    question, gone, snapshot = without(node(), running(pod("web")))

    assert "was not tried" in simulate.judged(Plan(not_attempted=("default/web",)), question, gone, snapshot).obstacle


def test_pods_of_a_node_that_goes_already_may_use_what_is_not_complete() -> None:
    going, unfinished = node(name="going"), node(name="other", labels={labels.INITIALIZED: ""})
    snapshot = picture(node(), going, unfinished, running(pod("web"), "going"), marked=("going",))
    gone = tuple(each for each in snapshot.nodes if each.name == "n")
    question = simulate.question_without(gone, snapshot, (), storage=Storage(), policy=Policy(), vocabulary=VOCABULARY)

    assert names(question.pods) == ["web"]
    assert simulate.judged(schedule(question), question, gone, snapshot).obstacle == ""
