"""What is there already: nodes, claims and bound pods, turned into what the engine plans around.

Here it is settled which labels, taints and amounts of a node count at its age, which pods must move, and what a DaemonSet
will put on every new node. Commands that read objects from files share it.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from joiner.model import labels, podrules, resources, taints
from joiner.model.labels import Vocabulary
from joiner.model.meta import ObjectMeta, Value, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim, NodeClaimSpec, NodeClaimStatus
from joiner.model.pod import Container, Pod, PodSpec, condition, host_ports
from joiner.model.podrequests import of_pod
from joiner.model.policy import PodDisruptionBudget
from joiner.model.resources import Resources
from joiner.model.selector import chooses
from joiner.model.storage import CSINode
from joiner.model.taints import Taint
from joiner.model.workload import DaemonSet
from joiner.scheduling.problem import ExistingNode, Storage
from joiner.scheduling.volumes import Shelf

TERMINATING: Final = "InstanceTerminating"
REBOOTING: Final = "Rebooting"
_ONE: Final = resources.of(nodes=1)


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
    """Names of nodes that somebody has decided to remove."""


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


def picture(holdings: Holdings, now: datetime, vocabulary: Vocabulary) -> Picture:
    """Everything that is there, at that moment."""
    bound = [pod for pod in holdings.pods if not podrules.is_terminal(pod)]
    pods: dict[str, list[Pod]] = {}
    for pod in bound:
        pods.setdefault(pod.spec.node_name, []).append(pod)
    shelf = Shelf(holdings.storage, vocabulary)
    limits = {each.name: _volume_limits(each) for each in holdings.csi_nodes}
    nodes: list[ExistingNode] = []
    elsewhere: dict[str, Mapping[str, str]] = {}
    used: dict[str, Resources] = {}
    evicted: list[Pod] = []
    for each in _members(holdings):
        hosted = pods.get(each.node.name, []) if each.node is not None else []
        if each.goes:
            evicted.extend(pod for pod in hosted if _must_move(pod, holdings.budgets, now))
        else:
            nodes.append(_existing(each, hosted, shelf, limits))
            pool = each.labels.get(labels.NODEPOOL)
            if pool:
                used[pool] = resources.add(used.get(pool, {}), each.amounts("capacity"), _ONE)
        if each.node is not None and (each.goes or each.name != each.node.name):
            elsewhere[each.node.name] = _with_hostname(each.node.metadata.labels, each.node.name)
    moving = {id(pod) for pod in evicted}
    known = {node.name for node in nodes} | elsewhere.keys()
    return Picture(
        nodes=tuple(sorted(nodes, key=lambda node: node.name)),
        bound=tuple(pod for pod in bound if pod.spec.node_name in known and id(pod) not in moving),
        bound_nodes=elsewhere,
        daemons=tuple(daemon(each, bound) for each in holdings.daemon_sets),
        evicted=tuple(replace(pod, spec=replace(pod.spec, node_name="")) for pod in evicted),
        used=used,
    )


# -- nodes ---------------------------------------------------------------------------------------------------------------


class _Member:
    """A node, its claim, or both, and which of the two is believed."""

    def __init__(self, node: Node | None, claim: NodeClaim | None, deleting: frozenset[str]) -> None:
        self.node = node
        self.claim = claim
        own = node.metadata.labels if node is not None else {}
        # A node without a claim is not ours to wait for: it counts as complete.
        self.registered = claim is None or own.get(labels.REGISTERED) == "true"
        self.initialized = claim is None or own.get(labels.INITIALIZED) == "true"
        self.goes = (node is not None and node.name in deleting) or _is_going(node, claim)

    @property
    def _believed(self) -> Node | NodeClaim:
        known = self.node if self.node is not None and self.registered else self.claim
        assert known is not None  # a member is made of at least one of them, and without a claim the node is registered
        return known

    @property
    def name(self) -> str:
        """The claim's until the node is registered."""
        return self._believed.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The claim's until the node is registered."""
        return self._believed.metadata.labels

    def amounts(self, field: str) -> Resources:
        """Capacity or allocatable. Until the node is initialized the claim fills in what the node does not say yet."""
        reported: Resources = getattr(self.node.status, field) if self.node is not None else {}
        if self.initialized or self.claim is None:
            return reported
        promised: Resources = getattr(self.claim.status, field)
        return {**reported, **{name: amount for name, amount in promised.items() if not reported.get(name)}}

    def taints(self) -> tuple[Taint, ...]:
        """What pods must tolerate, without what goes away by itself while the node starts."""
        found = self._believed.spec.taints
        if self.claim is None or (self.initialized and not _holds(self.claim, REBOOTING)):
            return found
        passing = (*self.claim.spec.startup_taints, taints.REBOOTING)
        return tuple(t for t in found if not taints.is_ephemeral(t) and not taints.is_among(t, passing))


def _members(holdings: Holdings) -> Iterator[_Member]:
    by_id = {claim.status.provider_id: claim for claim in holdings.claims if claim.status.provider_id}
    by_node = {claim.status.node_name: claim for claim in holdings.claims if claim.status.node_name}
    joined: set[str] = set()
    for node in holdings.nodes:
        claim = by_id.get(node.spec.provider_id) or by_node.get(node.name)
        if claim is not None:
            joined.add(claim.name)
        elif node.metadata.labels.get(labels.NODEPOOL):
            claim = _claim_of(node)
        yield _Member(node, claim, holdings.deleting)
    for claim in holdings.claims:
        if claim.name not in joined:
            yield _Member(None, claim, holdings.deleting)


