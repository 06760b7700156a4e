"""How many nodes of a pool may go, given those that are away already."""

from typing import Any

import pytest
from tests.builders import node_pool
from tests.unit.disruption.brokennodes import NOW, claim, ill, node, picture

from joiner.disruption import budgets
from joiner.model import labels
from joiner.model.meta import KubeObject

UNREADY = ill("Ready", status="False")


def healthy(count: int) -> tuple[KubeObject, ...]:
    return tuple(node(name=f"h{number}") for number in range(count))


def pool(*said: dict[str, Any]) -> Any:
    return node_pool(disruption={"consolidateAfter": "0s", "budgets": list(said)})


@pytest.mark.parametrize(
    ("things", "reason", "left"),
    [
        pytest.param(healthy(10), "Unhealthy", 2, id="all are there"),
        pytest.param((*healthy(9), node(UNREADY)), "Unhealthy", 2, id="not ready is no reason to stop repair"),
        pytest.param((*healthy(9), node(UNREADY)), "Drifted", 1, id="not ready counts for others"),
        pytest.param((*healthy(9), node(), claim(Rebooting="True")), "Unhealthy", 1, id="being restarted counts"),
        pytest.param((*healthy(9), node(), claim(Rebooting="False")), "Drifted", 2, id="a restart that is over"),
        pytest.param((*healthy(10), claim("new")), "Unhealthy", 2, id="what is not there is not counted"),
        pytest.param((*healthy(9), node(), claim(InstanceTerminating="True")), "Unhealthy", 2, id="9 count: 1.8 is 2"),
        pytest.param((*healthy(9), node(), claim(Rebooting="True")), "Drifted", 1, id="being restarted counts for all"),
    ],
)
def test_a_fifth_may_be_away(things: tuple[KubeObject, ...], reason: str, left: int) -> None:
    assert budgets.left(pool({"nodes": "20%"}), picture(*things).nodes, reason, NOW) == left


def test_a_node_that_is_marked_uses_up_the_budget() -> None:
    nodes = picture(*healthy(10), marked=("h0", "h1")).nodes

    assert budgets.left(pool({"nodes": "20%"}), nodes, "Unhealthy", NOW) == 0


def test_a_node_that_a_command_begins_with_uses_up_the_budget_once() -> None:
    """It is marked only once all of the command is written."""
    before, after = (picture(*healthy(10), marked=marked).nodes for marked in ((), ("h0",)))
    first = before[0].claim
    assert first is not None

    for nodes in (before, after):
        assert budgets.left(pool({"nodes": "20%"}), nodes, "Unhealthy", NOW, {first.name}) == 1


def test_a_node_that_goes_without_ever_having_been_complete_uses_up_nothing() -> None:
    unfinished = node(labels={labels.INITIALIZED: ""})

    assert (
        budgets.left(pool({"nodes": "20%"}), picture(*healthy(10), unfinished, marked=("n",)).nodes, "Unhealthy", NOW)
        == 2
    )


def test_a_node_being_restarted_counts_in_the_total_though_it_is_not_complete() -> None:
    restarted = node(labels={labels.INITIALIZED: ""})
    nodes = picture(*healthy(5), restarted, claim(Rebooting="True")).nodes

    assert budgets.left(pool({"nodes": "50%"}), nodes, "Unhealthy", NOW) == 3 - 1


@pytest.mark.parametrize(
    ("said", "reason", "left"),
    [
        pytest.param([{"nodes": "0", "reasons": ["Unhealthy"]}], "Unhealthy", 0, id="none for this reason"),
        pytest.param([{"nodes": "0", "reasons": ["Unhealthy"]}], "Drifted", 2**31 - 1, id="others are not meant"),
        pytest.param([{"nodes": "0"}], "Unhealthy", 0, id="none at all"),
        pytest.param([{"nodes": "100%"}, {"nodes": "3"}], "Unhealthy", 3, id="the strictest"),
    ],
)
def test_budgets_are_for_reasons(said: list[dict[str, Any]], reason: str, left: int) -> None:
    assert budgets.left(pool(*said), picture(*healthy(4)).nodes, reason, NOW) == left


def test_nodes_of_other_pools_do_not_count() -> None:
    strangers = tuple(node(name=f"s{number}", labels={labels.NODEPOOL: "other"}) for number in range(10))

    assert budgets.left(pool({"nodes": "50%"}), picture(*healthy(2), *strangers).nodes, "Unhealthy", NOW) == 1
