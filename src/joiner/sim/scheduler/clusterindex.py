"""What the pretend scheduler knows of the cluster: who is on which node and what is left there, kept up change by change.

Nothing here decides. `placing` has the rules that read it; the binder and the checkers each feed a copy of their own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from joiner.kube.client import Key, key_of
from joiner.model.affinity import PodAffinityTerm
from joiner.model.clusterobjects import Namespace
from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.model.pod import Container, ContainerPort, Pod, PodSpec
from joiner.model.resources import CPU, HUGEPAGES_PREFIX, MEMORY, PODS
from joiner.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass

C = TypeVar("C", str, int)
T = TypeVar("T")
Amounts = Mapping[str, int]

_ONE: Final = 1000
"""One whole, in thousandths."""
_LOG_MOST: Final = 100_000
_REMEMBERED_MOST: Final = 512
_NEEDS_MOST: Final = 4096

_encoder: Final = msgspec.msgpack.Encoder(enc_hook=int)


def signature(*values: Any) -> bytes:
    """Equal for equal values, and cheap to keep in a dictionary."""
    return _encoder.encode(values)


# -- what a pod takes ------------------------------------------------------------------------------------------------------


def requests_of(spec: PodSpec) -> dict[str, int]:
    """What the pod takes from its node, the place among the node's pods included."""
    total: dict[str, int] = {}
    for name in sorted(_names(spec)):
        pod_level = spec.resources.requests.get(name) if _may_be_pod_level(name) else None
        amount = _peak(spec, name) if pod_level is None else pod_level
        total[name] = amount + spec.overhead.get(name, 0)
    total[PODS] = _ONE
    return total


def _names(spec: PodSpec) -> set[str]:
    names = {*spec.overhead, *spec.resources.requests}
    for container in (*spec.containers, *spec.init_containers):
        names.update(container.resources.requests)
    return names


def _may_be_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith(HUGEPAGES_PREFIX)


def _peak(spec: PodSpec, name: str) -> int:
    """The most that is in use at once: while each init container runs beside the sidecars before it, or in the end."""
    beside = most = 0
    for container in spec.init_containers:
        own = _asked(container, name)
        most = max(most, beside + own)
        if container.restart_policy == "Always":
            beside += own
    return max(most, beside + sum(_asked(container, name) for container in spec.containers))


def _asked(container: Container, name: str) -> int:
    return container.resources.requests.get(name, 0)


def ports_of(spec: PodSpec) -> tuple[ContainerPort, ...]:
    """The ports of the node that the pod takes."""
    sidecars = (each for each in spec.init_containers if each.restart_policy == "Always")
    return tuple(port for each in (*spec.containers, *sidecars) for port in each.ports if port.host_port)


def claims_of(pod: Pod) -> tuple[Key, ...]:
    """The volume claims the pod uses."""
    names = (volume.claim_name(pod.name) for volume in pod.spec.volumes)
    return tuple(Key(pod.metadata.namespace, name) for name in names if name is not None)


def is_finished(pod: Pod) -> bool:
    """Whether it has run to its end and takes nothing any more."""
    return pod.status.phase in ("Succeeded", "Failed")


# -- the index -------------------------------------------------------------------------------------------------------------


class PodGroup:
    """Pods that are alike to rules that look at labels: same namespace, labels and dislikes, deleted or not."""

    def __init__(self, pod: Pod) -> None:
        self.namespace = pod.metadata.namespace
        self.labels = pod.metadata.labels
        self.leaving = pod.metadata.deletion_timestamp is not None
        self.dislikes: tuple[PodAffinityTerm, ...] = pod.spec.affinity.pod_anti_affinity.required
        self.nodes: dict[str, int] = {}
        """Node to how many of them it has."""
        self._domains: dict[str, dict[str, int]] = {}

    def domains(self, key: str, entries: Mapping[str, "NodeEntry"]) -> Mapping[str, int]:
        """Value of the node label to how many of them are there."""
        found = self._domains.get(key)
        if found is None:
            found = self._domains[key] = {}
            for name, count in self.nodes.items():
                value = entries[name].labels.get(key)
                if value is not None:
                    found[value] = found.get(value, 0) + count
        return found

    def count(self, entry: "NodeEntry", change: int) -> None:
        """One more, or one less, on a node."""
        _count(self.nodes, entry.name, change)
        for key, found in self._domains.items():
            value = entry.labels.get(key)
            if value is not None:
                _count(found, value, change)

    def forget_domains(self) -> None:
        """The labels of a node have changed."""
        self._domains.clear()


