"""What claims count against the limits of their pool before they are launched."""

from datetime import UTC, datetime

from tests.builders import node_pool, pool_option

from joiner.model.codec import decode
from joiner.model.labels import INSTANCE_TYPE, NODEPOOL, Vocabulary
from joiner.model.nodeclaim import NodeClaim
from joiner.model.resources import of
from joiner.state.cluster import Cluster
from joiner.state.usage import most, used_by

CATALOG = pool_option(node_pool("p")).catalog
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def claim(name: str, *types: str, **status: object) -> NodeClaim:
    spec = {"requirements": [{"key": INSTANCE_TYPE, "operator": "In", "values": list(types)}]}
    return decode({"metadata": {"name": name, "labels": {NODEPOOL: "p"}}, "spec": spec, "status": status}, NodeClaim)


def test_the_largest_of_the_types_counts() -> None:
    assert most(CATALOG, ("m-2", "m-8"), ("cpu", "memory", "nodes")) == of(cpu=8, memory="32Gi")


def test_a_pool_has_what_was_launched_and_the_most_that_may_come() -> None:
    cluster = Cluster(Vocabulary())
    for each in (claim("a", "m-2", "m-8"), claim("b", "m-1", providerID="b", capacity={"cpu": "1"})):
        cluster.apply(NodeClaim, None, each)

    assert used_by(cluster.snapshot(NOW), "p", of(cpu=100), CATALOG) == of(cpu=9, nodes=2)


def test_a_claim_that_goes_leaves_its_room_to_others() -> None:
    cluster = Cluster(Vocabulary())
    cluster.apply(NodeClaim, None, claim("a", "m-8"))
    cluster.mark_for_deletion("a")

    assert used_by(cluster.snapshot(NOW), "p", of(cpu=100), CATALOG) == {}
