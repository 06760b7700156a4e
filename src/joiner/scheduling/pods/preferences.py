"""Preferences: treated as rules first, then given up one by one until the pod finds a place.

Each step gives up one thing, in this order: the first of several required node-affinity terms, the heaviest preferred pod
affinity, the heaviest preferred pod anti-affinity, the heaviest preferred node affinity, one soft spread constraint, and
at last the dislike of PreferNoSchedule taints.
"""

from collections.abc import Iterator
from typing import Final

from joiner.model.affinity import (
    SCHEDULE_ANYWAY,
    NodeSelectorTerm,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from joiner.model.meta import Value, replace
from joiner.model.pod import PodSpec


class PodPreferences(Value):
    """What a pod asks for at one step: what it must have, and the preferences it still holds."""

    terms: tuple[NodeSelectorTerm, ...]
    """Required node-affinity terms; the first one counts."""
    liked_nodes: tuple[PreferredSchedulingTerm, ...]
    """Preferred node-affinity terms, heaviest first; the first one counts."""
    near: tuple[PodAffinityTerm, ...]
    away: tuple[PodAffinityTerm, ...]
    liked_near: tuple[PodAffinityTerm, ...]
    liked_away: tuple[PodAffinityTerm, ...]
    spread: tuple[TopologySpreadConstraint, ...]
    liked_spread: tuple[TopologySpreadConstraint, ...]
    endures_disliked_taints: bool = False
    """Whether PreferNoSchedule taints are put up with."""
    again: bool = False
    """Whether a required term that was given up has another turn."""


_LIKED: Final = ("liked_near", "liked_away", "liked_nodes", "liked_spread")
"""Fields with preferences, in the order in which they are given up."""


def _heaviest_first(terms: tuple[WeightedPodAffinityTerm, ...]) -> tuple[PodAffinityTerm, ...]:
    ordered = sorted(terms, key=lambda term: -term.weight)
    return tuple(term.pod_affinity_term for term in ordered)


def wishes(spec: PodSpec, respected: bool) -> PodPreferences:
    """Everything a pod asks for."""
    affinity = spec.affinity
    nodes = affinity.node_affinity
    soft = tuple(each for each in spec.topology_spread_constraints if each.when_unsatisfiable == SCHEDULE_ANYWAY)
    hard = tuple(each for each in spec.topology_spread_constraints if each.when_unsatisfiable != SCHEDULE_ANYWAY)
    return PodPreferences(
        terms=nodes.required.node_selector_terms if nodes.required is not None else (),
        liked_nodes=tuple(sorted(nodes.preferred, key=lambda term: -term.weight)) if respected else (),
        near=affinity.pod_affinity.required,
        away=affinity.pod_anti_affinity.required,
        liked_near=_heaviest_first(affinity.pod_affinity.preferred) if respected else (),
        liked_away=_heaviest_first(affinity.pod_anti_affinity.preferred) if respected else (),
        spread=hard,
        liked_spread=soft if respected else (),
    )


def steps(asked: PodPreferences, some_pool_is_disliked: bool) -> Iterator[PodPreferences]:
    """What the pod asks for, then that with one thing given up after the other.

    A node-affinity term may have been given up for a preference that cannot be met: at the end each term is tried without any.
    """
    preferring = some_pool_is_disliked or any(getattr(asked, field) for field in _LIKED)
    terms = asked.terms
    yield asked
    while (less := _less(asked, some_pool_is_disliked)) is not None:
        yield less
        asked = less
    if preferring and len(terms) > 1:
        yield from (replace(asked, terms=(term,), again=True) for term in terms)


def _less(asked: PodPreferences, some_pool_is_disliked: bool) -> PodPreferences | None:
    if len(asked.terms) > 1:
        return replace(asked, terms=asked.terms[1:])
    for field in _LIKED:
        held = getattr(asked, field)
        if held:
            return replace(asked, **{field: held[1:]})
    if some_pool_is_disliked and not asked.endures_disliked_taints:
        return replace(asked, endures_disliked_taints=True)
    return None