def _count(counts: dict[C, int], name: C, change: int) -> None:
    counts[name] = counts.get(name, 0) + change
    if not counts[name]:
        del counts[name]


class Needs(NamedTuple):
    """What pods with the same containers take from their nodes."""

    requests: Amounts
    ports: tuple[ContainerPort, ...]


class PodEntry:
    """A pod on a node, with what it takes there."""

    __slots__ = ("claims", "entry", "group", "pod", "ports", "requests")

    def __init__(self, pod: Pod, entry: "NodeEntry", group: PodGroup, needs: "Needs") -> None:
        self.pod = pod
        self.entry = entry
        self.group = group
        self.requests, self.ports = needs
        self.claims = claims_of(pod)

    @property
    def priority(self) -> int:
        """How much it counts."""
        return self.pod.spec.priority or 0


class NodeEntry:
    """A node, its pods, and what they take together. The node itself may be unknown: not seen yet, or gone."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.used: dict[str, int] = {}
        self.pods: dict[Key, PodEntry] = {}
        self.with_ports: dict[Key, PodEntry] = {}
        self.with_claims: dict[Key, PodEntry] = {}

    @property
    def labels(self) -> Mapping[str, str]:
        """Of the node; none while it is unknown."""
        return self.node.metadata.labels if self.node is not None else {}

    def enter(self, key: Key, pod_entry: PodEntry) -> None:
        """A pod comes."""
        self.pods[key] = pod_entry
        for name, amount in pod_entry.requests.items():
            self.used[name] = self.used.get(name, 0) + amount
        if pod_entry.ports:
            self.with_ports[key] = pod_entry
        if pod_entry.claims:
            self.with_claims[key] = pod_entry

    def leave(self, key: Key, pod_entry: PodEntry) -> None:
        """A pod goes."""
        del self.pods[key]
        for name, amount in pod_entry.requests.items():
            self.used[name] -= amount
        self.with_ports.pop(key, None)
        self.with_claims.pop(key, None)


class ClusterIndex:
    """All nodes with their pods, and what else decides where a pod may go."""

    def __init__(self) -> None:
        self.entries: dict[str, NodeEntry] = {}
        self.pods: dict[Key, PodEntry] = {}
        self.groups: dict[bytes, PodGroup] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.claims: dict[Key, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.drivers: dict[str, CSINode] = {}
        self._kept: dict[type, dict[Any, Any]] = {
            PersistentVolumeClaim: self.claims,
            PersistentVolume: self.volumes,
            StorageClass: self.classes,
            CSINode: self.drivers,
        }
        self.log: list[str] = []
        """Names of the nodes that something happened to, in order."""
        self.epoch = 0
        """Moves when the log begins anew."""
        self.node_changes = 0
        """How often a node came, went, or became another in label, taint or size."""
        self.group_changes = 0
        """How often a group of like pods came or went, or a namespace changed."""
        self.departures = 0
        """How often a pod left a node."""
        self.arrivals = 0
        self.storage_changes = 0
        self._priorities: dict[int, int] = {}
        self._remembered: dict[bytes, tuple[int, Any]] = {}
        self._needs: dict[bytes, Needs] = {}

    def apply(self, before: KubeObject | None, after: KubeObject | None) -> None:
        """Take in a change of any kind; those that do not concern us pass."""
        thing = before if after is None else after
        if isinstance(thing, Pod):
            bound = isinstance(after, Pod) and bool(after.spec.node_name) and not is_finished(after)
            self.put_pod(thing) if bound else self.drop_pod(key_of(thing))
        elif isinstance(thing, Node):
            self._put_node(thing.name, after if isinstance(after, Node) else None)
        elif isinstance(thing, Namespace):
            self.group_changes += 1
            self.namespaces[thing.name] = {"kubernetes.io/metadata.name": thing.name, **thing.metadata.labels}
        elif thing is not None:
            self._keep(thing, gone=after is None)

    def _keep(self, thing: KubeObject, *, gone: bool) -> None:
        kept = self._kept.get(type(thing))
        if kept is None:
            return
        self.storage_changes += 1
        key = key_of(thing) if thing.namespaced else thing.name
        if gone:
            kept.pop(key, None)
        else:
            kept[key] = thing

    def nodes(self) -> Iterable[NodeEntry]:
        """The rooms whose node is known, in no stated order."""
        return (entry for entry in self.entries.values() if entry.node is not None)

    # -- nodes

    def _put_node(self, name: str, node: Node | None) -> None:
        entry = self.entries.get(name)
        if entry is None:
            entry = self.entries[name] = NodeEntry(name)
        before, entry.node = entry.node, node
        if before is not None and node is not None and _serves_the_same(before, node):
            return
        if (before.metadata.labels if before else {}) != entry.labels:
            for pod_entry in entry.pods.values():
                pod_entry.group.forget_domains()
        self.node_changes += 1
        self._note(name)
        self._tidy(entry)

    # -- pods

    def put_pod(self, pod: Pod) -> None:
        """A pod is on a node, or will be: also one whose binding has only been decided."""
        key = key_of(pod)
        known = self.pods.get(key)
        if known is not None:
            if _takes_the_same(known.pod, pod):
                known.pod = pod
                return
            self.drop_pod(key)
        entry = self.entries.get(pod.spec.node_name)
        if entry is None:
            entry = self.entries[pod.spec.node_name] = NodeEntry(pod.spec.node_name)
        pod_entry = self.pods[key] = PodEntry(pod, entry, self._group(pod), self.needs_of(pod.spec))
        entry.enter(key, pod_entry)
        pod_entry.group.count(entry, 1)
        _count(self._priorities, pod_entry.priority, 1)
        self.arrivals += 1
        self._note(entry.name)

    def drop_pod(self, key: Key) -> None:
        """A pod is on no node any more."""
        pod_entry = self.pods.pop(key, None)
        if pod_entry is None:
            return
        pod_entry.entry.leave(key, pod_entry)
        pod_entry.group.count(pod_entry.entry, -1)
        _count(self._priorities, pod_entry.priority, -1)
        if not pod_entry.group.nodes:
            self.groups.pop(_group_signature(pod_entry.pod), None)
            self.group_changes += 1
        self.departures += 1
        self._note(pod_entry.entry.name)
        self._tidy(pod_entry.entry)

    @contextmanager
    def without(self, keys: Iterable[Key]) -> Iterator[None]:
        """As if these pods were not there. Those that are still missing in the end come back, without a change being told."""
        counts = (self.departures, self.arrivals)
        away = [(key, self.pods[key].pod) for key in keys if key in self.pods]
        for key, _ in away:
            self.drop_pod(key)
        try:
            yield
        finally:
            for key, pod in away:
                if key not in self.pods:
                    self.put_pod(pod)
            self.departures, self.arrivals = counts

    def remember(self, version: int, question: bytes, answer: Callable[[], T]) -> T:
        """The answer to a question, given again as long as what it rests on is of the same version."""
        known = self._remembered.get(question)
        if known is None or known[0] != version:
            if len(self._remembered) >= _REMEMBERED_MOST:
                self._remembered.clear()
            known = self._remembered[question] = (version, answer())
        found: T = known[1]
        return found

    def lowest_priority(self) -> int | None:
        """Of all pods on nodes."""
        return min(self._priorities, default=None)

    def _group(self, pod: Pod) -> PodGroup:
        key = _group_signature(pod)
        found = self.groups.get(key)
        if found is None:
            found = self.groups[key] = PodGroup(pod)
            self.group_changes += 1
        return found

    def needs_of(self, spec: PodSpec) -> Needs:
        """What a pod takes from its node; pods with the same containers take the same."""
        key = signature(spec.containers, spec.init_containers, spec.resources, spec.overhead)
        found = self._needs.get(key)
        if found is None:
            if len(self._needs) >= _NEEDS_MOST:
                self._needs.clear()
            found = self._needs[key] = Needs(requests_of(spec), ports_of(spec))
        return found

    def _note(self, name: str) -> None:
        if len(self.log) >= _LOG_MOST:
            self.log.clear()
            self.epoch += 1
        self.log.append(name)

    def _tidy(self, entry: NodeEntry) -> None:
        if entry.node is None and not entry.pods:
            self.entries.pop(entry.name, None)


def _group_signature(pod: Pod) -> bytes:
    leaving = pod.metadata.deletion_timestamp is not None
    return signature(pod.metadata.namespace, pod.metadata.labels, leaving, pod.spec.affinity.pod_anti_affinity.required)


def _serves_the_same(before: Node, after: Node) -> bool:
    return (
        before.metadata.labels == after.metadata.labels
        and before.spec.taints == after.spec.taints
        and before.spec.unschedulable == after.spec.unschedulable
        and before.status.allocatable == after.status.allocatable
        and before.metadata.uid == after.metadata.uid
    )


def _takes_the_same(before: Pod, after: Pod) -> bool:
    old, new = before.metadata, after.metadata
    return (
        old.uid == new.uid
        and (before.spec is after.spec or before.spec == after.spec)
        and old.labels == new.labels
        and (old.deletion_timestamp is None) == (new.deletion_timestamp is None)
    )
