"""Reservations that are over: what ran in one runs on, on demand, and says so.

Only claims in a reservation that is no longer offered are looked at, and the machine is asked for afresh. The end of a
reservation makes no claim drift where on-demand is allowed.
"""

from typing import Final

from joiner.catalog.launchoptions import buyer
from joiner.cloud.errors import CloudError, InstanceNotFound
from joiner.cloud.provider import Instance
from joiner.controllers.shared import Shared
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch, own_key
from joiner.model import claimconditions, labels
from joiner.model.meta import ObjectMeta, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool

EVERY_S: Final = 60.0


class ReservationEnds(Reconciler):
    """Changes the labels of claims and nodes whose reservation has ended or was cancelled."""

    name = "nodeclaim.reservation"
    watches = (Watch(NodeClaim, lambda change: own_key(change) if _is_bought_anew(change) else ()),)

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._provider = shared.client, shared.informers, shared.provider
        self._catalogs, self._vocabulary, self._managed = shared.catalogs, shared.vocabulary, shared.managed
        self._counted: tuple[object, frozenset[str]] = (None, frozenset())
        shared.informers.of(Node)

    async def reconcile(self, key: Key) -> Result:
        """Look after a claim for as long as it is in a reservation."""
        claim = self._informers.get(NodeClaim, key.name)
        if claim is None or claimconditions.is_leaving(claim) or not self._managed.claim(claim):
            return DONE
        if not claim.status.provider_id or claim.metadata.labels.get(labels.CAPACITY_TYPE) != labels.RESERVED:
            return DONE
        try:
            if await self._is_offered(claim):
                return Result(EVERY_S)
            machine = await self._provider.get(claim.status.provider_id)
        except InstanceNotFound:
            return DONE
        except CloudError:
            return Result(EVERY_S)
        if machine.labels.get(labels.CAPACITY_TYPE) == labels.RESERVED:
            return Result(EVERY_S)
        for node in self._informers.by(Node, "provider-id", claim.status.provider_id):
            await self._client.patch(node, replace(node, metadata=self._told(node.metadata, machine)))
        # The claim last: as long as it says reserved, this is done again.
        await self._client.patch(claim, replace(claim, metadata=self._told(claim.metadata, machine)))
        return DONE

    async def _is_offered(self, claim: NodeClaim) -> bool:
        pool = self._informers.get(NodePool, claim.metadata.labels.get(labels.NODEPOOL, ""))
        payer = buyer(claim, pool)
        try:
            catalog = await self._catalogs.get(payer)
        finally:
            if payer is not pool:
                self._catalogs.forget(payer.name)
        name = self._vocabulary.reservation_id
        if self._counted[0] is not catalog.market.raw:
            offered = (o.requirements.at(name) for each in catalog.market.raw for o in each.offerings if o.reserved)
            self._counted = (catalog.market.raw, frozenset(value for each in offered for value in each.values))
        return claim.metadata.labels.get(name, "") in self._counted[1]

    def _told(self, metadata: ObjectMeta, machine: Instance) -> ObjectMeta:
        """The metadata with the machine's capacity type, and without what is known only of reserved machines."""
        ours = self._vocabulary.well_known - self._vocabulary.given - labels.WELL_KNOWN
        kept = {k: v for k, v in metadata.labels.items() if k not in ours or k in machine.labels}
        return replace(metadata, labels={**kept, labels.CAPACITY_TYPE: machine.labels[labels.CAPACITY_TYPE]})


def _is_bought_anew(change: Change) -> bool:
    before, after = change.before, change.after
    if after is None:
        return False
    if before is None or before.status.provider_id != after.status.provider_id:
        return True
    return bool(before.metadata.labels != after.metadata.labels)
