"""Which nodes are consolidated, and why others are not."""

import dataclasses
import math
from datetime import timedelta
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.builders import VOCABULARY, node_pool, offering, pod, pool_option
from tests.unit.disruption.brokennodes import NOW
from tests.unit.disruption.fleets import PRICES, machine, on, shop, situation

from joiner.catalog.market import InstanceType
from joiner.disruption.consolidation import search, target
from joiner.disruption.consolidation.balanced import PoolTotals, approves, score
from joiner.disruption.consolidation.fleet import Fleet
from joiner.disruption.consolidation.hosting import Hosting
from joiner.disruption.consolidation.memory import HIGHEST, Memory, PartMemory, Promise, settled
from joiner.disruption.consolidation.search import UNRELIABLE, Consolidation, consolidate, still_pays
from joiner.disruption.consolidation.target import Target
from joiner.disruption.decision import DELETE, REPLACE, UNDERUTILIZED
from joiner.disruption.eligibility import candidate, may_still_go, objection
from joiner.disruption.methods.emptiness import emptiness, still_empty
from joiner.disruption.methods.quota import Quota
from joiner.disruption.situation import Rules, Situation
from joiner.model import labels
from joiner.model.duration import DurationError
from joiner.model.evictioncost import eviction_cost_of
from joiner.model.meta import replace
from joiner.scheduling.problem import PoolOption
from joiner.state.cluster import Cluster

FREE: dict[str, Any] = {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}}


def decided(*things: Any, **more: Any) -> Consolidation:
    more.setdefault("pool", node_pool("default", **FREE))
    return consolidate(situation(*things, **more), Memory())


def told(found: Consolidation) -> str:
    return "; ".join(each.message for each in found.decision.objections)


def half_empty() -> tuple[Any, ...]:
    return machine("a"), machine("b"), on("one", "a"), on("two", "b")


@cache
def free_pool(name: str) -> PoolOption:
    return pool_option(node_pool(name, **FREE), shop())


def apart(nodes: dict[str, list[str]], *more: Any) -> Situation:
    """Pools whose pods may not change places; each node is as full as it can be."""
    options = tuple(map(free_pool, nodes))
    things: list[Any] = [*more]
    for pool, names in nodes.items():
        for name in names:
            made, known = machine(name, "small")
            own = {**made.metadata.labels, labels.NODEPOOL: pool}
            things.append(replace(made, metadata=replace(made.metadata, labels=own)))
            own = {**known.metadata.labels, labels.NODEPOOL: pool}
            things.append(replace(known, metadata=replace(known.metadata, labels=own)))
            things.append(on(f"on-{name}", name, cpu="1800m", nodeSelector={labels.NODEPOOL: pool}))
    cluster = Cluster(VOCABULARY)
    for thing in things:
        cluster.apply(type(thing), None, thing)
    return Situation(
        snapshot=cluster.snapshot(NOW),
        now=NOW,
        pools={each.pool.name: each.pool for each in options},
        options=options,
        catalogs={each.pool.name: each.catalog for each in options},
        rules=Rules(vocabulary=VOCABULARY),
    )


def cheap_large() -> tuple[InstanceType, ...]:
    """Small nodes, and large ones for the price of two and a half."""
    small, large = shop(names=("small", "large"))
    return (small, replace(large, offerings=[offering(labels.ON_DEMAND, price=0.25)]))


def small(name: str) -> Any:
    return machine(name, "small")


def mistyped() -> Any:
    pool = node_pool("default", **FREE)
    return replace(pool, metadata=replace(pool.metadata, annotations={labels.EVICTION_COST: "10 minutes"}))


def test_pods_of_one_node_fit_on_another_and_it_goes() -> None:
    move = decided(*half_empty(), types=shop(names=("large",))).decision.moves[0]

    assert (move.decision, move.consolidation_type, len(move.nodes)) == (DELETE, "single", 1)
    assert move.payback is not None
    assert move.payback.saved == pytest.approx(0.4)


