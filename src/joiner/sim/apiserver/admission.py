"""What the pretend API server does to an object before it lets it in: defaults filled in, problems found.

Kinds of ours are held against the schema and the rules of their CRDs, as a server would hold them; what only controllers can
judge is not asked. Other kinds get the few defaults and checks that a client relies on.
"""

import re
from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

from joiner.admission.defaults import with_defaults
from joiner.admission.schema import Schema, Shape, schema_of
from joiner.admission.schemacheck import Found, check
from joiner.kube.errors import Invalid
from joiner.model import codec, labels
from joiner.model.clusterobjects import Namespace, NamespaceStatus
from joiner.model.customobject import CustomObject
from joiner.model.meta import KubeObject, ObjectMeta, replace
from joiner.model.node import Node
from joiner.model.pod import Pod, PodStatus, with_host_ports
from joiner.model.podpolicy import PodDisruptionBudget, PodDisruptionBudgetSpec
from joiner.model.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeStatus,
)

K = TypeVar("K", bound=KubeObject)

GRACE_S: Final = 30
_SHARE: Final = re.compile("(100|[0-9]{1,2})%")
_SCHEMAS: dict[type[CustomObject], Schema] = {}
_ALLOWED: Final[set[Hashable]] = set()
"""Outlines of statuses that were found to be in order: most are like one that came before."""
_REMEMBERED: Final = 100_000
_STATUS_AT_BIRTH: Final[Mapping[type[KubeObject], Any]] = {
    Pod: PodStatus(phase="Pending"),
    Namespace: NamespaceStatus(phase="Active"),
    PersistentVolumeClaim: PersistentVolumeClaimStatus(phase="Pending"),
    PersistentVolume: PersistentVolumeStatus(phase="Pending"),
}
_KEEPS_STATUS: Final = (Node,)
"""Kubelets write the status together with the node; any other client's status is dropped at birth."""


def has_status(kind: type[KubeObject]) -> bool:
    """Whether objects of the kind have a status apart from the rest."""
    return "status" in kind.__struct_fields__


def fresh(thing: K) -> K:
    """The object as it is stored at birth. Raises Invalid with every problem."""
    refuse(thing, [*_metadata_problems(thing.metadata), *_problems_of_others(thing)])
    if has_status(type(thing)) and not isinstance(thing, _KEEPS_STATUS):
        kind = type(thing)
        thing = replace(thing, status=_STATUS_AT_BIRTH.get(kind, kind().status))  # type: ignore[attr-defined]
    if isinstance(thing, CustomObject):
        return _judged(thing, None)
    if isinstance(thing, Pod):
        spec = with_host_ports(thing.spec)
        if spec.termination_grace_period_seconds is None:
            spec = replace(spec, termination_grace_period_seconds=GRACE_S)
        return thing if spec is thing.spec else replace(thing, spec=spec)
    return thing


def changed(old: K, new: K) -> K:
    """The object as it is stored after a change of anything but its status. Raises Invalid with every problem."""
    if old.metadata != new.metadata:
        refuse(new, [*_metadata_problems(new.metadata), *_finalizer_problems(old.metadata, new.metadata)])
    if isinstance(new, CustomObject) and old.spec != new.spec:  # type: ignore[attr-defined]
        return _judged(new, old)
    if isinstance(new, PodDisruptionBudget):
        refuse(new, list(_budget_problems(new.spec)))
    if isinstance(old, Pod) and isinstance(new, Pod) and old.spec.node_name != new.spec.node_name:
        refuse(new, ["spec.nodeName: cannot be changed; a pod gets its node by being bound"])
    return new


def check_status(thing: KubeObject) -> None:
    """Raise Invalid when the status of a kind of ours is not what its CRD allows."""
    if isinstance(thing, CustomObject):
        status = thing.status  # type: ignore[attr-defined]
        outline = _outline(type(thing), status)
        if outline in _ALLOWED:
            return
        found = Found()
        schema = _schema(type(thing)).properties["status"]
        check(schema, _with_empty_lists(schema, codec.encode(status)), "status", found)
        refuse(thing, [str(problem) for problem in found.problems if problem.is_error])
        if len(_ALLOWED) < _REMEMBERED:
            _ALLOWED.add(outline)


def _outline(kind: type[CustomObject], status: Any) -> Hashable:
    """What a CRD says something about: which fields there are, and which conditions; not times and amounts."""
    conditions = tuple((each.type, each.status, each.reason, len(each.message) > 1024) for each in status.conditions)
    there = tuple(
        (name, tuple(content) if isinstance(content, Mapping) else bool(content))
        for name in status.__struct_fields__
        if name != "conditions" and (content := getattr(status, name)) is not None
    )
    return kind, conditions, there


