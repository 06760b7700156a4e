"""Scenario files: one self-contained scheduling question each, as JSON, turned into a `Problem`.

What a scenario leaves out is filled in as the format says; nothing else is defaulted.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from os import PathLike
from os.path import join
from typing import Any, Final, TypeVar

from msgspec import Raw

from joiner.admission.pods import amounts_below_zero
from joiner.admission.runtime import overlay_problems
from joiner.catalog.build import Adjustments, Pipeline
from joiner.catalog.market import ALLOWED_PRICE, UNLIMITED, InstanceType, Offering, Overhead
from joiner.model import labels, podrules
from joiner.model.clusterobjects import Namespace
from joiner.model.kubelet import Threshold
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject, ObjectMeta, Value, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod, PodCondition, PodSpec, PodStatus
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.requirement import SelectorRequirement
from joiner.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from joiner.model.workload import DaemonSet
from joiner.offline.cluster import Holdings, Picture, picture
from joiner.offline.scenario.format import Malformed, WireOffering, WirePod, WireScenario, WireType, WireTypes, decoded
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.problem import Policy, PoolOption, Problem, Storage

DEFAULT_NAMESPACE: Final = "default"
RESERVATION_ID: Final = "oracle.test/reservation-id"
NODE_CLASS: Final = NodeClassReference(group="oracle.test", kind="OracleNodeClass", name="default")
BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The moment at which scenarios are judged: nothing in them may depend on today."""
APPLIED: Final = "applied"
_REFUSED: Final = "RuntimeValidation: {}"

_NO_SCENARIO: Final = "this is no scenario: {}"
_FIELDS: Final = frozenset(WireScenario.__struct_encode_fields__)
_UNSCHEDULABLE: Final = PodCondition(type="PodScheduled", status="False", reason="Unschedulable")
_PENDING: Final = PodStatus(phase="Pending", conditions=(_UNSCHEDULABLE,))

K = TypeVar("K", bound=KubeObject)


