"""The third step: the node is ready for the pods it was bought for."""

from joiner.controllers.nodeclaim.lifecycle.draft import Draft
from joiner.controllers.shared import Shared
from joiner.model import labels, taints
from joiner.model.claimconditions import INITIALIZED, REBOOTING, REGISTERED
from joiner.model.meta import replace
from joiner.model.node import Node, is_ready
from joiner.model.nodeclaim import NodeClaim


class Initialization:
    """Finds out when a node is prepared. It stays so until a reboot takes it back; while one is under way nothing is done."""

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers = shared.client, shared.informers

    async def step(self, draft: Draft) -> None:
        """Say what is still missing, or that nothing is."""
        status = draft.status
        if not status.is_true(REGISTERED) or status.is_true(INITIALIZED) or status.is_true(REBOOTING):
            return
        found = self._informers.by(Node, "provider-id", draft.provider_id)
        node = found[0] if len(found) == 1 else None
        missing = _missing(draft.claim, node)
        if missing is not None:
            status.unknown(INITIALIZED, reason=missing[0], message=missing[1])
            return
        assert node is not None
        metadata = node.metadata
        if metadata.labels.get(labels.INITIALIZED) != "true":
            marked = replace(metadata, labels={**metadata.labels, labels.INITIALIZED: "true"})
            await self._client.patch(node, replace(node, metadata=marked))
        status.true(INITIALIZED)


def _missing(claim: NodeClaim, node: Node | None) -> tuple[str, str] | None:
    """Why the node is not prepared: reason and message; nothing if it is."""
    if node is None:
        return "NodeNotFound", "the node that joined is not there"
    if node.metadata.labels.get(labels.REGISTERED) != "true":
        # The cache has the node as it was before it got its taints; what is missing from it says nothing.
        return "NodeNotReady", f"node {node.name} has not been seen registered yet"
    if not is_ready(node):
        return "NodeNotReady", f"node {node.name} is not ready"
    startup = [taint.key for taint in node.spec.taints if taints.is_among(taint, claim.spec.startup_taints)]
    if startup:
        return "StartupTaintsExist", f"their owner has to remove the startup taints {', '.join(startup)}"
    ephemeral = [taint.key for taint in node.spec.taints if taints.is_ephemeral(taint)]
    if ephemeral:
        return "KnownEphemeralTaintsExist", f"the node still has the taints {', '.join(ephemeral)}"
    allocatable = node.status.allocatable
    lacking = [n for n, amount in sorted(claim.spec.resources.requests.items()) if amount and not allocatable.get(n)]
    if lacking:
        return "ResourceNotRegistered", f"the node does not report {', '.join(lacking)} yet"
    return None
