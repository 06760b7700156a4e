"""Manifests as typed objects: what every offline command works on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from joiner.admission import decodeerrors, fieldnames, pods
from joiner.admission.kinds import Kinds
from joiner.admission.problem import nearest
from joiner.admission.validate import normalise
from joiner.catalog.build import Adjustments
from joiner.model.clusterobjects import Namespace, Service
from joiner.model.codec import DecodeError, decode
from joiner.model.meta import KubeObject, replace
from joiner.model.node import Node
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.podpolicy import LimitRange, PodDisruptionBudget, PriorityClass, RuntimeClass
from joiner.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from joiner.model.typesettings import InstanceTypeSettings
from joiner.model.workload import (
    DaemonSet,
    Deployment,
    HorizontalPodAutoscaler,
    Job,
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from joiner.offline import files, ignored, validation
from joiner.offline.ignored import Ignored
from joiner.offline.kinds import as_written, known
from joiner.offline.validation import Finding
from joiner.yamldoc import Document

DEFAULT_NAMESPACE: Final = "default"
KUBERNETES: Final[tuple[type[KubeObject], ...]] = (
    Pod,
    *(Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController, Job, PodTemplate, HorizontalPodAutoscaler),
    *(Node, CSINode, Namespace, Service),
    *(PersistentVolumeClaim, PersistentVolume, StorageClass),
    *(PriorityClass, RuntimeClass, LimitRange, PodDisruptionBudget),
)
"""Kinds of Kubernetes that are read, but judged only as far as a plan relies on it: the rest is for the API server."""

C = TypeVar("C", bound=KubeObject)


class Unsound(ValueError):
    """Objects that `joiner validate` would refuse, with what it would say about each."""

    def __init__(self, message: str, findings: Iterable[Finding] = (), notes: Iterable[str] = ()) -> None:
        self.findings, self.notes = tuple(findings), tuple(notes)
        super().__init__(message)


@dataclass
class Manifests:
    """The objects of the named files, by kind and name, or `namespace/name` where the kind lives in one."""

    objects: dict[type[KubeObject], dict[str, KubeObject]] = field(default_factory=dict)
    others: list[dict[str, Any]] = field(default_factory=list)
    """Objects of kinds that are not read, as they are written."""
    doubled: dict[str, dict[str, str]] = field(default_factory=dict)
    """Kind to the names of objects that were given more than once; for those that differ, the place of the one that counts."""
    warnings: tuple[Finding, ...] = ()
    """What `joiner validate` would warn of."""
    notes: tuple[str, ...] = ()
    """Files that were passed over."""
    unused: tuple[Ignored, ...] = ()
    """Fields that plans do not use though they could change the answer."""
    _places: dict[tuple[type[KubeObject], str], str] = field(default_factory=dict)

    def put(self, made: KubeObject, key: str, place: str) -> None:
        """Keep the object, and note when it was there already."""
        siblings = self.objects.setdefault(type(made), {})
        before = siblings.get(key)
        # Of a pod the cluster knows more than its manifest; else the last one counts.
        if before is None or not isinstance(made, Pod) or made.metadata.uid or not before.metadata.uid:
            siblings[key] = made
            self._places[type(made), key] = place
        if before is not None:
            twins = self.doubled.setdefault(made.kind, {})
            name = key.removeprefix(f"{DEFAULT_NAMESPACE}/")
            differs = bool(twins.get(name)) or not _alike(before, made)
            twins[name] = self._places[type(made), key] if differs else ""

    def get(self, kind: type[C], name: str) -> C | None:
        """The object of that kind and name; this is how providers read NodeClasses."""
        found = self.objects.get(kind, {}).get(name)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[C]) -> tuple[C, ...]:
        """The objects of a kind, in order of name."""
        found = self.objects.get(kind, {})
        return tuple(each for name in sorted(found) if isinstance(each := found[name], kind))

    def ignored(self) -> tuple[Ignored, ...]:
        """What was given, is not used and could change a plan."""
        return (*ignored.objects(self.others, KUBERNETES), *self.unused)

    def ignored_of_node_classes(self) -> tuple[Ignored, ...]:
        """The part of it that could change a catalogue: pods change none."""
        return tuple(each for each in self.unused if each.kind.endswith("NodeClass"))

    def adjustments(self) -> Adjustments:
        """What people said about the market."""
        return Adjustments(settings=self.all(InstanceTypeSettings), overlays=self.all(NodeOverlay))

    def pools(self, name: str | None) -> tuple[NodePool, ...]:
        """Every NodePool, or the one that was named."""
        pools = self.all(NodePool)
        if not pools:
            raise Unsound("there is no NodePool in these files; name one with -f")
        if name is None:
            return pools
        chosen = self.get(NodePool, name)
        if chosen is None:
            near = nearest(name, [pool.name for pool in pools])
            hint = f"; did you mean {near}?" if near else f"; there are {', '.join(pool.name for pool in pools)}"
            raise Unsound(f"there is no NodePool {name}{hint}")
        return (chosen,)


def load(filenames: Iterable[str], live: files.Documents | None = None) -> Manifests:
    """Read, judge and decode. Raises `Unsound` with every error at once; warnings are returned with the objects.

    `live` is what was read from a cluster; what files say about the same objects counts instead.
    """
    documents = files.read(filenames)
    if live is not None:
        documents.objects[:0], documents.notes[:0] = live.objects, live.notes
    kinds, vocabulary = known()
    verdict = validation.examine(documents, kinds, vocabulary)
    manifests = Manifests(notes=tuple(documents.notes))
    findings = list(verdict.findings)
    if not verdict.count("error"):
        manifests.unused = ignored.grouped(each for item in documents.objects for each in ignored.fields(item.data))
        findings.extend(_fill(manifests, documents.objects, kinds))
    if any(finding.severity == "error" for finding in findings):
        raise Unsound("these objects cannot be used:", findings, documents.notes)
    manifests.warnings = tuple(findings)
    return manifests


def _fill(manifests: Manifests, items: Iterable[Document], kinds: Kinds) -> Iterator[Finding]:
    """Put the objects into the collection, and tell of those that do not have the shape of their kind."""
    for item in items:
        kind = _kind(item.data, kinds)
        if kind is None or ignored.is_late_hook(item.data):
            manifests.others.append(item.data)
            continue
        try:
            made = as_written(decode(normalise(item.data)[0], kind), item.source)
        except DecodeError as error:
            yield validation.finding(item, decodeerrors.problem(error, item.data, kind))
            continue
        for problem in (*pods.problems(made), *fieldnames.problems(item.data, kind)):
            yield validation.finding(item, problem)
        made, key = _placed(made, len(manifests.objects.get(kind, ())))
        manifests.put(made, key, f"{item.source}:{item.line}")


def _alike(one: KubeObject, other: KubeObject) -> bool:
    """Whether both say the same. A pod as its cluster has it is taken for the one of its manifest, filled in."""
    if isinstance(one, Pod) and bool(one.metadata.uid) != bool(other.metadata.uid):
        return True
    parts = [name for name in one.__struct_fields__ if name not in ("metadata", "status")]
    same = all(getattr(one, name) == getattr(other, name) for name in parts)
    return same and one.metadata.labels == other.metadata.labels


def _placed(made: KubeObject, number: int) -> tuple[KubeObject, str]:
    """The object with the namespace and name it would get, and what it is found by."""
    metadata = made.metadata
    name = metadata.name or f"{metadata.generate_name or made.kind.lower() + '-'}{number}"
    if not made.namespaced:
        return made, name
    namespace = metadata.namespace or DEFAULT_NAMESPACE
    return replace(made, metadata=replace(metadata, name=name, namespace=namespace)), f"{namespace}/{name}"


def _kind(data: dict[str, Any], kinds: Kinds) -> type[KubeObject] | None:
    wanted = (str(data.get("apiVersion")), str(data.get("kind")))
    theirs = (kind for kind in KUBERNETES if (kind.api_version(), kind.kind) == wanted)
    return kinds.find(*wanted) or next(theirs, None)
