"""Raw JSON-like data to typed values and back, with hooks for the types msgspec does not know.

Reading drops fields we do not model and treats null as absent, as the API server does. Writing leaves out what has its default
value. Dropped fields survive in the cluster because objects are only ever patched; see `patch`.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TypeVar, get_args, get_origin

import msgspec

from joiner.model import quantity, resources
from joiner.model.duration import Duration
from joiner.model.meta import KubeObject
from joiner.model.microtime import MicroTime
from joiner.model.quantity import Quantity
from joiner.model.rules import Field

T = TypeVar("T")

_WHERE: Final = re.compile(r"(?s)(.*?)(?: - at `(?:key` in `)?\$(.*)`)?")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


class DecodeError(msgspec.ValidationError):
    """The data does not have the shape of the kind. Its text has the form of msgspec's own errors."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{problem} - at `$.{path}`" if path else problem)
        self.path = path
        """Like `spec.taints[0].effect`; empty for the whole document."""
        self.problem = problem


def _micro_time(raw: Any) -> MicroTime:
    return MicroTime.of(msgspec.convert(raw, type=datetime))


_READERS: dict[type, Callable[[Any], Any]] = {
    Quantity: quantity.parse,
    Duration: Duration.parse,
    MicroTime: _micro_time,
}


def _read(kind: type, raw: Any) -> Any:
    reader = _READERS.get(kind)
    if reader is None:
        raise NotImplementedError(kind)
    return reader(raw)


def decode(raw: Any, kind: type[T]) -> T:
    """A typed value from data that was already parsed (YAML, JSON)."""
    try:
        return _converted(raw, kind)
    except msgspec.ValidationError:
        pass  # perhaps only because of a null; the second attempt also gives the message
    raw = _without_nulls(raw)
    try:
        return _converted(raw, kind)
    except msgspec.ValidationError as problem:
        words, path = _parts(problem)
        raise DecodeError(_located(raw, kind, path), words) from None


def decode_json(data: bytes | str, kind: type[T]) -> T:
    """A typed value straight from JSON."""
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_read)
    except msgspec.ValidationError:
        return decode(msgspec.json.decode(data), kind)
    except msgspec.DecodeError as problem:
        raise DecodeError("", f"not JSON: {problem}") from None


@lru_cache(maxsize=512)
def json_decoder(kind: type[T]) -> "msgspec.json.Decoder[T]":
    """Reads JSON into values of that type: made once, used for every answer of the API server."""
    return msgspec.json.Decoder(kind, dec_hook=_read)


def _converted(raw: Any, kind: type[T]) -> T:
    return msgspec.convert(raw, type=kind, dec_hook=_read, strict=True)


def _without_nulls(raw: Any) -> Any:
    if isinstance(raw, Mapping):
        return {key: _without_nulls(value) for key, value in raw.items() if value is not None}
    if isinstance(raw, list | tuple):
        return [_without_nulls(item) for item in raw]
    return raw


def _parts(problem: msgspec.ValidationError) -> tuple[str, str]:
    match = _WHERE.fullmatch(str(problem))
    assert match is not None  # the pattern takes any text
    return match[1], match[2] or ""


def _located(raw: Any, kind: type, path: str) -> str:
    """The path with the key of a map filled in, which msgspec leaves out as `[...]`.

    The key is found by trying the entries of the map one by one. Of maps inside maps only the outer key is given.
    """
    outer, gap, rest = path.partition("[...]")
    if gap:
        steps = _steps(outer)
        entries = _at(raw, steps)
        key = next(
            (name for name in entries if _fails(_replaced(raw, steps, {name: entries[name]}), kind, path)), "..."
        )
        inner = rest.partition("[...]")[0]
        path = f"{outer}[{key}]{inner}" if "." in key else f"{outer}.{key}{inner}"
    return path.removeprefix(".")


def _fails(raw: Any, kind: type, path: str) -> bool:
    try:
        _converted(raw, kind)
    except msgspec.ValidationError as problem:
        return _parts(problem)[1] == path
    return False


def _steps(path: str) -> list[str | int]:
    return [name or int(index) for name, index in _STEP.findall(path)]


def _at(raw: Any, steps: list[str | int]) -> Any:
    for step in steps:
        raw = raw[step]
    return raw


def _replaced(raw: Any, steps: list[str | int], value: Any) -> Any:
    if not steps:
        return value
    first, rest = steps[0], steps[1:]
    if isinstance(raw, list):
        return [_replaced(item, rest, value) if index == first else item for index, item in enumerate(raw)]
    return {key: _replaced(item, rest, value) if key == first else item for key, item in raw.items()}


def encode(value: Any) -> Any:
    """What the API server expects: camel case, amounts, durations and times as text, defaults left out."""
    if isinstance(value, msgspec.Struct):
        return _struct(value)
    if isinstance(value, Mapping):
        return {
            key: resources.text(key, item) if isinstance(item, Quantity) else encode(item)
            for key, item in value.items()
        }
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, frozenset | set):
        return [encode(item) for item in sorted(value)]
    if isinstance(value, Duration):
        return value.text()
    if isinstance(value, Quantity):
        return quantity.text(value)
    if isinstance(value, datetime):
        precision = "microseconds" if isinstance(value, MicroTime) else "seconds"
        return value.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
    return value


def _struct(value: msgspec.Struct) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if isinstance(value, KubeObject):
        result = {"apiVersion": value.api_version(), "kind": value.kind} if value.kind else {}
    for field in fields(type(value)):
        content = getattr(value, field.name)
        if not field.is_left_out(content):
            result[field.written] = field.encoded(content)
    return result


class WrittenField(msgspec.Struct, frozen=True):
    """How a field of a value appears in JSON."""

    name: str
    written: str
    default: Any
    omits_default: bool
    holds_amounts: bool
    """A list of resources: integers in it are amounts, too, since sums of quantities are plain integers."""

    def encoded(self, content: Any) -> Any:
        """What is written for this content."""
        if self.holds_amounts and isinstance(content, Mapping):
            return {name: resources.text(name, amount) for name, amount in content.items()}
        return encode(content)

    def is_left_out(self, content: Any) -> bool:
        """Whether the field does not appear at all with this content."""
        return content is None or (self.omits_default and bool(content == self.default))


@lru_cache(maxsize=512)
def fields(kind: type[msgspec.Struct]) -> tuple[WrittenField, ...]:
    """The fields of a kind of value, in the order they are declared."""
    omits = kind.__struct_config__.omit_defaults
    return tuple(
        WrittenField(
            name=field.name,
            written=field.encode_name,
            default=field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory(),
            omits_default=omits and not field.required and not _must_be_written(field.type),
            holds_amounts=_holds_amounts(field.type),
        )
        for field in msgspec.structs.fields(kind)
    )


def _must_be_written(kind: Any) -> bool:
    """Whether the schema asks for the field even where it has its default, as for an empty list of requirements."""
    return any(isinstance(each, Field) and each.required for each in getattr(kind, "__metadata__", ()))


def _holds_amounts(kind: Any) -> bool:
    """Whether it is a mapping to quantities, however it is wrapped."""
    parts = get_args(kind)
    if get_origin(kind) is Mapping:
        return parts[1] is Quantity or Quantity in get_args(parts[1])
    return any(_holds_amounts(part) for part in parts)