def test_several_nodes_go_for_cheaper_ones_in_one_move() -> None:
    move = decided(*half_empty()).decision.moves[0]

    assert move.decision == REPLACE
    assert sorted(move.nodes) == ["a", "b"]
    assert [claim.options[0].name for claim in move.claims] == ["small"]


def test_three_nodes_that_go_well_together_are_found_where_the_dearest_of_the_target_are_in_the_way() -> None:
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {}, "topologyKey": labels.HOSTNAME}
    ]}}  # fmt: skip
    full = [on(f"{where}{number}", where, cpu="900m") for where in "bcd" for number in (1, 2)]
    nodes = [small(name) for name in "abcd"]
    pool = node_pool("default", disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "3"}]})
    lonely = on("lonely", "a", cpu="1800m", affinity=alone)
    moves = decided(*nodes, lonely, *full, pool=pool, types=cheap_large(), eviction="0s").decision.moves

    assert [(sorted(move.nodes), [claim.options[0].name for claim in move.claims]) for move in moves] == [
        (["b", "c", "d"], ["large"])
    ]


def test_the_first_of_all_nodes_are_asked_about_together_whatever_the_target_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(fleet: Fleet, members: list[int], *more: Any) -> Target:
        zeros = np.zeros(len(members))
        return Target(zeros > 0, zeros, zeros + math.inf)

    monkeypatch.setattr(search, "target", nothing)
    monkeypatch.setattr(search, "FEW", 0)
    full = [on(f"{where}{number}", where, cpu="900m") for where in "bcd" for number in (1, 2)]
    moves = decided(*map(small, "bcd"), *full, types=cheap_large(), eviction="0s").decision.moves

    assert [sorted(move.nodes) for move in moves] == [["b", "c", "d"]]


def test_what_has_to_be_bought_counts_as_whole_nodes() -> None:
    seen = situation(machine("a"), *(on(name, "a", cpu="1800m") for name in ("one", "two")), types=cheap_large())
    fleet = Fleet(seen, [candidate(seen.snapshot.nodes[0], seen)])
    hosting, nowhere = Hosting(fleet, fleet.kinds(0)), np.ones(len(fleet.places), np.bool_)

    assert float(fleet.values.sum()) == pytest.approx(0.1125)  # if a part of a large node could be had
    assert hosting.bought([0], nowhere) == pytest.approx(0.2)


def test_another_reason_to_stay_is_told_at_once_and_the_same_with_other_numbers_is_not() -> None:
    def kinds(cpu: str, **more: Any) -> set[tuple[str, ...]]:
        found = decided(machine("a", "small"), on("one", "a", cpu=cpu), types=shop(names=("small",)), **more)
        return {each.dedupe for each in found.decision.objections if each.reason == "Unconsolidatable"}

    assert kinds("1") == kinds("1500m") != set()
    assert kinds("1", pool=node_pool("default", disruption={"budgets": [{"nodes": "0"}]})) != kinds("1")


def test_without_a_solver_nodes_are_ranked_by_what_they_cost_beyond_their_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_programme", lambda: None)

    assert decided(*half_empty()).decision.moves


@pytest.mark.parametrize(
    ("things", "more", "why"),
    [
        (half_empty(), {"pool": node_pool("default", disruption={"consolidateAfter": "Never"})}, "Never"),
        (half_empty(), {"pool": node_pool("default", disruption={"consolidationPolicy": "WhenEmpty"})}, "WhenEmpty"),
        ((machine("a"), on("one", "a", cpu="7")), {}, "does not pay"),
        (half_empty(), {"eviction": "100h"}, ""),
        (half_empty(), {"pool": mistyped()}, "joiner.dev/eviction-cost='10 minutes': allowed is a duration"),
    ],
    ids=["never", "when empty", "full", "too dear to move", "mistyped annotation"],
)
def test_nothing_moves(things: Any, more: dict[str, Any], why: str) -> None:
    found = decided(*things, **more)

    assert found.decision.moves == ()
    assert why in told(found)


