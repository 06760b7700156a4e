"""What the controllers do with a cluster's objects, kind by kind: what is asked of the API server before they start."""

from collections.abc import Iterable, Iterator
from typing import Final

from joiner.kube.http.preflight import Permission, permission
from joiner.model.capacitybuffer import CapacityBuffer
from joiner.model.clusterobjects import Event, Lease
from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.typesettings import InstanceTypeSettings

OPTIONAL: Final = frozenset({"instancetypes", "nodeoverlays", "capacitybuffers"})
"""Kinds that a cluster may lack: what they are for is then switched off, and the log says so."""

_WRITES: Final[tuple[tuple[type[KubeObject], str, tuple[str, ...]], ...]] = (
    (NodeClaim, "", ("get", "create", "patch", "delete")),
    (NodeClaim, "status", ("patch",)),
    (NodePool, "", ("get", "patch")),
    (NodePool, "status", ("patch",)),
    (Node, "", ("get", "patch", "delete")),
    (Pod, "", ("delete",)),
    (Pod, "eviction", ("create",)),
    (Event, "", ("create", "patch")),
)
_STATUS_ONLY: Final[tuple[type[KubeObject], ...]] = (NodeOverlay, InstanceTypeSettings, CapacityBuffer)
_AWS_GROUP: Final = "karpenter.k8s.aws"
"""The provider aws resolves its NodeClasses: it writes their status, a hash and a finalizer."""
_KWOK: Final = ((Node, "", ("create",)), (Node, "status", ("patch",)))
"""Its machines are Nodes."""


def needed(
    cached: Iterable[type[KubeObject]],
    *,
    provider: str,
    lease_namespace: str,
    lease_name: str = "",
    reads_only: bool = False,
    deletion_costs: bool = False,
) -> Iterator[Permission]:
    """Everything the controllers do, for the kinds they cache. `deletion_costs`: whether they write those of pods."""
    kinds = tuple(cached)
    for kind in kinds:
        yield from (permission(verb, kind) for verb in ("list", "watch"))
    if reads_only:
        return
    for kind, part, verbs in (*_WRITES, *(_KWOK if provider == "kwok" else ())):
        yield from (permission(verb, kind, part) for verb in verbs)
    yield from (permission("patch", kind, "status") for kind in _STATUS_ONLY if kind in kinds)
    if deletion_costs:
        yield from (permission(verb, Pod) for verb in ("get", "patch"))
    for kind in kinds:
        if kind.group == _AWS_GROUP:
            yield from (permission("patch", kind, part) for part in ("", "status"))
    if lease_namespace:
        yield permission("create", Lease, namespace=lease_namespace)  # no name can be demanded of what is not there yet
        yield from (permission(verb, Lease, namespace=lease_namespace, name=lease_name) for verb in ("get", "patch"))
