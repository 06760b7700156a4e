"""The manifests of a story: objects written as Kubernetes writes them, in the story or in files and folders beside it.

They may be those of a real cluster. Kinds that a simulation does not need (ConfigMap, Service, Role ...) are passed over, with
one note for all of them. A NodeClass of a cloud is replaced by one with the catalogue of the story, and pools that refer to it
buy there. A kind that looks like a misspelt one is a mistake.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from joiner.admission.problem import nearest
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.kwok.nodeclass import KWOKNodeClass, KWOKNodeClassSpec
from joiner.model import codec
from joiner.model.kubelet import Kubelet
from joiner.model.meta import KubeObject, ObjectMeta, replace
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.podpolicy import PriorityClass, RuntimeClass
from joiner.model.workload import Deployment, HorizontalPodAutoscaler, StatefulSet
from joiner.offline import files, ignored
from joiner.offline.files import InputProblem
from joiner.sim.story import ec2, objects
from joiner.sim.story.document import unused
from joiner.sim.story.document.format import Apply, Story, Timed
from joiner.sim.workloads import admit
from joiner.sim.world import KINDS
from joiner.yamldoc import Document

K = TypeVar("K", bound=KubeObject)

KNOWN: Final[Mapping[str, type[KubeObject]]] = {kind.kind.lower(): kind for kind in KINDS}
_PRICES: Final = frozenset({"price", "priceAdjustment", "pricePercent"})
_REASONS: Final = {
    "HorizontalPodAutoscaler": "workloads keep the replicas they state, or begin with its minimum; the step `traffic` scales",
    "CronJob": "the step `job` starts a Job",
}
"""Kinds that change how many pods there are, and how a story says the same."""
_NO_MATTER: Final = frozenset({"Service", "PodMonitor", "Certificate", "ExternalSecret"})


class Written(NamedTuple):
    """A raw object, and where it stands."""

    data: Any
    document: Document
    path: str
    step: Timed | None = None
    """What it is brought by; nothing if it is there from the beginning."""

    @property
    def kind(self) -> str:
        """The kind it says it is of."""
        return str(self.data.get("kind") or "") if isinstance(self.data, Mapping) else ""

    @property
    def name(self) -> str:
        """Its name, for notes."""
        metadata = self.data.get("metadata") if isinstance(self.data, Mapping) else None
        named = metadata if isinstance(metadata, Mapping) else {}
        return str(named.get("name") or named.get("generateName") or "(no name)")


class UnreadFile(NamedTuple):
    """Why a file that a story names cannot be used."""

    path: str
    """Where the story names it; empty when the problem has a line of its own."""
    source: str
    line: int
    message: str


class StoryManifests:
    """Everything that a story writes as Kubernetes does, read once."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self.problems: list[UnreadFile] = []
        self.written = tuple(self._everything())
        self._least = dict(map(_autoscaled, (e for e in self.written if e.kind == HorizontalPodAutoscaler.kind)))
        self._own = objects.own_class(story.given)
        self._classes = {
            (_group(each), each.kind, each.name): each for each in self.written if self._is_foreign_class(each)
        }

    def given(self) -> Iterator[KubeObject]:
        """The objects that are there from the beginning."""
        return self._objects(each for each in self.written if each.step is None)

    def brought_by(self, path: str) -> Iterator[KubeObject]:
        """The objects that the step at a path of the story applies."""
        return self._objects(each for each in self.written if each.step is not None and each.step.path == path)

    def _objects(self, written: Iterable[Written]) -> Iterator[KubeObject]:
        for each in written:
            if not self.is_left_out(each):
                made = self.decoded(each, KNOWN[each.kind.lower()])
                if isinstance(made, Pod) and made.metadata.creation_timestamp is None:
                    made = admit(made, self._of(RuntimeClass), self._of(PriorityClass))
                yield made

    def _of(self, kind: type[K]) -> Iterator[K]:
        return (codec.decode(each.data, kind) for each in self.written if each.kind == kind.kind)

    def notes(self) -> tuple[str, ...]:
        """A line for everything that is passed over, by reason, for NodeClasses that are replaced, and for prices not billed."""
        read = (each.data for each in self.written if isinstance(each.data, Mapping))
        return (*self._passed_over(), *unused.notes(read), *self._replaced(), *self._not_billed())

    def is_left_out(self, written: Written) -> bool:
        """Whether an object is passed over, or stands for something else."""
        return self._is_foreign_class(written) or self._is_passed_over(written)

    def decoded(self, written: Written, kind: type[KubeObject]) -> KubeObject:
        """The object as it is created. Raises DecodeError."""
        made = decoded(written.data, kind)
        if isinstance(made, NodePool):
            return self._bought_here(made)
        if isinstance(made, Deployment | StatefulSet):
            return self._at_least(made, written)
        if isinstance(made, KWOKNodeClass) and self._story.catalogue:
            return replace(made, spec=replace(made.spec, instance_types=self._story.catalogue))
        return made

    def classes(self, begins: datetime = objects.DAWN) -> Iterator[KubeObject]:
        """The NodeClasses of the story that it does not write out. Raises DecodeError."""
        given = self._story.given
        if not ec2.is_meant(given):
            yield from self.stand_ins(objects.node_class(given, self._story.folder, begins))
        elif not any(
            (each.kind, each.name, each.step) == (EC2NodeClass.kind, ec2.CLASS, None) for each in self.written
        ):
            yield ec2.node_class(given)

    def stand_ins(self, default: KWOKNodeClass) -> Iterator[KWOKNodeClass]:
        """The NodeClass of the story, and one like it for every other NodeClass with kubelet settings. Raises DecodeError."""
        yield default
        for each in self._classes.values():
            kubelet = _kubelet(each)
            if kubelet is not None:
                name = _stand_in(each.kind, each.name)
                yield replace(default, metadata=ObjectMeta(name=name), spec=replace(default.spec, kubelet=kubelet))

    # -- reading --------------------------------------------------------------------------------------------------

    def _everything(self) -> Iterator[Written]:
        given = self._story.given
        for number, data in enumerate(given.objects):
            yield Written(data, self._story.document, f"given.objects[{number}]")
        for number, name in enumerate(given.manifests):
            yield from self._file(name, f"given.manifests[{number}]")
        for timed in self._story.when:
            if isinstance(timed.step, Apply):
                path = f"{timed.path}.apply"
                if isinstance(timed.step.apply, str):
                    yield from self._file(timed.step.apply, path, timed)
                else:
                    yield Written(timed.step.apply, self._story.document, path, timed)

    def _file(self, name: str, path: str, step: Timed | None = None) -> Iterator[Written]:
        """The objects of a file, or of all files of a folder, seen from the folder of the story."""
        found = files.read([str(self._story.folder / name)])
        for problem in found.problems:
            source = _seen_from(problem.source, self._story.folder)
            if isinstance(problem, InputProblem):
                advice = f"; {problem.advice}" if problem.advice else ""
                self.problems.append(UnreadFile(path, source, 0, f"{source}: {problem.message}{advice}"))
            else:
                self.problems.append(UnreadFile("", source, problem.line, problem.message))
        for document in found.objects:
            own = dataclasses.replace(document, source=_seen_from(document.source, self._story.folder))
            yield Written(document.data, own, "", step)

    def _at_least(self, workload: Deployment | StatefulSet, written: Written) -> KubeObject:
        """A workload that leaves its replicas to an autoscaler begins with the minimum of that."""
        if "replicas" in written.data.get("spec", ()):
            return workload
        least = self._least.get((workload.kind, workload.metadata.namespace, workload.name))
        return workload if least is None else replace(workload, spec=replace(workload.spec, replicas=least))

    # -- other clouds ---------------------------------------------------------------------------------------------

    def _bought_here(self, pool: NodePool) -> NodePool:
        """The pool with a NodeClass of the simulation in the place of one of another cloud."""
        reference = pool.spec.template.spec.node_class_ref
        if reference.kind == self._own.kind:
            return pool
        written = self._classes.get((reference.group, reference.kind, reference.name))
        own = self._own is KWOKNodeClass and written is not None and _kubelet(written) is not None
        name = _stand_in(reference.kind, reference.name) if own else objects.CLASS
        ours = NodeClassReference(group=self._own.group, kind=self._own.kind, name=name)
        spec = replace(pool.spec.template.spec, node_class_ref=ours)
        return replace(pool, spec=replace(pool.spec, template=replace(pool.spec.template, spec=spec)))

    def _replaced(self) -> Iterator[str]:
        named = {(each.kind, each.name) for each in self._classes.values()}
        for each in self.written:
            reference = _class_of_pool(each)
            if reference is not None and reference[0] != self._own.kind:
                named.add(reference)
        if named:
            catalogue = self._story.catalogue or self._story.given.catalog
            listed = ignored.listed(f"{kind} {name}" for kind, name in named)
            yield (
                f"{listed}: machines are those of the catalogue {catalogue} (given.catalog, --instance-types);"
                " only kubelet settings are taken from a NodeClass"
            )

    def _not_billed(self) -> Iterator[str]:
        """NodeOverlays with a price. The bill is what the cloud takes."""
        found = {e.name for e in self.written if e.kind == NodeOverlay.kind and _PRICES & set(e.data.get("spec") or ())}
        if found:
            yield f"NodeOverlay {ignored.listed(found)}: the price moves decisions; the bill has the prices of the catalogue"

    # -- other kinds ----------------------------------------------------------------------------------------------

    def _is_foreign_class(self, written: Written) -> bool:
        return (
            written.kind.endswith("NodeClass")
            and written.kind != self._own.kind
            and "/" in str(written.data.get("apiVersion"))
        )

    def _is_passed_over(self, written: Written) -> bool:
        if not written.kind or self._is_foreign_class(written):
            return False
        if ignored.is_late_hook(written.data):
            return True
        if written.kind.lower() in KNOWN:
            return False
        return misspelt(written) is None and bool(written.data.get("apiVersion"))

    def _passed_over(self) -> Iterator[str]:
        found: dict[str, dict[str, int]] = {}
        for each in self.written:
            if self._is_passed_over(each):
                is_hook = ignored.is_late_hook(each.data)
                kinds = found.setdefault(ignored.LATE_HOOK if is_hook else _reason(each.kind), {})
                kinds[each.kind] = kinds.get(each.kind, 0) + 1
        for reason, kinds in sorted(found.items()):
            listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            yield f"passed over: {listed}: {reason}"


