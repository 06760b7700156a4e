"""Garbage, both ways: machines that no claim knows of, and claims whose machine is gone."""

from datetime import timedelta
from typing import Final

from joiner.cloud.errors import CloudError, InstanceNotFound
from joiner.cloud.provider import UNLISTED_S, Instance
from joiner.controllers.shared import Shared
from joiner.kube.client import Key
from joiner.kube.controller import ALONE, Reconciler, Result
from joiner.kube.errors import NotFound
from joiner.model import claimconditions
from joiner.model.claimconditions import LAUNCHED, REGISTERED
from joiner.model.conditions import find
from joiner.model.node import Node, is_ready
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.observe.claims import count_disrupted

EVERY_S: Final = 120.0
SETTLED: Final = timedelta(seconds=30)
"""A machine younger than this is left alone. Clocks may be set back."""


class ClaimGarbageCollection(Reconciler):
    """Compares claims and machines. What it does away with was looked at once more, live, just before."""

    name = "nodeclaim.garbagecollection"
    keys_at_start = (ALONE,)

    def __init__(self, shared: Shared) -> None:
        self._client, self._informers, self._provider = shared.client, shared.informers, shared.provider
        self._clock, self._metrics, self._managed = shared.clock, shared.metrics, shared.managed
        self._sound: tuple[tuple[NodeClaim, ...], tuple[Instance, ...]] | None = None
        """What there was when every claim had its machine and every machine its claim: seen again, it still is so."""
        shared.informers.of(NodeClaim)
        shared.informers.of(Node)
        shared.informers.of(Pod)

    async def reconcile(self, key: Key) -> Result:
        """Look at everything once."""
        # Claims first: a claim that has registered by now had its machine before the list was asked for.
        everything = self._informers.all(NodeClaim)
        machines = await self._provider.list()
        if (everything, machines) == self._sound:
            return Result(EVERY_S)
        claims = [claim for claim in everything if self._managed.claim(claim)]
        running = {machine.provider_id for machine in machines if not machine.terminating}
        for claim in claims:
            if self._lost(claim, running):
                await self._delete_claim(claim)
        known = {claim.metadata.uid for claim in claims}
        for machine in machines:
            if machine.claim_uid not in known and self._settled(machine):
                await self._delete_machine(machine)
        matched = all(claim.status.provider_id in running for claim in claims)
        if matched and all(machine.claim_uid in known for machine in machines):
            self._sound = (everything, machines)
        return Result(EVERY_S)

    def _lost(self, claim: NodeClaim, running: set[str]) -> bool:
        """Whether the claim says its node joined, and neither node nor machine has been seen of late."""
        if claim.status.provider_id in running:  # first, because it is so for nearly all
            return False
        if claimconditions.is_leaving(claim) or not claimconditions.holds(claim, REGISTERED):
            return False
        launched = find(claim.status.conditions, LAUNCHED)
        since = launched.last_transition_time if launched is not None else None
        if since is not None and abs(self._clock.now() - since).total_seconds() < UNLISTED_S:
            return False
        nodes = self._informers.by(Node, "provider-id", claim.status.provider_id)
        return not any(is_ready(node) for node in nodes)

    async def _delete_claim(self, claim: NodeClaim) -> None:
        try:
            machine = await self._provider.get(claim.status.provider_id)
            if not machine.terminating:
                return
        except InstanceNotFound:
            pass
        except CloudError:
            return  # next time; the others must not wait for it
        try:
            await self._client.delete(NodeClaim, claim.name, uid=claim.metadata.uid)
        except NotFound:
            return
        pods = self._informers.by(Pod, "node", claim.status.node_name)
        count_disrupted(self._metrics, claim, "garbage_collected", pods=pods)

    def _settled(self, machine: Instance) -> bool:
        if machine.terminating or not machine.claim_uid:
            return False
        return machine.launched_at is None or abs(self._clock.now() - machine.launched_at) >= SETTLED

    async def _delete_machine(self, machine: Instance) -> None:
        """End a machine, if the server says that the claim it was bought for is gone."""
        try:
            claim = await self._client.get(NodeClaim, machine.claim_name)
            if claim.metadata.uid == machine.claim_uid:
                return
        except NotFound:
            pass
        try:
            await self._provider.delete(machine.provider_id)
        except CloudError:
            return  # gone already, or next time
