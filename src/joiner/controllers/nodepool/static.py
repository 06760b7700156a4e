"""Pools that keep a number of nodes, whatever the pods need: claims are written when there are too few, deleted when too many.

Whatever changes the number of claims, the pool or its readiness wakes both controllers. Only a pool that cannot have its nodes
now, because of its limit or because nothing can be bought, is looked at again after a while.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from joiner.cloud.errors import CloudError
from joiner.controllers.provisioning.claimwriter import ClaimWriter
from joiner.controllers.shared import Shared
from joiner.disruption.cost import disturbance
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.kube.errors import NotFound
from joiner.model import claimconditions, labels, podrules
from joiner.model.claimconditions import DISRUPTION_REASON, REBOOTING
from joiner.model.conditions import READY, is_true
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.quantity import MILLI
from joiner.model.resources import NODES
from joiner.state.statenode import StateNode

RETRY_S: Final = 30.0
"""How soon it is tried again when the limit leaves no room or nothing can be bought."""


def _static(change: Change) -> Iterable[Key]:
    pool: NodePool = change.latest
    if pool.spec.replicas is not None:
        yield Key("", pool.name)


def _pool(change: Change) -> Iterable[Key]:
    name = change.latest.metadata.labels.get(labels.NODEPOOL)
    if name:
        yield Key("", name)


_WATCHES: Final = (Watch(NodePool, _static), Watch(NodeClaim, _pool))


class StaticProvisioning(Reconciler):
    """Writes the claims that are missing, as far as the limit of the pool goes; claims that are going still count against it."""

    name = "static.provisioning"
    watches = _WATCHES

    def __init__(self, shared: Shared, *, claims: ClaimWriter) -> None:
        self._informers, self._cluster, self._managed = shared.informers, shared.cluster, shared.managed
        self._catalogs, self._claims = shared.catalogs, claims

    async def reconcile(self, key: Key) -> Result:
        """Bring the pool up to its number."""
        pool = self._informers.get(NodePool, key.name)
        if pool is None or pool.spec.replicas is None or not self._usable(pool):
            return DONE
        if self._missing(pool, pool.spec.replicas) <= 0:
            return self._once_seen(pool)
        if not await self._for_sale(pool):
            return Result(RETRY_S)
        missing = self._missing(pool, pool.spec.replicas)
        allowed = self._claims.allowance(pool.name, max(missing, 0))
        limit = pool.spec.limits.get(NODES)
        granted = self._cluster.reserve(pool.name, allowed, None if limit is None else limit // MILLI)
        try:
            await self._claims.replicate(pool, granted)
        finally:
            self._cluster.release(pool.name, granted)
        return self._once_seen(pool) if granted == missing else Result(RETRY_S)

    def _once_seen(self, pool: NodePool) -> Result:
        """Done, unless claims count that may never have been written: no watch tells when they are forgotten."""
        return Result(RETRY_S) if self._cluster.has_unseen(pool.name) else DONE

    def _missing(self, pool: NodePool, replicas: int) -> int:
        claims = self._cluster.claims_of(pool.name)
        return replicas - sum(each.metadata.deletion_timestamp is None for each in claims)

    async def _for_sale(self, pool: NodePool) -> bool:
        """Whether there is anything to buy: claims that cannot be launched would only come and go."""
        try:
            catalog = await self._catalogs.get(pool)
        except CloudError:
            return False
        return bool(catalog.eligible)

    def _usable(self, pool: NodePool) -> bool:
        deleted = pool.metadata.deletion_timestamp is not None
        return self._managed.pool(pool) and not deleted and is_true(pool.status.conditions, READY)


class StaticDeprovisioning(Reconciler):
    """Deletes the claims that are too many, those first whose going disturbs the least."""

    name = "static.deprovisioning"
    watches = _WATCHES

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._cluster = shared.client, shared.informers, shared.cluster
        self._managed, self._clock, self._options = shared.managed, shared.clock, shared.options

    async def reconcile(self, key: Key) -> Result:
        """Bring the pool down to its number."""
        pool = self._informers.get(NodePool, key.name)
        if pool is None or pool.spec.replicas is None or not self._managed.pool(pool):
            return DONE
        if pool.metadata.deletion_timestamp is not None:
            return DONE  # all of its claims go with it
        staying = [
            each
            for each in self._cluster.claims_of(pool.name)
            if each.metadata.deletion_timestamp is None
            and not self._cluster.is_marked(each.name)
            and not _is_being_replaced(each)
        ]
        excess = len(staying) - pool.spec.replicas
        if excess <= 0:
            return DONE
        for claim in self._least_missed(staying)[:excess]:
            # Marked first: until a watch tells of the deletion the claim must not be counted as one that stays.
            self._cluster.mark_for_deletion(claim.name)
            try:
                await self._client.delete(NodeClaim, claim.name, uid=claim.metadata.uid)
            except NotFound:
                continue
            except Exception:
                self._cluster.unmark_for_deletion(claim.name)
                raise
        return DONE

    def _least_missed(self, claims: Iterable[NodeClaim]) -> list[NodeClaim]:
        now = self._clock.now()
        nodes = {each.claim.name: each for each in self._cluster.snapshot(now).nodes if each.claim is not None}
        return sorted(claims, key=lambda claim: (*self._weight(claim, nodes.get(claim.name), now), claim.name))

    def _weight(self, claim: NodeClaim, node: StateNode | None, now: datetime) -> tuple[bool, bool, bool, float]:
        if node is None or not node.launched:
            return (False, False, False, 0.0)
        protected = any(podrules.is_active(pod) and podrules.must_not_be_disrupted(pod, now) for pod in node.pods)
        pods = [pod for pod in node.pods if not podrules.is_daemon(pod)]
        ours = self._options.gates.pod_deletion_cost_management
        cost = disturbance(pods, claim, now, deletion_cost_is_ours=ours)
        return (True, bool(pods) or protected, protected, cost)


def _is_being_replaced(claim: NodeClaim) -> bool:
    """Whether a command of disruption is about to remove the claim and writes another one for it."""
    return claimconditions.holds(claim, DISRUPTION_REASON) and not claimconditions.holds(claim, REBOOTING)
