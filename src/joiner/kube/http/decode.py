"""Objects out of the API server's JSON: only the fields that we model, straight from bytes.

One object that cannot be read must not hide all others of its kind: it is left out, and told.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from joiner.kube.client import ADDED, BOOKMARK, DELETED, MODIFIED, WatchEvent
from joiner.kube.errors import KubeError
from joiner.kube.http.answers import Status, error_of
from joiner.model import codec
from joiner.model.meta import KubeObject, ObjectMeta, Value

K = TypeVar("K", bound=KubeObject)
T = TypeVar("T")
Unreadable = Callable[[str], None]
"""Told of an object that cannot be read."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
ERROR: Final = "ERROR"
_HAPPENINGS: Final = (ADDED, MODIFIED, DELETED, BOOKMARK)


class ListMeta(Value):
    """Of a list: as of when, and where the next page begins."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct, Generic[K], frozen=True):
    """A part of a list."""

    metadata: ListMeta
    items: tuple[K, ...]


class _RawPage(Value):
    metadata: ListMeta
    items: tuple[msgspec.Raw, ...] | None = None


class _Frame(msgspec.Struct, Generic[K], frozen=True):
    type: str
    object: K


class _RawFrame(Value):
    type: str
    object: msgspec.Raw


class _Said(Value):
    kind: str


@lru_cache(maxsize=256)
def _page_type(kind: Any) -> Any:
    return Page[kind]


@lru_cache(maxsize=256)
def _frame_type(kind: Any) -> Any:
    return _Frame[kind]


def thing(body: bytes, kind: type[K]) -> K:
    """One object."""
    try:
        found = codec.decode_json(body, kind)
    except codec.DecodeError as error:
        raise KubeError(f"a {kind.kind} of the API server cannot be read: {error}") from None
    if not found.metadata.name:
        raise KubeError(f"the answer is not a {kind.kind}: it has no name")
    return found


def done(body: bytes) -> None:
    """The answer to a request that gives nothing back: of whatever kind, but of one."""
    read(body, _Said)


def read(body: bytes | msgspec.Raw, form: type[T]) -> T:
    """An answer, or a part of one, that is no object of ours."""
    try:
        return msgspec.json.decode(body, type=form)
    except msgspec.MsgspecError as error:
        raise KubeError(f"the answer is not one of a Kubernetes API server: {error}") from None


def page(body: bytes, kind: type[K], unreadable: Unreadable) -> Page[K]:
    """A part of a list."""
    try:
        found: Page[K] = codec.json_decoder(_page_type(kind)).decode(body)
    except msgspec.ValidationError:  # a null where none is expected, or something unreadable in one of them
        raw = read(body, _RawPage)
        found = Page(raw.metadata, tuple(_each(raw.items or (), kind, unreadable)))
    except msgspec.MsgspecError as error:
        raise KubeError(f"a list of {kind.kind} was cut off: {error}") from None
    if not found.metadata.resource_version:  # an empty list would mean that everything has gone
        raise KubeError(f"the answer is not a list of {kind.kind}: it has no version")
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
    except msgspec.MsgspecError:
        raw = read(line, _RawFrame)
        if raw.type == ERROR:
            raise error_of(read(raw.object, Status), {}) from None
        about = _read_or_told(raw, kind, unreadable)
        if about is None:
            return None
        found = _Frame(raw.type, about)
    happening, about = found.type, found.object
    if happening == ERROR:
        raise error_of(read(read(line, _RawFrame).object, Status), {})
    metadata = about.metadata
    if happening not in _HAPPENINGS or not metadata.resource_version or not (metadata.name or happening == BOOKMARK):
        raise KubeError(f"a line of the watch of {kind.kind} is no event")
    return WatchEvent(happening, about)


def _read_or_told(raw: _RawFrame, kind: type[K], unreadable: Unreadable) -> K | None:
    """The object of an event. Of one that was deleted it is enough to know which."""
    body = bytes(raw.object)
    try:
        return codec.decode_json(body, kind)
    except (codec.DecodeError, msgspec.MsgspecError) as error:
        identity = _identity(body)
        if identity is None:
            raise KubeError(f"a line of the watch of {kind.kind} is no event") from None
        if raw.type == DELETED:
            return kind(metadata=identity)
        unreadable(f"a {kind.kind} cannot be read and is left out: {_name(body)}: {error}")
        return None


def _name(body: bytes) -> str:
    found = _identity(body)
    return "unknown" if found is None else f"{found.namespace}/{found.name}".removeprefix("/")


def _identity(body: bytes) -> ObjectMeta | None:
    try:
        return codec.decode(msgspec.json.decode(body), KubeObject).metadata
    except (codec.DecodeError, msgspec.MsgspecError):
        return None
