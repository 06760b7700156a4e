"""Objects out of the API server's JSON: only the fields that we model, straight from bytes.

One object that cannot be read must not hide all others of its kind: it is left out, and told.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from joiner.kube.client import WatchEvent
from joiner.kube.errors import KubeError
from joiner.kube.http.answers import Status, error_of
from joiner.model import codec
from joiner.model.meta import KubeObject, Value

K = TypeVar("K", bound=KubeObject)
Unreadable = Callable[[str], None]
"""Told of an object that cannot be read."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
ERROR: Final = "ERROR"


class ListMeta(Value):
    """Of a list: as of when, and where the next page begins."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct, Generic[K], frozen=True):
    """A part of a list."""

    metadata: ListMeta
    items: tuple[K, ...]


class _RawPage(Value):
    metadata: ListMeta = ListMeta()
    items: tuple[msgspec.Raw, ...] | None = None


class _Frame(msgspec.Struct, Generic[K], frozen=True):
    type: str
    object: K


class _RawFrame(Value):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw()


@lru_cache(maxsize=256)
def _page_type(kind: Any) -> Any:
    return Page[kind]


@lru_cache(maxsize=256)
def _frame_type(kind: Any) -> Any:
    return _Frame[kind]


def thing(body: bytes, kind: type[K]) -> K:
    """One object."""
    try:
        return codec.decode_json(body, kind)
    except codec.DecodeError as error:
        raise KubeError(f"a {kind.kind} of the API server cannot be read: {error}") from None


def page(body: bytes, kind: type[K], unreadable: Unreadable) -> Page[K]:
    """A part of a list."""
    try:
        found: Page[K] = codec.json_decoder(_page_type(kind)).decode(body)
    except msgspec.ValidationError:  # a null where none is expected, or something unreadable in one of them
        raw = msgspec.json.decode(body, type=_RawPage)
        return Page(raw.metadata, tuple(_each(raw.items or (), kind, unreadable)))
    except msgspec.DecodeError as error:
        raise KubeError(f"a list of {kind.kind} was cut off: {error}") from None
    return found


def _each(items: tuple[msgspec.Raw, ...], kind: type[K], unreadable: Unreadable) -> list[K]:
    found: list[K] = []
    for raw in items:
        try:
            found.append(codec.decode_json(bytes(raw), kind))
        except codec.DecodeError as error:
            unreadable(f"a {kind.kind} cannot be read and is left out: {_name(bytes(raw))}: {error}")
    return found


def frame(line: bytes, kind: type[K], unreadable: Unreadable) -> WatchEvent[K] | None:
    """One event of a watch; None for an object that cannot be read. Raises what the server says is wrong with the watch."""
    try:
        found: _Frame[K] = codec.json_decoder(_frame_type(kind)).decode(line)
        happening, about = found.type, found.object
    except msgspec.ValidationError:
        raw = msgspec.json.decode(line, type=_RawFrame)
        happening = raw.type
        if happening != ERROR:
            try:
                about = codec.decode_json(bytes(raw.object), kind)
            except codec.DecodeError as error:
                unreadable(f"a {kind.kind} cannot be read and is left out: {_name(bytes(raw.object))}: {error}")
                return None
    except msgspec.DecodeError as error:
        raise KubeError(f"a watch of {kind.kind} was cut off: {error}") from None
    if happening == ERROR:
        said = msgspec.json.decode(line, type=_RawFrame)
        raise error_of(msgspec.json.decode(said.object, type=Status), {})
    return WatchEvent(happening, about)  # type: ignore[arg-type]


def _name(body: bytes) -> str:
    try:
        named = codec.decode(msgspec.json.decode(body), KubeObject)
    except (codec.DecodeError, msgspec.MsgspecError):
        return "unknown"
    return f"{named.metadata.namespace}/{named.name}".removeprefix("/")
