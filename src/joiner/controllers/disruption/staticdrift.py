"""Drifted nodes of pools with replicas: replaced one for one while the limit leaves room, else, if wanted, removed first."""

from collections.abc import Callable

from joiner.controllers.disruption.queue import Command, CommandQueue
from joiner.controllers.shared import Shared
from joiner.disruption import terminatefirst
from joiner.disruption.decision import DRIFTED, REPLACE, TERMINATE_FIRST, Decision
from joiner.disruption.eligibility import Candidate, Objection
from joiner.disruption.methods.drifted import static_drift
from joiner.disruption.situation import Situation
from joiner.model import claimconditions
from joiner.model.conditions import READY, find, is_true
from joiner.model.nodepool import NodePool
from joiner.model.quantity import MILLI
from joiner.model.resources import NODES

Tell = Callable[[Decision], None]


class StaticDrift:
    """Starts a command for each drifted node that may go."""

    def __init__(self, shared: Shared, *, commands: CommandQueue) -> None:
        self._cluster, self._commands, self._metrics = shared.cluster, commands, shared.metrics
        self._vocabulary = shared.vocabulary

    async def replace(self, situation: Situation, tell: Tell) -> bool:
        """Whether anything was begun."""
        chosen, told = static_drift(situation)
        tell(told)
        begun = False
        for name in sorted(chosen):
            pool = situation.pools[name]
            staying = [each for each in self._cluster.claims_of(name) if not claimconditions.is_leaving(each)]
            if len(staying) > (pool.spec.replicas or 0):
                continue  # there are more than there should be: the pool comes down first
            for each in chosen[name]:
                begun = await self._replace(each, pool, situation, tell) or begun
        return begun

    async def _replace(self, candidate: Candidate, pool: NodePool, situation: Situation, tell: Tell) -> bool:
        catalog = situation.catalogs[pool.name]
        if terminatefirst.is_full(catalog):
            reservation = terminatefirst.reservation_of(candidate.state, self._vocabulary)
            helps = bool(reservation) and terminatefirst.offers(catalog, reservation)
            problem = f"nothing is left of the reservations that NodePool {pool.name} can buy from"
            because = terminatefirst.NO_RESERVED_CAPACITY
            return await self._first(candidate, pool, because, problem, situation, tell, helps=helps)
        limit = pool.spec.limits.get(NODES)
        granted = self._cluster.reserve(pool.name, 1, None if limit is None else limit // MILLI)
        if not granted:
            problem = f"the limit of NodePool {pool.name} leaves no room for another node"
            return await self._first(candidate, pool, terminatefirst.AT_LIMIT, problem, situation, tell, helps=True)
        try:
            return await self._commands.start(_command(candidate, REPLACE, pool))
        finally:
            self._cluster.release(pool.name, granted)

    def _blocked(self, candidate: Candidate, problem: str, tell: Tell) -> bool:
        message = f"it has drifted and cannot be replaced: {problem}"
        tell(Decision(objections=(Objection(message=message, nodes=(candidate.state,), dedupe=(DRIFTED,)),)))
        return False

    async def _first(
        self,
        candidate: Candidate,
        pool: NodePool,
        because: str,
        problem: str,
        situation: Situation,
        tell: Tell,
        *,
        helps: bool,
    ) -> bool:
        """Let the node go before its replacement is there, where that is wanted and helps; if not, tell why it stays."""
        usable = is_true(pool.status.conditions, READY) and pool.metadata.deletion_timestamp is None
        if not helps or not usable:
            return self._blocked(candidate, problem, tell)
        if not situation.rules.terminate_first_drift:
            hint = "the feature gate TerminateFirstDrift would let it go first"
            return self._blocked(candidate, f"{problem}; {hint}", tell)
        if not await self._commands.start(_command(candidate, TERMINATE_FIRST)):
            return False
        self._metrics.voluntary_disruption_terminate_first_decisions_total.labels(
            nodepool=pool.name, reason=DRIFTED.lower(), terminate_first_reason=because
        ).inc()
        return True


def _command(candidate: Candidate, how: str, replicas: NodePool | None = None) -> Command:
    said = find(candidate.claim.status.conditions, claimconditions.DRIFTED)
    message = said.reason if said is not None else ""
    return Command(reason=DRIFTED, candidates=(candidate.state,), replicas=replicas, decision=how, message=message)
