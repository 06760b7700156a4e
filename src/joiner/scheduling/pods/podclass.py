"""Pods by shape: identical pods are one class, and whatever is true of one of them is worked out once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from joiner.bitset import NO_CLAIMS, NodeSet
from joiner.model import podrequests
from joiner.model.labels import Vocabulary
from joiner.model.meta import replace
from joiner.model.pod import ContainerPort, Pod, PodSpec, PodStatus, Volume, host_ports
from joiner.model.requirement import SelectorRequirement
from joiner.model.taints import PREFER_NO_SCHEDULE_TOLERATION, Toleration
from joiner.requirements import Requirement, Requirements, unreadable
from joiner.scheduling.pods.preferences import PodPreferences, steps, wishes
from joiner.scheduling.pods.volumetopology import PodVolumes, VolumeIndex
from joiner.scheduling.problem import Amounts
from joiner.scheduling.topology.group import AFFINITY, Group
from joiner.scheduling.topology.groups import Groups
from joiner.scheduling.topology.present import Labels, labels_of

_ENCODER = msgspec.msgpack.Encoder(enc_hook=str, order="deterministic")
"""Quantities are written as text: thousandths of the largest one do not fit the format's integers.

The order of a mapping is nothing to tell pods apart by.
"""


_NOTHING: Final[Mapping[str, object]] = {"affinity": PodSpec().affinity, "resources": PodSpec().resources}


class Step:
    """What a class asks for after giving up some preferences."""

    __slots__ = (
        "again", "closed_claims", "closed_nodes", "final", "groups", "hopeless", "impossible", "marks", "places", "requirements",
        "soft", "strict", "tolerations",
    )  # fmt: skip

    def __init__(
        self,
        requirements: Requirements,
        strict: Requirements,
        tolerations: tuple[Toleration, ...],
        groups: tuple[tuple[Group, bool], ...],
        marks: tuple[Group, ...],
        places: tuple[Requirements, ...],
        soft: frozenset[Group] = frozenset(),
    ) -> None:
        self.requirements = requirements
        self.strict = strict
        """The requirements without any preference: where the pod could go at all."""
        self.tolerations = tolerations
        self.groups = groups
        """The groups the pod must satisfy, and whether it is itself counted in each."""
        self.marks = marks
        """Inverse groups that learn where the pod is."""
        self.places = places
        """Where its volumes can be reached: one of these must hold."""
        self.soft = soft
        """The groups it would rather be spread by, and need not."""
        self.again = False
        """Whether it comes back to something that was given up before."""
        self.impossible = ""
        """How the pod contradicts itself, if it does, so that no node can ever satisfy it."""
        self.final = True
        """Whether a claim that says no for want of room says so for ever: not while topology chooses its domain."""
        self.closed_claims = NO_CLAIMS
        """Open claims that will never take a pod at this step."""
        self.closed_nodes = NodeSet(0)
        self.hopeless = False
        """Whether no node and no pool will ever take a pod at this step."""

    @property
    def waits(self) -> bool:
        """Whether it asks to be near to pods of which none is there yet, and is none of them itself."""
        return any(not group.occupied and not chosen and group.kind == AFFINITY for group, chosen in self.groups)

    def fresh(self, groups: Mapping[Group, Group]) -> "Step":
        """The step as another run finds it."""
        own = tuple([(groups[group], chosen) for group, chosen in self.groups])
        marks = tuple([groups[group] for group in self.marks])
        soft = frozenset([groups[group] for group in self.soft])
        made = Step(self.requirements, self.strict, self.tolerations, own, marks, self.places, soft)
        made.again, made.impossible, made.final = self.again, self.impossible, self.final
        return made


class PodClass:
    """Pods that no rule can tell apart."""

    def __init__(self, number: int, pod: Pod, labels: Labels, volumes: PodVolumes) -> None:
        self.number = number
        self.pod = pod
        self.amounts: Amounts = ()
        self.ports: tuple[ContainerPort, ...] = host_ports(pod.spec)
        self.volumes = volumes
        self.labels = labels
        """Those that selectors look at."""
        self.steps: list[Step] = []
        self.counted: tuple[Group, ...] = ()
        self.kept_out: tuple[Group, ...] = ()
        self.held = all(volumes.places)
        """Whether volumes hold the pod somewhere, so that it cannot make way for others."""
        self.refused_at = -1
        """The state of the run at which the class last found no place."""

    @property
    def most_modest(self) -> Step | None:
        """What it asks for in the end; nothing if it contradicts itself whatever it gives up."""
        return next((step for step in reversed(self.steps) if not step.impossible), None)

    def measure(self, names: Sequence[str]) -> None:
        """Find out how much a pod asks for, in the order of the names."""
        wanted = podrequests.of_pod(self.pod)
        self.amounts = tuple([wanted.get(name, 0) for name in names])

    def fresh(self, groups: Mapping[Group, Group]) -> "PodClass":
        """The class as another run finds it, with groups of its own."""
        made = object.__new__(PodClass)
        vars(made).update(vars(self))  # what `copy` does, at a tenth of its price
        made.steps = [step.fresh(groups) for step in self.steps]
        made.counted = tuple([groups[group] for group in self.counted])
        made.kept_out = tuple([groups[group] for group in self.kept_out])
        return made


ClassKey = tuple[Labels, bytes, str, bytes]


class _Likeness:
    """Tells pods apart by what rules see of them."""

    def __init__(self, seen: frozenset[str]) -> None:
        self._seen = seen
        self._shapes: dict[int, bytes] = {}
        """The identity of a spec to what matters of it; specs outlive this."""

    def key(self, pod: Pod) -> ClassKey:
        """Equal for pods that no rule can tell apart."""
        own_volume = pod.name if _has_own_volume(pod) else ""
        allocated = _ENCODER.encode(pod.status.container_statuses) if pod.status.container_statuses else b""
        shape = self._shapes.get(id(pod.spec))
        if shape is None:
            shape = self._shapes[id(pod.spec)] = _ENCODER.encode(_what_matters(pod.spec))
        return (labels_of(pod, self._seen), shape, own_volume, allocated)


def _what_matters(spec: PodSpec) -> PodSpec:
    """The spec without the node that a pod is to leave, and without volumes that could be anywhere.

    Every pod of a cluster has a volume with a name of its own that carries the token of its account.
    """
    changed: dict[str, Any] = {"node_name": ""} if spec.node_name else {}
    if spec.volumes:
        changed["volumes"] = tuple([_unnamed(volume) for volume in spec.volumes if volume.claim_name("") is not None])
    # What is there and empty says the same as what is not there, and is written otherwise.
    changed |= {name: nothing for name, nothing in _NOTHING.items() if getattr(spec, name) == nothing}
    return replace(spec, **changed)


def _unnamed(volume: Volume) -> Volume:
    return volume if volume.ephemeral is not None else replace(volume, name="")


def _has_own_volume(pod: Pod) -> bool:
    return any(volume.ephemeral is not None for volume in pod.spec.volumes)


def at_a_glance(pods: Iterable[Pod]) -> tuple[list[Pod], list[int]]:
    """Pods that are not written exactly like one before them, and for each pod which of those it is written like.

    Most pods are written like another, with the same spec object. Those that bring volumes or were running before are looked at
    one by one.
    """
    first: list[Pod] = []
    found: list[int] = []
    known: dict[tuple[str, tuple[tuple[str, str], ...], int], int] = {}
    spec: PodSpec | None = None
    status: PodStatus | None = None
    namespace, number = "", 0
    labels: Mapping[str, str] = {}
    for pod in pods:
        meta = pod.metadata
        alike = pod.spec is spec and pod.status is status and meta.namespace == namespace
        if not (alike and (meta.labels is labels or meta.labels == labels)):
            if pod.spec.volumes or pod.status.container_statuses:
                number, spec = len(first), None
            else:
                spec, status, namespace, labels = pod.spec, pod.status, meta.namespace, meta.labels
                number = known.setdefault((namespace, tuple(labels.items()), id(spec)), len(first))
            if number == len(first):
                first.append(pod)
        found.append(number)
    return first, found


def classify(pods: Iterable[Pod], volume_index: VolumeIndex, seen: frozenset[str]) -> tuple[list[PodClass], list[int]]:
    """The classes, numbered by what they are and not by where they stand, and for each pod the number of its class.

    `seen` are the labels that selectors look at.
    """
    likeness = _Likeness(seen)
    members: dict[ClassKey, int] = {}
    first: list[Pod] = []
    found: list[int] = []
    for pod in pods:
        known = members.setdefault(likeness.key(pod), len(first))
        if known == len(first):
            first.append(pod)
        found.append(known)
    ordered = sorted(members.items())
    classes = [
        PodClass(n, first[at], key[0], volume_index.volumes_of(first[at])) for n, (key, at) in enumerate(ordered)
    ]
    rank = {at: number for number, (_, at) in enumerate(ordered)}
    return classes, [rank[at] for at in found]


def prepare(
    pod_class: PodClass, groups: Groups, vocabulary: Vocabulary, respected: bool, some_pool_is_disliked: bool
) -> None:
    """Work out every step of a class. All groups it can ever own are made here, before a pod is placed."""
    spec = pod_class.pod.spec
    asked = wishes(spec, respected)
    selector = Requirements.of_labels(spec.node_selector, vocabulary)
    alternatives = tuple(Requirements.read(term.match_expressions, vocabulary) for term in asked.terms)
    counting = tuple(selector & term for term in alternatives) or ((selector,) if selector else ())
    pod_class.steps = [
        _step(pod_class, step, selector, counting, groups, vocabulary) for step in steps(asked, some_pool_is_disliked)
    ]


def _step(
    pod_class: PodClass,
    asked: PodPreferences,
    selector: Requirements,
    counting: tuple[Requirements, ...],
    groups: Groups,
    vocabulary: Vocabulary,
) -> Step:
    pod = pod_class.pod
    needed = [*selector.values(), *_read(asked.terms[0].match_expressions if asked.terms else (), vocabulary)]
    liked = asked.liked_nodes[0].preference.match_expressions if asked.liked_nodes else ()
    readable = not any(unreadable(each) for each in liked)
    wanted = [*needed, *_read(liked if readable else (), vocabulary)]
    strict = Requirements(needed)
    requirements = Requirements(wanted) if liked else strict
    tolerations = pod.spec.tolerations
    spread, liked_spread = (
        [groups.spread(pod, constraint, counting, tolerations) for constraint in constraints]
        for constraints in (asked.spread, asked.liked_spread)
    )
    near = groups.near(pod, (*asked.near, *asked.liked_near))
    away = groups.away(pod, (*asked.away, *asked.liked_away))
    # Who rules domains out comes before who picks one.
    owned = tuple(dict.fromkeys((*away, *spread, *liked_spread, *near)))
    namespace, plain = pod_class.labels[0], dict(pod_class.labels[1])
    step = Step(
        requirements=requirements,
        strict=strict,
        tolerations=(*tolerations, PREFER_NO_SCHEDULE_TOLERATION) if asked.endures_disliked_taints else tolerations,
        groups=tuple((group, group.chooses(namespace, plain)) for group in owned),
        marks=groups.marks(pod, asked.away),
        places=pod_class.volumes.places,
        soft=frozenset(liked_spread) - frozenset(spread),
    )
    step.again = asked.again
    step.impossible = _contradiction(wanted) if readable else "a preference cannot be read"
    return step


def _read(written: Iterable[SelectorRequirement], vocabulary: Vocabulary) -> list[Requirement]:
    return [Requirement.read(each, vocabulary) for each in written]


def _contradiction(wanted: Iterable[Requirement]) -> str:
    """Two demands on one label that cannot both be met, if there are any."""
    known: dict[str, Requirement] = {}
    for each in wanted:
        before = known.get(each.key)
        if before is not None and not before.agrees(each):
            return f"{before} and {each} cannot both be met"
        known[each.key] = each if before is None else before & each
    return ""
