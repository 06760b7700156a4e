"""Nodes and their claims joined: which of the two is believed at which age, and what pods find there."""

from collections.abc import Iterable, Mapping
from typing import Final

from joiner.model import labels, podrules, resources, taints
from joiner.model.conditions import is_true
from joiner.model.labels import Vocabulary
from joiner.model.meta import Value, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import ContainerPort, Pod, host_ports
from joiner.model.podrequests import of_pod
from joiner.model.resources import Resources
from joiner.model.taints import Taint
from joiner.requirements import Requirements
from joiner.scheduling.pods.volumetopology import VolumeIndex
from joiner.scheduling.problem import ExistingNode

TERMINATING: Final = "InstanceTerminating"
REBOOTING: Final = "Rebooting"


class BoundPod:
    """A pod on a node, with what is asked again and again about it worked out once."""

    __slots__ = ("daemon", "key", "pod", "ports", "requests")

    def __init__(self, pod: Pod, before: "BoundPod | None" = None) -> None:
        """The pod; and the same one as it was before, if it is known: mostly it still takes what it took."""
        self.pod = pod
        self.key = (pod.metadata.namespace, pod.name)
        self.daemon = podrules.is_daemon(pod)
        self.requests: Resources
        self.ports: tuple[ContainerPort, ...]
        if before is not None and _takes_the_same(before.pod, pod):
            self.requests, self.ports = before.requests, before.ports
        else:
            self.requests, self.ports = of_pod(pod), host_ports(pod.spec)

    def bound_to(self, node: str) -> "BoundPod":
        """The same pod as if it were on that node already."""
        return BoundPod(replace(self.pod, spec=replace(self.pod.spec, node_name=node)))


def _takes_the_same(before: Pod, after: Pod) -> bool:
    """Where nothing is said of containers, what a pod takes follows from its spec alone."""
    told = (before.status, after.status)
    return before.spec == after.spec and not any(
        each.container_statuses or each.init_container_statuses for each in told
    )


class StateNode(Value):
    """A node, the claim it was bought for, or both; and everything that follows from the two and from the pods on it."""

    key: str
    """The provider's id; for what has none yet, `node/` or `claim/` and the name."""
    node: Node | None
    claim: NodeClaim | None
    name: str
    """The claim's until the node is registered."""
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    capacity: Resources
    allocatable: Resources
    pods: tuple[Pod, ...]
    """Everything on the node that has not ended, by namespace and name."""
    used: Resources
    daemon_used: Resources
    launched: bool
    """Whether the machine has been bought. Until then the claim has room only for the pods that it was made for."""
    registered: bool
    initialized: bool
    deleting: bool
    """Whether the node goes, by its own deletion or because a controller has decided so."""
    existing: ExistingNode
    """The same as a place for pods."""

    @property
    def managed(self) -> bool:
        """Whether it is ours: a node without a claim is only looked at."""
        return self.claim is not None

    @property
    def nodepool(self) -> str:
        """The pool it belongs to; empty when there is none."""
        return self.labels.get(labels.NODEPOOL, "")

    @property
    def pool_usage(self) -> Resources:
        """What it counts against the limits of its pool. What a claim will be is not known before it is launched."""
        found = {name: amount for name, amount in self.capacity.items() if amount} if self.launched else {}
        return {**found, resources.NODES: _ONE}


_ONE: Final = resources.of(nodes=1)[resources.NODES]


