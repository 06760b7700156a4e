"""Which drifted node is replaced first, and what is told of the others."""

from typing import Any

from tests.builders import node_pool
from tests.unit.disruption.fleets import machine, on, shop, situation

from joiner.disruption.decision import DELETE, REPLACE
from joiner.disruption.methods.drifted import drift, static_drift

FREE: dict[str, Any] = {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "1"}]}}


def drifted(name: str, **more: Any) -> Any:
    return machine(name, Drifted="True", **more)


def test_a_node_without_pods_goes_before_one_with_pods_and_only_one_at_a_time() -> None:
    seen = situation(drifted("a"), drifted("b"), on("one", "a", cpu="7"), pool=node_pool("default", **FREE))
    found = drift(seen)

    assert [move.nodes for move in found.moves] == [("b",)]
    assert found.moves[0].decision == DELETE
    assert found.eligible == {"Drifted": 2}


def test_pods_of_a_drifted_node_get_a_new_one_whatever_it_costs() -> None:
    seen = situation(
        drifted("a", size="medium"),
        on("one", "a", cpu="3"),
        pool=node_pool("default", **FREE),
        types=shop(names=("large",)),
    )
    move = drift(seen).moves[0]

    assert (move.decision, len(move.claims)) == (REPLACE, 1)


def test_without_a_place_for_its_pods_it_stays_and_says_why() -> None:
    pool = node_pool("default", limits={"cpu": "0"}, **FREE)
    found = drift(situation(drifted("a", size="medium"), on("one", "a", cpu="7"), pool=pool))

    assert found.moves == ()
    assert "would find no place" in found.objections[0].message


def test_a_budget_of_zero_keeps_drifted_nodes() -> None:
    pool = node_pool(
        "default", disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}
    )
    found = drift(situation(drifted("a"), pool=pool))

    assert found.moves == ()
    assert found.objections[0].pool == "default"


def test_nodes_of_a_pool_with_replicas_are_for_static_drift() -> None:
    pool = node_pool("default", replicas=2, **FREE)
    seen = situation(drifted("a"), drifted("b"), pool=pool)

    assert drift(seen).moves == ()
    assert [each.name for each in static_drift(seen)[0]["default"]] == ["a"]