def test_a_budget_of_zero_is_the_reason_that_is_told() -> None:
    pool = node_pool("default", disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "0"}]})

    assert "budgets" in told(decided(*half_empty(), pool=pool))


def test_a_part_that_did_not_change_is_not_asked_again() -> None:
    pool = node_pool("default", **FREE)
    seen = situation(machine("a", "small"), on("one", "a", cpu="1800m"), pool=pool)
    first = consolidate(seen, Memory())
    again = consolidate(seen, first.memory)

    assert first.memory.of(("default",)).quiet is not None
    assert again.memory.turns == first.memory.turns == 1


def test_what_changes_in_one_part_asks_no_other_part_again() -> None:
    def seen(*more: Any) -> Situation:
        return apart({"first": ["a", "b"], "second": ["c"]}, *more)

    known = consolidate(seen(), Memory()).memory
    busy = on("late", "a", cpu="100m", nodeSelector={labels.NODEPOOL: "first"})
    protected = {labels.DO_NOT_DISRUPT: "true"}
    first, second = ("first",), ("second",)
    assert known.of(first).quiet is not None
    assert known.of(second).quiet is not None

    for change in (busy, replace(busy, metadata=replace(busy.metadata, annotations=protected))):
        again = consolidate(seen(change), known).memory

        assert again.of(first).turn > known.of(first).turn
        assert again.of(second).turn == known.of(second).turn


@pytest.mark.parametrize(
    "change",
    [
        {"pool": node_pool("default", disruption={**FREE["disruption"], "consolidationPolicy": "Balanced"})},
        {"pool": node_pool("default", limits={"cpu": "8"}, **FREE)},
        {"virtual": (pod("room-0", cpu="1"),)},
    ],
    ids=["policy", "limits", "room for a buffer"],
)
def test_a_part_is_asked_again_when_what_decides_about_it_changes(change: dict[str, Any]) -> None:
    option = pool_option(node_pool("default", **FREE), shop())

    def turns(known: Memory, **more: Any) -> Memory:
        seen = situation(machine("a", "small"), on("one", "a", cpu="1800m"), pool=option.pool)
        pool = more.pop("pool", option.pool)
        return consolidate(
            dataclasses.replace(
                seen,
                options=(replace(option, pool=pool),),
                pools={"default": pool},
                catalogs={"default": option.catalog},
                **more,
            ),
            known,
        ).memory

    known = turns(Memory())
    assert turns(known).turns == known.turns
    assert turns(known, **change).turns == known.turns + 1


def test_a_part_for_which_questions_ran_out_is_asked_again() -> None:
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {}, "topologyKey": labels.HOSTNAME}
    ]}}  # fmt: skip
    lonely = (on(name, where, affinity=apart) for name, where in (("one", "a"), ("two", "b")))
    pool = node_pool("default", **FREE)
    seen = situation(machine("a"), machine("b"), *lonely, pool=pool, types=shop(names=("large",)))
    known, cut = Memory(), []
    for questions in (0, 1, 60, 60):
        found = consolidate(seen, known, questions=questions)
        known = found.memory
        cut.append((sorted(found.cut_short), known.of(("default",)).quiet is not None, known.turns))

    assert cut == [(["multi"], False, 0), (["multi", "single"], False, 0), ([], True, 1), ([], True, 1)]


def test_while_a_move_is_under_way_its_part_waits() -> None:
    seen = situation(*half_empty(), pool=node_pool("default", **FREE))
    first = consolidate(seen, Memory())

    assert consolidate(seen, first.memory).decision.moves == ()
    assert consolidate(seen, first.memory.withdrawn({"a", "b"})).decision.moves


