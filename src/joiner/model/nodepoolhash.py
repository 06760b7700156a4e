"""The hash of a NodePool's template: claims carry it, so that nodes from before an edit of the template are seen to have drifted.

It is Karpenter's own, bit for bit, so that no node drifts when Joiner takes over from Karpenter or the other way round. FNV-1
over 64 bits; maps, structs and lists are sums in which order does not matter; a struct hashes its type's name and its non-empty
fields.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Final

from joiner.model import labels
from joiner.model.duration import NEVER, Duration
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool
from joiner.model.taints import Taint

HASH_VERSION: Final = "v3"
"""Changes when the same template would be hashed to something else."""

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_BITS: Final = (1 << 64) - 1

Field = tuple[str, int | None]
"""The name of a field and the hash of its value; None if it is left out."""


def nodepool_hash(pool: NodePool) -> str:
    """A decimal number that differs whenever nodes of the template would differ.

    Requirements are left out: nodes are compared with those one by one. A list that is written but empty counts otherwise than
    one that is not written, which a decoded object cannot tell; so the annotation is kept if it is the hash of any spelling.
    """
    spellings, annotations = _spellings(pool), pool.metadata.annotations
    plain, annotated = next(spellings), annotations.get(labels.NODEPOOL_HASH)
    if annotated in (None, plain) or annotations.get(labels.NODEPOOL_HASH_VERSION) != HASH_VERSION:
        return plain
    return next((spelling for spelling in spellings if spelling == annotated), plain)


def _spellings(pool: NodePool) -> Iterator[str]:
    """The hash of the template, first with its empty parts left out, then in every way in which they may be written."""
    metadata, spec = pool.spec.template.metadata, pool.spec.template.spec
    parts = [_map(metadata.labels), _map(metadata.annotations), _set(spec.taints), _set(spec.startup_taints)]
    values = (metadata.labels, metadata.annotations, spec.taints, spec.startup_taints)
    grace, expiry = spec.termination_grace_period, spec.expire_after
    rest = (
        ("NodeClassRef", _reference(spec.node_class_ref)),
        ("TerminationGracePeriod", None if grace is None else _duration("Duration", grace, written=grace != 0)),
        ("ExpireAfter", None if expiry == NEVER else _duration("NillableDuration", expiry)),
    )
    for left_out in product(*((False,) if value else (True, False) for value in values)):
        label_hash, annotation_hash, taints, startup = (
            None if out else part for part, out in zip(parts, left_out, strict=True)
        )
        spec_hash = _struct("NodeClaimTemplateSpec", ("Taints", taints), ("StartupTaints", startup), *rest)
        written = label_hash is not None or annotation_hash is not None
        meta = _struct("ObjectMeta", ("Labels", label_hash), ("Annotations", annotation_hash)) if written else None
        yield str(_struct("NodeClaimTemplate", ("ObjectMeta", meta), ("Spec", spec_hash)))


def _reference(reference: NodeClassReference) -> int:
    fields = (("Kind", reference.kind), ("Name", reference.name), ("Group", reference.group))
    return _struct("NodeClassReference", *_texts(fields))


def _duration(kind: str, length: Duration, *, written: bool = True) -> int:
    amount = _fnv((int(length) & _BITS).to_bytes(8, "little"))
    return _struct(kind, ("Duration", amount if written else None))


def _taint(taint: Taint) -> int:
    return _struct("Taint", *_texts((("Key", taint.key), ("Value", taint.value), ("Effect", taint.effect))))


def _texts(fields: Iterable[tuple[str, str]]) -> Iterator[Field]:
    return ((name, _text(value) if value else None) for name, value in fields)


def _struct(kind: str, *fields: Field) -> int:
    total = _text(kind)
    for name, value in fields:
        if value is not None:
            total = _numbers(total ^ _numbers(_text(name), value))
    return total


def _map(entries: Mapping[str, str]) -> int:
    total = 0
    for key, value in entries.items():
        total ^= _numbers(_text(key), _text(value))
    return _numbers(total)


def _set(taints: Iterable[Taint]) -> int:
    total = 0
    for taint in taints:
        total ^= _taint(taint)
    return total


def _numbers(*values: int) -> int:
    return _fnv(b"".join(value.to_bytes(8, "little") for value in values))


def _text(value: str) -> int:
    return _fnv(value.encode())


def _fnv(data: bytes) -> int:
    total = _OFFSET
    for byte in data:
        total = (total * _PRIME & _BITS) ^ byte
    return total
