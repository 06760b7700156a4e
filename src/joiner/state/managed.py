"""Which claims and pools are ours: those whose NodeClass is of a kind the provider reads."""

from collections.abc import Iterable

from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool


class Managed:
    """The kinds of NodeClass of one provider."""

    def __init__(self, kinds: Iterable[type[KubeObject]]) -> None:
        known = tuple(kinds)
        self._kinds = frozenset((kind.group, kind.kind) for kind in known)
        self._labels = frozenset(NodeClassReference(group=kind.group, kind=kind.kind).label_key for kind in known)

    def node(self, node: Node) -> bool:
        """Whether the node came for a claim of ours: it carries the name of its NodeClass."""
        return not self._labels.isdisjoint(node.metadata.labels)

    def refers(self, reference: NodeClassReference) -> bool:
        """Whether the reference leads to a NodeClass of the provider."""
        return (reference.group, reference.kind) in self._kinds

    def claim(self, claim: NodeClaim) -> bool:
        """Whether the claim is ours."""
        return self.refers(claim.spec.node_class_ref)

    def pool(self, pool: NodePool) -> bool:
        """Whether the pool is ours."""
        return self.refers(pool.spec.template.spec.node_class_ref)
