"""The hash of a NodePool's template: claims remember it, so that an edit of the template shows on nodes that came before it."""

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec

from joiner.model.nodepool import NodePool
from joiner.model.taints import Taint

HASH_VERSION: Final = "v3"
"""Moves when the same template would be hashed to something else."""


def nodepool_hash(pool: NodePool) -> str:
    """A decimal number that differs whenever nodes of the template would differ.

    Requirements are left out: nodes are compared with those one by one. The order of taints does not matter, and a field that
    says nothing counts as one that is not there.
    """
    template = pool.spec.template
    spec, grace = template.spec, template.spec.termination_grace_period
    said = {
        "labels": sorted(template.metadata.labels.items()),
        "annotations": sorted(template.metadata.annotations.items()),
        "taints": _as_set(spec.taints),
        "startupTaints": _as_set(spec.startup_taints),
        "nodeClassRef": [spec.node_class_ref.group, spec.node_class_ref.kind, spec.node_class_ref.name],
        "expireAfter": spec.expire_after.text() if spec.expire_after else "",
        "terminationGracePeriod": grace.text() if grace else "",
    }
    written = msgspec.json.encode({field: value for field, value in said.items() if value})
    return str(int.from_bytes(hashlib.sha256(written).digest()[:8], "big"))


def _as_set(taints: Iterable[Taint]) -> list[tuple[str, str, str]]:
    return sorted({(taint.key, taint.value, taint.effect) for taint in taints})
