"""Paths like `spec.taints[0].effect`: what stands there in raw data, and which kind of value belongs there."""

import re
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def steps(path: str) -> list[str]:
    """The names, keys and numbers on the way."""
    return [bracketed or name for bracketed, name in _STEP.findall(path)]


def at(raw: Any, path: str) -> Any:
    """What stands there; nothing if the way does not lead on."""
    for step in steps(path):
        if isinstance(raw, Mapping):
            raw = raw.get(step)
        elif isinstance(raw, list) and step.isdecimal() and int(step) < len(raw):
            raw = raw[int(step)]
        else:
            return None
    return raw


def kind_at(kind: Any, path: str) -> Any:
    """The type that a value of this kind has there; anything if nobody says."""
    for step in steps(path):
        kind = _inside(kind, step)
    return kind


def _inside(kind: Any, step: str) -> Any:
    for each in alternatives(kind):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            for field in msgspec.structs.fields(each):
                if field.encode_name == step:
                    return field.type
        elif get_origin(each) in (tuple, Mapping):
            return get_args(each)[0 if get_origin(each) is tuple else 1]
    return Any


def alternatives(kind: Any) -> tuple[Any, ...]:
    """The types that a value may be of, without what is noted beside them."""
    if get_origin(kind) is Annotated:
        return alternatives(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return tuple(inner for each in get_args(kind) for inner in alternatives(each))
    return (kind,)


def allowed(kind: Any, path: str) -> tuple[str, ...]:
    """The words that may stand there, if they can be told."""
    found = alternatives(kind_at(kind, path))
    return tuple(str(word) for each in found if get_origin(each) is Literal for word in get_args(each) if word != "")
