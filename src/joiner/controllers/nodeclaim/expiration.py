"""The end of old claims."""

from joiner.controllers.shared import Shared
from joiner.controllers.waits import Waits
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Reconciler, Result, Watch, own_key
from joiner.kube.errors import NotFound
from joiner.model import claimconditions
from joiner.model.duration import NEVER
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.observe.claims import count_disrupted


class Expiration(Reconciler):
    """Deletes claims that are older than they may be. No budget is asked before; the drain that follows is as gentle as any.

    A claim is looked at when it is first seen, and then when its time comes: how old it may become never changes.
    """

    name = "nodeclaim.expiration"
    watches = (Watch(NodeClaim, lambda change: own_key(change) if change.before is None else ()),)

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._waits = shared.client, shared.informers, Waits(shared.clock)
        self._metrics, self._managed = shared.metrics, shared.managed
        shared.informers.of(Pod)

    async def reconcile(self, key: Key) -> Result:
        """Delete the claim, or come back when it is old enough."""
        claim = self._informers.get(NodeClaim, key.name)
        if claim is None or claimconditions.is_leaving(claim) or not self._managed.claim(claim):
            return DONE
        born, most = claim.metadata.creation_timestamp, claim.spec.expire_after
        if born is None or most == NEVER:
            return DONE
        left = self._waits.left(claim.metadata.uid, born, most.timedelta)
        if left > 0:
            return Result(left)
        try:
            await self._client.delete(NodeClaim, claim.name, uid=claim.metadata.uid)
        except NotFound:
            return DONE
        pods = self._informers.by(Pod, "node", claim.status.node_name)
        count_disrupted(self._metrics, claim, "expired", pods=pods)
        return DONE
