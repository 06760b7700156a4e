"""One move, asked exactly: the planner places the pods of the nodes that would go, and the answer must be allowed and pay."""

from collections.abc import Mapping, Sequence

import numpy as np

from joiner.disruption.consolidation import balanced
from joiner.disruption.consolidation.balanced import PoolTotals
from joiner.disruption.consolidation.fleet import Fleet
from joiner.disruption.consolidation.payback import payback, told
from joiner.disruption.consolidation.replacements import Bought, Refused, cheaper
from joiner.disruption.decision import DELETE, REPLACE, UNDERUTILIZED, Move, Payback
from joiner.disruption.eligibility import Candidate
from joiner.disruption.nodeprice import NodePrice
from joiner.disruption.simulate import SimulatedPlan, judged, question_without
from joiner.disruption.situation import Situation
from joiner.model.meta import Value, replace
from joiner.scheduling.effort import Effort
from joiner.scheduling.kept import Kept
from joiner.scheduling.schedule import first_plan, schedule


class Answer(Value):
    """What came of a question."""

    move: Move | None = None
    obstacle: str = ""
    """Why nothing came of it."""
    payback: Payback | None = None
    scores: Mapping[str, float] = {}


class Judge:
    """Asks about moves of one situation."""

    def __init__(
        self,
        fleet: Fleet,
        totals: Mapping[str, PoolTotals],
        *,
        thorough: bool = False,
        effort: Effort | None = None,
    ) -> None:
        """`thorough`: whether every way of planning is tried, as for pending pods; with effort, only as much as it allows."""
        self._fleet, self._totals, self._thorough, self._effort = fleet, totals, thorough, effort
        self._situation: Situation = fleet.situation
        self._kept = Kept()
        self.asked = 0

    def ask(self, gone: Sequence[int], away: Sequence[frozenset[str]], raised: float, pools: frozenset[str]) -> Answer:
        """Whether these candidates may go, first with none of the nodes in `away[0]` as places, then of the next ones.

        `pools`: nodes of other pools take no pod of these.
        """
        answer = Answer()
        for names in dict.fromkeys(away):
            answer = self._asked(gone, names, raised, pools)
            if answer.move is not None:
                break
        return answer

    def _asked(self, gone: Sequence[int], away: frozenset[str], raised: float, pools: frozenset[str]) -> Answer:
        candidates = tuple(self._fleet.candidates[number] for number in gone)
        tried = self._tried(candidates, away, pools)
        self.asked += 1
        if tried.obstacle:
            return Answer(obstacle=tried.obstacle)
        try:
            bought = self._bought(tried, candidates)
        except Refused as refused:
            return Answer(obstacle=str(refused))
        answer = self._judged(candidates, gone, tried, bought, raised)
        return answer if answer.move is None else replace(answer, move=replace(answer.move, avoided=away))

    def _tried(self, gone: tuple[Candidate, ...], away: frozenset[str], pools: frozenset[str]) -> SimulatedPlan:
        seen, states = self._situation, [each.state for each in gone]
        question = question_without(
            states,
            seen.snapshot,
            tuple(each for each in seen.options if each.pool.name in pools),
            storage=seen.storage,
            policy=seen.rules.policy,
            vocabulary=seen.rules.vocabulary,
            stale_since=seen.stale_since,
            virtual=seen.virtual,
        )
        closed = away | self._elsewhere(pools)
        others = seen.hopeless | self._evicted_elsewhere(pools)
        question = replace(
            question,
            pods=tuple(pod for pod in question.pods if pod.key not in others),
            nodes=tuple(each for each in question.nodes if each.name not in closed),
        )
        question = seen.spread(question)
        kept = self._kept
        plan = schedule(question, effort=self._effort, kept=kept) if self._thorough else first_plan(question, kept)
        return replace(judged(plan, question, states, seen.snapshot), virtual=tuple(pod.key for pod in seen.virtual))

    def _evicted_elsewhere(self, pools: frozenset[str]) -> frozenset[str]:
        """Pods that leave nodes of other parts: they go to other parts, too."""
        nodes = self._situation.snapshot.nodes
        return frozenset(pod.key for each in nodes if each.deleting and each.nodepool not in pools for pod in each.pods)

    def _elsewhere(self, pools: frozenset[str]) -> frozenset[str]:
        """Nodes that pods cannot go to, or not now: of other parts, and such as have to settle first."""
        return frozenset(
            each.name
            for each in self._situation.snapshot.nodes
            if each.nodepool not in pools or self._situation.is_settling(each)
        )

    def _bought(self, tried: SimulatedPlan, gone: tuple[Candidate, ...]) -> Bought:
        if not tried.replacements:
            return Bought((), NodePrice())
        if not all(each.price.known for each in gone):
            raise Refused("the price of a node that would go is not known")
        catalogs = {each.pool.name: each.catalog for each in tried.question.pools}
        return cheaper(tried.replacements, catalogs, gone, spot_to_spot=self._situation.rules.spot_to_spot)

    def _judged(
        self,
        candidates: tuple[Candidate, ...],
        gone: Sequence[int],
        tried: SimulatedPlan,
        bought: Bought,
        raised: float,
    ) -> Answer:
        fleet, numbers = self._fleet, np.array(gone, np.int64)
        arithmetic = payback(
            candidates,
            bought.claims,
            bought.price,
            worth=float(fleet.values[numbers].sum()),
            eviction=float(fleet.evictions[numbers].sum()) * raised,
            eviction_s=max(self._situation.eviction_cost(each.pool.name).seconds for each in candidates) * raised,
            horizon_s=fleet.horizon_of(gone) * 3600.0,
        )
        scores = balanced.scores(candidates, arithmetic.saved, self._totals)
        if not arithmetic.pays:
            return Answer(obstacle=f"it does not pay: {told(arithmetic)}", payback=arithmetic)
        if not balanced.approves(scores.values()):
            low = ", ".join(f"{name} {found:.2f}" for name, found in scores.items() if found < balanced.LEAST)
            obstacle = f"the policy Balanced asks for a score of {balanced.LEAST} and it has {low}: {told(arithmetic)}"
            return Answer(obstacle=obstacle, payback=arithmetic, scores=scores)
        move = Move(
            reason=UNDERUTILIZED,
            decision=REPLACE if bought.claims else DELETE,
            candidates=candidates,
            consolidation_type="single" if len(candidates) == 1 else "multi",
            tried=tried,
            claims=bought.claims,
            payback=arithmetic,
            scores=scores,
        )
        return Answer(move=move, payback=arithmetic, scores=scores)
