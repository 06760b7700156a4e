"""JSON merge patches (RFC 7386): how objects are changed, so that fields we do not model survive.

A merge patch replaces a list as a whole. Entries of a list that we read only in part would lose the rest, so `changes` carries
entries over from the live document wherever they are the same ones.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from joiner.model import codec
from joiner.model.meta import KubeObject

Document = dict[str, Any]

_IDENTITIES: Final = (("uid",), ("type",), ("key", "effect"), ("name",))
"""The fields that identify an entry of a list: owners, conditions, taints, named entries."""
_ABSENT: Final = object()


def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> Document:
    """The smallest patch that makes `after` of `before`; empty if nothing changed. Neither may contain nulls."""
    patch: Document = {key: None for key in before if key not in after}
    for key, wanted in after.items():
        had = before.get(key, _ABSENT)
        if isinstance(had, Mapping) and isinstance(wanted, Mapping):
            inner = diff(had, wanted)
            if inner:
                patch[key] = inner
        elif not _same(had, wanted):
            patch[key] = wanted
    return patch


def _same(left: Any, right: Any) -> bool:
    """Equality that tells true from 1, as JSON does; numbers of equal value are equal."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def apply(patch: Mapping[str, Any], document: Any) -> Document:
    """The document after the patch, as an API server would have it."""
    result: Document = dict(document) if isinstance(document, Mapping) else {}
    for key, wanted in patch.items():
        if wanted is None:
            result.pop(key, None)
        elif isinstance(wanted, Mapping):
            result[key] = apply(wanted, result.get(key))
        else:
            result[key] = wanted
    return result


def changes(before: KubeObject, after: KubeObject, live: Mapping[str, Any] | None = None) -> Document:
    """The patch with the fields that differ between the two, and nothing else.

    `live` is the raw document that `before` was read from. Give it whenever a list may have changed: entries of lists then keep
    the fields we do not model.
    """
    return _fields_changed(before, after, live)


def _fields_changed(before: Struct, after: Struct, live: Any) -> Document:
    """Field by field and never a nested object as a whole: one that is empty to us may hold fields we do not model."""
    patch: Document = {}
    for field in codec.fields(type(before)):
        had, wanted = getattr(before, field.name), getattr(after, field.name)
        if had == wanted:
            continue
        raw = live.get(field.written) if isinstance(live, Mapping) else None
        if isinstance(had, Struct) and isinstance(wanted, Struct):
            patch[field.written] = _fields_changed(had, wanted, raw)
        elif isinstance(had, Mapping) and isinstance(wanted, Mapping):
            patch[field.written] = diff(field.encoded(had), field.encoded(wanted))
        elif field.is_left_out(wanted):
            patch[field.written] = None
        elif isinstance(had, tuple) and isinstance(wanted, tuple):
            patch[field.written] = [_entry(item, had, raw) for item in wanted]
        else:
            patch[field.written] = field.encoded(wanted)
    return patch


def _entry(item: Any, had: tuple[Any, ...], live: Any) -> Any:
    if isinstance(item, Struct) and isinstance(live, list) and len(live) == len(had):
        for old, raw in zip(had, live, strict=True):
            if old == item:
                return raw
        for old, raw in zip(had, live, strict=True):
            if _is_same_entry(item, old):
                return apply(_fields_changed(old, item, raw), raw)
    return codec.encode(item)


def _is_same_entry(left: Struct, right: Struct) -> bool:
    for names in _IDENTITIES:
        if all(hasattr(left, name) for name in names):
            return all(getattr(left, name) == getattr(right, name) for name in names)
    return False