def test_a_move_that_did_not_hold_is_not_proposed_again_while_nothing_changes() -> None:
    pool, known, proposed = node_pool("default", **FREE), Memory(), []
    seen = situation(*half_empty(), pool=pool)
    for _ in range(6):
        found = consolidate(seen, known)
        proposed += [move.nodes for move in found.decision.moves]
        known = found.memory.withdrawn({name for move in found.decision.moves for name in move.nodes})
    changed = consolidate(situation(*half_empty(), on("three", "a"), pool=pool), known)

    assert sorted(proposed) == [("a",), ("a", "b"), ("b",)]
    assert known.of(("default",)).quiet is not None
    assert [sorted(move.nodes) for move in changed.decision.moves] == [["a", "b"]]


def test_a_second_look_sees_what_came_meanwhile() -> None:
    pool = node_pool("default", **FREE)
    move = consolidate(situation(*half_empty(), pool=pool), Memory()).decision.moves[0]
    more = situation(*half_empty(), on("more", "a", cpu="6"), on("most", "b", cpu="6"), pool=pool)
    nominated = situation(*half_empty(), pool=pool, nominated=frozenset({"a"}))

    assert still_pays(move, situation(*half_empty(), pool=pool), Memory())[0] is not None
    assert still_pays(move, more, Memory())[0] is None
    assert still_pays(move, nominated, Memory()) == (None, "a node may not go any more")
    closed = node_pool("default", disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "0"}]})
    assert still_pays(move, situation(*half_empty(), pool=closed), Memory()) == (
        None, "the budgets do not allow it any more",
    )  # fmt: skip


def test_the_target_names_nodes_that_should_go_and_nothing_pays_beyond_most() -> None:
    seen = situation(*half_empty(), pool=node_pool("default", **FREE))
    fleet = Fleet(seen, [candidate(each, seen) for each in seen.snapshot.nodes])
    found = target.target(fleet, [0, 1], fleet.kinds(0), 1.0)

    assert found.removed.any()
    assert (found.most <= 2 * PRICES["large"]).all()


def test_pools_that_no_pod_can_change_between_are_parts_of_their_own() -> None:
    seen = situation(machine("a"), on("one", "a", nodeSelector={labels.NODEPOOL: "default"}))
    fleet = Fleet(seen, [candidate(each, seen) for each in seen.snapshot.nodes])

    assert fleet.parts == [(("default",), [0])]


# -- promises -----------------------------------------------------------------------------------------------------------


def promised(now: Any = NOW) -> PartMemory:
    return PartMemory(promises=(Promise(price=1.0, saved=0.4, bearable=1.5, gone=frozenset({"a"}), pods=(), at=now),))


@pytest.mark.parametrize(
    ("claims", "price", "pods", "raised", "waiting"),
    [
        (frozenset(), 0.6, (), 1.0, 0),
        (frozenset(), 0.9, (), 2.0, 0),
        (frozenset({"a"}), 1.0, (), 1.0, 1),
        (frozenset(), 0.9, ("other",), 1.0, 1),
    ],
    ids=["kept", "broken", "under way", "pods on their way"],
)
def test_a_broken_promise_makes_evictions_dearer(
    claims: frozenset[str], price: float, pods: object, raised: float, waiting: int
) -> None:
    found = settled(promised(), claims=claims, price=price, pods=pods, now=NOW)

    assert (found.raised(NOW), len(found.promises)) == (raised, waiting)


@pytest.mark.parametrize(
    ("bearable", "raised"),
    [(1.5, 2.0), (4.0, 4.04), (100.0, 8.0), (math.inf, 8.0)],
    ids=["twice at least", "as far as it takes", "eight times at most", "evictions cost nothing"],
)
def test_a_broken_promise_raises_the_price_until_the_same_move_would_not_pay(bearable: float, raised: float) -> None:
    promise = replace(promised().promises[0], bearable=bearable)
    found = settled(PartMemory(promises=(promise,)), claims=frozenset(), price=0.9, pods=(), now=NOW)

    assert found.raised(NOW) == pytest.approx(raised)


