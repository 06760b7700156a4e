"""Clusters come to rest, even where no pod lands where it was planned."""

import pytest
from benchmarks.consolidation.clusters import made
from benchmarks.consolidation.measure import LONGEST_S, decider, play, to_rest
from benchmarks.consolidation.ours import Ours

from joiner.disruption.consolidation.memory import Memory
from joiner.disruption.consolidation.search import consolidate


@pytest.mark.parametrize("seed", range(10))
def test_where_pods_land_at_random_nothing_moves_in_the_end_and_a_fresh_look_finds_nothing(seed: int) -> None:
    world = made("plain", 10, 1, seed, ordered=False)
    world.places.scattered = True
    mind = decider(world, "ours", soft_taint=False)
    assert isinstance(mind, Ours)

    assert play(world, mind, LONGEST_S, rest=True)
    assert world.tally.commands
    assert not consolidate(world.situation(mind.rules), Memory()).decision.moves


def test_a_cluster_that_was_bought_by_hand_is_brought_near_the_bound() -> None:
    found = to_rest("hand-bought", 30, 1, 1, "ours")

    assert found["start"] > 4
    assert found["ratio"] < 1.1
    assert found["evictions"] < 200
