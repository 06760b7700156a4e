"""The last step: the node leaves, the machine goes, and only then the claim.

A claim without a known machine may still have one: an answer was lost, or we were restarted before it was written
down. So the provider is asked for machines that were bought for the claim; of one that may be too young to be told of, more than
once. No machine is ended before the API server was asked for its Node: the cache may not know yet that it is open for pods.
"""

from collections.abc import Sequence
from typing import Final

from joiner.cloud.errors import InstanceNotFound, Transient
from joiner.controllers.nodeclaim.lifecycle.launch import Launch
from joiner.controllers.shared import Shared
from joiner.controllers.status import StatusEdit
from joiner.kube.controller import DONE, Result
from joiner.kube.errors import NotFound
from joiner.model import claimconditions, labels
from joiner.model.claimconditions import INSTANCE_TERMINATING, REGISTERED
from joiner.model.conditions import find
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim

RETRY_S: Final = 5.0
_TRUE: Final = "true"


class Deletion:
    """Takes a deleted claim apart, in an order that leaks nothing."""

    def __init__(self, shared: Shared, *, launch: Launch) -> None:
        self._client, self._informers, self._provider = shared.client, shared.informers, shared.provider
        self._clock, self._recorder, self._metrics = shared.clock, shared.recorder, shared.metrics
        self._launch = launch

    async def step(self, claim: NodeClaim) -> Result:
        """Take the claim one step closer to its end."""
        if labels.TERMINATION_FINALIZER not in claim.metadata.finalizers:
            return DONE
        claim = await self._with_deadline(claim)
        machines = await self._machines(claim)
        waiting = await self._nodes(claim, machines)
        if waiting is not None:
            return waiting
        wait = RETRY_S if not machines and self._may_have_one(claim) else 0.0
        for machine in machines:
            claim, after = await self._end(claim, machine)
            wait = max(wait, after)
        if wait:
            return Result(wait)
        await self._let_go(claim)
        return DONE

    async def _with_deadline(self, claim: NodeClaim) -> NodeClaim:
        """The claim with the moment at which force begins, if its drain has a limit."""
        period, metadata = claim.spec.termination_grace_period, claim.metadata
        known = metadata.annotations
        if period is None or claimconditions.TERMINATION_TIMESTAMP in known or metadata.deletion_timestamp is None:
            return claim
        moment = metadata.deletion_timestamp + period.timedelta
        text = claimconditions.written_deadline(moment)
        annotated = replace(metadata, annotations={**known, claimconditions.TERMINATION_TIMESTAMP: text})
        stored = await self._client.patch(claim, replace(claim, metadata=annotated), locked=True)
        message = f"all pods of the node will be deleted by {text}"
        self._recorder.publish(claim, "TerminationGracePeriodExpiring", message)
        return stored

    async def _nodes(self, claim: NodeClaim, machines: Sequence[str]) -> Result | None:
        """Ask every Node of the claim to go; when to look again, or nothing once none is left.

        Nodes that never registered are left alone: they hold nothing of ours.
        """
        nodes: list[Node] = []
        if claimconditions.holds(claim, REGISTERED):
            nodes = [node for each in machines for node in self._informers.by(Node, "provider-id", each)]
        unseen = not nodes and bool(machines)
        if unseen:
            nodes = await self._live(claim, machines)
        for node in nodes:
            if node.metadata.deletion_timestamp is None:
                await self._delete(node)
        if not nodes:
            return None
        return Result(RETRY_S) if unseen else DONE  # the end of a node we see wakes us

    async def _live(self, claim: NodeClaim, machines: Sequence[str]) -> list[Node]:
        """The nodes by the server's word: a cache that is behind must not cost a drain.

        A claim that does not know its node's name may have a node that was opened all the same: it has the claim's labels.
        """
        if claim.status.node_name:
            try:
                found: Sequence[Node] = (await self._client.get(Node, claim.status.node_name),)
            except NotFound:
                return []
        else:
            own = claim.metadata.labels
            alike = {key: own[key] for key in (labels.NODEPOOL, labels.INSTANCE_TYPE, labels.ZONE) if key in own}
            found = (await self._client.list(Node, labels={**alike, labels.REGISTERED: _TRUE})).items
        return [node for node in found if node.spec.provider_id in machines]

    async def _delete(self, node: Node) -> None:
        try:
            await self._client.delete(Node, node.name, uid=node.metadata.uid)
        except NotFound:
            return

    async def _machines(self, claim: NodeClaim) -> tuple[str, ...]:
        known = claim.status.provider_id or self._launch.machine_of(claim.metadata.uid)
        if known is not None:
            return (known,) if known else ()
        return tuple(each.provider_id for each in await self._provider.list() if each.claim_uid == claim.metadata.uid)

    def _may_have_one(self, claim: NodeClaim) -> bool:
        """Whether a machine may come to light of a claim that none is known of."""
        return self._launch.machine_of(claim.metadata.uid) is None and self._launch.doubts(claim)

    async def _end(self, claim: NodeClaim, machine: str) -> tuple[NodeClaim, float]:
        """Ask for the machine to go; the claim that says so, and how long to wait before asking again, zero once it is gone."""
        wait = RETRY_S
        try:
            await self._provider.delete(machine)
        except InstanceNotFound as error:
            doubtful = not error.certain and self._launch.doubts(claim)
            if doubtful and not claimconditions.holds(claim, INSTANCE_TERMINATING):
                return claim, RETRY_S  # too young to be known, rather than gone
            wait = 0.0
        except Transient as error:
            return claim, max(RETRY_S, error.after_s)
        edit = StatusEdit(claim, self._clock.now())
        edit.true(INSTANCE_TERMINATING)
        return await edit.write(self._client), wait

    async def _let_go(self, claim: NodeClaim) -> None:
        metadata = claim.metadata
        left = tuple(each for each in metadata.finalizers if each != labels.TERMINATION_FINALIZER)
        try:
            await self._client.patch(claim, replace(claim, metadata=replace(metadata, finalizers=left)), locked=True)
        except NotFound:
            return
        now, pool = self._clock.now(), metadata.labels.get(labels.NODEPOOL, "")
        self._metrics.nodeclaims_terminated_total.labels(
            nodepool=pool,
            capacity_type=metadata.labels.get(labels.CAPACITY_TYPE, ""),
            zone=metadata.labels.get(labels.ZONE, ""),
        ).inc()
        if metadata.deletion_timestamp is not None:
            took = (now - metadata.deletion_timestamp).total_seconds()
            self._metrics.nodeclaims_termination_duration_seconds.labels(nodepool=pool).observe(max(0.0, took))
        ending = find(claim.status.conditions, INSTANCE_TERMINATING)
        if ending is not None and ending.last_transition_time is not None:
            took = (now - ending.last_transition_time).total_seconds()
            self._metrics.nodeclaims_instance_termination_duration_seconds.labels(nodepool=pool).observe(max(0.0, took))