def with_instance_types(story: Story, catalogue: str) -> Story:
    """The story with this catalogue in the place of all that it names. A relative path is seen from the working folder."""
    if not catalogue:
        return story
    is_file = KWOKNodeClassSpec(instance_types=catalogue).file is not None
    meant = str(Path(catalogue).absolute()) if is_file else catalogue
    return replace(story, given=replace(story.given, catalog=meant), catalogue=meant)


def decoded(data: Any, kind: type[KubeObject]) -> KubeObject:
    """The object of a kind in data, in the namespace of stories if it names none. Raises DecodeError."""
    made = codec.decode(data, kind)
    if made.namespaced and not made.metadata.namespace:
        return replace(made, metadata=replace(made.metadata, namespace=objects.NAMESPACE))
    return made


def misspelt(written: Written) -> str | None:
    """The known kind that is probably meant by one that is not known."""
    if written.kind.lower() in KNOWN or _matters_not(written.kind) or written.kind in _REASONS:
        return None
    group = str(written.data.get("apiVersion") or "").rpartition("/")[0]
    near = nearest(written.kind, [kind.kind for kind in KINDS])
    kind = KNOWN.get((near or "").lower())
    return near if kind is not None and kind.group == group else None


def _matters_not(kind: str) -> bool:
    return kind in _NO_MATTER or ignored.is_no_matter(kind)