def test_a_raised_price_falls_once_other_pods_are_there() -> None:
    known, later = PartMemory(factor=8.0, pods=("these",)), NOW + timedelta(days=3)
    same = settled(known, claims=frozenset(), price=1.0, pods=("these",), now=later)
    other = settled(same, claims=frozenset(), price=1.0, pods=("others",), now=later)

    assert same.raised(later) == other.raised(later) == 8.0
    assert 1.0 < other.raised(later + timedelta(minutes=30)) < 2.0
    assert settled(other, claims=frozenset(), price=1.0, pods=(), now=later + timedelta(days=1)).factor == 1.0


def test_where_the_pods_are_the_same_a_raised_price_falls_after_an_hour_and_so_often_only() -> None:
    known, now, fallen = PartMemory(), NOW, []
    for _ in range(5):
        broken = replace(known, promises=promised(now).promises)
        known = settled(broken, claims=frozenset(), price=0.9, pods=(), now=now)
        early = settled(known, claims=frozenset(), price=0.9, pods=(), now=now + timedelta(minutes=59))
        later = settled(early, claims=frozenset(), price=0.9, pods=(), now=now + timedelta(minutes=61))
        assert early.raised(now + timedelta(minutes=60)) == known.factor >= 2.0
        now += timedelta(hours=3)
        known = settled(later, claims=frozenset(), price=0.9, pods=(), now=now)
        fallen.append(known.factor == 1.0)
    other = settled(
        replace(known, promises=(replace(promised(now).promises[0], pods=("other",)),)),
        claims=frozenset(), price=0.9, pods=("other",), now=now,
    )  # fmt: skip

    assert fallen == [True, True, True, False, False]
    assert other.forgiven == 0
    assert known.matters


def test_at_the_highest_price_a_part_rests_and_the_reason_is_told() -> None:
    seen = situation(*half_empty(), pool=node_pool("default", **FREE))
    tired = Memory(parts={("default",): PartMemory(factor=HIGHEST, pods="these")})
    found = consolidate(seen, tired)

    assert found.decision.moves == ()
    assert UNRELIABLE in told(found)
    assert found.target == frozenset()


def test_what_is_remembered_of_a_part_counts_for_all_that_share_a_pool() -> None:
    seen = situation(*half_empty(), pool=node_pool("default", **FREE))
    tired = Memory(parts={("default", "other"): PartMemory(factor=HIGHEST, pods="these")})
    gone = Memory(parts={("away", "other"): PartMemory(factor=HIGHEST, pods="these")})

    assert consolidate(seen, tired).decision.moves == ()
    assert consolidate(seen, gone).decision.moves
    assert consolidate(seen, gone).memory.of(("away", "other")) == PartMemory()


@pytest.mark.parametrize(
    ("nodes", "taken", "wanted"),
    [("1", 1, True), ("1", 0, False), ("0", 0, False), ("0", 1, False)],
    ids=["another node is away", "there is budget", "none ever", "none ever, one away"],
)
def test_a_budget_is_used_up_only_where_it_would_allow_something(nodes: str, taken: int, wanted: bool) -> None:
    pool = node_pool("default", disruption={"consolidateAfter": "0s", "budgets": [{"nodes": nodes}]})
    seen = situation(*half_empty(), pool=pool)
    quota = Quota(seen, UNDERUTILIZED)
    quota.take(*(candidate(each, seen) for each in seen.snapshot.nodes[:taken]))

    assert quota.is_used_up("default") == wanted


# -- emptiness, candidates, Balanced ---------------------------------------------------------------------------------------


def test_empty_nodes_go_and_a_second_look_keeps_those_that_are_still_empty() -> None:
    pool = node_pool("default", **FREE)
    move = emptiness(situation(machine("a"), machine("b"), pool=pool)).moves[0]
    later = situation(machine("a"), machine("b"), on("came", "a"), pool=pool)

    assert move.nodes == ("a", "b")
    still = still_empty(move, later)
    assert still is not None
    assert still.nodes == ("b",)
    assert still_empty(move, situation(machine("a"), on("came", "a"), pool=pool)) is None


