"""What changed between two versions of an object, in few words: for traces."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from joiner.model import codec
from joiner.model.meta import KubeObject

_SKIPPED = frozenset({"resource_version", "generation"})


@cache
def _fields(kind: type[Struct]) -> tuple[tuple[str, str], ...]:
    """The fields that are told of, as they are called and as they are written."""
    return tuple((field.name, field.written) for field in codec.fields(kind) if field.name not in _SKIPPED)


def difference(before: KubeObject | None, after: KubeObject) -> str:
    """The fields that differ; of conditions and maps which ones, and what they are now."""
    if before is None:
        return ""
    words: list[str] = []
    for name, written in _fields(type(after)):
        had, has = getattr(before, name), getattr(after, name)
        if had is not has and had != has:
            words += _parts(written, had, has)
    return " ".join(words)


def _parts(where: str, had: Any, has: Any) -> list[str]:
    if not isinstance(had, Struct) or not isinstance(has, Struct):
        return [where]
    words = []
    for name, written in _fields(type(has)):
        one, other = getattr(had, name), getattr(has, name)
        if one is not other and one != other:
            words.append(f"{where}.{written}{_detail(name, one, other)}")
    return words


def _detail(name: str, had: Any, has: Any) -> str:
    if name == "conditions":
        old = {each.type: each.status for each in had}
        moved = [f"{each.type}={each.status}" for each in has if old.get(each.type) != each.status]
        gone = sorted(set(old) - {each.type for each in has})
        return f"[{','.join([*moved, *(f'-{each}' for each in gone)])}]"
    if isinstance(had, Mapping) and isinstance(has, Mapping):
        return f"[{','.join(sorted(key for key in {**had, **has} if had.get(key) != has.get(key)))}]"
    if name == "finalizers":
        return f"[{','.join(has)}]"
    return f"={has}" if isinstance(has, str | int) else ""
