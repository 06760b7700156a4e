"""Paths like `spec.taints[0].effect`: the raw value at a path, and the type declared for it."""

import re
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def steps(path: str) -> list[str]:
    """The names, keys and list indexes of the path."""
    return [bracketed or name for bracketed, name in _STEP.findall(path)]


def at(raw: Any, path: str) -> Any:
    """The raw value at the path; None if the path leads nowhere."""
    for step in steps(path):
        if isinstance(raw, Mapping):
            raw = raw.get(step)
        elif isinstance(raw, list) and step.isdecimal() and int(step) < len(raw):
            raw = raw[int(step)]
        else:
            return None
    return raw


def kind_at(kind: Any, path: str) -> Any:
    """The type declared at the path in a value of this kind; `Any` if none is."""
    for step in steps(path):
        kind = _inside(kind, step)
    return kind


def _inside(kind: Any, step: str) -> Any:
    for option in alternatives(kind):
        if isinstance(option, type) and issubclass(option, msgspec.Struct):
            for field in msgspec.structs.fields(option):
                if field.encode_name == step:
                    return field.type
        elif get_origin(option) in (tuple, Mapping):
            return get_args(option)[0 if get_origin(option) is tuple else 1]
    return Any


def alternatives(kind: Any) -> tuple[Any, ...]:
    """The members of a union, without their annotations."""
    if get_origin(kind) is Annotated:
        return alternatives(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return tuple(inner for member in get_args(kind) for inner in alternatives(member))
    return (kind,)


def allowed(kind: Any, path: str) -> tuple[str, ...]:
    """The literals allowed at the path, if its type lists them."""
    literals = [option for option in alternatives(kind_at(kind, path)) if get_origin(option) is Literal]
    return tuple(str(word) for literal in literals for word in get_args(literal) if word != "")
