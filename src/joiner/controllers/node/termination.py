"""The end of a node: no new pod comes, pods leave, volumes are detached, the machine goes, and only then the Node object.

    deleted ─ tainted ─ drained ─ volumes detached ─ machine gone ─ finalizer removed
                 └── no kubelet answers and the machine is gone already ──┘

Every step can be repeated: what was done is read off the objects and the provider, never remembered.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, Protocol

from joiner.cloud.errors import InstanceNotFound, Transient
from joiner.cloud.provider import UNLISTED_S
from joiner.controllers.shared import Shared
from joiner.controllers.status import StatusEdit
from joiner.controllers.waits import Waits
from joiner.disruption import drain
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch, soonest
from joiner.kube.errors import NotFound
from joiner.model import claimconditions, labels, podrules, taints
from joiner.model.conditions import find
from joiner.model.meta import replace
from joiner.model.node import Node, is_ready
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.model.storage import PersistentVolumeClaim, VolumeAttachment
from joiner.state.storage import claims_of

INSTANCE_S: Final = 5.0
"""How often the provider is asked whether the machine is gone."""
SILENT_S: Final = 10.0
"""How often it is asked about a machine whose kubelet no longer answers."""
BEHIND_S: Final = 1.0
"""How long the cache is given to hear of pods that are there."""
MOVING_S: Final = 60.0
"""How often pods that should be leaving are asked for, though the eviction queue does not give up."""
FORCEFUL: Final = "Forceful Termination"


class Evictions(Protocol):
    """Who gets pods to leave."""

    def ask(self, pod: Pod, *, node: str, reason: str, deadline: datetime | None) -> None:
        """Have the pod leave its node."""
        ...


class Termination(Reconciler):
    """Lets a deleted node of ours end in order. Woken by the node, its claim, its pods and its volumes."""

    name = "node.termination"
    workers = 100

    def __init__(self, shared: Shared, *, evictions: Evictions) -> None:
        self._client, self._informers, self._provider = shared.client, shared.informers, shared.provider
        self._clock, self._recorder, self._metrics = shared.clock, shared.recorder, shared.metrics
        self._evictions, self._managed = evictions, shared.managed
        self._waits = Waits(shared.clock)
        shared.informers.of(PersistentVolumeClaim)
        self.watches = (
            Watch(Node, lambda change: self._if_leaving(change.latest.name)),
            Watch(NodeClaim, self._node_of_claim),
            Watch(Pod, lambda change: self._if_leaving(change.latest.spec.node_name)),
            Watch(VolumeAttachment, lambda change: self._if_leaving(change.latest.spec.node_name)),
        )

    def _node_of_claim(self, change: Change) -> Iterable[Key]:
        return self._if_leaving(change.latest.status.node_name)

    def _if_leaving(self, name: str) -> Iterable[Key]:
        node = self._informers.get(Node, name) if name else None
        return (Key("", name),) if node is not None and node.metadata.deletion_timestamp is not None else ()

    async def reconcile(self, key: Key) -> Result:
        """Take a deleted node one step further."""
        node = self._informers.get(Node, key.name)
        if node is None or node.metadata.deletion_timestamp is None:
            return DONE
        if labels.TERMINATION_FINALIZER not in node.metadata.finalizers:
            return DONE
        claim = await self._claim_of(node)
        if claim is None and not self._managed.node(node):
            return DONE
        if claim is not None and not claimconditions.is_leaving(claim):
            await self._delete_claim(claim)
        if not is_ready(node) and await self._machine_is_gone(node):
            await self._let_go(node)
            return DONE
        return soonest(await self._step(node, claim), DONE if is_ready(node) else Result(SILENT_S))

    async def _claim_of(self, node: Node) -> NodeClaim | None:
        """The claim the node came for. Where several say so, it is not known, and none is believed."""
        found = self._informers.by(NodeClaim, "provider-id", node.spec.provider_id) if node.spec.provider_id else ()
        if not found:
            found = await self._live_claim(node)
        return found[0] if len(found) == 1 and self._managed.claim(found[0]) else None

    async def _live_claim(self, node: Node) -> tuple[NodeClaim, ...]:
        """The node's owner by the server's word: a cache that is behind must not cost a machine."""
        for owner in node.metadata.owner_references:
            if owner.kind == NodeClaim.kind:
                try:
                    claim = await self._client.get(NodeClaim, owner.name)
                except NotFound:
                    return ()
                return (claim,) if claim.metadata.uid == owner.uid else ()
        return ()

    async def _delete_claim(self, claim: NodeClaim) -> None:
        try:
            await self._client.delete(NodeClaim, claim.name, uid=claim.metadata.uid)
        except NotFound:
            return

    async def _machine_is_gone(self, node: Node) -> bool:
        if _is_young(node, self._clock.now()):
            return False
        try:
            await self._provider.get(node.spec.provider_id)
        except InstanceNotFound:
            return True
        except Transient:
            return False
        return False

    async def _step(self, node: Node, claim: NodeClaim | None) -> Result:
        node = await self._close(node)
        deadline, published = self._deadline(claim), None if claim is None else claimconditions.deadline(claim)
        if published is not None:
            message = f"all pods of the node will be deleted by {claimconditions.written_deadline(published)}"
            self._recorder.publish(node, "TerminationGracePeriodExpiring", message)
        if claim is not None and _deadline_is_coming(claim):
            return DONE  # it will wake us; until then it is not known how long pods may take
        now = self._clock.now()
        edit = None if claim is None else StatusEdit(claim, now)
        result = await self._drained(node, claim, edit, deadline, now)
        if result is None:
            result = self._detached(node, edit, deadline, now)
        if result is None and claim is not None and edit is not None:
            result = await self._machine(node, claim, edit)
        if claim is not None and edit is not None:
            await edit.write(self._client)
            if edit.is_true(claimconditions.DRAINED) and not claimconditions.holds(claim, claimconditions.DRAINED):
                self._metrics.nodes_drained_total.labels(nodepool=_pool(node)).inc()
        if result is None:
            await self._let_go(node)
        return result or DONE

    def _deadline(self, claim: NodeClaim | None) -> datetime | None:
        """When the drain has to be over: the moment that the claim names, or sooner if the clock was set back since."""
        moment = None if claim is None else claimconditions.deadline(claim)
        if moment is None or claim is None or claim.metadata.deletion_timestamp is None:
            return moment
        since = claim.metadata.deletion_timestamp
        return self._waits.due((claim.metadata.uid, "deadline"), since, moment - since) if moment > since else moment

    async def _close(self, node: Node) -> Node:
        """Keep new pods and the traffic of load balancers away."""
        metadata = node.metadata
        labelled = {drain.EXCLUDE_FROM_LOAD_BALANCERS: drain.EXCLUDED_BY, **metadata.labels}
        tainted = taints.merged(node.spec.taints, (taints.DISRUPTED,))
        if tainted == node.spec.taints and labelled == metadata.labels:
            return node
        spec = replace(node.spec, taints=tainted)
        closed = replace(node, metadata=replace(metadata, labels=labelled), spec=spec)
        return await self._client.patch(node, closed, locked=True)

    async def _drained(
        self,
        node: Node,
        claim: NodeClaim | None,
        edit: StatusEdit[NodeClaim] | None,
        deadline: datetime | None,
        now: datetime,
    ) -> Result | None:
        """Ask pods to leave; when to look again, or nothing once all have left."""
        standing = drain.plan(self._not_stuck(self._informers.by(Pod, "node", node.name)), deadline, now)
        reason = FORCEFUL
        if claim is not None:
            said = find(claim.status.conditions, claimconditions.DISRUPTION_REASON)
            reason = said.reason if said is not None and said.status == "True" else FORCEFUL
        for pod in (*standing.force, *standing.evict):
            self._evictions.ask(pod, node=node.name, reason=reason, deadline=deadline)
        for pod in standing.waiting:
            self._tell_protection(pod, now)
        if standing.waiting:
            if edit is not None:
                edit.unknown(claimconditions.DRAINED, reason="Draining", message="pods are leaving")
            self._recorder.publish(node, "FailedDraining", _still_there(standing.waiting))
            again = DONE if standing.again_at is None else Result(_seconds(standing.again_at, now))
            if standing.force:
                return soonest(again, Result(INSTANCE_S))
            return soonest(again, Result(MOVING_S)) if standing.evict else again
        if edit is not None and edit.is_true(claimconditions.DRAINED):
            return None
        return await self._quiet(node, edit, now)

    def _not_stuck(self, pods: Iterable[Pod]) -> Iterable[Pod]:
        """The pods without those that should have ended long ago, also by a clock that was set back since."""
        for pod in pods:
            ends = pod.metadata.deletion_timestamp
            if ends is None:
                yield pod
                continue
            grace = timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)
            if self._waits.left(pod.metadata.uid, ends - grace, grace + podrules.STUCK_AFTER) > 0:
                yield pod

    def _tell_protection(self, pod: Pod, now: datetime) -> None:
        """What the pod's do-not-disrupt annotation means for the drain, if it has one that is worth a word."""
        if labels.DO_NOT_DISRUPT not in pod.metadata.annotations:
            return
        problem, until = podrules.do_not_disrupt_problem(pod), drain.protected_until(pod)
        if problem is not None:
            self._recorder.publish(pod, "InvalidDoNotDisruptAnnotation", problem, dedupe=(problem,))
        elif until is not None and until > now:
            message = f"not evicted before {until:%Y-%m-%d %H:%M:%S} UTC"
            self._recorder.publish(pod, "DoNotDisruptUntil", message, dedupe=(message,))
        elif until is not None:
            message = f"may be evicted since {until:%Y-%m-%d %H:%M:%S} UTC"
            self._recorder.publish(pod, "DoNotDisruptGracePeriodElapsed", message)

    async def _quiet(self, node: Node, edit: StatusEdit[NodeClaim] | None, now: datetime) -> Result | None:
        """No pod is left; believe it only after a while."""
        since = node.metadata.deletion_timestamp or now
        if edit is not None:
            if edit.find(claimconditions.DRAINED) is None:
                edit.unknown(claimconditions.DRAINED, reason="Draining", message="pods are leaving")
            known = edit.find(claimconditions.DRAINED)
            since = (known.last_transition_time if known is not None else None) or now
        left = self._waits.left(node.metadata.uid, since, drain.LEAST_DRAIN)
        if left > 0:
            return Result(max(0.001, left))
        # The cache may be behind, and the machine takes along every pod on it.
        live = await self._client.list(Pod, fields={"spec.nodeName": node.name})
        if drain.plan(self._not_stuck(live.items), None, now).waiting:
            return Result(BEHIND_S)
        if edit is not None:
            edit.true(claimconditions.DRAINED)
        return None

    def _detached(
        self, node: Node, edit: StatusEdit[NodeClaim] | None, deadline: datetime | None, now: datetime
    ) -> Result | None:
        """When to look again for volumes that are still attached; nothing once there are none, or no time is left."""
        kind = claimconditions.VOLUMES_DETACHED
        left = self._attached(node, now)
        if not left:
            if edit is not None:
                edit.true(kind)
            return None
        if deadline is not None and now >= deadline:
            if edit is not None:
                message = f"{len(left)} volumes are still attached, and the node must be gone"
                edit.false(kind, reason="TerminationGracePeriodElapsed", message=message)
            return None
        if edit is not None:
            message = f"{len(left)} volumes are still attached"
            edit.unknown(kind, reason="AwaitingVolumeDetachment", message=message)
        self._recorder.publish(node, "AwaitingVolumeDetachment", f"volumes still attached: {', '.join(left[:5])}")
        return DONE if deadline is None else Result(_seconds(deadline, now))

    def _attached(self, node: Node, now: datetime) -> tuple[str, ...]:
        attachments = self._informers.by(VolumeAttachment, "node", node.name)
        if not attachments:
            return ()
        pods = self._informers.by(Pod, "node", node.name)
        volume_of: dict[tuple[str, str], str] = {}
        for pod in pods:
            for namespace, name in claims_of(pod):
                claim = self._informers.get(PersistentVolumeClaim, name, namespace)
                if claim is not None:
                    volume_of[(namespace, name)] = claim.spec.volume_name or ""
        return drain.attached(attachments, pods, volume_of, now)

    async def _machine(self, node: Node, claim: NodeClaim, edit: StatusEdit[NodeClaim]) -> Result | None:
        """Ask for the machine to go; when to ask again, or nothing once it is gone."""
        again: Result | None = Result(INSTANCE_S)
        try:
            await self._provider.delete(claim.status.provider_id)
        except InstanceNotFound as error:
            doubtful = not error.certain and _is_young(node, self._clock.now())
            if doubtful and not edit.is_true(claimconditions.INSTANCE_TERMINATING):
                return again
            again = None
        except Transient as error:
            return Result(max(INSTANCE_S, error.after_s))
        edit.true(claimconditions.INSTANCE_TERMINATING)
        return again

    async def _let_go(self, node: Node) -> None:
        left = tuple(each for each in node.metadata.finalizers if each != labels.TERMINATION_FINALIZER)
        try:
            await self._client.patch(node, replace(node, metadata=replace(node.metadata, finalizers=left)), locked=True)
        except NotFound:
            return
        now, pool = self._clock.now(), _pool(node)
        zone = node.metadata.labels.get(labels.ZONE, "")
        self._metrics.nodes_terminated_total.labels(nodepool=pool, zone=zone).inc()
        if node.metadata.deletion_timestamp is not None:
            took = (now - node.metadata.deletion_timestamp).total_seconds()
            self._metrics.nodes_termination_duration_seconds.observe(max(0.0, took), nodepool=pool)
        if node.metadata.creation_timestamp is not None:
            age = (now - node.metadata.creation_timestamp).total_seconds()
            self._metrics.nodes_lifetime_duration_seconds.labels(nodepool=pool).observe(max(0.0, age))


def _deadline_is_coming(claim: NodeClaim) -> bool:
    limited = claim.spec.termination_grace_period is not None
    return limited and claimconditions.TERMINATION_TIMESTAMP not in claim.metadata.annotations


def _is_young(node: Node, now: datetime) -> bool:
    """Whether the provider may not tell of the node's machine yet. Clocks may be set back."""
    born = node.metadata.creation_timestamp
    return born is not None and abs(now - born).total_seconds() < UNLISTED_S


def _seconds(moment: datetime, now: datetime) -> float:
    return max(0.001, (moment - now).total_seconds())


def _pool(node: Node) -> str:
    return node.metadata.labels.get(labels.NODEPOOL, "")


def _still_there(pods: tuple[Pod, ...]) -> str:
    names = ", ".join(pod.key for pod in pods[:5])
    more = f" and {len(pods) - 5} more" if len(pods) > 5 else ""
    left = "1 pod has" if len(pods) == 1 else f"{len(pods)} pods have"
    return f"{left} not left yet: {names}{more}"
