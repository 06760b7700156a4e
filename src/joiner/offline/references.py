"""References between manifests, and from manifests to files, that lead nowhere."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from joiner.admission.kinds import Kinds
from joiner.admission.problem import FieldProblem, nearest
from joiner.admission.validate import normalise
from joiner.model.codec import DecodeError, decode
from joiner.model.nodepool import NodePool
from joiner.offline.kinds import as_written, providers
from joiner.yamldoc import Document

_REFERENCE: Final = "spec.template.spec.nodeClassRef"

Identity = tuple[str, str, str]
"""Group, kind and name."""


def problems(items: Iterable[Document], kinds: Kinds) -> Iterator[tuple[Document, FieldProblem]]:
    """Every problem with the object that has it."""
    items = tuple(items)
    yield from _of_node_classes(items, kinds)
    classes = {identity for item in items if (identity := _identity(item.data))[1].endswith("NodeClass")}
    if classes:
        # Who gives no NodeClass at all has them elsewhere.
        pools = (item for item in items if kinds.find(item.data.get("apiVersion"), item.data.get("kind")) is NodePool)
        yield from ((pool, problem) for pool in pools for problem in _dangling(pool.data, classes))


def _of_node_classes(items: Iterable[Document], kinds: Kinds) -> Iterator[tuple[Document, FieldProblem]]:
    readers = {kind: provider for provider in providers() for kind in provider.node_classes()}
    for item in items:
        kind = kinds.find(item.data.get("apiVersion"), item.data.get("kind"))
        if kind not in readers:
            continue
        try:
            made = as_written(decode(normalise(item.data)[0], kind), item.source)
        except DecodeError:
            continue
        yield from ((item, problem) for problem in readers[kind].node_class_problems(made))


def _dangling(pool: dict[str, Any], classes: set[Identity]) -> Iterator[FieldProblem]:
    reference: Any = pool
    for part in _REFERENCE.split("."):
        reference = reference.get(part) if isinstance(reference, dict) else None
    if not isinstance(reference, dict):
        return
    group, kind, name = (reference.get(part) for part in ("group", "kind", "name"))
    if not (isinstance(group, str) and isinstance(kind, str) and isinstance(name, str)):
        return  # which is told already
    if (group, kind, name) not in classes:
        siblings = tuple(sorted(each[2] for each in classes if each[:2] == (group, kind)))
        message = f"there is no {kind} {name} of {group} in these files"
        others = {f"{each[1]} of {each[0]}" for each in classes if each[2] == name}
        likely = nearest(name, siblings) or nearest(f"{kind} of {group}", others)
        yield FieldProblem(
            path=f"{_REFERENCE}.name", message=message, severity="warning", allowed=siblings, nearest=likely
        )


def _identity(data: dict[str, Any]) -> Identity:
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return str(data.get("apiVersion")).rpartition("/")[0], str(data.get("kind")), str(name)
