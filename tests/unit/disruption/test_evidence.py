"""How the horizon grows while workloads stay as they are."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import node_pool
from tests.unit.disruption.brokennodes import NOW
from tests.unit.disruption.fleets import machine, on, shop, situation

from joiner.disruption.consolidation.evidence import horizon_h, observed
from joiner.disruption.consolidation.memory import Memory, Owner, Workload
from joiner.disruption.consolidation.search import consolidate
from joiner.disruption.situation import Situation
from joiner.model.duration import Duration
from joiner.model.meta import OwnerReference, replace
from joiner.model.pod import Pod

GROWS: dict[str, Any] = {"rules": {"longest_horizon": Duration.parse("24h")}}
WEB: Owner = ("default", "web")


def of_web(name: str, where: str, hours: float = 0.0, cpu: str = "1") -> Pod:
    made = on(name, where, cpu)
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="web")
    born = NOW - timedelta(hours=hours)
    return replace(made, metadata=replace(made.metadata, owner_references=(owner,), creation_timestamp=born))


def seen(*pods: Pod, **more: Any) -> Situation:
    return situation(machine("a"), machine("b"), *pods, **{**GROWS, **more})


def steady(hours: float, count: int = 1) -> Mapping[Owner, Workload]:
    return {WEB: Workload(count=count, since=NOW - timedelta(hours=hours))}


@pytest.mark.parametrize(
    ("hours", "wanted"), [(0, 1), (0.5, 1), (1.5, 1), (2, 2), (7, 4), (23, 16), (24, 24), (1000, 24)]
)
def test_the_horizon_is_as_long_as_nothing_has_changed_in_steps(hours: float, wanted: float) -> None:
    assert horizon_h([of_web("one", "a")], seen(), steady(hours)) == wanted


def test_it_never_grows_where_the_longest_is_no_longer_than_the_shortest() -> None:
    fixed = situation(machine("a"), of_web("one", "a", hours=48))

    assert observed(fixed, {}) == {}
    assert horizon_h([of_web("one", "a")], fixed, {}) == 1


def test_the_workload_that_changed_last_decides() -> None:
    known = {**steady(20), ("default", "other"): Workload(count=1, since=NOW - timedelta(hours=3))}

    assert horizon_h([of_web("one", "a"), on("other", "a")], seen(), known) == 2


def test_of_a_workload_that_is_new_to_us_the_youngest_pod_tells() -> None:
    found = observed(seen(of_web("one", "a", hours=30), of_web("two", "b", hours=5)), {})

    assert found == steady(5, count=2)


def test_a_pod_that_was_moved_changes_nothing_and_one_more_does() -> None:
    moved = seen(of_web("new-name", "b"))
    grown = seen(of_web("one", "a"), of_web("two", "b"))

    assert observed(moved, steady(9)) == steady(9)
    assert observed(grown, steady(9)) == steady(0, count=2)


def test_a_move_that_pays_within_a_day_is_made_once_nothing_has_changed_for_a_day() -> None:
    pool = node_pool("default", disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]})
    things = (of_web("one", "a", hours=30, cpu="3500m"),)
    more: dict[str, Any] = {"pool": pool, "types": shop(names=("medium", "large")), "eviction": "70m"}
    young = consolidate(situation(machine("a"), *things, **more), Memory())
    old = consolidate(situation(machine("a"), *things, **more, **GROWS), Memory())

    assert not young.decision.moves
    assert [move.nodes for move in old.decision.moves] == [("a",)]
    assert old.decision.moves[0].payback is not None
    assert old.decision.moves[0].payback.horizon_s == 24 * 3600
