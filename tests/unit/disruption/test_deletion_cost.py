"""Which pods their ReplicaSets should give up first."""

from typing import Any

import pytest
from tests.builders import node_pool
from tests.unit.disruption.fleets import machine, on, situation

from joiner.disruption.deletioncost import FIRST, costs, is_managed
from joiner.model import labels
from joiner.model.meta import OwnerReference, replace
from joiner.model.node import Node
from joiner.model.pod import Pod
from joiner.model.taints import DISRUPTED

ALL: dict[str, Any] = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}


def owned(name: str, where: str, kind: str = "ReplicaSet", namespace: str = "default", **more: Any) -> Pod:
    made = on(name, where, **more)
    owner = OwnerReference(api_version="apps/v1", kind=kind, name="of", uid="u", controller=True)
    return replace(made, metadata=replace(made.metadata, namespace=namespace, owner_references=(owner,)))


def fleet(**disruption: Any) -> Any:
    drifted = machine("c", Drifted="True")
    pods = [owned("one", "a"), owned("two", "b"), owned("three", "b"), owned("four", "c")]
    return situation(
        machine("a"), machine("b"), drifted, *pods, pool=node_pool("default", disruption={**ALL, **disruption})
    )


def test_drifted_nodes_come_first_then_those_that_save_most_for_what_they_disturb() -> None:
    assert costs(fleet()) == {"c": -3, "a": -2, "b": -1}


def test_only_as_many_as_the_budgets_allow_have_a_cost() -> None:
    assert costs(fleet(budgets=[{"nodes": "1"}])) == {"c": -2, "a": -1, "b": None}
    assert costs(fleet(budgets=[{"nodes": "0", "reasons": ["Underutilized"]}])) == {"c": -1, "a": None, "b": None}


def test_where_nothing_is_consolidated_only_drifted_nodes_have_a_cost() -> None:
    assert costs(fleet(consolidateAfter="Never")) == {"c": -1, "a": None, "b": None}


def test_pods_of_nodes_that_go_cost_least_of_all() -> None:
    node, claim = machine("a")
    assert isinstance(node, Node)
    closed = replace(node, spec=replace(node.spec, taints=(DISRUPTED,)))

    assert costs(situation([closed, claim], owned("one", "a"))) == {"a": FIRST}


@pytest.mark.parametrize(
    ("lodger", "wanted"),
    [
        (owned("one", "a"), -1),
        (owned("one", "a", "Job"), -1),
        (owned("one", "a", "DaemonSet"), -1),
        (owned("one", "a", "StatefulSet"), None),
        (on("one", "a"), None),
        (owned("one", "a", "StatefulSet", namespace="kube-system"), -1),
    ],
    ids=["ReplicaSet", "Job", "DaemonSet", "StatefulSet", "alone", "of the system"],
)
def test_a_node_is_ranked_where_others_take_the_place_of_its_pods(lodger: Pod, wanted: int | None) -> None:
    found = costs(situation(machine("a"), lodger, pool=node_pool("default", disruption=ALL)))

    assert found == {"a": wanted}


@pytest.mark.parametrize("what", ["type", "protected"])
def test_a_node_that_may_not_go_or_whose_price_is_not_known_has_no_cost(what: str) -> None:
    node, claim = machine("a")
    assert isinstance(node, Node)
    if what == "type":
        node = replace(
            node, metadata=replace(node.metadata, labels={**node.metadata.labels, labels.INSTANCE_TYPE: "x"})
        )
    else:
        node = replace(node, metadata=replace(node.metadata, annotations={labels.DO_NOT_DISRUPT: "true"}))

    found = costs(situation([node, claim], owned("one", "a"), pool=node_pool("default", disruption=ALL)))
    assert found == {"a": None}


def test_only_replica_sets_look_at_costs() -> None:
    assert is_managed(owned("one", "a"))
    assert not is_managed(owned("one", "a", "Job"))
    assert not is_managed(on("one", "a"))