class Unanswerable(Malformed):
    """A scenario that cannot be turned into a problem."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name
        """What the scenario calls itself, as far as that could be read."""


class Scenario(Value):
    """A scenario, ready to be answered."""

    name: str
    problem: Problem
    ignored: Mapping[str, str] = {}
    """Pods that never reach the queue, and why."""
    overlays: Mapping[str, str] = {}
    """What became of each overlay."""
    refused: Mapping[str, str] = {}
    """Pools that cannot be used, and why."""


class _Title(Value):
    """The one field that even a refused scenario is asked for."""

    name: str = ""


class _Kind(Value):
    kind: str = ""


class _Named(Value):
    """What even an object that cannot be read is asked for."""

    metadata: _Title = _Title()


OBJECTS: Final[tuple[type[KubeObject], ...]] = (
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    CSINode,
    Namespace,
    PodDisruptionBudget,
)
"""What is read of `objects`; other kinds are passed over."""


def read(data: bytes, folder: str | PathLike[str]) -> Scenario:
    """The scenario in one document; files that it names are looked for in the folder."""
    try:
        wire = decoded(data, WireScenario)
    except Malformed as error:
        raise Unanswerable(_NO_SCENARIO.format(error), _title(data)) from None
    if wire == WireScenario() and not _FIELDS & decoded(data, dict[str, Any]).keys():
        raise Unanswerable(_NO_SCENARIO.format(f"it has none of the fields {', '.join(sorted(_FIELDS))}"))
    try:
        return _scenario(wire, folder)
    except Malformed as error:
        raise Unanswerable(str(error), wire.name) from None


def _title(data: bytes) -> str:
    try:
        return decoded(data, _Title).name
    except Malformed:
        return ""


def _scenario(wire: WireScenario, folder: str | PathLike[str]) -> Scenario:
    types = _types(wire, folder)
    vocabulary = _vocabulary(wire, types)
    overlays, verdicts = _overlays(wire, vocabulary)
    specs = _Specs()
    ignored: dict[str, str] = {}
    pods = tuple(_pods(wire.pods, specs, ignored))
    objects = _objects(wire.objects)
    seen = picture(_holdings(wire, specs, objects), BEGINNING, vocabulary)
    refused: dict[str, str] = {}
    problem = Problem(
        pods=(*pods, *seen.evicted),
        pools=tuple(_pools(wire, types, overlays, seen, vocabulary, refused)),
        nodes=seen.nodes,
        bound=seen.bound,
        bound_nodes=seen.bound_nodes,
        daemons=seen.daemons,
        namespaces={each.name: each.metadata.labels for each in objects.all(Namespace)},
        storage=objects.storage(),
        policy=Policy(
            preferences=wire.options.preference_policy or "Respect",
            min_values=wire.options.min_values_policy or "Strict",
            types_max=wire.options.max_instance_types if wire.options.max_instance_types > 0 else Policy().types_max,
            reserved_capacity=wire.options.reserved_capacity,
            reserved_mode=wire.options.reserved_offering_mode or "Strict",
        ),
        vocabulary=vocabulary,
    )
    if refused and not problem.pools:
        raise Unanswerable("; ".join(f"NodePool {name}: {why}" for name, why in refused.items()))
    return Scenario(name=wire.name, problem=problem, ignored=ignored, overlays=verdicts, refused=refused)


# -- types and pools -------------------------------------------------------------------------------------------------------


def _types(wire: WireScenario, folder: str | PathLike[str]) -> dict[str, InstanceType]:
    reader = _Types()
    found: dict[str, InstanceType] = {}
    for each in _written(wire, folder):
        if each.name in found:
            raise Unanswerable(f'instance type "{each.name}" appears twice')
        found[each.name] = reader.read(each)
    return found


def _written(wire: WireScenario, folder: str | PathLike[str]) -> Iterator[WireType]:
    try:
        yield from _one_by_one(wire.instance_types)
    except Malformed as error:
        raise Unanswerable(_NO_SCENARIO.format(error)) from None
    name = wire.instance_types_file
    if not name:
        return
    try:
        with open(join(folder, name), "rb") as file:
            data = file.read()
        yield from _one_by_one(decoded(data, WireTypes).instance_types)
    except OSError as error:
        raise Unanswerable(f"instanceTypesFile {name}: {error.strerror or error}") from None
    except Malformed as error:
        raise Unanswerable(f"instanceTypesFile {name}: {error}") from None


def _one_by_one(written: Iterable[Raw]) -> Iterator[WireType]:
    for number, each in enumerate(written):
        yield decoded(each, WireType, f"instanceTypes[{number}]")


class _Types:
    """Types as the catalogue wants them. What several have in common is there once."""

    def __init__(self) -> None:
        self._single: dict[SelectorRequirement, Requirement] = {}
        self._sets: dict[tuple[SelectorRequirement, ...], Requirements] = {}

    def read(self, written: WireType) -> InstanceType:
        requirements = Requirements(map(self._requirement, written.requirements))
        if labels.INSTANCE_TYPE not in requirements:
            requirements = Requirements((*requirements.values(), Requirement(labels.INSTANCE_TYPE, (written.name,))))
        thresholds = written.overhead.eviction_threshold.items()
        for number, each in enumerate(written.offerings):
            if not 0 <= each.price < math.inf:
                where = f'instance type "{written.name}": offerings[{number}].price'
                raise Unanswerable(f"{where}: {each.price:g} is no price; {ALLOWED_PRICE}")
        return InstanceType(
            name=written.name,
            requirements=requirements,
            offerings=tuple(map(self._offering, written.offerings)),
            capacity=written.capacity,
            overhead=Overhead(
                kube_reserved=written.overhead.kube_reserved,
                system_reserved=written.overhead.system_reserved,
                eviction_hard={name: Threshold(amount=amount) for name, amount in thresholds},
            ),
        )

    def _offering(self, written: WireOffering) -> Offering:
        requirements = self._sets.get(written.requirements)
        if requirements is None:
            requirements = Requirements(map(self._requirement, written.requirements))
            self._sets[written.requirements] = requirements
        reserved = requirements.at(labels.CAPACITY_TYPE).any() == labels.RESERVED
        left = written.reservation_capacity if reserved else UNLIMITED
        return Offering(requirements=requirements, price=written.price, available=left if written.available else 0)

    def _requirement(self, written: SelectorRequirement) -> Requirement:
        known = self._single.get(written)
        if known is None:
            try:
                known = self._single[written] = Requirement.read(written)
            except ValueError as error:
                raise Unanswerable(str(error)) from None
        return known


def _vocabulary(wire: WireScenario, types: Mapping[str, InstanceType]) -> Vocabulary:
    """Every label of a type or an offering is well known, as if a provider had said so."""
    identity = wire.options.reservation_id_label or RESERVATION_ID
    sets = {id(r): r for each in types.values() for r in (each.requirements, *(o.requirements for o in each.offerings))}
    keys = {key for requirements in sets.values() for key in requirements}
    plain = Vocabulary()
    return replace(
        plain,
        well_known=(plain.well_known | keys | set(wire.options.well_known_labels) | {identity}) - {labels.HOSTNAME},
        offering_keys=plain.offering_keys | {identity},
        reservation_id=identity,
    )


def _overlays(wire: WireScenario, vocabulary: Vocabulary) -> tuple[Adjustments, dict[str, str]]:
    """The overlays in force, and what is said of each. One that contradicts another is in force all the same."""
    if not (wire.options.node_overlay if wire.options.node_overlay is not None else bool(wire.node_overlays)):
        return Adjustments(), {}
    sound: list[NodeOverlay] = []
    verdicts: dict[str, str] = {}
    for number, written in enumerate(wire.node_overlays):
        where = f"nodeOverlays[{number}]"
        try:
            overlay = decoded(written, NodeOverlay, where)
        except Malformed as error:
            verdicts[_named(written, where)] = _REFUSED.format(error)
            continue
        problems = [each.message for each in overlay_problems(overlay, vocabulary) if each.is_error]
        verdicts[overlay.name] = _REFUSED.format("; ".join(problems)) if problems else APPLIED
        if not problems:
            sound.append(overlay)
    return Adjustments(overlays=tuple(sound)), verdicts


def _named(written: Raw, where: str) -> str:
    """The name of an object that cannot be read; what has none is no object."""
    try:
        name = decoded(written, _Named, where).metadata.name
    except Malformed as error:
        raise Unanswerable(_NO_SCENARIO.format(error)) from None
    if not name:
        raise Unanswerable(f"{where} has no name")
    return name


def _pools(
    wire: WireScenario,
    types: Mapping[str, InstanceType],
    overlays: Adjustments,
    seen: Picture,
    vocabulary: Vocabulary,
    refused: dict[str, str],
) -> Iterator[PoolOption]:
    """What can be bought through each pool. One that cannot be understood is noted and left out."""
    pipeline = Pipeline(vocabulary)
    everything = tuple(types.values())
    choices: dict[tuple[str, ...], tuple[InstanceType, ...]] = {}
    for number, written in enumerate(wire.node_pools):
        name = _named(written, f"nodePools[{number}]")
        names = wire.instance_types_by_node_pool.get(name)
        if names is not None and names not in choices:
            choices[names] = tuple(_chosen(names, types, name))
        try:
            pool = _with_node_class(decoded(written, NodePool, f"nodePools[{number}]"))
            if pool.spec.replicas is not None or pool.metadata.deletion_timestamp is not None:
                continue  # it keeps a number of nodes and asks no pod, or it goes
            catalog = pipeline.catalog(everything if names is None else choices[names], overlays, pool)
        except ValueError as error:
            refused[name] = str(error)
            continue
        yield PoolOption(pool=pool, catalog=catalog, used=seen.used.get(name, {}))


def _chosen(names: Iterable[str], types: Mapping[str, InstanceType], pool: str) -> Iterator[InstanceType]:
    for name in names:
        if name not in types:
            raise Unanswerable(f'instanceTypesByNodePool[{pool}]: no type "{name}"')
        yield types[name]


def _with_node_class(pool: NodePool) -> NodePool:
    template = pool.spec.template
    if template.spec.node_class_ref.name:
        return pool
    spec = replace(template.spec, node_class_ref=NODE_CLASS)
    return replace(pool, spec=replace(pool.spec, template=replace(template, spec=spec)))


# -- pods ------------------------------------------------------------------------------------------------------------------


class _Specs:
    """Specs by the bytes they are written in: of a thousand replicas one is read and judged, and their labels are kept once."""

    def __init__(self) -> None:
        self._known: dict[bytes, PodSpec] = {}
        self._labels: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}

    def labels(self, own: Mapping[str, str]) -> Mapping[str, str]:
        return self._labels.setdefault(tuple(own.items()), own)

    def read(self, raw: Raw) -> PodSpec:
        written = bytes(raw)
        known = self._known.get(written)
        if known is None:
            known = PodSpec() if written == b"null" else decoded(written, PodSpec)
            _judged(known)
            self._known[written] = known
        return known


def _judged(spec: PodSpec) -> None:
    """Raise what would make a plan wrong. Scenarios have passed no API server, and what else it would say is none of ours."""
    if problems := list(amounts_below_zero(spec)):
        raise Malformed("; ".join(map(str, problems)))


def _daemon_set(written: DaemonSet, number: int) -> DaemonSet:
    try:
        _judged(written.spec.template.spec)
    except Malformed as error:
        raise Unanswerable(f"daemonSets[{number}] ({written.name}): spec.template.spec: {error}") from None
    placed: DaemonSet = _placed(written)
    return placed


def _pods(written: Iterable[WirePod], specs: _Specs, ignored: dict[str, str]) -> Iterator[Pod]:
    """The pods of the queue. A pod that another scheduler serves, or that cannot be read, is noted and left out."""
    seen: set[tuple[str, str]] = set()
    for number, each in enumerate(written):
        metadata = _identified(each.metadata, "pod", number)
        identity = (metadata.namespace, metadata.name)
        if identity in seen:
            raise Unanswerable(f"pod {shown(*identity)} appears twice")
        seen.add(identity)
        try:
            spec = specs.read(each.spec)
        except Malformed as error:
            ignored[shown(*identity)] = str(error)
            continue
        metadata = replace(metadata, labels=specs.labels(metadata.labels))
        pod = Pod(metadata=metadata, spec=spec, status=_waiting(each.status, spec))
        if podrules.is_provisionable(pod):
            yield pod
        else:
            ignored[shown(*identity)] = "not provisionable"


def _waiting(status: PodStatus, spec: PodSpec) -> PodStatus:
    if not status.phase and not status.conditions and not spec.node_name and not status.nominated_node_name:
        return _PENDING
    marked = status.conditions or ((_UNSCHEDULABLE,) if not spec.node_name else ())
    return replace(status, phase=status.phase or "Pending", conditions=marked)


def _bound(written: Iterable[WirePod], specs: _Specs) -> Iterator[Pod]:
    for number, each in enumerate(written):
        metadata = _identified(each.metadata, "bound", number)
        try:
            spec = specs.read(each.spec)
        except Malformed as error:
            raise Unanswerable(f"boundPods[{number}] ({metadata.name}): spec: {error}") from None
        if not spec.node_name:
            raise Unanswerable(f"boundPods[{number}] ({metadata.name}) has no spec.nodeName")
        yield Pod(metadata=metadata, spec=spec, status=replace(each.status, phase=each.status.phase or "Running"))


def _identified(metadata: ObjectMeta, kind: str, number: int) -> ObjectMeta:
    """With what the format fills in. Of pods that are alike in size and age the UID tells who has the first turn, so it is the
    place in the file that decides unless there are UIDs in it.
    """
    return replace(
        metadata,
        namespace=metadata.namespace or DEFAULT_NAMESPACE,
        name=metadata.name or f"{kind}-{number:06d}",
        uid=metadata.uid or f"{kind}-{number:08d}",
    )


def shown(namespace: str, name: str) -> str:
    """How pods are called in answers: by name alone in the default namespace."""
    return name if namespace in ("", DEFAULT_NAMESPACE) else f"{namespace}/{name}"


# -- what is there already -------------------------------------------------------------------------------------------------


class _Objects:
    """The further objects, by kind."""

    def __init__(self) -> None:
        self.found: dict[type[KubeObject], list[Any]] = {}

    def all(self, kind: type[K]) -> tuple[K, ...]:
        return tuple(self.found.get(kind, ()))

    def storage(self) -> Storage:
        return Storage(
            claims=self.all(PersistentVolumeClaim), volumes=self.all(PersistentVolume), classes=self.all(StorageClass)
        )


def _objects(written: Iterable[Raw]) -> _Objects:
    kinds = {kind.kind: kind for kind in OBJECTS}
    objects = _Objects()
    for number, raw in enumerate(written):
        try:
            kind = kinds.get(decoded(raw, _Kind).kind)
            if kind is not None:
                objects.found.setdefault(kind, []).append(_placed(decoded(raw, kind)))
        except Malformed as error:
            raise Unanswerable(f"objects[{number}]: {error}") from None
    return objects


def _placed(found: Any) -> Any:
    if not type(found).namespaced or found.metadata.namespace:
        return found
    return replace(found, metadata=replace(found.metadata, namespace=DEFAULT_NAMESPACE))


def _holdings(wire: WireScenario, specs: _Specs, objects: _Objects) -> Holdings:
    nodes = tuple(_node(each) for each in wire.nodes)
    unknown = sorted(set(wire.deleting_nodes) - {node.name for node in nodes})
    if unknown:
        raise Unanswerable(f"deletingNodes: no such node(s) {unknown}")
    return Holdings(
        nodes=nodes,
        claims=tuple(_claim(each) for each in wire.node_claims),
        pods=tuple(_bound(wire.bound_pods, specs)),
        daemon_sets=tuple(_daemon_set(each, number) for number, each in enumerate(wire.daemon_sets)),
        csi_nodes=objects.all(CSINode),
        storage=objects.storage(),
        budgets=objects.all(PodDisruptionBudget),
        deleting=frozenset(wire.deleting_nodes),
    )


def _node(node: Node) -> Node:
    """A node with what a running cluster would have written on it."""
    usual = {labels.HOSTNAME: node.name}
    if node.metadata.labels.get(labels.NODEPOOL):
        usual |= {labels.REGISTERED: "true", labels.INITIALIZED: "true"}
    status = replace(
        node.status,
        capacity=node.status.capacity or node.status.allocatable,
        allocatable=node.status.allocatable or node.status.capacity,
    )
    return replace(
        node,
        metadata=replace(node.metadata, labels={**usual, **node.metadata.labels}),
        spec=replace(node.spec, provider_id=node.spec.provider_id or f"oracle://{node.name}"),
        status=status,
    )


def _claim(claim: NodeClaim) -> NodeClaim:
    if claim.status.provider_id:
        return claim
    identity = f"oracle://{claim.status.node_name or claim.name}"
    return replace(claim, status=replace(claim.status, provider_id=identity))
