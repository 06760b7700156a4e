"""The disruption loop: empty nodes go, drifted ones are replaced, the others are consolidated; one method after the other.

    situation ─ emptiness ─ static drift ─ drift ─ consolidation ─ wait ten seconds
                   └──────────┴────────────┴──────────┴── something to do: (wait, look again,) command queue ─ next pass at once

What is only worth while is looked at a second time after fifteen seconds; a node that pods have come to meanwhile stays. A pass
that found nothing is not repeated before anything has changed that it depended on, or five minutes have gone by.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple, TypeVar

from joiner.controllers.disruption.observation import Observation, VirtualPods
from joiner.controllers.disruption.queue import Command, CommandQueue
from joiner.controllers.disruption.softtaint import SoftTaint
from joiner.controllers.disruption.staticdrift import StaticDrift
from joiner.controllers.provisioning.claimwriter import ClaimRequest
from joiner.controllers.shared import Shared
from joiner.disruption import decision as deciding
from joiner.disruption.consolidation import balanced
from joiner.disruption.consolidation.memory import Memory
from joiner.disruption.consolidation.payback import told, why
from joiner.disruption.consolidation.search import consolidate, still_pays
from joiner.disruption.decision import Decision, Move
from joiner.disruption.eligibility import Objection, may_still_go
from joiner.disruption.methods.drifted import drift, static_drift
from joiner.disruption.methods.emptiness import emptiness, still_empty
from joiner.disruption.situation import Situation
from joiner.kube.client import Key
from joiner.kube.controller import ALONE, Reconciler, Result
from joiner.model.budget import remaining
from joiner.model.claimconditions import DRIFTED, holds
from joiner.model.meta import KubeObject
from joiner.model.nodepool import NodePool
from joiner.observe.claims import snake
from joiner.state.pods import protected_until

T = TypeVar("T")

POLL_S: Final = 10.0
UNSYNCED_S: Final = 1.0
VALIDATION_S: Final = 15.0
"""How long a decision that is only worth while waits for a second look."""
FORGET: Final = timedelta(minutes=5)
"""How long a pass that found nothing holds, if nothing changes."""


class _Quiet(NamedTuple):
    """What a pass that found nothing depended on, and how long that holds."""

    stamp: tuple[object, ...]
    until: float
    """By the clock that is never set back."""


class Disruption(Reconciler):
    """Removes and replaces nodes of its own accord."""

    name = "disruption"
    workers = 1
    keys_at_start = (ALONE,)

    def __init__(self, shared: Shared, *, commands: CommandQueue, virtual: VirtualPods | None = None) -> None:
        self._cluster, self._clock, self._commands = shared.cluster, shared.clock, commands
        self._recorder, self._metrics, self._informers = shared.recorder, shared.metrics, shared.informers
        self._observation = Observation(shared, commands, virtual)
        self._static = StaticDrift(shared, commands=commands)
        self._soft_taint = SoftTaint(shared)
        self._apart = shared.apart
        self._memory = Memory()
        self._target: frozenset[str] = frozenset()
        self._cut_short = False
        """Whether the last search for moves ran out of questions."""
        self._quiet: _Quiet | None = None

    async def reconcile(self, key: Key) -> Result:
        """One pass."""
        if not self._is_synced():
            return Result(UNSYNCED_S)
        situation = await self._observation.situation()
        known, monotonic = self._quiet, self._clock.monotonic()
        if known is not None and monotonic < known.until and _stamp(situation) == known.stamp:
            return Result(POLL_S)
        self._quiet = None
        if await self._emptiness(situation) or await self._drift(situation):
            return Result(0.0)
        if await self._consolidation(situation):
            return Result(0.0)
        if await self._soft_taint.write(self._target) and not self._cut_short:
            self._quiet = _Quiet(_stamp(situation), self._clock.monotonic() + _holds_for_s(situation))
        return Result(POLL_S)

    def _is_synced(self) -> bool:
        return self._cluster.synced(self._clock.now())

    async def proposed(self) -> tuple[str, ...]:
        """What the next pass would begin, in words."""
        situation = await self._observation.situation()
        static, _ = static_drift(situation)
        decided = (emptiness(situation), drift(situation), consolidate(situation, self._memory).decision)
        return (
            *(
                f"{move.decision} {', '.join(move.nodes)} for reason {move.reason}"
                for each in decided
                for move in each.moves
            ),
            *(f"replace {each.name}, which has drifted" for found in static.values() for each in found),
        )

    # -- the methods --------------------------------------------------------------------------------------------------

    async def _emptiness(self, situation: Situation) -> bool:
        found = await self._decided(deciding.EMPTY, "empty", emptiness, situation)
        for move in found.moves:
            await asyncio.sleep(VALIDATION_S)
            async with self._commands.deciding:
                now = await self._observation.situation()
                still = await self._aside(partial(still_empty, move, now), now)
                if still is not None and await self._holds(still, now):
                    await self._start(still)
                else:
                    self._rejected(move, "the nodes are no longer empty, or may not go any more")
        return bool(found.moves)

    async def _drift(self, situation: Situation) -> bool:
        if not any(holds(each.claim, DRIFTED) for each in situation.by_claim.values() if each.claim is not None):
            began = self._clock.monotonic()
            found = drift(situation)
            self._observe(deciding.DRIFTED, "", began)
            self._told(found)
            return False
        async with self._commands.deciding:
            if not self._is_synced():
                return False
            situation = await self._observation.situation()
            if await self._static.replace(situation, self._told):
                return True
        # Many that cannot go may be asked before one that can: nothing else waits for that.
        found = await self._decided(deciding.DRIFTED, "", drift, situation)
        return any([await self._replaced(move, situation) for move in found.moves])

    async def _replaced(self, move: Move, situation: Situation) -> bool:
        """Start the replacement of a drifted node, looked at once more where anything has changed."""
        async with self._commands.deciding:
            now = await self._observation.situation()
            if _stamp(now) == _stamp(situation):
                return await self._start(move)
            name = move.candidates[0].claim.name
            again = await self._aside(partial(drift, now, only=name), now)
            return any([await self._start(each) for each in again.moves if await self._holds(each, now)])

    async def _consolidation(self, situation: Situation) -> bool:
        began = self._clock.monotonic()
        self._memory = self._memory.withdrawn(_given_up(self._memory, situation))
        found = await self._aside(partial(consolidate, situation, self._memory, kept=self._target), situation)
        kind = "multi" if any(len(move.candidates) > 1 for move in found.decision.moves) else "single"
        self._observe(deciding.UNDERUTILIZED, kind, began)
        self._memory, self._target, self._cut_short = found.memory, found.target, bool(found.cut_short)
        for search in found.cut_short:
            self._metrics.voluntary_disruption_consolidation_timeouts_total.labels(consolidation_type=search).inc()
        self._told(found.decision)
        if not found.decision.moves:
            return False
        for move in found.decision.moves:
            self._propose(move)
        await self._soft_taint.write(self._target)
        await asyncio.sleep(VALIDATION_S)
        for move in found.decision.moves:
            await self._validated(move)
        return True

    async def _validated(self, move: Move) -> None:
        """Start the move if it still holds; each is held against what those before it have left."""
        while not self._is_synced():
            await asyncio.sleep(UNSYNCED_S)
        async with self._commands.deciding:
            now = await self._observation.situation()
            still, why = await self._aside(partial(still_pays, move, now, self._memory), now)
            if still is not None and not await self._holds(still, now):
                still, why = None, "its nodes changed while it was looked at again"
            if still is not None and await self._start(still):
                return
        self._memory = self._memory.withdrawn({each.claim.name for each in move.candidates})
        if still is None:
            self._rejected(move, why)

    async def _decided(
        self, reason: str, kind: str, method: Callable[[Situation], Decision], situation: Situation
    ) -> Decision:
        began = self._clock.monotonic()
        found = await self._aside(partial(method, situation), situation)
        self._observe(reason, kind, began)
        self._told(found)
        return found

    async def _aside(self, work: Callable[[], T], situation: Situation) -> T:
        """Decide where it does not hold up leases and watches.

        What an answer and the memory name is the very same afterwards: the next search compares it by identity.
        """
        return await self._apart(work, (*situation.things, *self._memory.things))

    async def _holds(self, move: Move, situation: Situation) -> bool:
        """Whether what was decided elsewhere still holds, after all that happened meanwhile."""
        if self._cluster.snapshot(self._clock.now()) is situation.snapshot:
            return True
        eventual = move.reason == deciding.DRIFTED
        return may_still_go(move.candidates, await self._observation.situation(), eventual=eventual)

    def _observe(self, reason: str, kind: str, began: float) -> None:
        self._metrics.voluntary_disruption_decision_evaluation_duration_seconds.labels(
            reason=reason.lower(), consolidation_type=kind
        ).observe(self._clock.monotonic() - began)

    # -- telling ------------------------------------------------------------------------------------------------------

    def _told(self, found: Decision) -> None:
        for reason, number in found.eligible.items():
            self._metrics.voluntary_disruption_eligible_nodes.labels(reason=reason.lower()).set(number)
        for each in found.objections:
            self._object(each)
        for judged in found.judged:
            said = {"decision": judged.decision, "nodepool": judged.nodepool, "policy": snake(judged.policy)}
            self._metrics.consolidation_moves_total.labels(**said).inc()
            if judged.score is not None:
                self._metrics.consolidation_score.labels(**said).observe(judged.score)

    def _object(self, objection: Objection) -> None:
        things: list[KubeObject] = [
            thing for each in objection.nodes for thing in (each.node, each.claim) if thing is not None
        ]
        pool = self._informers.get(NodePool, objection.pool) if objection.pool else None
        for thing in (*things, *([pool] if pool is not None else [])):
            self._recorder.publish(thing, objection.reason, objection.message, dedupe=objection.dedupe)

    def _propose(self, move: Move) -> None:
        """Tell of a move before the second look."""
        assert move.payback is not None
        message = told(move.payback)
        for each in move.candidates:
            for thing in filter(None, (each.state.node, each.claim)):
                self._recorder.publish(thing, "ConsolidationCandidate", f"it may go: {message}")
        for name, score in move.scores.items():
            text = f"a move of {len(move.candidates)} nodes scores {score:.2f} of {balanced.LEAST}: {message}"
            self._approve(move, name, text)

    def _approve(self, move: Move, pool: str, message: str) -> None:
        if len(move.candidates) == 1:
            each = move.candidates[0]
            things: list[KubeObject | None] = [each.state.node, each.claim]
        else:
            things = [self._informers.get(NodePool, pool)]
        for thing in filter(None, things):
            self._recorder.publish(thing, "ConsolidationApproved", message)

    def _rejected(self, move: Move, why: str) -> None:
        self._metrics.voluntary_disruption_failed_validations_total.labels(
            consolidation_type=move.consolidation_type
        ).inc()
        for each in move.candidates:
            for thing in filter(None, (each.state.node, each.claim)):
                self._recorder.publish(thing, "ConsolidationRejected", f"it stays: {why}")

    # -- doing --------------------------------------------------------------------------------------------------------

    async def _start(self, move: Move) -> bool:
        started = await self._commands.start(command_of(move))
        if started and move.first_because:
            self._metrics.voluntary_disruption_terminate_first_decisions_total.labels(
                nodepool=move.candidates[0].pool.name,
                reason=move.reason.lower(),
                terminate_first_reason=move.first_because,
            ).inc()
        return started


def command_of(move: Move) -> Command:
    """The command that carries a move out."""
    return Command(
        reason=move.reason,
        candidates=tuple(each.state for each in move.candidates),
        replacements=_requests(move),
        replicas=move.replicas,
        nominated=move.tried.places if move.tried is not None else (),
        decision=move.decision,
        consolidation_type=move.consolidation_type,
        message=why(move),
    )


def _requests(move: Move) -> tuple[ClaimRequest, ...]:
    if move.tried is None or not move.claims:
        return ()
    options = {each.pool.name: each for each in move.tried.question.pools}
    pods = {pod.key: pod for pod in move.tried.question.pods}
    return tuple(
        ClaimRequest(each, options[each.nodepool], tuple(pods[key] for key in each.pods)) for each in move.claims
    )


def _given_up(memory: Memory, situation: Situation) -> frozenset[str]:
    """The claims of moves that were begun and came to nothing."""
    going = {name for name, each in situation.by_claim.items() if each.deleting or name in situation.queued}
    return memory.given_up(situation.by_claim.keys(), going)


def _stamp(situation: Situation) -> tuple[object, ...]:
    """Everything that a pass depends on, but for the time."""
    return (
        situation.snapshot.generation,
        tuple((name, id(catalog)) for name, catalog in sorted(situation.catalogs.items())),
        tuple((name, pool.metadata.resource_version) for name, pool in sorted(situation.pools.items())),
        tuple(
            (budget.metadata.namespace, budget.name, budget.metadata.resource_version)
            for namespace in sorted(situation.pod_budgets)
            for budget in situation.pod_budgets[namespace]
        ),
        situation.nominated,
        situation.queued,
        tuple(pod.metadata.uid for pod in situation.virtual),
        _budgets(situation),
    )


def _budgets(situation: Situation) -> tuple[object, ...]:
    """What the budgets that follow a schedule allow."""
    return tuple(
        (name, reason, remaining(pool.spec.disruption.budgets, reason, 100, 0, situation.now))
        for name, pool in sorted(situation.pools.items())
        if any(each.schedule for each in pool.spec.disruption.budgets)
        for reason in (deciding.EMPTY, deciding.DRIFTED, deciding.UNDERUTILIZED)
    )


def _holds_for_s(situation: Situation) -> float:
    """How long to wait although nothing changes: until the first protection of a pod ends, or for five minutes."""
    return (min((*_protections(situation), situation.now + FORGET)) - situation.now).total_seconds()


def _protections(situation: Situation) -> Iterable[datetime]:
    for each in situation.snapshot.nodes:
        for pod in each.pods if each.claim is not None else ():
            until = protected_until(pod, situation.now)
            if until is not None:
                yield until
