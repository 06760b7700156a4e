"""The indexes over the caches that controllers read by."""

from collections.abc import Iterable, Mapping
from typing import Final

from joiner.cloud.interruption import instance_id
from joiner.kube.client import Key
from joiner.kube.controller import Change
from joiner.kube.informer import Index, Informers
from joiner.model import labels
from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.storage import VolumeAttachment


def _some(value: str) -> Iterable[str]:
    return (value,) if value else ()


def using_class(informers: Informers, kind: type[NodePool] | type[NodeClaim], change: Change) -> list[Key]:
    """The keys of the pools, or of the claims, that refer to the NodeClass that changed."""
    node_class = change.latest
    return [Key("", each.name) for each in informers.by(kind, "node-class", f"{node_class.kind}/{node_class.name}")]


def _class_key(reference: NodeClassReference) -> str:
    return f"{reference.kind}/{reference.name}"


def _pod_node(pod: Pod) -> Iterable[str]:
    return _some(pod.spec.node_name)


def _node_provider(node: Node) -> Iterable[str]:
    return _some(node.spec.provider_id)


def _claim_provider(claim: NodeClaim) -> Iterable[str]:
    return _some(claim.status.provider_id)


def _claim_instance(claim: NodeClaim) -> Iterable[str]:
    return _some(instance_id(claim.status.provider_id))


def _claim_class(claim: NodeClaim) -> Iterable[str]:
    return (_class_key(claim.spec.node_class_ref),)


def _claim_pool(claim: NodeClaim) -> Iterable[str]:
    return _some(claim.metadata.labels.get(labels.NODEPOOL, ""))


def _pool_class(pool: NodePool) -> Iterable[str]:
    return (_class_key(pool.spec.template.spec.node_class_ref),)


def _attachment_node(attachment: VolumeAttachment) -> Iterable[str]:
    return _some(attachment.spec.node_name)


INDEXES: Final[Mapping[type[KubeObject], Mapping[str, Index]]] = {
    Pod: {"node": _pod_node},
    Node: {"provider-id": _node_provider},
    NodeClaim: {
        "provider-id": _claim_provider,
        "instance-id": _claim_instance,
        "node-class": _claim_class,
        "nodepool": _claim_pool,
    },
    NodePool: {"node-class": _pool_class},
    VolumeAttachment: {"node": _attachment_node},
}
"""Kind to the indexes of its cache, by name."""
