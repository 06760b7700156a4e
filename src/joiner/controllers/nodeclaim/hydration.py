"""Claims and nodes of older releases get the label that names their NodeClass."""

from collections.abc import Iterable
from typing import Any

from joiner.controllers.shared import Shared
from joiner.kube.client import Client, Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch, own_key
from joiner.model import claimconditions
from joiner.model.claimconditions import REGISTERED
from joiner.model.meta import KubeObject, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim


class ClaimHydration(Reconciler):
    """Labels claims."""

    name = "nodeclaim.hydration"
    watches = (Watch(NodeClaim, lambda change: own_key(change) if _is_labelled_anew(change) else ()),)

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._managed = shared.client, shared.informers, shared.managed

    async def reconcile(self, key: Key) -> Result:
        """Add the label if it is missing."""
        claim = self._informers.get(NodeClaim, key.name)
        if claim is not None and self._managed.claim(claim) and not claimconditions.is_leaving(claim):
            await _label(self._client, claim, claim)
        return DONE


class NodeHydration(Reconciler):
    """Labels nodes that have registered; before, that is the business of registration."""

    name = "node.hydration"

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._managed = shared.client, shared.informers, shared.managed
        self.watches = (
            Watch(Node, lambda change: own_key(change) if _is_labelled_anew(change) else ()),
            Watch(NodeClaim, self._node_of),
        )

    def _node_of(self, change: Change) -> Iterable[Key]:
        name = change.latest.status.node_name
        known = change.before.status.node_name if change.before is not None else ""
        return (Key("", name),) if name and name != known else ()

    async def reconcile(self, key: Key) -> Result:
        """Add the label if it is missing."""
        node = self._informers.get(Node, key.name)
        if node is None or not node.spec.provider_id or node.metadata.deletion_timestamp is not None:
            return DONE
        claims = self._informers.by(NodeClaim, "provider-id", node.spec.provider_id)
        if len(claims) == 1 and self._managed.claim(claims[0]) and claimconditions.holds(claims[0], REGISTERED):
            await _label(self._client, node, claims[0])
        return DONE


def _is_labelled_anew(change: Change) -> bool:
    before, after = change.before, change.after
    return after is not None and (before is None or before.metadata.labels != after.metadata.labels)


async def _label(client: Client, thing: KubeObject, claim: NodeClaim) -> None:
    reference, metadata = claim.spec.node_class_ref, thing.metadata
    if metadata.labels.get(reference.label_key) == reference.name:
        return
    labelled = replace(metadata, labels={**metadata.labels, reference.label_key: reference.name})
    changed: Any = replace(thing, metadata=labelled)
    await client.patch(thing, changed)
