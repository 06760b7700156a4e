"""The second step: the machine joined the cluster, and its Node becomes what the claim says."""

from typing import Final

from joiner.controllers.lifecycle.steps import Draft, RegistrationHealth, pool_of
from joiner.kube.client import Client
from joiner.kube.informer import Informers
from joiner.model import labels, taints
from joiner.model.claimconditions import LAUNCHED, REGISTERED
from joiner.model.meta import OwnerReference, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.observe.events import Recorder
from joiner.observe.metrics import Metrics

_TRUE: Final = "true"


class Registration:
    """Matches a Node with its claim. Taints and labels are synced this once; later they belong to whoever changes them."""

    def __init__(
        self,
        *,
        client: Client,
        informers: Informers,
        recorder: Recorder,
        metrics: Metrics,
        health: RegistrationHealth,
    ) -> None:
        self._client, self._informers = client, informers
        self._recorder, self._metrics, self._health = recorder, metrics, health

    async def step(self, draft: Draft) -> None:
        """Register the node if it is there."""
        known = draft.status.find(REGISTERED)
        if not draft.status.is_true(LAUNCHED) or (known is not None and known.status != "Unknown"):
            return
        found = self._informers.by(Node, "provider-id", draft.provider_id)
        alive = [node for node in found if node.metadata.deletion_timestamp is None]
        if len(found) > 1:
            names = ", ".join(node.name for node in found)
            message = f"several nodes say they are {draft.provider_id}: {names}"
            draft.status.false(REGISTERED, reason="MultipleNodesFound", message=message)
        elif not alive:
            draft.status.unknown(REGISTERED, reason="NodeNotFound", message="no node with this machine has joined yet")
        else:
            await self._register(draft, alive[0])

    async def _register(self, draft: Draft, node: Node) -> None:
        registered = node.metadata.labels.get(labels.REGISTERED) == _TRUE
        if not registered and not taints.is_among(taints.UNREGISTERED, node.spec.taints):
            message = (
                f"node {node.name} joined without the taint {taints.UNREGISTERED.key}: pods may have come too early"
            )
            self._recorder.publish(draft.claim, "UnregisteredTaintMissing", message, warning=True)
        synced = _synced(draft, node, registered)
        if synced != node:
            await self._client.patch(node, synced, locked=True)
        draft.fields["node_name"] = node.name
        draft.status.true(REGISTERED)
        draft.afterwards.append(lambda: self._tell(draft))

    def _tell(self, draft: Draft) -> None:
        self._metrics.nodes_created_total.labels(
            nodepool=draft.labels.get(labels.NODEPOOL, ""), zone=draft.labels.get(labels.ZONE, "")
        ).inc()
        self._health.success(*pool_of(draft.claim))


def _synced(draft: Draft, node: Node, registered: bool) -> Node:
    """The node with everything the claim says.

    Taints only the first time: a startup taint that somebody has removed since must not come back.
    """
    metadata, spec = node.metadata, draft.claim.spec
    finalizers = dict.fromkeys((*metadata.finalizers, labels.TERMINATION_FINALIZER))
    owners = metadata.owner_references
    if all(owner.uid != draft.claim.metadata.uid for owner in owners):
        owners = (*owners, _owner(draft.claim))
    kept = node.spec.taints
    if not registered and metadata.labels.get(labels.DO_NOT_SYNC_TAINTS) != _TRUE:
        kept = taints.merged(kept, (*spec.taints, *spec.startup_taints))
    changed = replace(
        metadata,
        finalizers=tuple(finalizers),
        owner_references=owners,
        labels={**metadata.labels, **draft.labels, labels.REGISTERED: _TRUE},
        annotations={**metadata.annotations, **draft.annotations},
    )
    return replace(node, metadata=changed, spec=replace(node.spec, taints=taints.without(kept, (taints.UNREGISTERED,))))


def _owner(claim: NodeClaim) -> OwnerReference:
    return OwnerReference(
        api_version=claim.api_version(),
        kind=claim.kind,
        name=claim.name,
        uid=claim.metadata.uid,
        block_owner_deletion=True,
    )
