"""The second step: the machine joined the cluster, and its Node becomes what the claim says."""

import asyncio
from typing import Final

from joiner.cloud.errors import CloudError, Transient
from joiner.cloud.registration import Answer, RegistrationHook, hooks_of
from joiner.controllers.nodeclaim.lifecycle.draft import Draft, RegistrationOutcomes, pool_of
from joiner.controllers.shared import Shared
from joiner.kube.controller import DONE, Result, soonest
from joiner.model import labels, taints
from joiner.model.claimconditions import LAUNCHED, REGISTERED
from joiner.model.meta import OwnerReference, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim

HOOK_RETRY_S: Final = 5.0
"""How soon a hook that failed is asked again."""
_TRUE: Final = "true"


class Registration:
    """Matches a Node with its claim. Taints and labels are synced this once; later they belong to users and other controllers."""

    def __init__(self, shared: Shared, *, health: RegistrationOutcomes) -> None:
        self._client, self._informers, self._hooks = shared.client, shared.informers, hooks_of(shared.provider)
        self._recorder, self._metrics, self._health = shared.recorder, shared.metrics, health

    async def step(self, draft: Draft) -> Result:
        """Register the node if it is there and nothing of the provider's keeps it."""
        known = draft.status.find(REGISTERED)
        if not draft.status.is_true(LAUNCHED) or (known is not None and known.status != "Unknown"):
            return DONE
        found = self._informers.by(Node, "provider-id", draft.provider_id)
        alive = [node for node in found if node.metadata.deletion_timestamp is None]
        if len(found) > 1:
            names = ", ".join(node.name for node in found)
            message = f"several nodes say they are {draft.provider_id}: {names}"
            draft.status.false(REGISTERED, reason="MultipleNodesFound", message=message)
        elif not alive:
            draft.status.unknown(REGISTERED, reason="NodeNotFound", message="no node with this machine has joined yet")
        else:
            return await self._register(draft, alive[0])
        return DONE

    async def _register(self, draft: Draft, node: Node) -> Result:
        registered = node.metadata.labels.get(labels.REGISTERED) == _TRUE
        if not registered and not taints.is_among(taints.UNREGISTERED, node.spec.taints):
            message = (
                f"node {node.name} joined without the taint {taints.UNREGISTERED.key}: pods may have come too early"
            )
            self._recorder.publish(draft.claim, "UnregisteredTaintMissing", message)
        if self._hooks:
            # Also when the node is open already and only the claim could not be written: it needs what they found out, too.
            node = await self._written(node, _synced(draft, node))
            waiting = await self._waiting(draft)
            if waiting != DONE:
                return waiting
        await self._written(node, _opened(_synced(draft, node)))
        draft.fields["node_name"] = node.name
        draft.status.true(REGISTERED)
        draft.afterwards.append(lambda: self._tell(draft))
        return DONE

    async def _written(self, node: Node, changed: Node) -> Node:
        return node if changed == node else await self._client.patch(node, changed, locked=True)

    async def _waiting(self, draft: Draft) -> Result:
        """Ask all hooks at once; when to ask again, and on the claim what the node waits for. What they found out is kept."""
        status = replace(draft.claim.status, provider_id=draft.provider_id)
        claim = replace(draft.claim, metadata=replace(draft.claim.metadata, labels=draft.labels), status=status)
        answers = await asyncio.gather(*(_asked(hook, claim) for hook in self._hooks))
        for answer in answers:
            draft.labels = {**draft.labels, **answer.labels}
        pending = [hook.name for hook, each in zip(self._hooks, answers, strict=True) if each.again_s is not None]
        if pending:
            message = f"the provider is not done with {', '.join(pending)}"
            draft.status.unknown(REGISTERED, reason="RegistrationHookPending", message=message)
        return soonest(*(Result(each.again_s) for each in answers))

    def _tell(self, draft: Draft) -> None:
        self._metrics.nodes_created_total.labels(
            nodepool=draft.labels.get(labels.NODEPOOL, ""), zone=draft.labels.get(labels.ZONE, "")
        ).inc()
        self._health.success(*pool_of(draft.claim))


async def _asked(hook: RegistrationHook, claim: NodeClaim) -> Answer:
    try:
        return await hook.registered(claim)
    except CloudError as error:
        return Answer(again_s=max(HOOK_RETRY_S, error.after_s if isinstance(error, Transient) else 0.0))


def _synced(draft: Draft, node: Node) -> Node:
    """The node with everything the claim says.

    Taints only the first time: a startup taint that was removed since must not come back.
    """
    metadata, spec = node.metadata, draft.claim.spec
    finalizers = dict.fromkeys((*metadata.finalizers, labels.TERMINATION_FINALIZER))
    owners, kept = metadata.owner_references, node.spec.taints
    known = any(owner.uid == draft.claim.metadata.uid for owner in owners)
    if not known:
        owners = (*owners, _owner(draft.claim))
    first = not known and metadata.labels.get(labels.REGISTERED) != _TRUE
    if first and metadata.labels.get(labels.DO_NOT_SYNC_TAINTS) != _TRUE:
        kept = taints.merged(kept, (*spec.taints, *spec.startup_taints))
    changed = replace(
        metadata,
        finalizers=tuple(finalizers),
        owner_references=owners,
        labels={**metadata.labels, **draft.labels},
        annotations={**metadata.annotations, **draft.annotations},
    )
    return replace(node, metadata=changed, spec=replace(node.spec, taints=kept))


def _opened(node: Node) -> Node:
    """The node as one that pods may come to."""
    marked = replace(node.metadata, labels={**node.metadata.labels, labels.REGISTERED: _TRUE})
    kept = taints.without(node.spec.taints, (taints.UNREGISTERED,))
    return replace(node, metadata=marked, spec=replace(node.spec, taints=kept))


def _owner(claim: NodeClaim) -> OwnerReference:
    return OwnerReference(
        api_version=claim.api_version(),
        kind=claim.kind,
        name=claim.name,
        uid=claim.metadata.uid,
        block_owner_deletion=True,
    )