@pytest.mark.parametrize(
    ("things", "more", "why"),
    [
        ((machine("a"),), {"nominated": frozenset({"a"})}, "on their way"),
        ((machine("a"),), {"queued": frozenset({"a"})}, "command"),
        ((machine("a"),), {"catalogs": {}, "unknown": {"default": "away"}}, "away"),
        ((machine("a"),), {"pools": {}}, "is not there"),
        ((machine("a"), on("one", "a")), {}, ""),
    ],
    ids=["nominated", "queued", "types unknown", "no pool", "free"],
)
def test_what_forbids_to_touch_a_node(things: Any, more: dict[str, Any], why: str) -> None:
    from dataclasses import replace as with_fields

    seen: Situation = with_fields(situation(*things), **more)
    found = objection(seen.snapshot.nodes[0], seen, eventual=False)

    assert why in found if why else not found


def annotated() -> Any:
    node, known = machine("a")
    own = {labels.DO_NOT_DISRUPT: "true"}
    return [replace(node, metadata=replace(node.metadata, annotations=own)), known]


def succeeded() -> Any:
    node, known = machine("a")
    return [node, replace(known, metadata=replace(known.metadata, uid="another"))]


@pytest.mark.parametrize(
    ("things", "more", "goes"),
    [
        ((machine("a"), on("one", "a")), {}, True),
        ((machine("a"),), {}, True),
        ((machine("a"), on("one", "a"), on("two", "a")), {}, False),
        ((machine("a"), on("one", "a")), {"nominated": frozenset({"a"})}, False),
        ((machine("a"), on("one", "a")), {"queued": frozenset({"a"})}, False),
        ((annotated(), on("one", "a")), {}, False),
        ((succeeded(), on("one", "a")), {}, False),
        ((), {}, False),
    ],
    ids=["as it was", "a pod went", "a pod came", "nominated", "queued", "protected", "another claim", "gone"],
)
def test_what_was_decided_about_a_node_holds_only_as_long_as_nothing_speaks_against_it(
    things: Any, more: dict[str, Any], goes: bool
) -> None:
    chosen = situation(machine("a"), on("one", "a"))
    (one,) = chosen.snapshot.nodes

    assert may_still_go([candidate(one, chosen)], situation(*things, **more), eventual=False) is goes


def test_where_every_drain_ends_pods_have_no_say_in_drift() -> None:
    held = replace(on("one", "a"), metadata=replace(pod("one").metadata, annotations={labels.DO_NOT_DISRUPT: "true"}))
    node, claim = machine("a")
    bounded = replace(claim, spec=replace(claim.spec, termination_grace_period=eviction_cost_of("1m")))  # type: ignore[attr-defined]
    seen = situation([node, bounded], held)

    assert "do-not-disrupt" in objection(seen.snapshot.nodes[0], seen, eventual=False)
    assert objection(seen.snapshot.nodes[0], seen, eventual=True) == ""


@pytest.mark.parametrize(
    ("savings", "weight", "wanted"),
    [(20, 5, 4.0), (10, 10, 1.0), (5, 50, 0.1), (10, 0, math.inf), (0, 10, 0.0), (-5, 10, 0.0)],
)
def test_the_score_of_a_balanced_move(savings: float, weight: float, wanted: float) -> None:
    found = score(savings, weight, PoolTotals(cost=100.0, weight=100.0))

    assert found == pytest.approx(wanted)
    assert approves([found]) == (wanted >= 0.5)


@pytest.mark.parametrize("text", ["-1m", "Never", "soon", "10"])
def test_a_price_of_evictions_that_cannot_be_read_is_told_with_what_is_allowed(text: str) -> None:
    with pytest.raises(DurationError, match="0s or more"):
        eviction_cost_of(text)
