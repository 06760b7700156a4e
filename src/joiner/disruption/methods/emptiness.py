"""Emptiness: nodes without a pod that needs another place go, all that budgets allow at once, whatever their policy."""

from joiner.disruption.decision import DELETE, EMPTY, Decision, Move
from joiner.disruption.eligibility import Candidate, Objection, by_ratio, candidates
from joiner.disruption.methods.quota import Quota
from joiner.disruption.situation import Situation
from joiner.model.claimconditions import CONSOLIDATABLE, holds
from joiner.model.duration import NEVER
from joiner.state.statenode import StateNode


def emptiness(situation: Situation) -> Decision:
    """One move for all empty nodes that may go."""
    wanted, refused = _empty(situation)
    quota = Quota(situation, EMPTY)
    chosen = quota.within(wanted)
    return Decision(
        moves=(_move(chosen),) if chosen else (),
        objections=(*refused, *quota.objections(wanted)),
        eligible={EMPTY: len(wanted)},
    )


def still_empty(move: Move, situation: Situation) -> Move | None:
    """The part of an earlier move that still holds; nothing if none of it does."""
    names = {each.identity for each in move.candidates}
    wanted, _ = _empty(situation)
    chosen = Quota(situation, EMPTY).within(each for each in wanted if each.identity in names)
    return _move(chosen) if chosen else None


def _move(chosen: list[Candidate]) -> Move:
    return Move(reason=EMPTY, decision=DELETE, consolidation_type="empty", candidates=tuple(chosen))


def _empty(situation: Situation) -> tuple[list[Candidate], list[Objection]]:
    found, refused = candidates(situation, lambda each: _is_considered(each, situation), eventual=False)
    return by_ratio(each for each in found if each.empty and each.name not in situation.buffered), refused


def _is_considered(state_node: StateNode, situation: Situation) -> bool:
    pool = situation.pool_of(state_node)
    if pool is None or state_node.claim is None or pool.spec.replicas is not None:
        return False
    return pool.spec.disruption.consolidate_after != NEVER and holds(state_node.claim, CONSOLIDATABLE)
