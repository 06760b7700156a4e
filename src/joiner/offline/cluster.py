"""The existing cluster out of files: nodes, claims and bound pods, folded by `state` as a live cluster is.

The mirror of a live cluster does the thinking. Files rarely hold everything that a cluster has, so what is missing between a
node and its claim is made up here first. Commands that read objects from files share it.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from joiner.model import labels
from joiner.model.claimconditions import CONSOLIDATABLE, INITIALIZED
from joiner.model.conditions import Condition
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject, ObjectMeta, Value, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim, NodeClaimSpec, NodeClaimStatus
from joiner.model.pod import Pod
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.resources import Resources
from joiner.model.storage import CSINode
from joiner.model.workload import DaemonSet
from joiner.scheduling.problem import ExistingNode, Storage

if TYPE_CHECKING:  # a scenario needs nothing of it, and starts sooner without
    from joiner.state.snapshot import Snapshot


class Holdings(Value):
    """The objects of a cluster that say what is there."""

    nodes: tuple[Node, ...] = ()
    claims: tuple[NodeClaim, ...] = ()
    pods: tuple[Pod, ...] = ()
    """Bound ones, by `spec.nodeName`."""
    daemon_sets: tuple[DaemonSet, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    storage: Storage = Storage()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    deleting: frozenset[str] = frozenset()
    """Names of nodes that are being removed."""


class Picture(Value):
    """The same as the engine wants to see it; each part is a field of `Problem`, but for those that are said."""

    nodes: tuple[ExistingNode, ...] = ()
    bound: tuple[Pod, ...] = ()
    bound_nodes: Mapping[str, Mapping[str, str]] = {}
    daemons: tuple[Pod, ...] = ()
    evicted: tuple[Pod, ...] = ()
    """Pods of nodes that go: they join the queue, as if they were bound nowhere."""
    used: Mapping[str, Resources] = {}
    """Pool to what its nodes have together."""
    snapshot: "Snapshot | None" = None
    """The same with every node's claim and pods, for those who ask which nodes could go."""


def picture(holdings: Holdings, now: datetime, vocabulary: Vocabulary) -> Picture:
    """Everything that is there, at that moment."""
    if holdings == Holdings():
        return Picture()
    from joiner.state.cluster import Cluster

    cluster = Cluster(vocabulary)
    for thing in _completed(holdings):
        cluster.apply(type(thing), None, thing)
    cluster.mark_for_deletion(*sorted(holdings.deleting))
    seen = cluster.snapshot(now)
    return Picture(
        nodes=seen.existing,
        bound=seen.bound,
        bound_nodes=seen.bound_nodes,
        daemons=seen.daemons,
        evicted=seen.evicted,
        used=seen.used,
        snapshot=seen,
    )


def _completed(holdings: Holdings) -> Iterator[KubeObject]:
    """Everything, with each node and its claim under one provider id."""
    named = _distinct(holdings.nodes)
    by_id = {node.spec.provider_id: node for node in named}
    by_name = {node.name: node for node in named}
    claimed: set[str] = set()
    for claim in holdings.claims:
        node = by_id.get(claim.status.provider_id) or by_name.get(claim.status.node_name)
        if node is not None:
            claimed.add(node.name)
        yield _launched(claim, node)
    for node in named:
        yield node
        if node.name not in claimed and node.metadata.labels.get(labels.NODEPOOL):
            yield _claim_of(node)
    storage = holdings.storage
    yield from (*storage.claims, *storage.volumes, *storage.classes)
    yield from (*holdings.pods, *holdings.daemon_sets, *holdings.csi_nodes, *holdings.budgets)


def _distinct(nodes: Iterable[Node]) -> list[Node]:
    """The nodes, each with a provider id of its own; made up where there is none, or where it is another node's."""
    taken: set[str] = set()
    found: list[Node] = []
    for node in nodes:
        own = node.spec.provider_id
        if not own or own in taken:
            own = f"file:///{node.name}"
            node = replace(node, spec=replace(node.spec, provider_id=own))
        taken.add(own)
        found.append(node)
    return found


def _launched(claim: NodeClaim, node: Node | None) -> NodeClaim:
    """The claim with the provider id of its node. One without a node whose size is told has been launched, too."""
    status = claim.status
    if node is not None:
        own = node.spec.provider_id
    else:
        own = status.provider_id or (f"file:///{claim.name}" if status.capacity else "")
    return claim if own == status.provider_id else replace(claim, status=replace(status, provider_id=own))


def _claim_of(node: Node) -> NodeClaim:
    """The claim of a pool's node, made up where only the node is known."""
    status = NodeClaimStatus(
        node_name=node.name,
        provider_id=node.spec.provider_id,
        capacity=node.status.capacity,
        allocatable=node.status.allocatable,
    )
    going = node.metadata.deletion_timestamp
    metadata = ObjectMeta(name=f"claim-{node.name}", labels=node.metadata.labels, deletion_timestamp=going)
    return quiet(NodeClaim(metadata=metadata, spec=NodeClaimSpec(taints=node.spec.taints), status=status), None)


def quiet(claim: NodeClaim, now: datetime | None) -> NodeClaim:
    """The claim as one that no pod has come to or left for long."""
    kept = tuple(each for each in claim.status.conditions if each.type not in (CONSOLIDATABLE, INITIALIZED))
    told = tuple(
        Condition(type=kind, status="True", last_transition_time=now) for kind in (INITIALIZED, CONSOLIDATABLE)
    )
    return replace(claim, status=replace(claim.status, conditions=(*kept, *told)))
