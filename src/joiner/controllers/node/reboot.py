"""Restarting a machine: its node is closed and emptied, the provider is asked, and a new boot is waited for.

    requested ─ tainted ─ drained ─ old boot noted ─ provider asked ─ issued ─ new boot seen ─ ready ─ succeeded
        └─ the wish cannot be read ── failed, the node stays        └──────┴─ no luck ── the claim is deleted

Where a restart stands is written on the claim: the condition `Rebooting`, and the boot that is to end. After a
restart of ours the controller finds out from the node's boot whether the machine was restarted already, and does not ask twice.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from joiner.cloud.errors import CloudError, InstanceNotFound, RebootNotSupported, RebootRefused
from joiner.controllers.deadlines import hurried
from joiner.controllers.shared import Shared
from joiner.controllers.status import StatusEdit
from joiner.controllers.waits import Waits
from joiner.disruption import drain
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch, own_key, soonest
from joiner.kube.errors import NotFound
from joiner.model import claimconditions, labels, taints
from joiner.model.claimconditions import (
    INITIALIZED,
    PRE_BOOT_ID,
    REBOOT_FAILED,
    REBOOT_GRACE,
    REBOOT_ISSUED,
    REBOOT_SUCCEEDED,
    REBOOTING,
)
from joiner.model.conditions import Condition, find
from joiner.model.duration import NEVER, Duration, DurationError
from joiner.model.meta import replace
from joiner.model.node import Node, is_ready
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod

CALLS_FAIL: Final = timedelta(minutes=5)
"""So long the provider may fail, or the node be missing, before the machine is given up."""
RECOVERY: Final = timedelta(minutes=20)
"""So long a machine may take to come back."""
RETRY_S: Final = 15.0

SUCCEEDED: Final = "succeeded"
PROVIDER_ERROR: Final = "provider_error"
RECOVERY_TIMEOUT: Final = "recovery_timeout"
INVALID_REQUEST: Final = "invalid_request"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Evictions(Protocol):
    """Who gets pods to leave."""

    def ask(self, pod: Pod, *, node: str, reason: str, deadline: datetime | None) -> None:
        """Have the pod leave its node."""
        ...

    def drop(self, node: str) -> None:
        """Ask the pods of a node no longer."""
        ...


class GraceError(ValueError):
    """How long the drain may take cannot be read; the message says what was found and what is allowed."""


class Reboot(Reconciler):
    """Takes every claim with `Rebooting=True` one step further. Woken by the claim, its node and the pods on it."""

    name = "nodeclaim.reboot"

    def __init__(self, shared: Shared, *, evictions: Evictions) -> None:
        self._client, self._informers, self._provider = shared.client, shared.informers, shared.provider
        self._clock, self._recorder, self._metrics = shared.clock, shared.recorder, shared.metrics
        self._evictions, self._managed = evictions, shared.managed
        self._waits = Waits(shared.clock)
        self._failing: dict[str, float] = {}
        """UID of a claim to when the provider first failed to restart its machine."""
        self.watches = (
            Watch(NodeClaim, self._claim),
            Watch(Node, lambda change: self._concerned(change.latest.spec.provider_id)),
            Watch(Pod, self._on_node),
        )

    def _claim(self, change: Change) -> Iterable[Key]:
        if change.after is None:
            self._failing.pop(change.before.metadata.uid, None)
        return own_key(change)

    def _concerned(self, provider_id: str) -> Iterable[Key]:
        claims = self._informers.by(NodeClaim, "provider-id", provider_id) if provider_id else ()
        return [Key("", each.name) for each in claims if claimconditions.holds(each, REBOOTING)]

    def _on_node(self, change: Change) -> Iterable[Key]:
        name = change.latest.spec.node_name
        node = self._informers.get(Node, name) if name else None
        rebooting = node is not None and taints.is_among(taints.REBOOTING, node.spec.taints)
        return self._concerned(node.spec.provider_id) if node is not None and rebooting else ()

    async def reconcile(self, key: Key) -> Result:
        """Take the restart of one machine a step further."""
        claim = self._informers.get(NodeClaim, key.name)
        if claim is None or not self._managed.claim(claim) or claimconditions.is_leaving(claim):
            return DONE
        state = find(claim.status.conditions, REBOOTING)
        if state is None or state.status != "True":
            self._failing.pop(claim.metadata.uid, None)
            return DONE
        found = self._informers.by(Node, "provider-id", claim.status.provider_id)
        node = found[0] if len(found) == 1 else None
        if state.reason == REBOOT_ISSUED:
            return await self._issued(claim, state, node)
        return await self._requested(claim, state, node)

    # -- requested ----------------------------------------------------------------------------------------------------

    async def _requested(self, claim: NodeClaim, state: Condition, node: Node | None) -> Result:
        now, asked_at = self._clock.now(), _since(state)
        try:
            bound = grace_of(claim)
        except GraceError as error:
            return await self._refuse(claim, state, str(error))
        if node is None:
            return await self._missing(claim, state)
        node = await self._tainted(node)
        noted = claim.metadata.annotations.get(PRE_BOOT_ID)
        if noted is not None and node.status.node_info.boot_id != noted:
            await self._write_issued(claim)
            return DONE
        waiting = self._drained(node, bound, asked_at, now)
        if waiting is not None:
            return waiting
        if noted is None:
            noted = node.status.node_info.boot_id
            marked = {**claim.metadata.annotations, PRE_BOOT_ID: noted}
            claim = await self._client.patch(
                claim, replace(claim, metadata=replace(claim.metadata, annotations=marked)), locked=True
            )
        return await self._call(claim, state, f"{claim.metadata.uid}-{_nanoseconds(asked_at)}-{noted}")

    async def _tainted(self, node: Node) -> Node:
        closed = replace(node.spec, taints=taints.merged(node.spec.taints, (taints.REBOOTING,)))
        return await self._client.patch(node, replace(node, spec=closed), locked=True) if closed != node.spec else node

    def _drained(self, node: Node, bound: Duration | None, asked_at: datetime, now: datetime) -> Result | None:
        """Ask pods to leave; when to look again, or nothing once all have left or no time is left for it.

        Pods are never forced: a pod that is still there then stays, and finds the node again after the restart.
        """
        if bound is not None and bound <= 0:
            return None
        earliest = self._waits.due((node.metadata.uid, "least"), asked_at, drain.LEAST_DRAIN)
        deadline = None
        if bound is not None and bound != NEVER:
            deadline = max(self._waits.due((node.metadata.uid, "most"), asked_at, bound.timedelta), earliest)
        standing = drain.plan(self._informers.by(Pod, "node", node.name), None, now)
        if now < earliest or (standing.waiting and (deadline is None or now < deadline)):
            for pod in standing.evict:
                self._evictions.ask(pod, node=node.name, reason="Unhealthy", deadline=None)
            moments = [earliest if now < earliest else None, deadline, standing.again_at]
            return soonest(*(Result((each - now).total_seconds()) for each in moments if each is not None))
        self._evictions.drop(node.name)
        return None

    async def _call(self, claim: NodeClaim, state: Condition, operation: str) -> Result:
        uid = claim.metadata.uid
        try:
            await self._provider.reboot(claim, operation)
        except (RebootNotSupported, RebootRefused, InstanceNotFound) as error:
            return await self._give_up(claim, state, PROVIDER_ERROR, str(error))
        except CloudError as error:
            now = self._clock.monotonic()
            if now - self._failing.setdefault(uid, now) >= CALLS_FAIL.total_seconds():
                return await self._give_up(claim, state, PROVIDER_ERROR, f"it keeps failing: {error}")
            return Result(RETRY_S)
        self._failing.pop(uid, None)
        await self._write_issued(claim)
        return DONE

    async def _write_issued(self, claim: NodeClaim) -> None:
        edit = StatusEdit(claim, self._clock.now())
        edit.true(REBOOTING, reason=REBOOT_ISSUED, message=_message(claim))
        edit.unknown(INITIALIZED, reason=REBOOTING, message="the machine is being restarted")
        await edit.write(self._client)

    # -- issued -------------------------------------------------------------------------------------------------------

    async def _issued(self, claim: NodeClaim, state: Condition, node: Node | None) -> Result:
        initialized = find(claim.status.conditions, INITIALIZED)
        began = _since(state)
        if initialized is not None and initialized.status == "Unknown":  # of a node that never was complete: long ago
            began = max(began, _since(initialized))
        seconds = self._waits.left((claim.metadata.uid, REBOOT_ISSUED), began, RECOVERY)
        if seconds <= 0:
            return await self._give_up(claim, state, RECOVERY_TIMEOUT, "the machine did not come back in time")
        left = Result(seconds)
        if node is None:
            return soonest(await self._missing(claim, state), left)
        node = await self._uninitialized(node)
        noted = claim.metadata.annotations.get(PRE_BOOT_ID)
        if noted is not None and node.status.node_info.boot_id == noted:
            return left
        node = await self._opened(node)
        self._recorder.publish(
            claim, "RebootObserved", f"node {node.name} is back with a new boot", dedupe=(str(_since(state)),)
        )
        if not is_ready(node):
            return left
        await self._succeed(claim, state, began)
        return DONE

    async def _uninitialized(self, node: Node) -> Node:
        if labels.INITIALIZED not in node.metadata.labels:
            return node
        left = {key: value for key, value in node.metadata.labels.items() if key != labels.INITIALIZED}
        return await self._client.patch(node, replace(node, metadata=replace(node.metadata, labels=left)), locked=True)

    async def _opened(self, node: Node) -> Node:
        opened = replace(node.spec, taints=taints.without(node.spec.taints, (taints.REBOOTING,)))
        return await self._client.patch(node, replace(node, spec=opened), locked=True) if opened != node.spec else node

    async def _succeed(self, claim: NodeClaim, state: Condition, issued_at: datetime) -> None:
        """The noted boot goes first: issued and nothing noted means that the new boot was seen."""
        kept = {key: value for key, value in claim.metadata.annotations.items() if key != PRE_BOOT_ID}
        claim = await self._client.patch(
            claim, replace(claim, metadata=replace(claim.metadata, annotations=kept)), locked=True
        )
        now = self._clock.now()
        edit = StatusEdit(claim, now)
        edit.false(REBOOTING, reason=REBOOT_SUCCEEDED, message="the node is back and ready")
        await edit.write(self._client)
        self._count(SUCCEEDED, state)
        self._metrics.nodes_reboot_recovery_duration_seconds.observe(max(0.0, (now - issued_at).total_seconds()))

    # -- no luck ------------------------------------------------------------------------------------------------------

    async def _missing(self, claim: NodeClaim, state: Condition) -> Result:
        """The node is not there; it may come back for a while."""
        left = self._waits.left((claim.metadata.uid, "missing"), _since(state), CALLS_FAIL)
        if left > 0:
            return Result(left)
        return await self._give_up(claim, state, PROVIDER_ERROR, "its node is gone")

    async def _refuse(self, claim: NodeClaim, state: Condition, problem: str) -> Result:
        """What was asked for cannot be understood. Nothing was done, and nothing is."""
        edit = StatusEdit(claim, self._clock.now())
        edit.false(REBOOTING, reason=REBOOT_FAILED, message=problem)
        await edit.write(self._client)
        self._fail(claim, state, INVALID_REQUEST, problem)
        return DONE

    async def _give_up(self, claim: NodeClaim, state: Condition, result: str, problem: str) -> Result:
        """The machine cannot be saved: it goes as any other, with the same bound for its drain."""
        for node in self._informers.by(Node, "provider-id", claim.status.provider_id):
            await self._opened(node)
        try:
            bound = grace_of(claim)
        except GraceError:
            bound = None
        claim = await hurried(self._client, claim, bound, self._clock.now())
        try:
            await self._client.delete(NodeClaim, claim.name, uid=claim.metadata.uid)
        except NotFound:
            return DONE
        self._failing.pop(claim.metadata.uid, None)
        self._fail(claim, state, result, problem)
        return DONE

    def _fail(self, claim: NodeClaim, state: Condition, result: str, problem: str) -> None:
        message = f"the machine could not be restarted: {problem}"
        self._recorder.publish(claim, "RebootFailed", message, dedupe=(str(_since(state)),))
        self._count(result, state)

    def _count(self, result: str, state: Condition) -> None:
        took = max(0.0, (self._clock.now() - _since(state)).total_seconds())
        self._metrics.nodes_reboots_total.labels(result=result).inc()
        self._metrics.nodes_reboot_duration_seconds.labels(result=result).observe(took)


def grace_of(claim: NodeClaim) -> Duration | None:
    """How long the drain before the restart may take; nothing when it has no end. Raises GraceError."""
    text = claim.metadata.annotations.get(REBOOT_GRACE)
    if text is None:
        return None
    try:
        found = Duration.parse(text)
    except DurationError as error:
        raise GraceError(f"annotation {REBOOT_GRACE}: {error}") from None
    if found < 0:
        raise GraceError(f"annotation {REBOOT_GRACE}: {text} is negative; write how long the drain may take, like 1m")
    return found


def _since(condition: Condition) -> datetime:
    return condition.last_transition_time or _EPOCH


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _message(claim: NodeClaim) -> str:
    known = find(claim.status.conditions, REBOOTING)
    return known.message if known is not None else ""
