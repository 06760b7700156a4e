"""Sets the conditions `Drifted` and `Consolidatable` on NodeClaims, which disruption reads.

`nodeclaim.disruption` looks at a claim when the claim, its pool or its NodeClass changes, and when a time comes. What else makes
a claim drift moves the generation of its pool at the provider; that is looked at every five minutes. After no answer, or
an old one, the provider is asked again until there is a new one.
"""

from collections.abc import Hashable, Iterable
from datetime import datetime, timedelta
from typing import Final

from joiner.cloud.errors import CloudError, InstanceNotFound
from joiner.controllers.indexes import using_class
from joiner.controllers.shared import Shared
from joiner.controllers.status import StatusEdit
from joiner.controllers.waits import Waits
from joiner.disruption import drift
from joiner.kube.client import Key
from joiner.kube.controller import ALONE, DONE, Backoff, Change, Reconciler, Result, Watch, soonest
from joiner.model import conditions, labels
from joiner.model.claimconditions import quiet_since
from joiner.model.duration import NEVER
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool

DRIFTED: Final = "Drifted"
CONSOLIDATABLE: Final = "Consolidatable"
SWEEP_S: Final = 300.0
YOUNG: Final = timedelta(hours=1)
"""So long a claim's type is not looked up: it was bought from the list it would be looked up in."""


class ClaimConditions(Reconciler):
    """Says on each claim whether it drifted and whether it may be consolidated."""

    name = "nodeclaim.disruption"
    backoff = Backoff(most_s=SWEEP_S)
    keys_at_start = (ALONE,)

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._provider, self._catalogs, self._vocabulary = shared.provider, shared.catalogs, shared.vocabulary
        self._managed = shared.managed
        self._waits = Waits(shared.clock)
        self._seen: dict[str, Hashable] = {}
        self.watches = (
            Watch(NodeClaim),
            Watch(NodePool, self._claims_of_pool),
            *(Watch(kind, self._claims_of_class) for kind in shared.provider.node_classes()),
        )

    def _claims_of_pool(self, change: Change) -> Iterable[Key]:
        if change.before is not None and change.after is not None:
            before, after = change.before, change.after
            if before.spec == after.spec and before.metadata.annotations == after.metadata.annotations:
                return ()
        return [Key("", each.name) for each in self._informers.by(NodeClaim, "nodepool", change.latest.name)]

    def _claims_of_class(self, change: Change) -> Iterable[Key]:
        return using_class(self._informers, NodeClaim, change)

    async def reconcile(self, key: Key) -> Result:
        """Mark one claim, or, alone, have all claims looked at whose pool's supply has changed."""
        if key == ALONE:
            self._sweep()
            return Result(SWEEP_S)
        claim = self._informers.get(NodeClaim, key.name)
        return await self._mark(claim) if claim is not None else DONE

    def _sweep(self) -> None:
        for pool in self._informers.all(NodePool):
            if not self._managed.pool(pool):
                continue
            generation = self._provider.generation(pool)
            if self._seen.get(pool.name) != generation:
                for claim in self._informers.by(NodeClaim, "nodepool", pool.name):
                    self.wake(Key("", claim.name))
            self._seen[pool.name] = generation

    async def _mark(self, claim: NodeClaim) -> Result:
        pool = self._informers.get(NodePool, claim.metadata.labels.get(labels.NODEPOOL, ""))
        if pool is None or not self._managed.claim(claim) or claim.metadata.deletion_timestamp is not None:
            return DONE
        if not conditions.is_true(claim.status.conditions, "Launched"):
            return DONE  # it has neither condition yet, and the life cycle is about to write
        now = self._clock.now()
        edit = StatusEdit(claim, now)
        quiet, problem, drifting = self._consolidatable(edit, claim, pool, now), None, DONE
        try:
            drifting = await self._drift(edit, claim, pool, now)
        except CloudError as error:
            problem = error
        await edit.write(self._client)
        if problem is not None and not isinstance(problem, InstanceNotFound):
            raise problem
        return soonest(quiet, drifting)

    async def _drift(self, edit: StatusEdit[NodeClaim], claim: NodeClaim, pool: NodePool, now: datetime) -> Result:
        if not edit.is_true("Launched"):
            edit.clear(DRIFTED)
            return DONE
        reason = drift.from_pool(claim, pool, self._vocabulary)
        born = claim.metadata.creation_timestamp or now
        old_enough = self._waits.due((claim.metadata.uid, DRIFTED), born, YOUNG)
        again = Result((old_enough - now).total_seconds()) if now < old_enough else DONE
        if not reason and now >= old_enough:
            catalog = await self._catalogs.get(pool)
            reason = drift.from_market(claim, catalog.market.raw, self._vocabulary)
            if self._catalogs.stale_since(pool.name) is not None:
                again = Result(SWEEP_S)
        if not reason:
            reason = await self._provider.drift_reason(claim)
        if reason:
            edit.true(DRIFTED, reason=reason)
        else:
            edit.clear(DRIFTED)
        return again

    def _consolidatable(self, edit: StatusEdit[NodeClaim], claim: NodeClaim, pool: NodePool, now: datetime) -> Result:
        after = pool.spec.disruption.consolidate_after
        initialized = edit.find("Initialized")
        static = pool.spec.replicas is not None
        if static or after == NEVER or initialized is None or initialized.status != "True":
            edit.clear(CONSOLIDATABLE)
            return DONE
        quiet_at = self._waits.due((claim.metadata.uid, CONSOLIDATABLE), quiet_since(claim) or now, after.timedelta)
        if now < quiet_at:
            edit.clear(CONSOLIDATABLE)
            return Result((quiet_at - now).total_seconds())
        edit.true(CONSOLIDATABLE)
        return DONE
