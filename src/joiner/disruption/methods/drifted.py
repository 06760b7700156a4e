"""Drift: nodes that are no longer what their pool would buy are replaced, the longest drifted first."""

from datetime import UTC, datetime
from typing import Final

from joiner.disruption import terminatefirst
from joiner.disruption.decision import DELETE, DRIFTED, REPLACE, TERMINATE_FIRST, Decision, Move
from joiner.disruption.eligibility import Candidate, Objection, candidates
from joiner.disruption.methods.quota import Quota
from joiner.disruption.simulate import SimulatedPlan, judged, question_without
from joiner.disruption.situation import Situation
from joiner.model import claimconditions
from joiner.model.claimconditions import holds
from joiner.model.conditions import find
from joiner.scheduling.effort import Effort
from joiner.scheduling.problem import PoolOption
from joiner.scheduling.schedule import schedule
from joiner.state.statenode import StateNode

_ALWAYS: Final = datetime.min.replace(tzinfo=UTC)


def drift(situation: Situation, effort: Effort | None = None, *, only: str = "") -> Decision:
    """One drifted node, with a place for each of its pods. `only`: the claim of the one that is asked about."""
    found, refused = candidates(situation, lambda each: _drifted(each, situation, static=False), eventual=True)
    quota = Quota(situation, DRIFTED)
    objections: list[Objection] = [*refused, *quota.objections(found)]
    move = None
    for each in sorted(found, key=_order):
        if quota.left(each.pool.name) <= 0 or (only and each.claim.name != only):
            continue
        move, obstacle = _moved(each, situation, effort)
        if move is not None:
            break
        message = f"it has drifted and cannot be replaced: {obstacle}"
        objections.append(Objection(message=message, nodes=(each.state,), dedupe=(DRIFTED,)))
    static, _ = candidates(situation, lambda each: _drifted(each, situation, static=True), eventual=True)
    return Decision(
        moves=() if move is None else (move,),
        objections=tuple(objections),
        eligible={DRIFTED: len(found) + len(static)},  # one gauge tells of both kinds of pools
    )


def obstacle_of(candidate: Candidate, situation: Situation) -> str:
    """Why a drifted node cannot be replaced, whether or not it is its turn; empty if it can."""
    return _moved(candidate, situation, None)[1]


def static_drift(situation: Situation) -> tuple[dict[str, list[Candidate]], Decision]:
    """Of each pool with replicas the drifted nodes that may go now, the longest drifted first.

    How many of them can be replaced one for one depends on what the pool's limit leaves, which the caller counts.
    """
    found, refused = candidates(situation, lambda each: _drifted(each, situation, static=True), eventual=True)
    quota = Quota(situation, DRIFTED)
    chosen: dict[str, list[Candidate]] = {}
    for each in quota.within(sorted(found, key=_order)):
        chosen.setdefault(each.pool.name, []).append(each)
    return chosen, Decision(objections=(*refused, *quota.objections(found)))


def _drifted(state_node: StateNode, situation: Situation, *, static: bool) -> bool:
    pool = situation.pool_of(state_node)
    is_static = pool is not None and pool.spec.replicas is not None
    return state_node.claim is not None and is_static == static and holds(state_node.claim, claimconditions.DRIFTED)


def _order(candidate: Candidate) -> tuple[bool, datetime, str]:
    told = find(candidate.claim.status.conditions, claimconditions.DRIFTED)
    since = told.last_transition_time if told is not None else None
    return (bool(candidate.pods), since or _ALWAYS, candidate.name)


def _moved(candidate: Candidate, situation: Situation, effort: Effort | None) -> tuple[Move | None, str]:
    tried = _tried(candidate, situation, situation.options, effort)
    if not tried.obstacle:
        decision = REPLACE if tried.replacements else DELETE
        return Move(
            reason=DRIFTED, decision=decision, candidates=(candidate,), tried=tried, claims=tried.replacements
        ), ""
    reservation = terminatefirst.reservation_of(candidate.state, situation.rules.vocabulary)
    if reservation and situation.rules.terminate_first_drift:
        freed = terminatefirst.credited(situation.options, reservation)
        if freed is not situation.options:
            later = _tried(candidate, situation, freed, effort)
            if not later.obstacle:
                because = terminatefirst.NO_RESERVED_CAPACITY
                return Move(
                    reason=DRIFTED,
                    decision=TERMINATE_FIRST,
                    candidates=(candidate,),
                    tried=later,
                    first_because=because,
                ), ""
    return None, tried.obstacle


def _tried(
    candidate: Candidate, situation: Situation, options: tuple[PoolOption, ...], effort: Effort | None
) -> SimulatedPlan:
    gone = (candidate.state,)
    question = question_without(
        gone,
        situation.snapshot,
        options,
        storage=situation.storage,
        policy=situation.rules.policy,
        vocabulary=situation.rules.vocabulary,
        stale_since=situation.stale_since,
        virtual=situation.virtual,
    )
    question = situation.spread(question)
    return judged(schedule(question, effort=effort), question, gone, situation.snapshot)
