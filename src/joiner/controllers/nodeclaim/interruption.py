"""The interruption controller: a claim is deleted when the cloud says that it will take the machine, not when it has.

The time between notice and end is used for a drain: pods are evicted with their grace periods and budgets, and their new
places are bought while the machine still runs.
"""

from typing import Final

from joiner.cloud.interruption import ACTIONS, Notice, NoticeQueue, instance_id
from joiner.controllers.deadlines import hurried
from joiner.controllers.shared import Shared
from joiner.kube.client import Key
from joiner.kube.controller import ALONE, Reconciler, Result
from joiner.kube.errors import NotFound
from joiner.model import claimconditions
from joiner.model.duration import Duration
from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.observe.claims import count_disrupted

EVENTS: Final = {
    "spot_interrupted": ("SpotInterrupted", "the cloud takes the spot machine back"),
    "rebalance_recommendation": ("SpotRebalanceRecommendation", "the spot machine is likely to be taken back"),
    "scheduled_change": ("InstanceUnhealthy", "the cloud has planned maintenance of the machine"),
    "event_status": ("InstanceUnhealthy", "the cloud has planned maintenance of the machine"),
    "instance_status": ("InstanceUnhealthy", "the machine does not pass the cloud's check of its system"),
    "system_status": ("InstanceUnhealthy", "the hardware of the machine does not pass the cloud's check"),
    "instance_stopped": ("InstanceStopping", "the machine is being stopped"),
    "instance_terminated": ("InstanceTerminating", "the machine is being terminated"),
    "capacity_reservation_interrupted": (
        "CapacityReservationInterrupted",
        "the cloud takes the machine back from its capacity reservation",
    ),
}
"""Kind of notice to the event that its claim and Node get, and its message."""


class Interruption(Reconciler):
    """Receives notices, one batch after the other, and deletes the claims that they are about."""

    name = "interruption"
    keys_at_start = (ALONE,)

    def __init__(self, shared: Shared, *, notices: NoticeQueue) -> None:
        self._client, self._informers, self._clock = shared.client, shared.informers, shared.clock
        self._recorder, self._metrics, self._managed = shared.recorder, shared.metrics, shared.managed
        self._notices = notices
        shared.informers.of(NodeClaim)
        shared.informers.of(Node)
        shared.informers.of(Pod)

    async def reconcile(self, key: Key) -> Result:
        """Wait for notices and handle them. One that fails stops no other: it is not acknowledged, so it comes again."""
        failure: Exception | None = None
        for notice in await self._notices.receive():
            self._metrics.interruption_received_messages_total.labels(notice.kind).inc()
            try:
                await self._handle(notice)
            except Exception as error:  # raised below, when the others are handled
                failure = failure or error
        if failure is not None:
            raise failure
        return Result(0.0)

    async def _handle(self, notice: Notice) -> None:
        for claim in self._claims(notice):
            await self._act(notice, claim)
        await self._notices.acknowledge(notice)
        self._metrics.interruption_deleted_messages_total.inc()
        if notice.sent_at is not None:
            took = max(0.0, (self._clock.now() - notice.sent_at).total_seconds())
            self._metrics.interruption_message_queue_duration_seconds.observe(took)

    def _claims(self, notice: Notice) -> tuple[NodeClaim, ...]:
        """The claims of the notice's machines, each once."""
        found = {
            claim.metadata.uid: claim
            for named in notice.instances
            for claim in self._informers.by(NodeClaim, "instance-id", instance_id(named))
            if named in (claim.status.provider_id, instance_id(claim.status.provider_id)) and self._managed.claim(claim)
        }
        return tuple(found.values())

    async def _act(self, notice: Notice, claim: NodeClaim) -> None:
        action = ACTIONS[notice.kind]
        if action == "ignore":
            return
        nodes = self._informers.by(Node, "provider-id", claim.status.provider_id)
        self._publish(*EVENTS[notice.kind], claim, *nodes)
        if action == "tell":
            return
        self._notices.mark_unavailable(notice, claim)
        if claimconditions.is_leaving(claim):
            return
        if await self._delete(claim, forced=action == "force"):
            self._publish("TerminatingOnInterruption", f"deleted because of {notice.kind}", claim, *nodes)
            pods = self._informers.by(Pod, "node", claim.status.node_name)
            count_disrupted(self._metrics, claim, notice.kind, pods=pods)

    async def _delete(self, claim: NodeClaim, *, forced: bool) -> bool:
        try:
            if forced:
                claim = await hurried(self._client, claim, Duration(0), self._clock.now())
            await self._client.delete(NodeClaim, claim.name, uid=claim.metadata.uid)
        except NotFound:
            return False
        return True

    def _publish(self, reason: str, message: str, *things: KubeObject) -> None:
        for thing in things:
            self._recorder.publish(thing, reason, f"{thing.kind} {thing.name}: {message}")
