"""Who may be chosen for repair, and what pods say to it."""

from datetime import timedelta
from typing import Any

import pytest
from tests.builders import pod
from tests.unit.disruption.brokennodes import NOW, claim, node, picture, running

from joiner.disruption import candidates
from joiner.model import labels
from joiner.model.codec import decode
from joiner.model.meta import KubeObject, replace
from joiner.model.pod import Pod, PodCondition
from joiner.model.podpolicy import PodDisruptionBudget

LEFT = {"deletion_timestamp": NOW}


def budget(name: str = "web", allowed: int = 0, **spec: Any) -> PodDisruptionBudget:
    chosen = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1, **spec}
    document = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": chosen,
        "status": {"disruptionsAllowed": allowed},
    }
    return decode(document, PodDisruptionBudget)


def web(**metadata: Any) -> Pod:
    return running(pod("web", labels={"app": "web"}), **metadata)


def ready(made: Pod) -> Pod:
    return replace(made, status=replace(made.status, conditions=(PodCondition(type="Ready", status="True"),)))


def ended(made: Pod) -> Pod:
    return replace(made, status=replace(made.status, phase="Succeeded"))


@pytest.mark.parametrize(
    ("things", "out_of_reach"),
    [
        pytest.param((node(), claim()), False, id="complete"),
        pytest.param((node(labels={labels.INITIALIZED: ""}),), False, id="registered but not complete"),
        pytest.param((node(labels={labels.REGISTERED: ""}),), True, id="not registered"),
        pytest.param((claim(),), True, id="no node yet"),
        pytest.param((node(), claim(Rebooting="True")), True, id="being restarted"),
        pytest.param((node(), claim(Rebooting="False")), False, id="restarted before"),
        pytest.param((node(), claim(InstanceTerminating="True")), True, id="its machine ends"),
    ],
)
def test_some_nodes_are_in_other_hands(things: tuple[KubeObject, ...], out_of_reach: bool) -> None:
    (each,) = picture(*things).nodes

    assert candidates.is_out_of_reach(each) is out_of_reach


def test_a_node_that_goes_is_in_other_hands() -> None:
    leaving = node()
    leaving = replace(leaving, metadata=replace(leaving.metadata, deletion_timestamp=NOW))

    assert candidates.is_out_of_reach(picture(leaving).nodes[0])
    assert candidates.is_out_of_reach(picture(node(), marked=("n",)).nodes[0])


@pytest.mark.parametrize(
    ("of", "annotations", "objection"),
    [
        pytest.param("default", {labels.DO_NOT_REPAIR: "true"}, labels.DO_NOT_REPAIR, id="must not be repaired"),
        pytest.param("default", {labels.DO_NOT_REPAIR: "yes"}, "", id="only true means it"),
        pytest.param("default", {labels.DO_NOT_DISRUPT: "true"}, "", id="do-not-disrupt does not count"),
        pytest.param("", {}, "no NodePool", id="no pool"),
    ],
)
def test_a_node_may_object_to_repair(of: str, annotations: dict[str, str], objection: str) -> None:
    each = picture(node(labels={labels.NODEPOOL: of}, annotations=annotations)).nodes[0]

    told = candidates.repair_objection(each, {}, NOW, bounded=True)

    assert objection in told
    assert bool(told) is bool(objection)


@pytest.mark.parametrize(
    ("made", "budgets", "objection"),
    [
        pytest.param(web(), (), "", id="nobody minds"),
        pytest.param(web(annotations={labels.DO_NOT_DISRUPT: "true"}), (), "do-not-disrupt", id="protected"),
        pytest.param(ended(web(annotations={labels.DO_NOT_DISRUPT: "true"})), (), "", id="protected, but done"),
        pytest.param(web(annotations={labels.DO_NOT_DISRUPT: "1h"}), (), "", id="protection over"),
        pytest.param(web(), (budget(),), "PodDisruptionBudget web", id="no disruption left"),
        pytest.param(web(), (budget(allowed=1),), "", id="one disruption left"),
        pytest.param(web(), (budget(allowed=1), budget("b", 1)), "more than one", id="two budgets"),
        pytest.param(web(**LEFT), (budget(),), "", id="on its way out"),
        pytest.param(web(), (budget(unhealthyPodEvictionPolicy="AlwaysAllow"),), "", id="unready may always go"),
        pytest.param(ready(web()), (budget(unhealthyPodEvictionPolicy="AlwaysAllow"),), "web", id="but not ready ones"),
    ],
)
def test_pods_may_object(made: Pod, budgets: tuple[PodDisruptionBudget, ...], objection: str) -> None:
    told = candidates.pods_object([made], {"default": budgets}, NOW)

    assert objection in told
    assert bool(told) is bool(objection)


@pytest.mark.parametrize("bounded", [True, False])
def test_pods_have_no_say_when_the_drain_has_an_end(bounded: bool) -> None:
    guarded = web(annotations={labels.DO_NOT_DISRUPT: "true"})
    each = picture(node(), guarded).nodes[0]

    assert bool(candidates.repair_objection(each, {}, NOW + timedelta(1), bounded=bounded)) is not bounded
