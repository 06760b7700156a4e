"""Which objects a list asks for: by namespace, labels and the few fields that servers index."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from joiner.kube.client import Key
from joiner.kube.errors import Invalid
from joiner.model.meta import KubeObject

K = TypeVar("K", bound=KubeObject)

_FIELDS: Final[Mapping[str, Callable[[Any], str]]] = {
    "metadata.name": lambda thing: str(thing.metadata.name),
    "metadata.namespace": lambda thing: str(thing.metadata.namespace),
    "spec.nodeName": lambda thing: str(thing.spec.node_name),
    "status.phase": lambda thing: str(thing.status.phase),
    "involvedObject.name": lambda thing: str(thing.involved_object.name),
}


def chosen(
    objects: Mapping[Key, K], namespace: str, labels: Mapping[str, str] | None, fields: Mapping[str, str] | None
) -> tuple[K, ...]:
    """The objects in that namespace (or in all) that have these labels and fields, by key."""
    for path in fields or ():
        if path not in _FIELDS:
            raise Invalid(f"objects cannot be chosen by the field {path}; these are known: {', '.join(_FIELDS)}")
    return tuple(
        thing for key in sorted(objects) if _fits(thing := objects[key], namespace, labels or {}, fields or {})
    )


def _fits(thing: KubeObject, namespace: str, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    own = thing.metadata
    return (
        (not namespace or own.namespace == namespace)
        and all(own.labels.get(key) == value for key, value in labels.items())
        and all(_FIELDS[path](thing) == value for path, value in fields.items())
    )