def refuse(thing: KubeObject, causes: list[str]) -> None:
    """Raise Invalid if there is anything to say."""
    if causes:
        name = thing.metadata.name or thing.metadata.generate_name
        raise Invalid(f"{thing.kind} {name} is invalid: {'; '.join(causes)}", causes)


def _schema(kind: type[CustomObject]) -> Schema:
    schema = _SCHEMAS.get(kind)
    if schema is None:
        schema = _SCHEMAS[kind] = schema_of(kind)
    return schema


def _judged(thing: K, old: K | None) -> K:
    kind = type(thing)
    assert issubclass(kind, CustomObject)
    schema = _schema(kind)
    body = _written(schema, thing)
    found = Found()
    check(schema, body, "", found, None if old is None else _written(schema, old))
    refuse(thing, [str(problem) for problem in found.problems if problem.is_error])
    read = codec.decode(body, kind)
    return replace(thing, **{name: getattr(read, name) for name in kind.__struct_fields__ if name != "metadata"})


def _written(schema: Schema, thing: KubeObject) -> Any:
    body = {
        field.written: codec.encode(content)
        for field in codec.fields(type(thing))
        if field.name != "metadata" and not field.is_left_out(content := getattr(thing, field.name))
    }
    return with_defaults(schema, _with_empty_lists(schema, body))


def _with_empty_lists(schema: Schema, value: Any) -> Any:
    """The value with the lists that must be there. An empty one is left out when it is written, and is not missing."""
    if isinstance(value, list) and schema.element is not None:
        return [_with_empty_lists(schema.element, item) for item in value]
    if not isinstance(value, dict) or schema.shape is not Shape.OBJECT:
        return value
    filled = {
        name: _with_empty_lists(schema.properties[name], part) if name in schema.properties else part
        for name, part in value.items()
    }
    for name in schema.required:
        if name not in filled and schema.properties[name].shape is Shape.LIST:
            filled[name] = []
    return filled


def _metadata_problems(metadata: ObjectMeta) -> Iterator[str]:
    if (why := _name_problem(metadata.name)) is not None:
        yield f"metadata.name: {why}"
    for key, value in metadata.labels.items():
        if (why := _label_problem(key, value)) is not None:
            yield f"metadata.labels[{key}]: {why}"
    for owner in metadata.owner_references:
        if not (owner.uid and owner.name and owner.kind and owner.api_version):
            yield "metadata.ownerReferences: an owner needs apiVersion, kind, name and uid"


def _finalizer_problems(old: ObjectMeta, new: ObjectMeta) -> Iterator[str]:
    if old.deletion_timestamp is not None:
        for name in new.finalizers:
            if name not in old.finalizers:
                yield f"metadata.finalizers: {name} cannot be added, because the object is being deleted"


@lru_cache(maxsize=65536)
def _name_problem(name: str) -> str | None:
    if not name:
        return "is missing; every object needs a name"
    if len(name) > 253 or labels.key_problem(f"{name}/x") is not None:
        return f"{name!r} must be lower case letters, digits, '-' and '.', at most 253 characters"
    return None


@lru_cache(maxsize=65536)
def _label_problem(key: str, value: str) -> str | None:
    if (why := labels.key_problem(key)) is not None:
        return f"the key {why}"
    if (why := labels.value_problem(value)) is not None:
        return f"the value {value!r} {why}"
    return None


def _problems_of_others(thing: KubeObject) -> Iterator[str]:
    if not thing.namespaced and thing.metadata.namespace:
        yield f"metadata.namespace: a {thing.kind} is in no namespace"
    if isinstance(thing, Pod):
        if not thing.spec.containers:
            yield "spec.containers: a pod needs at least one container"
        if thing.spec.node_name and thing.spec.scheduling_gates:
            yield "spec.schedulingGates: a pod that has its node cannot wait for anything"
    if isinstance(thing, PodDisruptionBudget):
        yield from _budget_problems(thing.spec)


def _budget_problems(spec: PodDisruptionBudgetSpec) -> Iterator[str]:
    """A budget with no number in it would stop the controller that counts."""
    given = {"minAvailable": spec.min_available, "maxUnavailable": spec.max_unavailable}
    if None not in given.values():
        yield "spec: minAvailable and maxUnavailable exclude each other"
    for name, amount in given.items():
        if isinstance(amount, str) and not _SHARE.fullmatch(amount):
            yield f"spec.{name}: {amount!r} is not a number like 2, or a share from 0% to 100%"
        elif isinstance(amount, int) and amount < 0:
            yield f"spec.{name}: {amount} must not be negative"
