"""Validation of a story: everything that it names is looked for before anything runs, and all that is missing is told at once.

| What | Where it must be |
| --- | --- |
| workloads, pools, other objects | in the story, or in the manifests it names |
| instance types and zones | in the catalogue of the story, or of a NodeClass in it |
| reservations | in the story, or on a NodeClass in it |
| files | beside the story |

Objects must be such that an API server lets them in and drops nothing of them, and what people make must be there when a step is
about it. What only controllers can find wrong is let pass: a story may be about it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from joiner.admission import fieldnames
from joiner.admission.problem import FieldProblem, nearest
from joiner.admission.validate import at_the_door
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.errors import NodeClassNotReady
from joiner.cloud.kwok import supply
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.kube.errors import Invalid
from joiner.model import claimconditions, codec, labels
from joiner.model.capacitybuffer import CapacityBuffer
from joiner.model.customobject import CustomObject
from joiner.model.duration import Duration
from joiner.model.meta import KubeObject, Value, replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import Budget, NodePool
from joiner.model.pod import Pod, PodSpec
from joiner.model.requirement import SelectorRequirementWithMinValues
from joiner.model.taints import Taint, Toleration
from joiner.model.typesettings import InstanceTypeSettings
from joiner.model.workload import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from joiner.observe.events import REASONS
from joiner.sim.apiserver.admission import fresh
from joiner.sim.story import ec2, objects
from joiner.sim.story.document import limits, mistakes
from joiner.sim.story.document.format import (
    Delete,
    Expectation,
    OtherCluster,
    PodWords,
    PublishImages,
    Restore,
    Scale,
    Sicken,
    Story,
    StoryError,
    Timed,
    Traffic,
    Withdraw,
    read,
)
from joiner.sim.story.document.given import MarketWords, Words
from joiner.sim.story.document.invariants import Law
from joiner.sim.story.document.manifests import KNOWN, StoryManifests, Written, with_instance_types
from joiner.sim.story.phrases import brief
from joiner.sim.story.timeline import Presence
from joiner.sim.world import KINDS
from joiner.yamldoc import Document

WORKLOADS: Final = (Deployment, StatefulSet, DaemonSet, Job)
SCALABLE: Final = ("deployment", "statefulset", "nodepool")
STATUSES: Final = ("True", "False", "Unknown")
ONLY_PEOPLE_MAKE: Final = frozenset(
    kind.kind.lower()
    for kind in (*WORKLOADS, NodePool, NodeOverlay, InstanceTypeSettings, CapacityBuffer, KWOKNodeClass, EC2NodeClass)
)
"""Kinds of which there is nothing but what the story says. Others come and go as it is told."""
CAPACITY_TYPES: Final = (labels.ON_DEMAND, labels.RESERVED, labels.SPOT)
PARTS: Final = {
    "event": ("reason", "kind", "name", "message"),
    "condition": ("of", "type", "status", "reason"),
    "field": ("of", "path", "is"),
}
"""The words inside these words of an expectation."""
FREE: Final[Mapping[type[KubeObject], tuple[str, ...]]] = {
    NodeClaim: (
        "Consolidatable", "Drifted", claimconditions.CONSISTENT_STATE_FOUND, claimconditions.DISRUPTION_REASON,
        claimconditions.DRAINED, claimconditions.INSTANCE_TERMINATING, claimconditions.REBOOTING,
        claimconditions.VOLUMES_DETACHED,
    ),
    NodePool: ("NodeRegistrationHealthy",),
    NodeOverlay: ("ConflictFree",),
    CapacityBuffer: ("ReadyForProvisioning", "Provisioning"),
}  # fmt: skip
"""Conditions that stand beside those of which `Ready` is made."""
AS_KUBERNETES_WRITES: Final[Mapping[str, type[Value]]] = {
    "requirements": SelectorRequirementWithMinValues,
    "taints": Taint,
    "startup_taints": Taint,
    "budgets": Budget,
    "tolerations": Toleration,
    "spec": PodSpec,
}
"""Words of a story whose inside is not ours."""
NEEDED: Final = {"event": ("reason",), "condition": ("of", "type"), "field": ("of", "path")}
"""Those of them without which nothing is said."""


def rehearse(story: Story) -> None:
    """Raise StoryError with everything that the story names and that is not there."""
    problems = _Rehearsal(story).problems()
    if problems:
        raise StoryError(problems)


def prepared(text: str, source: str, folder: Path, catalogue: str = "") -> Story:
    """The story in a text, perhaps with another catalogue than it names.

    Raises StoryError with all mistakes; where words could not be read, also with those that the validation of the rest finds.
    """
    try:
        return with_instance_types(read(text, source, folder), catalogue)
    except StoryError as error:
        if error.rest is None:
            raise
        rest = with_instance_types(error.rest, catalogue)
        found = dict.fromkeys((*error.problems, *_Rehearsal(rest).problems()))
        own = f"{source}:"
        raise StoryError(
            sorted(
                found, key=lambda each: int(each.removeprefix(own).split(":")[0]) if each.startswith(own) else 1 << 30
            )
        ) from None


class _Cast:
    """Everything that can be named in a story."""

    def __init__(self) -> None:
        self.names: dict[str, dict[str, None]] = {}
        self.unscalable: dict[tuple[str, str], None] = {}
        """Pools without replicas."""
        self.apps: dict[str, None] = {}
        self.reservations: dict[str, None] = {}
        self.types: dict[str, None] = {}
        self.zones: dict[str, None] = {}

    def add(self, thing: KubeObject) -> None:
        """An object of the story."""
        self.names.setdefault(thing.kind.lower(), {})[thing.name] = None
        if isinstance(thing, NodePool) and thing.spec.replicas is None:
            self.unscalable[thing.kind.lower(), thing.name] = None
        if isinstance(thing, WORKLOADS):
            self.apps[thing.spec.template.metadata.labels.get(objects.APP, thing.name)] = None
        elif isinstance(thing, Pod):
            self.apps[thing.metadata.labels.get(objects.APP, thing.name)] = None
        elif isinstance(thing, KWOKNodeClass):
            self.reservations.update(dict.fromkeys(each.id for each in thing.spec.capacity_reservations))

    def expect(self, kind: type[KubeObject], data: Mapping[str, Any]) -> str:
        """The name of an object that cannot be read: one complaint is enough, and who names it is not to blame."""
        metadata = data.get("metadata")
        name = str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""
        self.names.setdefault(kind.kind.lower(), {})[name] = None
        self.apps[name] = None
        return name

    def stock(self, node_class: KWOKNodeClass) -> None:
        """What a NodeClass can buy. Raises NodeClassNotReady when its catalogue cannot be had."""
        for each in supply.catalogue(node_class).types:
            self.types[each.name] = None
            self.zones.update(dict.fromkeys(offering.zone for offering in each.offerings))

    def of(self, kind: str) -> tuple[str, ...]:
        """The names of all objects of a kind."""
        return tuple(self.names.get(kind, ()))


class _Rehearsal:
    """One story, looked through from its beginning to its end."""

    def __init__(self, story: Story) -> None:
        self._story, self._document, self._manifests = story, story.document, StoryManifests(story)
        self._cast, self._presence = _Cast(), Presence(story.ends)
        self._problems: list[tuple[str, int, str]] = []
        self._sizes: dict[str, int] = {}
        """Workload to the most pods that it has at one time."""
        self._lists: Mapping[str, tuple[str, Callable[[], Iterable[str]]]] = {
            "instance_type": ("instance type", lambda: self._cast.types),
            "instance_types": ("instance type", lambda: self._cast.types),
            "zone": ("zone", lambda: self._cast.zones),
            "zones": ("zone", lambda: self._cast.zones),
            "capacity_type": ("capacity type", lambda: CAPACITY_TYPES),
            "capacity_types": ("capacity type", lambda: CAPACITY_TYPES),
            "nodepool": ("pool", lambda: self._cast.of("nodepool")),
            "reservation": ("reservation", lambda: self._cast.reservations),
            "other_cluster": ("reservation", lambda: self._cast.reservations),
            "end_reservation": ("reservation", lambda: self._cast.reservations),
        }

    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong, from the first line to the last."""
        self._gather()
        if "for" in self._document.data:
            self._moment(self._story.ends, "for")
        self._look_through(self._story.given, "given")
        withdrawn: list[MarketWords] = []
        for timed in self._story.when:
            self._moment(timed.at, f"{timed.path}.at")
            self._look_through(timed.step, timed.path)
            self._step(timed, withdrawn)
        for number, wanted in enumerate(self._story.then):
            self._look_through(wanted, f"then[{number}]")
            self._expectation(wanted, f"then[{number}]")
        for number, law in enumerate(self._story.always):
            self._law(law, f"always[{number}]")
        crowd = limits.crowd(self._sizes)
        if crowd:
            self._complain("when", crowd)
        own = self._document.source
        told = sorted(self._problems, key=lambda each: (each[0] != own, each[0], each[1]))
        return tuple(dict.fromkeys(f"{source}:{line}: {text}" for source, line, text in told))

    def _complain(self, path: str, problem: str, document: Document | None = None) -> None:
        document = document or self._document
        where = f"{path}: " if path else ""
        self._problems.append((document.source, document.line_of(path), f"{where}{problem}"))

    # -- what there is --------------------------------------------------------------------------------------------

    def _gather(self) -> None:
        given = self._story.given
        self._cast.reservations.update(dict.fromkeys(each.id for each in given.reservations))
        wrong = list(ec2.problems(given))
        for word, why in wrong:
            self._complain(f"given.{word}", why)
        if ec2.is_meant(given) and not wrong:
            types, zones = ec2.places(given)
            self._cast.types.update(dict.fromkeys(types))
            self._cast.zones.update(dict.fromkeys(zones))
        self._made(
            "given.catalog",
            lambda: list(self._manifests.classes()),
        )
        for number, words in enumerate(given.nodepools):
            path = f"given.nodepools[{number}]"
            if words.name in self._cast.of("nodepool"):
                self._complain(f"{path}.name", f"there are two pools {words.name!r}")
            self._made(path, lambda words=words: [objects.pool(words)])  # type: ignore[misc]
            self._gated(words.replicas, f"{path}.replicas")
        for problem in self._manifests.problems:
            if problem.path:
                self._complain(problem.path, problem.message)
            else:
                self._problems.append((problem.source, problem.line, problem.message))
        for written in self._manifests.written:
            if not self._manifests.is_left_out(written):
                self._read(written)
        for timed in self._story.when:
            if isinstance(timed.step, PodWords):
                self._made(timed.path, lambda step=timed.step: objects.workload(step), timed)  # type: ignore[misc]

    def _made(self, path: str, make: Callable[[], Iterable[KubeObject]], step: Timed | None = None) -> None:
        """Objects that words stand for."""
        try:
            made = list(make())
        except codec.DecodeError as error:
            self._complain(path, f"{error.path}: {error.problem}")
            self._presence.unsure = True
            return
        for thing in made:
            self._presence.announce(thing.kind, thing.name, step)
            self._admit(thing, lambda cause: self._complain(path, cause))

    def _read(self, written: Written) -> None:
        def complain(inner: str, problem: str) -> None:
            self._complain(_inside(written.path, inner), problem, written.document)

        kind = KNOWN.get(written.kind.lower())
        if kind is None:
            complain("kind", f"kind {written.kind!r} is not known{_hint(written.kind, [each.kind for each in KINDS])}")
            return
        found = {each.path: each for each in _found(written.data, kind)}
        for problem in found.values():
            complain(problem.path, _words(problem))
        try:
            made = self._manifests.decoded(written, kind)
        except codec.DecodeError as error:
            if error.path not in found:
                complain(error.path, error.problem)
            self._presence.announce(kind.kind, self._cast.expect(kind, written.data), written.step)
            return
        self._presence.announce(made.kind, made.name, written.step)
        if isinstance(made, NodePool):
            self._gated(made.spec.replicas, _inside(written.path, "spec.replicas"), written.document)
        self._admit(made, lambda cause: None if (parts := _parted(cause))[0] in found else complain(*parts))

    def _gated(self, replicas: int | None, path: str, document: Document | None = None) -> None:
        if replicas is not None and not self._story.options.gates.static_capacity:
            gate = "write given.options: {feature-gates: StaticCapacity=true}"
            self._complain(path, f"a pool with replicas needs the feature gate StaticCapacity; {gate}", document)

    def _admit(self, thing: KubeObject, complain: Callable[[str], None]) -> None:
        """Let an object in as an API server would, and know it from now on."""
        try:
            fresh(thing)
        except Invalid as error:
            for cause in error.causes:
                complain(cause)
        self._cast.add(thing)
        if isinstance(thing, Deployment | StatefulSet):
            self._grow(thing.name, thing.spec.replicas)
        elif isinstance(thing, Job):
            self._grow(thing.name, thing.spec.parallelism or 1)
        if isinstance(thing, KWOKNodeClass):
            try:
                self._cast.stock(thing.written_in(self._story.folder))
            except NodeClassNotReady as error:
                complain(f"{error.reason}; there are small, kwok, ec2/<region>, or a file beside the story")

    def _grow(self, name: str, pods: int) -> None:
        if pods <= limits.MOST_PODS:  # more is a mistake of its own
            self._sizes[name] = max(self._sizes.get(name, 0), pods)

    # -- what is named --------------------------------------------------------------------------------------------

    def _look_through(self, words: Words, path: str) -> None:
        """Words whose name says what they name or count, at any depth."""
        for inner, problem in limits.problems(words):
            self._complain(f"{path}.{inner}", problem)
        for name, written in zip(words.__struct_fields__, words.__struct_encode_fields__, strict=True):
            value, place = getattr(words, name), f"{path}.{written}"
            if name in AS_KUBERNETES_WRITES:
                self._fields(value, AS_KUBERNETES_WRITES[name], place)
            elif isinstance(value, Words):
                self._look_through(value, place)
            elif isinstance(value, tuple):
                for number, each in enumerate(value):
                    if isinstance(each, Words):
                        self._look_through(each, f"{place}[{number}]")
                    elif name in self._lists:
                        self._named(each, *self._lists[name], f"{place}[{number}]")
            elif isinstance(value, str) and value and name in self._lists:
                self._named(value, *self._lists[name], place)

    def _fields(self, raw: Any, kind: type[Value], path: str) -> None:
        """What is written as Kubernetes writes it."""
        for number, each in enumerate(raw) if isinstance(raw, tuple) else [("", raw)]:
            for problem in fieldnames.unknown(each, kind, path if number == "" else f"{path}[{number}]"):
                self._complain(problem.path, _words(problem))

    def _named(self, word: str, what: str, known: Callable[[], Iterable[str]], path: str) -> None:
        names = list(known())
        if word not in names and (names or what != "zone"):
            self._complain(path, f"there is no {what} {word!r}{_hint(word, names)}")

    def _moment(self, value: Duration, path: str) -> None:
        problem = limits.moment(value)
        if problem:
            self._complain(path, problem)

    def _step(self, timed: Timed, withdrawn: list[MarketWords]) -> None:
        """What a step names. Steps come in order of time."""
        step = timed.step
        self._presence.enter(timed)
        if isinstance(step, Scale):
            self._grow(step.scale.rpartition("/")[2], step.replicas)
            self._scaled(step.scale, f"{timed.path}.scale", timed)
        elif isinstance(step, Traffic):
            self._grow(step.traffic.rpartition("/")[2], step.high)
            self._scaled(step.traffic, f"{timed.path}.traffic", timed)
        elif isinstance(step, Delete):
            self._deleted(step.delete, f"{timed.path}.delete", timed)
        elif isinstance(step, Sicken):
            kind, equals, status = step.sicken.partition("=")
            if not (kind and equals and status in STATUSES):
                self._complain(
                    f"{timed.path}.sicken", f"{step.sicken!r} must be a condition and {_or(STATUSES)}: Ready=False"
                )
        elif isinstance(step, Withdraw):
            withdrawn.append(step.withdraw)
        elif isinstance(step, OtherCluster | PublishImages) and not ec2.is_meant(self._story.given):
            self._complain(timed.path, "this can happen with provider: aws alone")
        elif isinstance(step, Restore) and step.restore not in withdrawn:
            self._complain(f"{timed.path}.restore", "nothing was withdrawn in these words before")

    def _scaled(self, word: str, path: str, timed: Timed) -> None:
        kind, slash, name = word.rpartition("/")
        if slash and not self._one(word, path):
            return
        if slash and kind.lower() not in SCALABLE:
            if kind.lower() != ReplicaSet.kind.lower():
                self._complain(path, f"{KNOWN[kind.lower()].kind} {name} has no replicas to scale")
            return
        named = [(each, name) for each in SCALABLE if name in self._cast.of(each) and kind.lower() in ("", each)]
        meant = [each for each in named if each not in self._cast.unscalable]
        if not named:
            known = [known for each in SCALABLE for known in self._cast.of(each)]
            self._named(word, "workload or pool", lambda: known, path)
        elif not meant:
            self._complain(path, f"{KNOWN[named[0][0]].kind} {name} has no replicas to scale")
        else:
            self._is_there(word, meant, path, timed)
            if isinstance(timed.step, Traffic):
                self._presence.busy(meant, timed.at, timed.step.until)

    def _deleted(self, word: str, path: str, timed: Timed) -> None:
        kind, _, name = word.partition("/")
        if self._one(word, path) and kind.lower() in ONLY_PEOPLE_MAKE:
            key = (kind.lower(), name)
            self._is_there(word, [key], path, timed)
            since = self._presence.leave(key, timed.at)
            if since is not None:
                self._complain(path, f"the traffic of {name} that begins at {brief(since)} goes on; give it an until")

    def _is_there(self, word: str, meant: Sequence[tuple[str, str]], path: str, timed: Timed) -> None:
        why = self._presence.absence(meant)
        if why and timed.at >= 0:
            self._complain(path, f"there is no {word!r} at {brief(timed.at)}, {why}")

    def _one(self, word: str, path: str) -> bool:
        """Whether it is `kind/name`, and there is such a thing."""
        if word.endswith("/*"):
            self._complain(path, "names one object at a time, not all")
            return False
        return self._reference(word, path)

    def _reference(self, word: str, path: str) -> bool:
        """Whether it is `kind/name`, or `kind/*` for all of a kind, and there is such a thing."""
        kind, slash, name = word.partition("/")
        known = KNOWN.get(kind.lower())
        if not slash or not name:
            self._complain(path, f"{word!r} must be a kind and a name, like nodepool/default")
        elif known is None:
            self._complain(path, f"kind {kind!r} is not known{_hint(kind, KNOWN)}")
        elif name != "*" and kind.lower() in ONLY_PEOPLE_MAKE and name not in self._cast.of(kind.lower()):
            self._named(name, known.kind, lambda: self._cast.of(kind.lower()), path)
        else:
            return True
        return False

    def _expectation(self, wanted: Expectation, path: str) -> None:
        for word in ("running", "pending", "refused"):
            for name in getattr(wanted, word):
                self._named(name, "workload", lambda: self._cast.apps, f"{path}.{word}[{name}]")
        for pool in wanted.nodes if isinstance(wanted.nodes, Mapping) else ():
            self._named(pool, "pool", lambda: self._cast.of("nodepool"), f"{path}.nodes[{pool}]")
        for word, parts in PARTS.items():
            told: Mapping[str, Any] = getattr(wanted, word)
            for key in told:
                if key not in parts:
                    hint = _hint(key, parts)
                    self._complain(f"{path}.{word}", f"unknown word {key!r}{hint}; known are {', '.join(parts)}")
            for key in NEEDED[word]:
                if told and not told.get(key):
                    self._complain(f"{path}.{word}", f"the word {key!r} is missing")
            if told.get("of"):
                self._reference(str(told.get("of", "")), f"{path}.{word}.of")
        self._condition(wanted.condition, f"{path}.condition")
        reason, kind = wanted.event.get("reason"), wanted.event.get("kind")
        if reason is not None:
            self._named(reason, "event with the reason", lambda: REASONS, f"{path}.event.reason")
        kinds = [each.kind for each in KINDS]
        if kind is not None and kind not in kinds:
            self._complain(f"{path}.event.kind", f"kind {kind!r} is not known{_hint(kind, kinds)}")

    def _condition(self, told: Mapping[str, str | bool], path: str) -> None:
        status = str(told.get("status", "none"))
        if status not in (*STATUSES, "none"):
            self._complain(f"{path}.status", f"{status!r} is none of {', '.join(STATUSES)} and none")
        of, word = str(told.get("of", "")).partition("/")[0].lower(), str(told.get("type", ""))
        kind = KNOWN.get(of if of in KNOWN else nearest(of, KNOWN) or "")
        if word and kind is not None and issubclass(kind, CustomObject):  # others' conditions are as others please
            conditions = kind.condition_set
            known = (conditions.root, *conditions.dependents, *FREE.get(kind, ()))
            if word not in known:
                self._complain(f"{path}.type", f"a {kind.kind} has no condition {word!r}{_hint(word, known)}")

    def _law(self, law: Law, path: str) -> None:
        if law.measure == "reservation":
            self._named(law.subject, "reservation", lambda: self._cast.reservations, path)
        elif law.measure == "nodes" and law.subject:
            self._named(law.subject, "pool", lambda: self._cast.of("nodepool"), path)
        elif law.measure == "running":
            self._named(law.subject, "workload", lambda: self._cast.apps, path)


def _hint(word: str, known: Iterable[str]) -> str:
    names = sorted(known)
    return mistakes.hint(word, names, f"; there are {', '.join(names)}" if 0 < len(names) <= 12 else "")


def _or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _found(data: Mapping[str, Any], kind: type[KubeObject]) -> Iterable[FieldProblem]:
    """What is wrong with a manifest before it is read, and what would be dropped."""
    return at_the_door(data, kind) if issubclass(kind, CustomObject) else fieldnames.problems(data, kind)


def _words(problem: FieldProblem) -> str:
    return str(replace(problem, path=""))


def _inside(path: str, inner: str) -> str:
    return ".".join(part for part in (path, inner) if part)


def _parted(cause: str) -> tuple[str, str]:
    """The field that a cause is about, and what is wrong with it."""
    path, colon, problem = cause.partition(": ")
    return (path, problem) if colon and " " not in path else ("", cause)
