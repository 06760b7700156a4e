"""Why a node goes or stays: every reason with what would have to change, by the values that decisions are made with."""

from datetime import timedelta
from typing import Any

import pytest
from tests.builders import node_pool
from tests.unit.disruption.brokennodes import NOW
from tests.unit.disruption.fleets import machine, on, shop, situation

from joiner.disruption.decision import DRIFTED, EMPTY, UNDERUTILIZED
from joiner.disruption.verdict import NodeVerdict, verdict
from joiner.model import labels
from joiner.model.meta import replace
from joiner.model.nodepool import NodePool

FREE: dict[str, Any] = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
LARGE = shop(names=("large",))


def pool(**more: Any) -> NodePool:
    return node_pool("default", disruption={**FREE, **more})


def asked(name: str, *things: Any, **more: Any) -> NodeVerdict:
    more.setdefault("pool", pool())
    found = verdict(situation(*things, **more), name)
    assert found is not None
    return found


def quiet_for(seconds: int) -> list[Any]:
    """A node to which a pod came so long ago, and that is not consolidatable yet."""
    node, claim = machine("a", Consolidatable="False")
    event = NOW - timedelta(seconds=seconds)
    return [node, replace(claim, status=replace(claim.status, last_pod_event_time=event))]  # type: ignore[attr-defined]


def held() -> Any:
    made = on("one", "a")
    return replace(made, metadata=replace(made.metadata, annotations={labels.DO_NOT_DISRUPT: "true"}))


HALF_EMPTY = (machine("a"), machine("b"), on("one", "a"), on("two", "b"))


def test_a_node_that_goes_is_told_with_its_move_and_with_what_is_done_before() -> None:
    things = (*HALF_EMPTY, machine("c"), machine("d", Drifted="True"), on("three", "d"))
    empty, drifted = asked("c", *things, types=LARGE), asked("d", *things, types=LARGE)

    assert empty.move is not None
    assert (empty.move.reason, empty.move.nodes, empty.before) == (EMPTY, ("c",), ())
    assert drifted.move is not None
    assert (drifted.move.reason, [each.reason for each in drifted.before]) == (DRIFTED, [EMPTY])
    assert not empty.hindrances


def test_a_claim_leads_to_its_node_and_a_name_that_is_not_there_to_nothing() -> None:
    seen = situation(*HALF_EMPTY, pool=pool())
    claim = seen.snapshot.nodes[0].claim
    assert claim is not None

    assert (found := verdict(seen, claim.name)) is not None
    assert found.state.name == "a"
    assert verdict(seen, "z") is None


@pytest.mark.parametrize(
    ("things", "more", "reason", "message", "change"),
    [
        ((machine("a"), on("one", "a", cpu="3500m")), {"eviction": "2h"}, UNDERUTILIZED, "does not pay", ""),
        ((machine("a"), on("one", "a", cpu="7")), {"types": LARGE}, UNDERUTILIZED, "cheaper", "fewer or smaller"),
        (HALF_EMPTY, {"eviction": "100h"}, UNDERUTILIZED, "it would pay with joiner.dev/eviction-cost below", ""),
        (HALF_EMPTY, {"pool": pool(consolidationPolicy="WhenEmpty")}, UNDERUTILIZED, "WhenEmpty", ""),
        (HALF_EMPTY, {"pool": pool(consolidateAfter="Never")}, UNDERUTILIZED, "consolidateAfter Never", ""),
        ((machine("a"),), {"pool": pool(consolidateAfter="Never")}, EMPTY, "consolidateAfter Never", ""),
        (
            HALF_EMPTY,
            {"pool": pool(budgets=[{"nodes": "0"}])},
            UNDERUTILIZED,
            "let no node go",
            "budget 1 (nodes: 0) allows 0 of 2, and 0 are away",
        ),
        ((quiet_for(60),), {"pool": pool(consolidateAfter="5m")}, EMPTY, "not for long enough", "5m0s, at "),
        ((quiet_for(60), on("one", "a")), {"pool": pool(consolidateAfter="5m")}, UNDERUTILIZED, "a short time ago", "5m0s, at "),
        ((machine("a", Drifted="True"),), {"pool": pool(budgets=[{"nodes": "0"}])}, DRIFTED, "it has drifted", "budget 1"),
        (
            (machine("a"), held()),
            {},
            "",
            "pod default/one has the annotation karpenter.sh/do-not-disrupt",
            "",
        ),
    ],
    ids=[
        "little to save", "nothing cheaper", "too dear to move", "when empty", "never", "never, though empty",
        "budget", "not quiet, empty", "not quiet", "drifted, budget", "protected pod",
    ],
)  # fmt: skip
def test_why_a_node_stays(things: Any, more: dict[str, Any], reason: str, message: str, change: str) -> None:
    found = asked("a", *things, **more)

    assert found.move is None
    assert [each.reason for each in found.hindrances] == [reason]
    assert message in found.hindrances[0].message
    assert change in found.hindrances[0].change


def test_a_budget_that_follows_a_schedule_is_told_with_its_end() -> None:
    closed = {"nodes": "0", "schedule": f"{NOW.minute} {NOW.hour} * * *", "duration": "2h"}
    found = asked("a", machine("a"), pool=pool(budgets=[{"nodes": "50%"}, closed]))

    end = NOW.replace(second=0, microsecond=0) + timedelta(hours=2)
    assert found.hindrances[0].change.startswith(
        f"budget 2 (nodes: 0) allows 0 of 1 until {end:%Y-%m-%dT%H:%M:%SZ}, and 0 are away; budget 1"
    )


def test_what_consolidation_says_of_a_node_by_itself_is_the_arithmetic_that_decides() -> None:
    # Of two nodes one goes at a time here; the other one is told to wait for it, with its own arithmetic.
    things, one = HALF_EMPTY, pool(budgets=[{"nodes": "1"}])
    names = {name: asked(name, *things, types=LARGE, pool=one) for name in ("a", "b")}
    (goes,) = [each for each in names.values() if each.move is not None]
    (stays,) = [each for each in names.values() if each.move is None]

    assert goes.move is not None
    assert stays.alone is not None
    assert stays.alone.answer.payback == goes.move.payback
    assert stays.alone.most >= 0.4 - 1e-6
    assert f"other nodes go first: {goes.state.name}" in stays.hindrances[0].message


def test_a_drifted_node_whose_pods_find_no_place_says_why() -> None:
    found = asked("a", machine("a", Drifted="True"), on("one", "a", nodeSelector={labels.ZONE: "a"}), types=LARGE)
    stuck = asked("a", machine("a", Drifted="True"), on("one", "a", nodeSelector={"disk": "fast"}), types=LARGE)

    assert found.move is not None
    assert found.move.reason == DRIFTED
    assert "cannot be replaced: pod default/one would find no place" in stuck.hindrances[0].message


def test_a_node_without_a_claim_is_none_of_ours() -> None:
    node, _ = machine("a")

    assert asked("a", node).hindrances[0].message.startswith("it has no NodeClaim")
