"""The lower bound is below everything: the cheapest plan of tiny problems, our plans, and those of the reference."""

import copy
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import VOCABULARY, instance_type, node_pool, offering
from tests.differential.judge import judge
from tests.differential.recordings import FAMILIES, price, recordings
from tests.differential.terms import Json
from tests.strategies import scenarios

from joiner.catalog.build import Adjustments, build
from joiner.catalog.market import Offering
from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from joiner.model.pod import Pod
from joiner.offline.scenario.reader import read
from joiner.scheduling.bound import enumeration
from joiner.scheduling.bound.dualprices import DualPrices, proven
from joiner.scheduling.bound.lowerbound import bound, placed
from joiner.scheduling.bound.relaxation import relaxed
from joiner.scheduling.problem import ExistingNode, PoolOption, Problem
from joiner.scheduling.schedule import schedule

HAIR = 1e-12


class Wish(NamedTuple):
    """A pod: what it asks for, where it must be, and whether it shares no node with its like."""

    cpu: int
    memory: int
    zone: str
    market: str
    lonely: bool


class Kind(NamedTuple):
    """A type of node with one offering."""

    cpu: int
    memory: int
    zone: str
    market: str
    price: float
    instances: int


wishes = st.builds(
    Wish,
    st.integers(1, 5),
    st.integers(1, 5),
    st.sampled_from(["", "", "a", "b"]),
    st.sampled_from(["", "", "on-demand"]),
    st.sampled_from([False, False, True]),
)
kinds = st.builds(
    Kind,
    st.integers(1, 8),
    st.integers(1, 8),
    st.sampled_from("ab"),
    st.sampled_from(["on-demand", "spot", "reserved"]),
    st.sampled_from([0.0, 0.25, 1.0, 1.5, 4.0]),
    st.integers(1, 2),
)
rooms = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=1)


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """All ways to divide the items into groups."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for at in range(len(rest)):
            yield [*rest[:at], [items[0], *rest[at]], *rest[at + 1 :]]


def fits(group: list[Wish], cpu: int, memory: int, zone: str, market: str) -> bool:
    return (
        sum(each.cpu for each in group) <= cpu
        and sum(each.memory for each in group) <= memory
        and all(each.zone in ("", zone) and each.market in ("", market) for each in group)
        and sum(each.lonely for each in group) <= 1
    )


def cheapest(pods: list[Wish], sold: list[Kind], room: list[tuple[int, int]]) -> float | None:
    """By trying everything: each group of each partition on each node and kind."""
    best: float | None = None
    places = [(None, *each, "a", "on-demand", 0.0, 1) for each in room] + [(n, *kind) for n, kind in enumerate(sold)]
    for partition in partitions(list(range(len(pods)))):
        groups = [[pods[n] for n in group] for group in partition]
        ways = [[at for at, place in enumerate(places) if fits(group, *place[1:5])] for group in groups]
        for choice in product(*ways):
            limited = [at for at in choice if places[at][0] is None or places[at][4] == "reserved"]
            if any(limited.count(at) > places[at][6] for at in limited):
                continue
            cost = sum(float(places[at][5]) for at in choice)
            best = cost if best is None or cost < best else best
    return best


def sold_as(number: int, kind: Kind) -> Offering:
    if kind.market != "reserved":
        return offering(kind.market, kind.zone, kind.price)
    return offering(kind.market, kind.zone, kind.price, kind.instances, f"cr-{number}")


def asked(pods: list[Wish], sold: list[Kind], room: list[tuple[int, int]]) -> Problem:
    types = tuple(
        instance_type(
            f"t{n}", [sold_as(n, each)], capacity=resources.of(cpu=each.cpu, memory=f"{each.memory}Gi", pods=100)
        )
        for n, each in enumerate(sold)
    )
    pool = node_pool()
    nodes = tuple(
        ExistingNode(
            name="n",
            labels={ZONE: "a", CAPACITY_TYPE: "on-demand"},
            allocatable=resources.of(cpu=cpu, memory=f"{memory}Gi", pods=100),
        )
        for cpu, memory in room
    )
    return Problem(
        pods=tuple(written(n, each) for n, each in enumerate(pods)),
        pools=(PoolOption(pool=pool, catalog=build(types, Adjustments(), pool, VOCABULARY)),),
        nodes=nodes,
        vocabulary=VOCABULARY,
    )


def written(number: int, wish: Wish) -> Pod:
    requests = {"cpu": str(wish.cpu), "memory": f"{wish.memory}Gi"}
    where = {ZONE: wish.zone, CAPACITY_TYPE: wish.market}
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "resources": {"requests": requests}}],
        "nodeSelector": {key: value for key, value in where.items() if value},
    }
    if wish.lonely:
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"lonely": "yes"}}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    labels = {"lonely": "yes"} if wish.lonely else {}
    return decode({"metadata": {"name": f"p{number}", "namespace": "default", "labels": labels}, "spec": spec}, Pod)


@settings(max_examples=150, deadline=None)
@given(st.lists(wishes, min_size=1, max_size=4), st.lists(kinds, min_size=1, max_size=3), rooms, st.booleans())
def test_no_plan_of_a_tiny_problem_is_cheaper(
    pods: list[Wish], sold: list[Kind], room: list[tuple[int, int]], solver: bool
) -> None:
    best = cheapest(pods, sold, room)

    if best is not None:
        assert bound(asked(pods, sold, room), solver=solver).price <= best + HAIR


@settings(max_examples=150, deadline=None)
@given(st.lists(wishes, min_size=1, max_size=4), st.lists(kinds, min_size=1, max_size=3), rooms)
def test_going_through_all_ways_finds_the_cheapest(
    pods: list[Wish], sold: list[Kind], room: list[tuple[int, int]]
) -> None:
    best = cheapest(pods, sold, room)

    if best is not None:
        assert enumeration.cheapest(relaxed(asked(pods, sold, room))) == pytest.approx(best)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(wishes, min_size=1, max_size=4), st.lists(kinds, min_size=1, max_size=3), rooms, st.integers(0, 2**32 - 1)
)
def test_any_rents_whatever_give_a_true_bound(
    pods: list[Wish], sold: list[Kind], room: list[tuple[int, int]], seed: int
) -> None:
    best = cheapest(pods, sold, room)
    relaxation = relaxed(asked(pods, sold, room))
    chance, (count, width, _) = np.random.default_rng(seed), relaxation.parts.shape

    duals = DualPrices(
        chance.normal(0.5, 1, (count, width)),
        chance.normal(0.5, 1, (count, len(relaxation.cardinality))),
        chance.normal(0.1, 1, len(relaxation.cuts)),
    )

    if best is not None:
        assert proven(relaxation, duals).price <= best + HAIR


@settings(max_examples=100, deadline=None)
@given(scenarios(), st.booleans())
def test_our_own_plan_is_never_cheaper(scenario: Json, solver: bool) -> None:
    problem = read(json.dumps(scenario).encode(), Path()).problem
    plan = schedule(problem)

    assert bound(problem, placed(plan), solver=solver).price <= plan.price + HAIR


@settings(max_examples=50, deadline=None)
@given(scenarios(), st.sampled_from([0.5, 4.0, 1024.0]))
def test_dearer_nodes_make_a_bound_higher_by_as_much(scenario: Json, factor: float) -> None:
    scaled = copy.deepcopy(scenario)
    for machine in scaled["instanceTypes"]:
        for sold in machine["offerings"]:
            sold["price"] *= factor

    one, other = (bound(read(json.dumps(each).encode(), Path()).problem).price for each in (scenario, scaled))

    assert other == pytest.approx(one * factor, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_recorded_plan_that_is_valid_here_is_cheaper(family: str) -> None:
    found: list[str] = []
    for recording in recordings(family):
        problem = read(json.dumps(recording.scenario).encode(), Path()).problem
        for answer in recording.answers:
            # Whoever counts an overlay's devices on nodes that do not have them is cheaper, and wrong.
            if any(violation.quirk == "capacity-of-the-type" for violation in judge(recording.scenario, answer)):
                continue
            least = bound(problem, _served(answer)).price
            if least > price(answer) + HAIR:
                found.append(f"{recording.name}: {price(answer):.9g} is below the bound {least:.9g}")

    assert not found, "\n".join(found)


def _served(answer: Json) -> frozenset[str]:
    launched = [claim for claim in answer["newNodeClaims"] if claim["cheapestPrice"] >= 0]
    names = [pod for place in (*launched, *answer["existingNodes"]) for pod in place["pods"]]
    return frozenset(name if "/" in name else f"default/{name}" for name in names)
