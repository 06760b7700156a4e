"""Whether a node is what was bought."""

from collections.abc import Iterable
from typing import Final

from joiner.controllers.shared import Shared
from joiner.controllers.status import StatusEdit
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.model import claimconditions, resources
from joiner.model.claimconditions import CONSISTENT_STATE_FOUND, INITIALIZED
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim

ENOUGH_PERCENT: Final = 90
REMIND_S: Final = 600.0


class Consistency(Reconciler):
    """Compares the capacity of initialised nodes with what their claims expected; a node that is fine is not looked at again."""

    name = "nodeclaim.consistency"

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._recorder, self._managed = shared.recorder, shared.managed
        self.watches = (Watch(NodeClaim, self._initialised), Watch(Node, self._claims_of))

    def _initialised(self, change: Change) -> Iterable[Key]:
        before, after = change.before, change.after
        if after is None or not claimconditions.holds(after, INITIALIZED):
            return ()
        return () if before is not None and claimconditions.holds(before, INITIALIZED) else (Key("", after.name),)

    def _claims_of(self, change: Change) -> Iterable[Key]:
        before, after = change.before, change.after
        if after is None or (before is not None and before.status.capacity == after.status.capacity):
            return ()
        claims = self._informers.by(NodeClaim, "provider-id", after.spec.provider_id) if after.spec.provider_id else ()
        return [Key("", claim.name) for claim in claims]

    async def reconcile(self, key: Key) -> Result:
        """Say whether the claim's node is large enough; as long as it is not, publish that again."""
        claim = self._informers.get(NodeClaim, key.name)
        if claim is None or not self._managed.claim(claim) or claimconditions.is_leaving(claim):
            return DONE
        nodes = self._informers.by(Node, "provider-id", claim.status.provider_id)
        if not claimconditions.holds(claim, INITIALIZED) or len(nodes) != 1:
            return DONE
        wrong = tuple(_too_small(claim, nodes[0]))
        edit = StatusEdit(claim, self._clock.now())
        if not wrong:
            edit.true(CONSISTENT_STATE_FOUND)
            await edit.write(self._client)
            return DONE
        message = "; ".join(wrong)
        edit.false(CONSISTENT_STATE_FOUND, reason="ConsistencyCheckFailed", message=message)
        await edit.write(self._client)
        self._recorder.publish(claim, "FailedConsistencyCheck", message, dedupe=(message,))
        return Result(REMIND_S)


def _too_small(claim: NodeClaim, node: Node) -> Iterable[str]:
    for name in sorted(claim.spec.resources.requests):
        expected, found = claim.status.capacity.get(name, 0), node.status.capacity.get(name, 0)
        if found * 100 < expected * ENOUGH_PERCENT:
            wanted = resources.text(name, expected)
            yield f"expected {wanted} of {name}, but node {node.name} has {resources.text(name, found)}"
