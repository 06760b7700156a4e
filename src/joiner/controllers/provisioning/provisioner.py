"""Provisioning: pods that wait are gathered, planned for together, and what is missing is written down as NodeClaims.

Two small controllers trigger, for pods that wait and for nodes that go. The third gathers, waits until the state of the cluster
is complete, plans, reports the plan and writes the claims. While something is left over it looks again from time to time, and
plans again only if anything changed that could change the answer: a shortage that ended, an edit, a node that became free.
"""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from joiner.controllers.provisioning.batcher import Batcher
from joiner.controllers.provisioning.claimwriter import ClaimRequest, ClaimWriter, launch_request
from joiner.controllers.provisioning.launchretries import Choice, LaunchRetries
from joiner.controllers.provisioning.pools import Pools, SpreadDefaults, policy_of
from joiner.controllers.provisioning.reporting import CONTROLLER, PlanReporter, real_pods
from joiner.controllers.shared import Shared
from joiner.kube.client import Key
from joiner.kube.controller import ALONE, DONE, Change, Reconciler, Result, Watch
from joiner.model import podrules
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.model.taints import DISRUPTED, is_among
from joiner.scheduling.plan import Plan, Refusal, RefusalReason
from joiner.scheduling.problem import PoolOption, Problem
from joiner.state.problem import problem, same
from joiner.state.virtualpods import is_virtual

LOOK_AGAIN_S: Final = 10.0
"""How often it is asked whether anything changed for pods that are left over."""
LOOK_AFTER_BUFFERS_S: Final = 30.0
"""The same where only room for pods to come is at stake."""
UNSYNCED_S: Final = 0.5
"""How often it is asked whether the state of the cluster is complete."""


class Buffered(Protocol):
    """The room that is kept for pods which are not there yet."""

    def pods(self) -> tuple[Pod, ...]:
        """The virtual pods that stand for it."""
        ...

    async def tell(self, plan: Plan, pods: Iterable[Pod]) -> None:
        """A plan was made that has these pods in it."""
        ...


# -- the triggers ----------------------------------------------------------------------------------------------------------


def _waits(change: Change) -> Iterable[Key]:
    pod: Pod | None = change.after
    if pod is not None and podrules.is_provisionable(pod):
        yield Key(pod.metadata.namespace, pod.name)


class PodTrigger(Reconciler):
    """Triggers for every pod that waits for a node that we could bring, and remembers when it was first seen."""

    name = "provisioner.trigger.pod"
    watches = (Watch(Pod, _waits),)

    def __init__(self, shared: Shared, *, batcher: Batcher) -> None:
        self._informers, self._cluster, self._batcher = shared.informers, shared.cluster, batcher
        self._clock = shared.clock

    async def reconcile(self, key: Key) -> Result:
        """Trigger, if the pod still waits."""
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
    """Triggers for nodes and claims that go: their pods need other places, and pods that counted on them need new ones."""

    name = "provisioner.trigger.node"
    watches = (Watch(Node, _goes), Watch(NodeClaim, _goes))

    def __init__(self, *, batcher: Batcher) -> None:
        self._batcher = batcher

    async def reconcile(self, key: Key) -> Result:
        """Trigger."""
        self._batcher.trigger(key.name)
        return DONE


# -- the loop -----------------------------------------------------------------------------------------------------------


class _Answered(NamedTuple):
    """A problem, and its plan."""

    question: Problem
    plan: Plan
    resting: tuple[Refusal, ...]


