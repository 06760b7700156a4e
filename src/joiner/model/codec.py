"""Raw JSON-like data to typed values and back, for the types the struct library does not know."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from joiner.model import quantity
from joiner.model.duration import Duration
from joiner.model.quantity import Quantity

T = TypeVar("T")

_READERS: dict[type, Callable[[Any], Any]] = {Quantity: quantity.parse, Duration: Duration.parse}


def _read(kind: type, raw: Any) -> Any:
    reader = _READERS.get(kind)
    if reader is None:
        raise NotImplementedError(kind)
    return reader(raw)


def decode(raw: Any, kind: type[T]) -> T:
    """A typed value from data that was already parsed (YAML, JSON). Fields we do not model are passed over."""
    return msgspec.convert(raw, type=kind, dec_hook=_read, strict=True)


def decode_json(data: bytes | str, kind: type[T]) -> T:
    """A typed value straight from JSON."""
    return msgspec.json.decode(data, type=kind, dec_hook=_read)
