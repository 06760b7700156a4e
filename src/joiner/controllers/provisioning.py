"""Provisioning: pods that wait are gathered, planned for together, and what is missing is written down as NodeClaims.

Two small controllers ring the bell, for pods that wait and for nodes that go. The third gathers, waits until the picture is
whole, asks the core, tells the answer and writes the claims. While something is left over it looks again from time to time, and
plans again only if anything changed that could change the answer: a shortage that ended, an edit, a node that became free.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from itertools import count
from typing import Final, Protocol

from joiner.clock import Clock
from joiner.cloud.cached import Catalogs
from joiner.cloud.errors import CloudError
from joiner.controllers.batcher import Batcher
from joiner.controllers.claims import Claims, Outcome, Wish
from joiner.kube.client import Key
from joiner.kube.controller import ALONE, DONE, Change, Reconciler, Result, Watch
from joiner.kube.informer import Informers
from joiner.model import podrules
from joiner.model.conditions import READY, is_true
from joiner.model.labels import Vocabulary
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.taints import DISRUPTED, is_among
from joiner.observe.events import Recorder
from joiner.observe.metrics import Metrics
from joiner.options import Options
from joiner.scheduling.dials import NODE_PRICE, SPOT_WIDTH, SPOT_WIDTH_COST
from joiner.scheduling.plan import Plan, Reason, Refusal
from joiner.scheduling.problem import Policy, PoolOption, Problem
from joiner.scheduling.schedule import schedule
from joiner.state.buffers import is_virtual
from joiner.state.cluster import Cluster
from joiner.state.managed import Managed
from joiner.state.pods import declines_us
from joiner.state.question import problem, same
from joiner.state.snapshot import Snapshot
from joiner.state.usage import used_by

LOOK_AGAIN_S: Final = 10.0
"""How often it is asked whether anything changed for pods that are left over."""
LOOK_AFTER_BUFFERS_S: Final = 30.0
"""The same where only room for pods to come is at stake."""
UNSYNCED_S: Final = 0.5
"""How often it is asked whether the picture is whole."""
CONTROLLER: Final = "provisioner"

Compute = Callable[[Callable[[Problem], Plan], Problem], Awaitable[Plan]]
"""Where plans are made: here, or in a process of its own."""


class Buffered(Protocol):
    """The room that is kept for pods which are not there yet."""

    def pods(self) -> tuple[Pod, ...]:
        """The virtual pods that stand for it."""
        ...

    async def tell(self, plan: Plan, pods: Iterable[Pod]) -> None:
        """A plan was made that has these pods in it."""
        ...


async def inline(function: Callable[[Problem], Plan], question: Problem) -> Plan:
    """Make the plan here and now."""
    return function(question)


# -- the bells ----------------------------------------------------------------------------------------------------------


def _waits(change: Change) -> Iterable[Key]:
    pod: Pod | None = change.after
    if pod is not None and podrules.is_provisionable(pod):
        yield Key(pod.metadata.namespace, pod.name)


class PodTrigger(Reconciler):
    """Rings for every pod that waits for a node that we could bring, and remembers when it was first seen."""

    name = "provisioner.trigger.pod"
    watches = (Watch(Pod, _waits),)

    def __init__(self, *, informers: Informers, cluster: Cluster, batcher: Batcher, clock: Clock) -> None:
        self._informers = informers
        self._cluster = cluster
        self._batcher = batcher
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        """Ring, if the pod still waits."""
        pod = self._informers.get(Pod, key.name, key.namespace)
        if pod is not None and podrules.is_provisionable(pod):
            self._cluster.acknowledge(pod, self._clock.now())
            self._batcher.trigger(pod.metadata.uid)
        return DONE


def _goes(change: Change) -> Iterable[Key]:
    thing = change.latest
    deleted = change.after is None or thing.metadata.deletion_timestamp is not None
    if deleted or (isinstance(thing, Node) and is_among(DISRUPTED, thing.spec.taints)):
        yield Key("", f"{thing.kind}/{thing.metadata.uid}")


class NodeTrigger(Reconciler):
    """Rings for nodes and claims that go: their pods need other places, and pods that counted on them need new ones."""

    name = "provisioner.trigger.node"
    watches = (Watch(Node, _goes), Watch(NodeClaim, _goes))

    def __init__(self, *, batcher: Batcher) -> None:
        self._batcher = batcher

    async def reconcile(self, key: Key) -> Result:
        """Ring."""
        self._batcher.trigger(key.name)
        return DONE


# -- the loop -----------------------------------------------------------------------------------------------------------


class Provisioner(Reconciler):
    """Gathers, plans, tells, writes; one window after the other."""

    name = CONTROLLER
    workers = 1
    keys_at_start = (ALONE,)

    def __init__(
        self,
        *,
        informers: Informers,
        cluster: Cluster,
        managed: Managed,
        catalogs: Catalogs,
        claims: Claims,
        batcher: Batcher,
        clock: Clock,
        recorder: Recorder,
        metrics: Metrics,
        options: Options,
        vocabulary: Vocabulary,
        room: Buffered | None = None,
        compute: Compute = inline,
    ) -> None:
        self._informers = informers
        self._cluster = cluster
        self._managed = managed
        self._catalogs = catalogs
        self._claims = claims
        self._batcher = batcher
        self._clock = clock
        self._recorder = recorder
        self._metrics = metrics
        self._options = options
        self._vocabulary = vocabulary
        self._room = room
        self._compute = compute
        self._policy = policy_of(options)
        self._numbers = count(1)
        self._again_s: float | None = 0.0
        self._answered: tuple[Problem, Plan] | None = None

    async def reconcile(self, key: Key) -> Result:
        """Wait for a window to close, then do all that it takes."""
        await self._batcher.wait(self._again_s)
        self._again_s = 0.0  # should anything fail, the pods of this window are not forgotten
        while not self._cluster.synced(self._clock.now()):
            await asyncio.sleep(UNSYNCED_S)
        await self._provision()
        self._again_s = self._next_look()
        return Result(0.0)

    def _next_look(self) -> float | None:
        """When to look again although nobody rings; never when nobody waits."""
        snapshot = self._cluster.snapshot(self._clock.now())
        if snapshot.waiting or snapshot.evicted or snapshot.held:
            return LOOK_AGAIN_S
        return LOOK_AFTER_BUFFERS_S if self._virtual_pods() else None

    async def _provision(self) -> None:
        """Plan for everything that waits, and write what is missing."""
        snapshot, virtual = self._cluster.snapshot(self._clock.now()), self._virtual_pods()
        if not snapshot.waiting and not snapshot.evicted and not virtual:
            self._tell_counts(Plan())
            self._answered = None
            await self._tell_room(Plan(), None)
            return
        options, skipped = await self._pools(snapshot)
        question = problem(snapshot, options, virtual=virtual, policy=self._policy, vocabulary=self._vocabulary)
        if self._answered is not None and same(self._answered[0], question):
            self._nominate(self._answered[1], question)
            await self._tell_room(self._answered[1], question)
            return
        self._answered = None
        plan = await self._planned(question)
        self._tell(plan, question, skipped)
        outcomes = await self._claims.buy(_wishes(plan, question))
        self._tell_outcomes(outcomes, plan, question)
        if all(outcome.claim is not None for outcome in outcomes):
            self._answered = (question, plan)
        await self._tell_room(plan, question)

    def _virtual_pods(self) -> tuple[Pod, ...]:
        return self._room.pods() if self._room is not None else ()

    async def _tell_room(self, plan: Plan, question: Problem | None) -> None:
        if self._room is not None:
            await self._room.tell(plan, question.pods if question is not None else ())

    async def _pools(self, snapshot: Snapshot) -> tuple[tuple[PoolOption, ...], tuple[Reason, ...]]:
        """The pools that may be asked, with what they can buy; and why others are left out. One never stops the others."""
        options: list[PoolOption] = []
        skipped: list[Reason] = []
        for pool in self._informers.all(NodePool):
            if not self._managed.pool(pool) or pool.spec.replicas is not None or pool.metadata.deletion_timestamp:
                continue
            if not is_true(pool.status.conditions, READY):
                skipped.append(_left_out(pool, "it is not ready"))
                continue
            try:
                catalog = await self._catalogs.get(pool)
            except CloudError as error:
                skipped.append(_left_out(pool, str(error)))
                continue
            if not catalog.eligible:
                self._recorder.publish(
                    pool,
                    "NoCompatibleInstanceTypes",
                    "no instance type that can be bought now meets the requirements",
                    warning=True,
                )
            used = used_by(snapshot, pool.name, pool.spec.limits, catalog)
            options.append(PoolOption(pool=pool, catalog=catalog, used=used))
        return tuple(options), tuple(skipped)

    async def _planned(self, question: Problem) -> Plan:
        """The plan; pods that ask for devices are refused before."""
        metrics, number, began = self._metrics, str(next(self._numbers)), self._clock.monotonic()
        depth = {"controller": CONTROLLER, "scheduling_id": number}
        metrics.scheduler_queue_depth.labels(**depth).set(len(question.pods))
        try:
            return await self._compute(plan_for, question)
        finally:
            metrics.scheduler_queue_depth.remove(CONTROLLER, number)
            metrics.scheduler_scheduling_duration_seconds.labels(controller=CONTROLLER).observe(
                self._clock.monotonic() - began
            )

    # -- telling ------------------------------------------------------------------------------------------------------

    def _nominate(self, plan: Plan, question: Problem) -> None:
        """Nodes that pods were sent to are left alone for a while."""
        until = self._clock.now() + timedelta(seconds=self._options.nomination_s)
        virtual = {_key(pod) for pod in question.pods if is_virtual(pod)}
        for name, pods in plan.placements.items():
            if any(pod not in virtual for pod in pods):
                self._cluster.nominate(name, until)

    def _tell(self, plan: Plan, question: Problem, skipped: tuple[Reason, ...]) -> None:
        now, known = self._clock.now(), {_key(pod): pod for pod in question.pods if not is_virtual(pod)}
        placed = {key for pods in plan.placements.values() for key in pods}
        placed.update(key for claim in plan.claims for key in claim.pods)
        for key, pod in known.items():
            times = self._cluster.acknowledge(pod, now)
            if times.attempted is None:
                times.attempted = now
                waited = (now - times.seen).total_seconds()
                self._metrics.pods_scheduling_decision_duration_seconds.observe(waited)
            if key in placed and times.schedulable is None:
                times.schedulable = now
        self._nominate(plan, question)
        unlaunched = {each.name for each in self._cluster.snapshot(now).unlaunched}
        for name, pods in plan.placements.items():
            for key in pods:
                if key in known:
                    self._promise(known[key], name, in_flight=name in unlaunched)
        for refusal in plan.refusals:
            if refusal.pod in known:
                self._refuse(known[refusal.pod], refusal, skipped)
        self._tell_counts(plan)

    def _promise(self, pod: Pod, name: str, *, in_flight: bool) -> None:
        if in_flight:
            self._cluster.promise(pod, name, self._clock.now())
        self._recorder.publish(pod, "Nominated", f"Pod should schedule on {name}")

    def _refuse(self, pod: Pod, refusal: Refusal, skipped: tuple[Reason, ...]) -> None:
        if declines_us(pod):
            return
        reasons = refusal.reasons if refusal.ignored else (*refusal.reasons, *skipped)
        message = "; ".join(f"{each.object}: {each.message}" for each in reasons)
        self._recorder.publish(pod, "FailedScheduling", f"Failed to schedule pod, {message}", warning=True)

    def _tell_counts(self, plan: Plan) -> None:
        ignored = sum(each.ignored for each in plan.refusals)
        self._metrics.scheduler_ignored_pods_count.set(ignored)
        self._metrics.scheduler_unschedulable_pods_count.labels(controller=CONTROLLER).set(len(plan.refusals) - ignored)

    def _tell_outcomes(self, outcomes: tuple[Outcome, ...], plan: Plan, question: Problem) -> None:
        known = {_key(pod): pod for pod in question.pods if not is_virtual(pod)}
        until = self._clock.now() + timedelta(seconds=self._options.nomination_s)
        for outcome, planned in zip(outcomes, plan.claims, strict=True):
            pods = [known[key] for key in planned.pods if key in known]
            if outcome.claim is None:
                for pod in pods:
                    self._recorder.publish(pod, "FailedScheduling", outcome.problem, warning=True)
                continue
            if pods:
                self._cluster.nominate(outcome.claim.name, until)
            for pod in pods:
                self._recorder.publish(pod, "Nominated", f"Pod should schedule on {outcome.claim.name}")


# -- the question ---------------------------------------------------------------------------------------------------------


def policy_of(options: Options) -> Policy:
    """How to plan, as people set it."""
    return Policy(
        preferences=options.preference_policy,
        min_values=options.min_values_policy,
        reserved_capacity=options.gates.reserved_capacity,
        node_price=NODE_PRICE,
        spot_width=SPOT_WIDTH,
        spot_width_cost=SPOT_WIDTH_COST,
    )


def plan_for(question: Problem) -> Plan:
    """The plan for a problem; pods that ask for devices are refused and never tried."""
    refused = tuple(_asks_for_devices(pod) for pod in question.pods if pod.spec.resource_claims)
    if refused:
        question = replace(question, pods=tuple(pod for pod in question.pods if not pod.spec.resource_claims))
    plan = schedule(question)
    return replace(plan, refusals=(*plan.refusals, *refused)) if refused else plan


def _asks_for_devices(pod: Pod) -> Refusal:
    message = "the pod asks for devices by resource claims, which cannot be planned for yet"
    reason = Reason(rule="devices", object=f"Pod {_key(pod)}", message=message)
    return Refusal(pod=_key(pod), ignored=True, reasons=(reason,))


def _wishes(plan: Plan, question: Problem) -> tuple[Wish, ...]:
    options = {each.pool.name: each for each in question.pools}
    known = {_key(pod): pod for pod in question.pods if not is_virtual(pod)}
    return tuple(
        Wish(each, options[each.nodepool], tuple(known[key] for key in each.pods if key in known))
        for each in plan.claims
    )


def _left_out(pool: NodePool, why: str) -> Reason:
    return Reason(rule="nodepool", object=f"NodePool {pool.name}", message=f"left out: {why}")


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.name}"