class Provisioner(Reconciler):
    """Gathers, plans, reports, writes; one window after the other."""

    name = CONTROLLER
    workers = 1
    keys_at_start = (ALONE,)

    def __init__(
        self,
        shared: Shared,
        *,
        claims: ClaimWriter,
        retries: LaunchRetries,
        batcher: Batcher,
        room: Buffered | None = None,
    ) -> None:
        self._cluster = shared.cluster
        self._pools = Pools(shared)
        self._claims, self._batcher, self._clock, self._vocabulary = claims, batcher, shared.clock, shared.vocabulary
        self._room, self._retries = room, retries
        self._spread = SpreadDefaults(shared)
        self._policy = policy_of(shared.options)
        self._reporter = PlanReporter(shared)
        self._nominated_for = timedelta(seconds=shared.options.nomination_s)
        self._planner = shared.planner(CONTROLLER)
        self._again_s: float | None = 0.0
        self._answered: _Answered | None = None
        self._probed: Problem | None = None
        self._probes = 0

    async def reconcile(self, key: Key) -> Result:
        """Wait for a window to close, then do all that it takes."""
        await self._batcher.wait(self._again_s)
        self._again_s = 0.0  # should anything fail, the pods of this window are not forgotten
        while not await self._provisioned():
            await asyncio.sleep(UNSYNCED_S)
        self._again_s = self._next_look()
        return Result(0.0)

    def _next_look(self) -> float | None:
        """When to look again without a trigger; None when no pod waits."""
        snapshot = self._cluster.snapshot(self._clock.now())
        if snapshot.waiting or snapshot.evicted or snapshot.held:
            return LOOK_AGAIN_S
        return LOOK_AFTER_BUFFERS_S if self._virtual_pods() else None

    async def _provisioned(self) -> bool:
        """Do it, if enough is known of every claim; whether it was done."""
        async with self._claims.deciding:
            if not self._cluster.synced(self._clock.now()):
                return False
            await self._provision()
            return True

    async def _provision(self) -> None:
        """Plan for everything that waits, and write what is missing."""
        snapshot, virtual = self._cluster.snapshot(self._clock.now()), self._virtual_pods()
        if not snapshot.waiting and not snapshot.evicted and not virtual:
            self._answered = None
            self._reporter.nobody_waits()
            await self._tell_room(Plan(), ())
            return
        options, skipped = await self._pools.options(snapshot)
        question = problem(
            snapshot,
            self._reduced(options),
            virtual=virtual,
            policy=self._policy,
            vocabulary=self._vocabulary,
            stale_since=self._pools.stale_since(options),
        )
        question = self._spread.applied(question)
        resting = self._resting(question)
        known = self._answered
        if known is not None and same(known.question, question) and known.resting == resting:
            plan = known.plan
            now = self._clock.now()
            self._cluster.nominate_all(plan, real_pods(question), now + self._nominated_for, now)
        else:
            plan = await self._answer(question, resting, skipped)
        # What was bought a moment ago does not count against limits yet: one look later it does.
        if not plan.claims and any(self._retries.due(each.pool.name) for each in options):
            await self._probe(plan, replace(question, pools=self._reduced(options, rested=True)))
        await self._tell_room(plan, question.pods)

    def _reduced(self, options: tuple[PoolOption, ...], *, rested: bool = False) -> tuple[PoolOption, ...]:
        """The pools without what failed when it was last tried, or only without that part of it that still rests."""
        return tuple(replace(each, catalog=self._retries.reduced(each.catalog, rested=rested)) for each in options)

    async def _probe(self, plan: Plan, question: Problem) -> None:
        """Try what failed and has rested since, with claims for single pods of those that found no other place.

        A claim for one pod may be launched in more ways than one for many: few of them try everything.
        """
        waiting = {each.pod for each in plan.refusals if not each.ignored}
        waiting.difference_update(each.pod for each in self._resting(question))
        question = replace(question, pods=tuple(pod for pod in question.pods if pod.key in waiting))
        if not question.pods or (self._probed is not None and same(self._probed, question)):
            return
        requests = await self._single_pod_requests(question)
        await self._write(Plan(claims=tuple(request.planned for request in requests)), requests, question)
        # Should the same be asked again after a purchase, what was bought is gone.
        self._probed = None if requests else question

    async def _single_pod_requests(self, question: Problem) -> tuple[ClaimRequest, ...]:
        """For each part of what the pods could be bought, as far as the parts share nothing, the request of a single pod.

        Another pod begins each time, so that one whose claims can never be launched does not stand before the others for ever.
        """
        pods, tried, found = {pod.key: pod for pod in question.pods}, set[Choice](), list[ClaimRequest]()
        requests = _requests(await self._planner.plan(question), question)
        start = self._probes % len(requests) if requests else 0
        for request in (*requests[start:], *requests[:start]):
            if tried.isdisjoint(launch_request(request).choices()):
                names = request.planned.pods
                alone = replace(question, pods=(pods[names[self._probes % len(names)]],))
                found.extend(_requests(await self._planner.plan(alone), alone))
                tried.update(choice for each in found for choice in launch_request(each).choices())
        self._probes += 1
        return tuple(found)

    def _resting(self, question: Problem) -> tuple[Refusal, ...]:
        """The pods that nothing is bought for now, because what was bought for them did not take them."""
        now = self._clock.now()
        until = ((pod, self._cluster.rests_until(pod, now)) for pod in question.pods if not is_virtual(pod))
        return tuple(_rests(pod, moment) for pod, moment in until if moment is not None and now < moment)

    async def _answer(
        self, question: Problem, resting: tuple[Refusal, ...], skipped: tuple[RefusalReason, ...]
    ) -> Plan:
        """Plan, report, write. What was not written as planned is planned for again."""
        self._answered = None
        self._reporter.question(question)
        names = {each.pod for each in resting}
        asked = replace(question, pods=tuple(pod for pod in question.pods if pod.key not in names))
        plan = await self._planner.plan(asked if names else question)
        plan = replace(plan, refusals=(*plan.refusals, *resting))
        now = self._clock.now()
        waited = self._cluster.record(plan, real_pods(question), now, now + self._nominated_for)
        self._reporter.plan(plan, question, skipped, waited)
        await self._write(plan, _requests(plan, question), question)
        # Should the same be asked again after a purchase, what was bought is gone.
        if not plan.claims and not plan.not_attempted:
            self._answered = _Answered(question, plan, resting)
        return plan

    async def _write(self, plan: Plan, requests: tuple[ClaimRequest, ...], question: Problem) -> None:
        outcomes = await self._claims.buy(requests)
        now = self._clock.now()
        for outcome, request in zip(outcomes, requests, strict=True):
            if outcome.claim is not None and request.pods:
                self._cluster.nominate(outcome.claim.name, now + self._nominated_for, now)
        self._reporter.outcomes(outcomes, plan, question)

    def _virtual_pods(self) -> tuple[Pod, ...]:
        return self._room.pods() if self._room is not None else ()

    async def _tell_room(self, plan: Plan, pods: tuple[Pod, ...]) -> None:
        if self._room is not None:
            await self._room.tell(plan, pods)


def _rests(pod: Pod, until: datetime) -> Refusal:
    message = (
        "nodes that were bought for it joined and did not take it: they have less than their type promises, or others took"
        f" the room; the next one is bought at {until:%H:%M:%S} UTC at the earliest"
    )
    reason = RefusalReason(rule="disappointed", object=f"Pod {pod.key}", message=message)
    return Refusal(pod=pod.key, reasons=(reason,))


def _requests(plan: Plan, question: Problem) -> tuple[ClaimRequest, ...]:
    options, known = {each.pool.name: each for each in question.pools}, real_pods(question)
    return tuple(
        ClaimRequest(each, options[each.nodepool], tuple(known[key] for key in each.pods if key in known))
        for each in plan.claims
    )
