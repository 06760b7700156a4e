"""A change brought into a stored object, field by field: what a JSON merge patch does, without the JSON.

Maps are merged key by key, lists are replaced as a whole, and moments lose what the wire would not carry.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, get_args

from msgspec import Struct, structs

from joiner.model import codec
from joiner.model.microtime import MicroTime

S = TypeVar("S", bound=Struct)


def merged(stored: S, before: S, after: S, names: frozenset[str] | None = None) -> S:
    """The stored value with everything that differs between the other two. The same object when nothing does.

    With names, only these fields are looked at.
    """
    if before is after:
        return stored
    changes = {}
    for field in _chosen(type(after), names):
        had, wanted = getattr(before, field.name), getattr(after, field.name)
        if had is not wanted and had != wanted:
            changes[field.name] = _field(field, getattr(stored, field.name), had, wanted)
    return structs.replace(stored, **changes) if changes else stored


@cache
def _chosen(kind: type[Struct], names: frozenset[str] | None) -> tuple[codec.WrittenField, ...]:
    return tuple(field for field in codec.fields(kind) if names is None or field.name in names)


def _field(field: codec.WrittenField, stored: Any, had: Any, wanted: Any) -> Any:
    if isinstance(had, Struct) and isinstance(wanted, Struct):
        return merged(type(wanted)() if stored is None else stored, had, wanted)
    if isinstance(had, Mapping) and isinstance(wanted, Mapping):
        kept = {key: value for key, value in (stored or {}).items() if key in wanted or key not in had}
        kept.update((key, as_written(value)) for key, value in wanted.items() if key not in had or had[key] != value)
        return kept
    if field.is_left_out(wanted):
        return field.default
    return _laid_over(stored, wanted)


def _laid_over(stored: Any, wanted: Any) -> Any:
    """A part that was not there before: what it says is added to what another client may have written meanwhile."""
    if isinstance(wanted, Struct) and isinstance(stored, Struct):
        said = {
            field.name: _laid_over(getattr(stored, field.name), content)
            for field in codec.fields(type(wanted))
            if not field.is_left_out(content := getattr(wanted, field.name))
        }
        return structs.replace(stored, **said)
    if isinstance(wanted, Mapping) and isinstance(stored, Mapping):
        return {**stored, **{key: as_written(value) for key, value in wanted.items()}}
    return as_written(wanted)


def as_written(value: Any) -> Any:
    """The value as it comes back from the wire: moments in whole seconds, unless their kind carries more."""
    if isinstance(value, datetime):
        return value if isinstance(value, MicroTime) or not value.microsecond else value.replace(microsecond=0)
    if isinstance(value, tuple):
        return _same_or(value, tuple(as_written(each) for each in value))
    if isinstance(value, Struct):
        changes = {}
        for name in _timed(type(value)):
            content = getattr(value, name)
            written = as_written(content)
            if written is not content:
                changes[name] = written
        return structs.replace(value, **changes) if changes else value
    return value


def _same_or(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    return new if any(one is not other for one, other in zip(old, new, strict=True)) else old


@cache
def _timed(kind: type[Struct]) -> tuple[str, ...]:
    """The fields of a kind of value in which there may be moments; most have none, and need not be looked at."""
    return tuple(field.name for field in structs.fields(kind) if _may_hold_moments(field.type))


def _may_hold_moments(kind: Any) -> bool:
    if isinstance(kind, type) and issubclass(kind, Struct):
        return bool(_timed(kind))
    return kind is datetime or any(_may_hold_moments(part) for part in get_args(kind))
