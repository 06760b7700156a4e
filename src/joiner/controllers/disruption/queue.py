"""Commands: nodes that have to go, what must be there before they do, and everything between the decision and the deletion.

    decided ─ nodes tainted, reason written ─ replacements written ─ marked ─ replacements complete ─ candidates deleted
                                   └── it fails, takes too long, or a user protects a node or pod ──┴── taints and reasons removed

Commands are kept in memory only. After a restart no command owns the nodes they were about: the taint and the reason for
disruption are removed from nodes and claims that no command owns, as after a failure.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import count
from typing import Final

from joiner.controllers.deadlines import hurried
from joiner.controllers.provisioning.claimwriter import ClaimRequest, ClaimWriter
from joiner.controllers.shared import Shared
from joiner.controllers.status import StatusEdit
from joiner.disruption.decision import DRIFTED, REPLACE
from joiner.disruption.repair import REASON as UNHEALTHY
from joiner.kube.client import Key
from joiner.kube.controller import DONE, Backoff, Change, Reconciler, Result, Watch
from joiner.kube.errors import KubeError, NotFound
from joiner.model import claimconditions, labels, podrules, taints
from joiner.model.claimconditions import DISRUPTION_REASON, INITIALIZED, LAUNCHED, REBOOTING
from joiner.model.duration import Duration
from joiner.model.meta import Value, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.observe.claims import count_disrupted, count_unhealthy
from joiner.state.statenode import StateNode

TIMEOUT_LEAST: Final = timedelta(minutes=10)
TIMEOUT_MOST: Final = timedelta(hours=1)
TIMEOUT_PER_CANDIDATE: Final = timedelta(milliseconds=80)
"""How much more time a command gets for each candidate in the queue."""
STANDS_S: Final = 5.0
"""How long replacements must have been complete before the nodes go that they are for: some are Ready only for a moment."""
_COMMAND: Final = "command"
_NODE: Final = "node"
_CLAIM: Final = "claim"


class Command(Value):
    """What was decided."""

    reason: str
    """`Unhealthy`, `Drifted`, `Empty`, `Underutilized`."""
    candidates: tuple[StateNode, ...]
    """The nodes that go; each has a node and a claim."""
    replacements: tuple[ClaimRequest, ...] = ()
    replicas: NodePool | None = None
    """A pool that keeps a number of nodes: one new claim of its template takes the place of each candidate."""
    nominated: tuple[str, ...] = ()
    """Nodes that the candidates' pods were given places on: they are left alone for a while."""
    decision: str = REPLACE
    consolidation_type: str = ""
    bound: Duration | None = None
    """How long draining may take; with nothing said the claim's own word holds."""
    condition: str = ""
    """What is wrong with the nodes, if that is why they go."""
    message: str = ""
    """What more there is to tell about why they go."""


class _Running:
    """A command that was started, and how far it is."""

    def __init__(self, command: Command, began: float) -> None:
        self.command = command
        self.began = began
        self.replacements: tuple[NodeClaim, ...] = ()
        self.deleted: set[str] = set()
        self._complete_since: float | None = None

    def stands_until(self, now: float) -> float:
        """Until when replacements that are complete are watched."""
        if self._complete_since is None:
            self._complete_since = now
        return self._complete_since + STANDS_S

    def claims(self) -> tuple[NodeClaim, ...]:
        return tuple(each.claim for each in self.command.candidates if each.claim is not None)