class NodeWithClaim:
    """A node, its claim, or both, and which of the two is believed."""

    def __init__(self, node: Node | None, claim: NodeClaim | None) -> None:
        self.node = node
        self.claim = claim
        own = node.metadata.labels if node is not None else {}
        # A node without a claim is not ours to wait for: it counts as complete.
        self.registered = claim is None or own.get(labels.REGISTERED) == "true"
        self.initialized = claim is None or own.get(labels.INITIALIZED) == "true"
        self.launched = claim is None or bool(claim.status.provider_id)

    @property
    def _believed(self) -> Node | NodeClaim:
        known = self.node if self.node is not None and self.registered else self.claim
        assert known is not None  # a member is made of at least one of them, and without a claim the node is registered
        return known

    @property
    def name(self) -> str:
        """The claim's until the node is registered."""
        return self._believed.name

    def labels(self, vocabulary: Vocabulary) -> Mapping[str, str]:
        """The claim's until the node is registered; before the launch also those that its requirements leave no choice about."""
        if self.launched or self.claim is None:
            return self._believed.metadata.labels
        settled = Requirements.read(self.claim.spec.requirements, vocabulary).labels()
        return {**settled, **self.claim.metadata.labels}

    def amounts(self, field: str) -> Resources:
        """Capacity or allocatable. Until the node is initialized the claim fills in what the node does not say yet."""
        reported: Resources = getattr(self.node.status, field) if self.node is not None else {}
        if self.initialized or self.claim is None:
            return reported
        promised: Resources = getattr(self.claim.status, field) if self.launched else self.claim.spec.resources.requests
        return {**reported, **{name: amount for name, amount in promised.items() if not reported.get(name)}}

    def taints(self) -> tuple[Taint, ...]:
        """What pods must tolerate, without what goes away by itself while the node starts."""
        # What consolidation would rather leave empty is still a place: buying a node instead would be worse.
        found = taints.without(self._believed.spec.taints, (taints.TO_BE_REMOVED,))
        if self.claim is None or (self.initialized and not is_true(self.claim.status.conditions, REBOOTING)):
            return found
        passing = (*self.claim.spec.startup_taints, taints.REBOOTING)
        return tuple(t for t in found if not taints.is_ephemeral(t) and not taints.is_among(t, passing))

    @property
    def is_going(self) -> bool:
        """Whether it has been deleted."""
        if self.claim is not None:
            deleted = self.claim.metadata.deletion_timestamp is not None
            return deleted or is_true(self.claim.status.conditions, TERMINATING)
        return self.node is not None and self.node.metadata.deletion_timestamp is not None


def state_node(
    key: str,
    member: NodeWithClaim,
    pods: Iterable[BoundPod],
    *,
    marked: bool,
    index: VolumeIndex,
    volume_limits: Mapping[str, int],
    vocabulary: Vocabulary,
) -> StateNode:
    """Everything that follows from a node, its claim and its pods. The pods come by namespace and name."""
    here = tuple(pods)
    volumes: dict[str, frozenset[str]] = {}
    for each in here:
        for driver, claims in index.volumes_of(each.pod).attachments.items():
            volumes[driver] = volumes.get(driver, frozenset()) | claims
    name, found = member.name, member.labels(vocabulary)
    existing = ExistingNode(
        name=name,
        labels=with_hostname(found, name),
        taints=member.taints(),
        allocatable=member.amounts("allocatable"),
        used=resources.add(*(each.requests for each in here)),
        daemon_used=resources.add(*(each.requests for each in here if each.daemon)),
        ports=tuple(port for each in here for port in each.ports),
        volumes=volumes,
        volume_limits=volume_limits,
        initialized=member.initialized,
    )
    return StateNode(
        key=key,
        node=member.node,
        claim=member.claim,
        name=name,
        labels=found,
        taints=existing.taints,
        capacity=member.amounts("capacity"),
        allocatable=existing.allocatable,
        pods=tuple(each.pod for each in here),
        used=existing.used,
        daemon_used=existing.daemon_used,
        launched=member.launched,
        registered=member.registered,
        initialized=member.initialized,
        deleting=marked or member.is_going,
        existing=existing,
    )


def with_hostname(found: Mapping[str, str], name: str) -> Mapping[str, str]:
    """The labels with a hostname, which is the name where nothing else is said."""
    return found if found.get(labels.HOSTNAME) else {**found, labels.HOSTNAME: name}