def _claim_of(node: Node) -> NodeClaim:
    """The claim of a pool's node, made up where only the node is known."""
    status = NodeClaimStatus(node_name=node.name, capacity=node.status.capacity, allocatable=node.status.allocatable)
    metadata = ObjectMeta(name=f"claim-{node.name}", labels=node.metadata.labels)
    return NodeClaim(metadata=metadata, spec=NodeClaimSpec(taints=node.spec.taints), status=status)


def _is_going(node: Node | None, claim: NodeClaim | None) -> bool:
    if claim is not None:
        return claim.metadata.deletion_timestamp is not None or _holds(claim, TERMINATING)
    return node is not None and node.metadata.deletion_timestamp is not None


def _holds(claim: NodeClaim, kind: str) -> bool:
    return any(found.type == kind and found.status == "True" for found in claim.status.conditions)


def _existing(
    member: _Member, pods: Iterable[Pod], shelf: Shelf, limits: Mapping[str, Mapping[str, int]]
) -> ExistingNode:
    asked = [(pod, of_pod(pod)) for pod in pods]
    volumes: dict[str, frozenset[str]] = {}
    for pod, _ in asked:
        for driver, claims in shelf.volumes_of(pod).attachments.items():
            volumes[driver] = volumes.get(driver, frozenset()) | claims
    return ExistingNode(
        name=member.name,
        labels=_with_hostname(member.labels, member.name),
        taints=member.taints(),
        allocatable=member.amounts("allocatable"),
        used=resources.add(*(amounts for _, amounts in asked)),
        daemon_used=resources.add(*(amounts for pod, amounts in asked if podrules.is_daemon(pod))),
        ports=tuple(port for pod, _ in asked for port in host_ports(pod.spec)),
        volumes=volumes,
        volume_limits=limits.get(member.node.name, {}) if member.node is not None else {},
        initialized=member.initialized,
    )


def _with_hostname(found: Mapping[str, str], name: str) -> Mapping[str, str]:
    return found if found.get(labels.HOSTNAME) else {**found, labels.HOSTNAME: name}


def _volume_limits(node: CSINode) -> dict[str, int]:
    return {each.name: each.allocatable.count for each in node.spec.drivers if each.allocatable.count is not None}


# -- pods ----------------------------------------------------------------------------------------------------------------


def _must_move(pod: Pod, budgets: Iterable[PodDisruptionBudget], now: datetime) -> bool:
    """Whether the pod of a node that goes needs a place now. One that may not be evicted yet is not in a hurry."""
    if not podrules.is_reschedulable(pod) or podrules.must_not_be_disrupted(pod, now):
        return False
    protecting = [each for each in budgets if _protects(each, pod)]
    return len(protecting) <= 1 and not any(each.never_allows for each in protecting)


def _protects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    if budget.metadata.namespace != pod.metadata.namespace or not chooses(budget.spec.selector, pod.metadata.labels):
        return False
    ready = condition(pod, "Ready")
    return not (budget.lets_unready_go and (ready is None or ready.status != "True"))


def daemon(made_by: DaemonSet, pods: Iterable[Pod]) -> Pod:
    """The pod of a DaemonSet as it would run on a new node: like its newest one, but bound to no node."""
    template = made_by.spec.template
    living = [pod for pod in pods if _is_of(pod, made_by)]
    newest = max(living, key=lambda pod: (pod.metadata.creation_timestamp is not None, _born(pod)), default=None)
    spec = newest.spec if newest is not None else limits_as_requests(template.spec)
    metadata = newest.metadata if newest is not None else template.metadata
    required = template.spec.affinity.node_affinity.required  # the live one names its node there
    affinity = replace(spec.affinity, node_affinity=replace(spec.affinity.node_affinity, required=required))
    return Pod(
        metadata=replace(metadata, name=made_by.name, namespace=made_by.metadata.namespace),
        spec=replace(spec, node_name="", affinity=affinity),
    )


def _is_of(pod: Pod, made_by: DaemonSet) -> bool:
    same_place = pod.metadata.namespace == made_by.metadata.namespace
    return same_place and any(
        owner.kind == DaemonSet.kind and owner.name == made_by.name for owner in pod.metadata.owner_references
    )


def _born(pod: Pod) -> float:
    moment = pod.metadata.creation_timestamp
    return moment.timestamp() if moment is not None else 0.0


def limits_as_requests(spec: PodSpec) -> PodSpec:
    """The spec with a request wherever there is only a limit, as the API server has it."""
    return replace(
        spec,
        containers=tuple(map(_container_with_requests, spec.containers)),
        init_containers=tuple(map(_container_with_requests, spec.init_containers)),
    )


def _container_with_requests(container: Container) -> Container:
    given = container.resources
    if all(name in given.requests for name in given.limits):
        return container
    return replace(container, resources=replace(given, requests={**given.limits, **given.requests}))