class CommandQueue(Reconciler):
    """Carries commands out, several at once. Others ask `owns` before they decide about a node."""

    name = "disruption.queue"
    workers = 100
    backoff = Backoff(1.0, 10.0)

    def __init__(self, shared: Shared, *, claims: ClaimWriter) -> None:
        self._client, self._informers, self._cluster = shared.client, shared.informers, shared.cluster
        self._managed, self._claims, self._clock = shared.managed, claims, shared.clock
        self.deciding = claims.deciding
        """Held by callers from a look at the cluster until the command that follows from it has started."""
        self._recorder, self._metrics = shared.recorder, shared.metrics
        self._nominated_for = timedelta(seconds=shared.options.nomination_s)
        self._running: dict[str, _Running] = {}
        self._owner: dict[str, str] = {}
        """Claim to the command it is a candidate of."""
        self._waits: dict[str, str] = {}
        """Claim to the command it is a replacement for."""
        self._numbers = count(1)
        self.watches = (Watch(NodeClaim, self._claim_changed), Watch(Node, _tainted))

    def _claim_changed(self, change: Change) -> Iterable[Key]:
        claim: NodeClaim = change.latest
        for table in (self._waits, self._owner):
            if claim.name in table:
                yield Key(_COMMAND, table[claim.name])
        if change.after is not None and claimconditions.holds(claim, DISRUPTION_REASON):
            yield Key(_CLAIM, claim.name)

    @property
    def owned(self) -> frozenset[str]:
        """The claims of all nodes that commands are about."""
        return frozenset(self._owner)

    def owns(self, claim: str) -> bool:
        """Whether a command is about the node of this claim."""
        return claim in self._owner

    # -- the start ----------------------------------------------------------------------------------------------------

    async def start(self, command: Command) -> bool:
        """Begin; whether it has begun. If not, nothing is left of it but claims that were written already."""
        running, number = _Running(command, self._clock.monotonic()), str(next(self._numbers))
        names = [claim.name for claim in running.claims()]
        if any(name in self._owner for name in names):
            return False
        self._own(number, names)
        try:
            running.command = command = await self._marked(command)
            running.replacements = await self._replacements(command)
        except Exception as error:
            self._fail(number, running, str(error))
            if isinstance(error, KubeError):
                return False
            raise
        self._disown(number)
        self._own(number, [claim.name for claim in running.claims()])
        self._running[number] = running
        self._waits.update({claim.name: number for claim in running.replacements})
        self._cluster.mark_for_deletion(*(claim.name for claim in running.claims()))
        now = self._clock.now()
        for name in (*command.nominated, *(claim.name for claim in running.replacements)):
            self._cluster.nominate(name, now + self._nominated_for, now)
        self._count_start(command)
        self.wake(Key(_COMMAND, number))
        return True

    def _own(self, number: str, claims: Iterable[str]) -> None:
        self._owner.update(dict.fromkeys(claims, number))

    def _disown(self, number: str) -> None:
        self._owner = {name: owner for name, owner in self._owner.items() if owner != number}
        self._waits = {name: owner for name, owner in self._waits.items() if owner != number}

    async def _marked(self, command: Command) -> Command:
        """The command with the candidates that could be tainted; all of them, if they wait for replacements."""
        kept: list[StateNode] = []
        for each in command.candidates:
            try:
                await self._mark(each, command.reason)
            except KubeError:
                if command.replacements or command.replicas is not None:
                    raise
                self._free(each)
                continue
            kept.append(each)
        if not kept:
            raise NotFound("none of the nodes could be tainted")
        return replace(command, candidates=tuple(kept))

    async def _mark(self, state_node: StateNode, reason: str) -> None:
        assert state_node.node is not None
        assert state_node.claim is not None
        node = await self._client.get(Node, state_node.node.name)
        if node.metadata.uid != state_node.node.metadata.uid:
            raise NotFound(f"Node {node.name} is another one by now")
        closed = replace(node.spec, taints=taints.merged(node.spec.taints, (taints.DISRUPTED,)))
        await self._client.patch(node, replace(node, spec=closed), locked=True)
        claim = await self._client.get(NodeClaim, state_node.claim.name)
        if claim.metadata.uid != state_node.claim.metadata.uid or claimconditions.is_leaving(claim):
            raise NotFound(f"NodeClaim {claim.name} is going already")
        edit = StatusEdit(claim, self._clock.now())
        edit.true(DISRUPTION_REASON, reason=reason)
        await edit.write(self._client)

    async def _replacements(self, command: Command) -> tuple[NodeClaim, ...]:
        reason = command.reason.lower()
        names = [each.claim.name for each in command.candidates if each.claim is not None]
        if command.replicas is not None:
            written = await self._claims.replicate(command.replicas, len(names), reason=reason, replaces=names)
            if len(written) < len(command.candidates):
                raise NotFound(f"not all claims of NodePool {command.replicas.name} could be written")
            return written
        if not command.replacements:
            return ()
        outcomes = await self._claims.buy(command.replacements, reason=reason, replaces=names)
        for outcome in outcomes:
            if outcome.claim is None:
                raise NotFound(outcome.problem)
        return tuple(outcome.claim for outcome in outcomes if outcome.claim is not None)

    def _count_start(self, command: Command) -> None:
        decided = _decided(command)
        self._metrics.voluntary_disruption_decisions_total.labels(**decided).inc()
        for pool in sorted({each.nodepool for each in command.candidates}):
            self._metrics.voluntary_disruption_decisions_by_nodepool_total.labels(nodepool=pool, **decided).inc()

    # -- the way to the end -------------------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> Result:
        """Look after a command, or after a node or claim that may belong to none."""
        if key.namespace == _NODE:
            await self._free_node(key.name)
            return DONE
        if key.namespace == _CLAIM:
            await self._free_claim(key.name)
            return DONE
        running = self._running.get(key.name)
        return DONE if running is None else await self._step(key.name, running)

    async def _step(self, number: str, running: _Running) -> Result:
        for claim in running.replacements:
            known = await self._found(claim)
            is_there = known is not None and not claimconditions.is_leaving(known)
            if known is not None and is_there and claimconditions.holds(known, INITIALIZED):
                continue
            if all([await self._is_leaving(each) for each in running.claims()]):
                self._finish(number)  # another controller was faster
                return DONE
            left = running.began + self._timeout() - self._clock.monotonic()
            if known is None or not is_there:
                self._fail(number, running, f"replacement {claim.name} is gone")
                return DONE
            if left <= 0:
                self._fail(number, running, f"replacement {claim.name} was not complete in time")
                return DONE
            self._tell_waiting(known)
            return Result(left)
        now = self._clock.monotonic()
        if running.replacements and now < running.stands_until(now):
            return Result(running.stands_until(now) - now)
        protected = "" if running.deleted else self._protected(running.command)
        if protected:
            self._fail(number, running, protected)
            return DONE
        for each in running.command.candidates:
            await self._delete(each, running)
        self._finish(number)
        return DONE

    def _protected(self, command: Command) -> str:
        """What users have protected since the command began; a broken node goes all the same."""
        now = self._clock.now()
        for each in command.candidates if command.reason != UNHEALTHY else ():
            node = self._informers.get(Node, each.name)
            if node is not None and node.metadata.annotations.get(labels.DO_NOT_DISRUPT) == "true":
                return f"node {node.name} has the annotation {labels.DO_NOT_DISRUPT} by now"
            assert each.claim is not None
            if command.reason == DRIFTED and each.claim.spec.termination_grace_period is not None:
                continue  # its drain has an end, whatever pods say
            for pod in self._informers.by(Pod, "node", each.name):
                if not podrules.is_disruptable(pod, now):
                    return f"pod {pod.key} has the annotation {labels.DO_NOT_DISRUPT} by now"
        return ""

    async def _is_leaving(self, claim: NodeClaim) -> bool:
        known = await self._found(claim)
        return known is None or claimconditions.is_leaving(known)

    async def _found(self, claim: NodeClaim) -> NodeClaim | None:
        """The claim, by the cache's word, and where that has nothing by the server's."""
        known = self._informers.get(NodeClaim, claim.name)
        if known is None:
            try:
                known = await self._client.get(NodeClaim, claim.name)
            except NotFound:
                return None
        return known if known.metadata.uid == claim.metadata.uid else None

    def _timeout(self) -> float:
        return max(TIMEOUT_LEAST, min(TIMEOUT_MOST, TIMEOUT_PER_CANDIDATE * len(self._owner))).total_seconds()

    def _tell_waiting(self, claim: NodeClaim) -> None:
        if claimconditions.holds(claim, LAUNCHED):
            self._recorder.publish(claim, "DisruptionWaitingReadiness", "nodes wait for it to become complete")
        else:
            self._recorder.publish(claim, "DisruptionLaunching", "it is launched to take the place of other nodes")

    async def _delete(self, state_node: StateNode, running: _Running) -> None:
        assert state_node.claim is not None
        name, command = state_node.claim.name, running.command
        if name in running.deleted:
            return
        try:
            claim = await self._client.get(NodeClaim, name)
            if claim.metadata.uid == state_node.claim.metadata.uid and not claimconditions.is_leaving(claim):
                claim = await hurried(self._client, claim, command.bound, self._clock.now())
                await self._client.delete(NodeClaim, name, uid=claim.metadata.uid)
        except NotFound:
            pass
        running.deleted.add(name)
        message = f"disrupted for reason {command.reason}"
        message += f": {command.message}" if command.message else ""
        for thing in (state_node.node, state_node.claim):
            if thing is not None:
                self._recorder.publish(thing, "DisruptionTerminating", message)
        pool = self._informers.get(NodePool, state_node.nodepool) if command.consolidation_type else None
        count_disrupted(
            self._metrics, state_node.claim, command.reason.lower(), pods=state_node.pods, consolidating=pool
        )
        if command.condition:
            count_unhealthy(self._metrics, state_node.claim, command.condition, command.bound)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _finish(self, number: str) -> None:
        """The candidates go. They stay marked until they are gone."""
        del self._running[number]
        self._disown(number)

    def _fail(self, number: str, running: _Running, problem: str) -> None:
        """The candidates stay. Replacements that were written stay, too: they may find other work."""
        command = running.command
        self._running.pop(number, None)
        self._disown(number)
        self._metrics.voluntary_disruption_queue_failures_total.labels(**_decided(command)).inc()
        for each in command.candidates:
            assert each.claim is not None
            self._cluster.unmark_for_deletion(each.claim.name)
            for thing in filter(None, (each.node, each.claim)):
                self._recorder.publish(thing, "DisruptionBlocked", f"it could not be replaced: {problem}")
            self._free(each)

    def _free(self, state_node: StateNode) -> None:
        if state_node.node is not None:
            self.wake(Key(_NODE, state_node.node.name))
        if state_node.claim is not None:
            self.wake(Key(_CLAIM, state_node.claim.name))

    async def _free_node(self, name: str) -> None:
        """Remove our taint from a node that no controller means to remove."""
        node = self._informers.get(Node, name)
        if node is None or node.metadata.deletion_timestamp is not None or not self._is_ours(node):
            return
        claims = self._informers.by(NodeClaim, "provider-id", node.spec.provider_id) if node.spec.provider_id else ()
        if any(self._is_meant(claim) for claim in claims):
            return
        node = await self._client.get(Node, name)
        if node.metadata.deletion_timestamp is None:
            left = taints.without(node.spec.taints, (taints.DISRUPTED,))
            await self._client.patch(node, replace(node, spec=replace(node.spec, taints=left)), locked=True)

    def _is_ours(self, node: Node) -> bool:
        return bool(node.metadata.labels.get(labels.NODEPOOL)) or self._managed.node(node)

    async def _free_claim(self, name: str) -> None:
        """Take the reason for disruption back from a claim that no controller means to remove or restarts."""
        claim = self._informers.get(NodeClaim, name)
        if claim is None or not self._managed.claim(claim) or self._is_meant(claim):
            return
        claim = await self._client.get(NodeClaim, name)
        if claimconditions.is_leaving(claim) or claimconditions.holds(claim, REBOOTING):
            return
        edit = StatusEdit(claim, self._clock.now())
        edit.clear(DISRUPTION_REASON)
        await edit.write(self._client)

    def _is_meant(self, claim: NodeClaim) -> bool:
        return self.owns(claim.name) or claimconditions.is_leaving(claim) or self._cluster.is_marked(claim.name)


def _tainted(change: Change) -> Sequence[Key]:
    node: Node | None = change.after
    if node is None or node.metadata.deletion_timestamp is not None:
        return ()
    return (Key(_NODE, node.name),) if taints.is_among(taints.DISRUPTED, node.spec.taints) else ()


def _decided(command: Command) -> dict[str, str]:
    return {
        "decision": command.decision,
        "reason": command.reason.lower(),
        "consolidation_type": command.consolidation_type,
    }
