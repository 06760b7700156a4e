"""The policy Balanced: a move is approved where its share of a pool's savings is at least half its share of the disturbance."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from joiner.disruption.eligibility import Candidate, candidate
from joiner.disruption.situation import Situation
from joiner.model.meta import Value

BALANCED: Final = "Balanced"
LEAST: Final = 0.5


class PoolTotals(Value):
    """What all nodes of a pool cost and weigh together."""

    cost: float
    weight: float


def score(savings: float, disturbance: float, totals: PoolTotals) -> float:
    """The share of the pool's cost that is saved, over the share of its pods' weight that is moved."""
    if savings <= 0 or totals.cost <= 0 or totals.weight <= 0:
        return 0.0
    if disturbance <= 0:
        return math.inf
    return (savings / totals.cost) / (disturbance / totals.weight)


def totals(situation: Situation) -> Mapping[str, PoolTotals]:
    """Of each pool with the policy Balanced, over all its nodes."""
    found: dict[str, PoolTotals] = {}
    for each in situation.snapshot.nodes:
        pool = situation.pool_of(each)
        if pool is None or each.claim is None or pool.spec.disruption.consolidation_policy != BALANCED:
            continue
        known, before = candidate(each, situation), found.get(pool.name, PoolTotals(cost=0.0, weight=0.0))
        found[pool.name] = PoolTotals(cost=before.cost + known.price.ranked, weight=before.weight + known.weight)
    return found


def scores(gone: Sequence[Candidate], saved: float, known: Mapping[str, PoolTotals]) -> dict[str, float]:
    """The score of a move for each pool with that policy; what is saved is split by what the nodes of each cost."""
    whole = sum(each.price.ranked for each in gone)
    found: dict[str, float] = {}
    for name in sorted({each.pool.name for each in gone} & known.keys()):
        own = [each for each in gone if each.pool.name == name]
        cost = sum(each.price.ranked for each in own)
        share = saved * cost / whole if whole > 0 else 0.0
        found[name] = score(share, sum(each.weight for each in own), known[name])
    return found


def approves(found: Iterable[float]) -> bool:
    """Whether every pool approves."""
    return all(each >= LEAST for each in found)
