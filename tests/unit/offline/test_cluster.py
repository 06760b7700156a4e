"""What is there already, read from files: what is missing between a node and its claim is made up, the mirror does the rest."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from joiner.model import labels, resources
from joiner.model.codec import decode
from joiner.model.labels import INITIALIZED, NODEPOOL, REGISTERED, Vocabulary
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.offline.cluster import Holdings, Picture, picture

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DONE = {REGISTERED: "true", INITIALIZED: "true"}
AMOUNTS = {"cpu": "4", "pods": "10"}


def node(name: str = "n", provider: str = "", labelled: Mapping[str, str] | None = None) -> Node:
    status = {"capacity": AMOUNTS, "allocatable": AMOUNTS}
    metadata = {"name": name, "labels": labelled or {}}
    return decode({"metadata": metadata, "spec": {"providerID": provider}, "status": status}, Node)


def claim(name: str = "c", **status: Any) -> NodeClaim:
    metadata = {"name": name, "labels": {NODEPOOL: "p", "from": "claim"}}
    bought = {"capacity": AMOUNTS, "allocatable": AMOUNTS}
    return decode({"metadata": metadata, "status": {**bought, **status}}, NodeClaim)


def pod(name: str, on: str = "n") -> Pod:
    spec = {"nodeName": on, "containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    metadata = {"name": name, "namespace": "default"}
    return decode({"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}, Pod)


def seen(**holdings: Any) -> Picture:
    return picture(Holdings(**holdings), NOW, Vocabulary())


def test_a_node_and_its_claim_find_each_other_by_provider_id_or_by_name() -> None:
    by_id = seen(nodes=(node(provider="id"),), claims=(claim(providerID="id"),))
    by_name = seen(nodes=(node(),), claims=(claim(nodeName="n"),))

    for found in (by_id, by_name):
        assert [(each.name, each.labels["from"]) for each in found.nodes] == [("c", "claim")]
        assert found.used == {"p": resources.of(cpu=4, nodes=1, pods=10)}


def test_a_claim_without_a_node_whose_size_is_told_is_a_place_already() -> None:
    (found,) = seen(claims=(claim(),)).nodes

    assert (found.name, found.allocatable) == ("c", resources.of(cpu=4, pods=10))


def test_a_node_of_a_pool_without_its_claim_counts_for_the_pool() -> None:
    found = seen(nodes=(node(labelled={**DONE, NODEPOOL: "p"}),), pods=(pod("a"),))

    assert [(each.name, each.initialized) for each in found.nodes] == [("n", True)]
    assert found.used == {"p": resources.of(cpu=4, nodes=1, pods=10)}
    assert [each.name for each in found.bound] == ["a"]


def test_a_node_of_a_pool_that_is_going_is_no_place_and_sends_its_pods_away() -> None:
    going = node(labelled={**DONE, NODEPOOL: "p"})
    metadata = replace(going.metadata, deletion_timestamp=NOW, finalizers=("karpenter.sh/termination",))

    found = seen(nodes=(replace(going, metadata=metadata),), pods=(pod("a"),))

    assert (found.nodes, [each.name for each in found.evicted]) == ((), ["a"])


def test_a_node_of_a_pool_that_does_not_say_more_is_still_starting() -> None:
    found = seen(nodes=(node(labelled={NODEPOOL: "p"}),), pods=(pod("a"),))

    assert [(each.name, each.initialized) for each in found.nodes] == [("claim-n", False)]
    assert found.nodes[0].used == resources.of(cpu=1, pods=1)
    assert found.bound_nodes["n"][labels.HOSTNAME] == "n"


def test_nodes_that_were_copied_with_their_provider_id_are_two_nodes() -> None:
    found = seen(nodes=(node("a", "same"), node("b", "same")))

    assert [each.name for each in found.nodes] == ["a", "b"]


def test_nodes_that_somebody_has_chosen_to_remove_send_their_pods_away() -> None:
    found = seen(nodes=(node(labelled=DONE),), pods=(pod("a"),), deleting=frozenset({"n"}))

    assert (found.nodes, [each.name for each in found.evicted]) == ((), ["a"])
