"""Node repair: broken nodes are restarted or replaced, one at a time, as long as only a few are broken.

Nothing is done while no node is broken: a node's conditions wake the loop, and a timer when a toleration ends. While a
node waits that could be repaired but may not be, the loop looks again every ten seconds.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from joiner.catalog.build import Catalog
from joiner.cloud.errors import CloudError
from joiner.cloud.repair import RepairPolicy
from joiner.controllers.disruption.queue import Command, CommandQueue
from joiner.controllers.provisioning.claimwriter import ClaimRequest
from joiner.controllers.provisioning.pools import Pools, SpreadDefaults, policy_of
from joiner.controllers.shared import Shared
from joiner.controllers.status import StatusEdit
from joiner.controllers.waits import Waits, in_time
from joiner.disruption import budgets, candidates, decision, repair, simulate, terminatefirst
from joiner.disruption.cost import disturbance
from joiner.kube.client import Key
from joiner.kube.controller import ALONE, DONE, Change, Reconciler, Result, Watch, soonest
from joiner.kube.errors import NotFound
from joiner.model import claimconditions, labels, podrules
from joiner.model.claimconditions import DISRUPTION_REASON, REBOOTING
from joiner.model.conditions import READY, find, is_true
from joiner.model.duration import Duration
from joiner.model.meta import KubeObject, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.quantity import MILLI
from joiner.model.resources import NODES
from joiner.scheduling.problem import PoolOption
from joiner.state.snapshot import Snapshot
from joiner.state.statenode import StateNode

POLL_S: Final = 10.0
"""How often nodes that may not be repaired yet are looked at again."""
UNSYNCED_S: Final = 1.0
HEARING_S: Final = 0.5
HEARING_TRIES: Final = 60
"""How often it is asked whether a cache has heard of our own decision, before we go on without."""
REBOOT_DECISION: Final = "reboot"


class BrokenNode(NamedTuple):
    """A broken node whose time has come."""

    state: StateNode
    node: Node
    claim: NodeClaim
    diagnosis: repair.Diagnosis
    bound: Duration | None
    """How long draining may take."""


class _FailedAttempt(NamedTuple):
    """A question to which there was no answer. It is not asked again before anything in it has changed."""

    snapshot: Snapshot
    options: tuple[PoolOption, ...]
    obstacle: str

    def still_holds(self, snapshot: Snapshot, options: tuple[PoolOption, ...]) -> bool:
        return (
            snapshot is self.snapshot
            and len(options) == len(self.options)
            and all(
                new.catalog is old.catalog and new.pool.spec == old.pool.spec
                for new, old in zip(options, self.options, strict=True)
            )
        )


class Repair(Reconciler):
    """Repairs the node that needs it most, then looks again."""

    name = "disruption.repair"
    workers = 1

    def __init__(self, shared: Shared, *, commands: CommandQueue, policies: Sequence[RepairPolicy]) -> None:
        self._client, self._informers, self._cluster = shared.client, shared.informers, shared.cluster
        self._catalogs, self._commands, self._clock = shared.catalogs, commands, shared.clock
        self._recorder, self._metrics, self._options = shared.recorder, shared.metrics, shared.options
        self._vocabulary = shared.vocabulary
        self._policies = tuple(policies)
        self._pools = Pools(shared)
        self._spread = SpreadDefaults(shared)
        self._planner = shared.planner("disruption")
        self._reboots = repair.Reboots()
        self._waits = Waits(shared.clock)
        self._broken: set[str] = set()
        self._failed_attempts: dict[str, _FailedAttempt] = {}
        """UID of a claim to the last attempt to find other places for its pods."""
        self.watches = (Watch(Node, self._node_changed), Watch(NodeClaim, self._claim_changed))

    def _node_changed(self, change: Change) -> Iterable[Key]:
        name = change.latest.name
        was = name in self._broken
        if change.after is not None and repair.is_broken(change.after, self._policies):
            self._broken.add(name)
        else:
            self._broken.discard(name)
        return (ALONE,) if was or name in self._broken else ()

    def _claim_changed(self, change: Change) -> Iterable[Key]:
        return (ALONE,) if change.latest.status.node_name in self._broken else ()

    async def reconcile(self, key: Key) -> Result:
        """One pass; all of it sees the same moment."""
        if not self._broken:
            self._failed_attempts.clear()
            self._tell_eligible(0)
            return DONE
        async with self._commands.deciding:
            return await self._pass()

    async def _pass(self) -> Result:
        now = self._clock.now()
        if not self._cluster.synced(now):
            return Result(UNSYNCED_S)
        snapshot = self._cluster.snapshot(now)
        targets, again = self._targets(snapshot, now)
        self._tell_eligible(len(targets))
        for target in targets:
            if await self._repair(target, snapshot, now):
                return Result(0.0)
        return soonest(again, Result(POLL_S) if targets else DONE)

    def _tell_eligible(self, number: int) -> None:
        self._metrics.voluntary_disruption_eligible_nodes.labels(reason=repair.REASON.lower()).set(number)

    def _targets(self, snapshot: Snapshot, now: datetime) -> tuple[list[BrokenNode], Result]:
        """Those whose time has come, the most urgent first; and when the next one's comes."""
        found: list[BrokenNode] = []
        waits: list[Result] = []
        for each in snapshot.nodes:
            node, claim = each.node, each.claim
            if node is None or claim is None or node.name not in self._broken:
                continue
            if candidates.is_out_of_reach(each) or self._commands.owns(claim.name):
                continue  # whatever ends that changes the node or its claim, and wakes us
            ailments = in_time(self._waits, node, repair.ailments(node, claim, self._policies))
            due = repair.next_due(ailments, now)
            if due is not None:
                waits.append(Result((due - now).total_seconds()))
            diagnosis = repair.diagnose(ailments, self._policies, now)
            if diagnosis is not None:
                found.append(BrokenNode(each, node, claim, diagnosis, repair.drain_bound(diagnosis.bound, claim)))
        return sorted(found, key=lambda target: self._urgency(target, now)), soonest(*waits)

    def _urgency(self, target: BrokenNode, now: datetime) -> tuple[float, float, str]:
        ours = self._options.gates.pod_deletion_cost_management
        pods = [pod for pod in target.state.pods if podrules.is_reschedulable(pod)]
        cost = disturbance(pods, target.claim, now, deletion_cost_is_ours=ours)
        return (-target.diagnosis.score, cost, target.node.name)

    # -- whether ------------------------------------------------------------------------------------------------------

    async def _repair(self, target: BrokenNode, snapshot: Snapshot, now: datetime) -> bool:
        """Do something about the node, if that is allowed; whether anything was begun."""
        each = target.state
        objection = candidates.repair_objection(each, self._budgets(each.pods), now, bounded=target.bound is not None)
        if objection:
            return self._blocked(target, objection)
        if each.initialized and self._cluster.is_nominated(target.claim.name, now):
            return self._blocked(target, "pods are on their way to it")
        pool = self._informers.get(NodePool, each.nodepool)
        if pool is None:
            return self._blocked(target, f"NodePool {each.nodepool} is not there")
        try:
            catalog = await self._catalogs.get(pool)
        except CloudError as error:
            return self._blocked(target, f"NodePool {pool.name}: what it can buy is not known: {error}")
        if self._is_frozen(target, pool) or not self._has_budget(target, pool, snapshot, now):
            return False
        helpless = self._reboots.exhausted(target.claim.metadata.uid, now)
        if target.diagnosis.action == repair.REBOOT and not helpless:
            return await self._reboot(target)
        if pool.spec.replicas is not None:
            return await self._replace_static(target, pool, catalog)
        return await self._replace(target, snapshot)

    def _budgets(self, pods: Iterable[Pod]) -> candidates.Budgets:
        wanted = {pod.metadata.namespace for pod in pods}
        found: dict[str, list[PodDisruptionBudget]] = {}
        for budget in self._informers.all(PodDisruptionBudget):
            if budget.metadata.namespace in wanted:
                found.setdefault(budget.metadata.namespace, []).append(budget)
        return found

    def _blocked(self, target: BrokenNode, why: str) -> bool:
        self._tell((target.node, target.claim), "DisruptionBlocked", f"it cannot be repaired: {why}")
        return False

    def _tell(self, things: Iterable[KubeObject], reason: str, message: str, dedupe: Iterable[str] = ()) -> None:
        for thing in things:
            self._recorder.publish(thing, reason, message, dedupe=dedupe)

    def _is_frozen(self, target: BrokenNode, pool: NodePool) -> bool:
        """Whether so many nodes of the pool are broken that something else must be wrong."""
        nodes = [each for each in self._informers.all(Node) if each.metadata.labels.get(labels.NODEPOOL) == pool.name]
        broken = sum(each.name in self._broken for each in nodes)
        if not repair.too_many(broken, len(nodes)):
            return False
        message = (
            f"{broken} of {len(nodes)} nodes of NodePool {pool.name} are broken, more than"
            f" {repair.MOST_BROKEN_PERCENT}%: none is repaired"
        )
        self._tell((target.node, target.claim, pool), "NodeRepairBlocked", message)
        return True

    def _has_budget(self, target: BrokenNode, pool: NodePool, snapshot: Snapshot, now: datetime) -> bool:
        if not target.state.initialized:
            return True
        if budgets.left(pool, snapshot.nodes, repair.REASON, now, self._commands.owned) > 0:
            return True
        message = f"its budgets let no node go for reason {repair.REASON} now"
        self._tell((pool,), "DisruptionBlocked", message, (repair.REASON,))
        return False

    # -- how ----------------------------------------------------------------------------------------------------------

    async def _replace(self, target: BrokenNode, snapshot: Snapshot) -> bool:
        """Have other nodes ready for everything on it, then let it go."""
        uid = target.claim.metadata.uid
        options, _ = await self._pools.options(snapshot)
        known = self._failed_attempts.pop(uid, None)
        if known is None or not known.still_holds(snapshot, options):
            tried = await self._simulated(target, snapshot, options)
            if not tried.obstacle:
                command = self._command(target, decision.REPLACE if tried.replacements else decision.DELETE)
                return await self._commands.start(
                    replace(command, replacements=_requests(tried), nominated=tried.places)
                )
            without_it = await self._after_it(target, snapshot, options)
            if without_it is not None and not without_it.obstacle:
                return await self._go_first(target, terminatefirst.NO_RESERVED_CAPACITY, without_it.places)
            known = _FailedAttempt(snapshot, options, tried.obstacle)
        self._failed_attempts[uid] = known
        return self._blocked(target, known.obstacle)

    async def _simulated(
        self, target: BrokenNode, snapshot: Snapshot, options: tuple[PoolOption, ...]
    ) -> simulate.SimulatedPlan:
        """What would happen if it went, and these pools could buy what others need."""
        gone = (target.state,)
        question = simulate.question_without(
            gone,
            snapshot,
            options,
            storage=self._cluster.storage_of((*snapshot.waiting, *snapshot.evicted, *simulate.movers(gone))),
            policy=policy_of(self._options),
            vocabulary=self._vocabulary,
            stale_since=self._pools.stale_since(options),
        )
        question = self._spread.applied(question)
        began = self._clock.monotonic()
        tried = simulate.judged(await self._planner.plan(question), question, gone, snapshot)
        self._metrics.voluntary_disruption_decision_evaluation_duration_seconds.labels(
            reason=repair.REASON.lower(), consolidation_type=""
        ).observe(self._clock.monotonic() - began)
        return tried

    async def _after_it(
        self, target: BrokenNode, snapshot: Snapshot, options: tuple[PoolOption, ...]
    ) -> simulate.SimulatedPlan | None:
        """What would happen once its place in a reservation is free; nothing if it has none, or is not to go first."""
        reservation = terminatefirst.reservation_of(target.state, self._vocabulary)
        if not reservation or not self._options.gates.terminate_first_repair:
            return None
        freed = terminatefirst.credited(options, reservation)
        return await self._simulated(target, snapshot, freed) if freed is not options else None

    async def _replace_static(self, target: BrokenNode, pool: NodePool, catalog: Catalog) -> bool:
        """One for one, if the limit leaves room for one more; if not, the old one first, where that is wanted."""
        staying = [each for each in self._cluster.claims_of(pool.name) if not claimconditions.is_leaving(each)]
        if pool.spec.replicas is not None and len(staying) > pool.spec.replicas:
            return self._blocked(target, f"NodePool {pool.name} has more nodes than it should have for now")
        if terminatefirst.is_full(catalog):
            reservation = terminatefirst.reservation_of(target.state, self._vocabulary)
            helps = bool(reservation) and terminatefirst.offers(catalog, reservation)
            problem = f"nothing is left of the reservations that NodePool {pool.name} can buy from"
            return await self._first(target, pool, terminatefirst.NO_RESERVED_CAPACITY, problem, helps=helps)
        limit = pool.spec.limits.get(NODES)
        granted = self._cluster.reserve(pool.name, 1, None if limit is None else limit // MILLI)
        if not granted:
            problem = f"the limit of NodePool {pool.name} leaves no room for another node"
            return await self._first(target, pool, terminatefirst.AT_LIMIT, problem, helps=True)
        try:
            return await self._commands.start(replace(self._command(target, decision.REPLACE), replicas=pool))
        finally:
            self._cluster.release(pool.name, granted)

    async def _first(self, target: BrokenNode, pool: NodePool, reason: str, problem: str, *, helps: bool) -> bool:
        """Let a node of a pool with a number of nodes go first, where that is wanted and helps; another one follows by itself."""
        usable = is_true(pool.status.conditions, READY) and pool.metadata.deletion_timestamp is None
        if not helps or not usable:
            return self._blocked(target, problem)
        if not self._options.gates.terminate_first_repair:
            return self._blocked(target, f"{problem}; the feature gate TerminateFirstRepair would let it go first")
        return await self._go_first(target, reason)

    async def _go_first(self, target: BrokenNode, reason: str, nominated: tuple[str, ...] = ()) -> bool:
        command = replace(self._command(target, decision.TERMINATE_FIRST), nominated=nominated)
        if not await self._commands.start(command):
            return False
        self._metrics.voluntary_disruption_terminate_first_decisions_total.labels(
            nodepool=target.state.nodepool, reason=repair.REASON.lower(), terminate_first_reason=reason
        ).inc()
        return True

    def _command(self, target: BrokenNode, how: str) -> Command:
        return Command(
            reason=repair.REASON,
            candidates=(target.state,),
            decision=how,
            bound=target.bound,
            condition=target.diagnosis.condition,
        )

    async def _reboot(self, target: BrokenNode) -> bool:
        """Write down that the machine is to be restarted; the controller `nodeclaim.reboot` reads it there."""
        try:
            claim = await self._client.get(NodeClaim, target.claim.name)
        except NotFound:
            return False
        taken = claimconditions.is_leaving(claim) or claimconditions.holds(claim, REBOOTING)
        if taken or claim.metadata.uid != target.claim.metadata.uid:
            return False
        noted = replace(claim, metadata=replace(claim.metadata, annotations=_annotations(claim, target.bound)))
        claim = await self._client.patch(claim, noted, locked=True)
        edit = StatusEdit(claim, self._clock.now())
        edit.true(DISRUPTION_REASON, reason=repair.REASON)
        cause = f"{target.diagnosis.condition}/{target.diagnosis.reason}"
        edit.true(REBOOTING, reason=claimconditions.REBOOT_REQUESTED, message=cause)
        claim = await edit.write(self._client)
        self._reboots.note(claim.metadata.uid, self._clock.now())
        decided = {"decision": REBOOT_DECISION, "reason": repair.REASON.lower(), "consolidation_type": ""}
        pool = target.state.nodepool
        self._metrics.voluntary_disruption_decisions_total.labels(**decided).inc()
        self._metrics.voluntary_disruption_decisions_by_nodepool_total.labels(nodepool=pool, **decided).inc()
        await self._heard(claim)
        return True

    async def _heard(self, claim: NodeClaim) -> None:
        """Wait until the cache knows of a restart we decided: the next decision must count it."""
        for _ in range(HEARING_TRIES):
            known = self._informers.get(NodeClaim, claim.name)
            if known is None or _requested_at(known) == _requested_at(claim):
                return
            await asyncio.sleep(HEARING_S)


def _requested_at(claim: NodeClaim) -> datetime | None:
    told = find(claim.status.conditions, REBOOTING)
    return told.last_transition_time if told is not None and told.status == "True" else None


def _annotations(claim: NodeClaim, bound: Duration | None) -> dict[str, str]:
    """The claim's annotations with this bound, and with nothing left over from an earlier restart."""
    stale = (claimconditions.REBOOT_GRACE, claimconditions.PRE_BOOT_ID)
    kept = {key: value for key, value in claim.metadata.annotations.items() if key not in stale}
    return kept if bound is None else {**kept, claimconditions.REBOOT_GRACE: bound.text()}


def _requests(tried: simulate.SimulatedPlan) -> tuple[ClaimRequest, ...]:
    options = {each.pool.name: each for each in tried.question.pools}
    pods = {pod.key: pod for pod in tried.question.pods}
    return tuple(
        ClaimRequest(each, options[each.nodepool], tuple(pods[key] for key in each.pods)) for each in tried.replacements
    )