def _reason(kind: str) -> str:
    if _matters_not(kind):
        return "nothing in a simulation depends on them"
    return _REASONS.get(kind, "they are not simulated; what they would do, or pods that they would make, is missing")


def _class_of_pool(written: Written) -> tuple[str, str] | None:
    """Kind and name of the NodeClass that a written NodePool refers to."""
    part: Any = written.data if written.kind == NodePool.kind else None
    for key in ("spec", "template", "spec", "nodeClassRef"):
        part = part.get(key) if isinstance(part, Mapping) else None
    return (str(part.get("kind")), str(part.get("name"))) if isinstance(part, Mapping) else None


def _autoscaled(written: Written) -> tuple[tuple[str, str, str], int]:
    """What an autoscaler scales, by kind, namespace and name, and its minimum."""
    try:
        made = codec.decode(written.data, HorizontalPodAutoscaler)
    except codec.DecodeError:
        return ("", "", ""), 1
    target = made.spec.scale_target_ref
    return (target.kind, made.metadata.namespace or objects.NAMESPACE, target.name), made.spec.min_replicas


def _group(written: Written) -> str:
    return str(written.data.get("apiVersion") or "").rpartition("/")[0]


def _stand_in(kind: str, name: str) -> str:
    return f"{name}-{kind.lower()}"


def _kubelet(written: Written) -> Kubelet | None:
    """The kubelet settings of a NodeClass of another cloud, as far as KWOKNodeClass has them. Raises DecodeError."""
    spec = written.data.get("spec")
    kubelet = spec.get("kubelet") if isinstance(spec, Mapping) else None
    if not isinstance(kubelet, Mapping):
        return None
    ours = {field.written for field in codec.fields(Kubelet)}
    read = codec.decode({"kubelet": {key: value for key, value in kubelet.items() if key in ours}}, KWOKNodeClassSpec)
    return read.kubelet


def _seen_from(source: str, folder: Path) -> str:
    """The name of a file as the story has it."""
    path = Path(source)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else source
