"""The lower bound of a plan's price: hand-made cases whose answer can be seen."""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.builders import VOCABULARY, instance_type, node_pool, offering

from joiner.catalog.build import Adjustments, build
from joiner.catalog.market import InstanceType
from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from joiner.model.pod import Pod
from joiner.scheduling.bound.lowerbound import Bound, bound, placed
from joiner.scheduling.problem import ExistingNode, PoolOption, Problem
from joiner.scheduling.schedule import schedule

both_ways = pytest.mark.parametrize("solver", [True, False], ids=["solver", "climb"])


def machine(name: str, cpu: int, price: float, **more: Any) -> InstanceType:
    capacity = resources.of(cpu=cpu, memory=f"{4 * cpu}Gi", pods=100)
    return instance_type(name, [offering(price=price, **more)], capacity=capacity)


def pods(count: int, cpu: str, name: str = "web", memory: str = "1Gi", **spec: Any) -> list[Pod]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    written = {"containers": [container], **spec}
    labels = {"app": name}
    return [
        decode({"metadata": {"name": f"{name}-{n}", "namespace": "default", "labels": labels}, "spec": written}, Pod)
        for n in range(count)
    ]


def problem(
    waiting: Iterable[Pod], types: Iterable[InstanceType], nodes: Iterable[ExistingNode] = (), **pool: Any
) -> Problem:
    bought = node_pool(**pool)
    option = PoolOption(pool=bought, catalog=build(tuple(types), Adjustments(), bought, VOCABULARY))
    return Problem(pods=tuple(waiting), pools=(option,), nodes=tuple(nodes), vocabulary=VOCABULARY)


ALONE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
SMALL, LARGE = machine("small", 2, 1.0), machine("large", 8, 3.0)
SPOT = machine("spot", 8, 0.5, capacity_type="spot")

CASES: dict[str, tuple[Problem, float]] = {
    "nothing to do": (problem([], [SMALL]), 0.0),
    "a single pod needs a whole node": (problem(pods(1, "500m"), [SMALL, LARGE]), 1.0),
    "pods that fill nodes": (problem(pods(16, "1"), [LARGE]), 6.0),
    "the cheaper price for a core": (problem(pods(16, "1"), [SMALL, LARGE]), 6.0),
    "just over half a node: one each": (problem(pods(10, "1100m"), [SMALL]), 10.0),
    "just over a third of a node: two each": (problem(pods(10, "700m"), [SMALL]), 5.0),
    "pods that share no node": (problem(pods(5, "100m", affinity=ALONE), [SMALL]), 5.0),
    "who must be on demand pays for it": (
        problem([*pods(8, "1", nodeSelector={CAPACITY_TYPE: "on-demand"}), *pods(8, "1", "b")], [LARGE, SPOT]),
        3.5,
    ),
    "who must be in a zone pays for it": (
        problem(pods(8, "1", nodeSelector={ZONE: "b"}), [LARGE, machine("far", 8, 9.0, zone="b")]),
        9.0,
    ),
    "who fits nowhere does not count": (problem([*pods(1, "99"), *pods(8, "1", "b")], [LARGE]), 3.0),
    "a node without a price is no way out": (problem(pods(8, "1"), [LARGE, machine("free", 8, 0.0)]), 0.0),
}


@both_ways
@pytest.mark.parametrize(("asked", "expected"), CASES.values(), ids=CASES.keys())
def test_the_bound_is_what_can_be_seen(asked: Problem, expected: float, solver: bool) -> None:
    found = bound(asked, solver=solver)

    assert found.price <= expected
    assert found.price == pytest.approx(expected, rel=1e-4 if solver else 0.06)


@both_ways
def test_room_on_nodes_that_are_there_is_free(solver: bool) -> None:
    there = ExistingNode(name="n", labels={ZONE: "a"}, allocatable=resources.of(cpu=8, memory="64Gi", pods=100))

    found = bound(problem(pods(24, "1"), [LARGE], [there]), solver=solver)

    assert found.price == pytest.approx(6.0, rel=1e-4)
    assert found.surplus == pytest.approx(3.0, rel=1e-4)


@both_ways
def test_a_reservation_is_cheap_as_often_as_it_has_instances(solver: bool) -> None:
    ways = [offering(price=3.0), offering("reserved", price=0.01, available=2, reservation="cr-1")]
    kind = instance_type("large", ways, capacity=resources.of(cpu=8, memory="32Gi", pods=100))

    found = bound(problem(pods(32, "1"), [kind]), solver=solver)

    assert found.price == pytest.approx(6.02, rel=1e-4)


def test_daemons_take_their_room_first() -> None:
    asked = problem(pods(7, "1"), [LARGE])
    busy = Problem(
        **{**{f: getattr(asked, f) for f in asked.__struct_fields__}, "daemons": tuple(pods(1, "1", "agent"))}
    )

    assert bound(busy).price == pytest.approx(3.0)


def test_any_of_several_terms_will_do_and_preferences_are_given_up() -> None:
    terms = [
        {"matchExpressions": [{"key": CAPACITY_TYPE, "operator": "In", "values": [v]}]} for v in ("on-demand", "spot")
    ]
    liked = [{"weight": 1, "preference": terms[0]}]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            "preferredDuringSchedulingIgnoredDuringExecution": liked,
        }
    }

    found = bound(problem(pods(8, "1", affinity=affinity), [LARGE, SPOT]))

    assert found.price == pytest.approx(0.5)
    assert found.dropped == ("preferences",)


def test_only_the_named_pods_are_covered() -> None:
    asked = problem(pods(16, "1"), [LARGE])

    assert bound(asked, {f"default/web-{n}" for n in range(8)}).price == pytest.approx(3.0)


def test_the_parts_say_what_it_is_made_of() -> None:
    found = bound(problem([*pods(12, "1"), *pods(2, "2", "big")], [LARGE]))

    total = sum(part.count * part.price for part in found.parts) + found.nodes - found.surplus
    assert {part.pod: part.count for part in found.parts} == {"default/web-0": 12, "default/big-0": 2}
    assert total == pytest.approx(found.price)
    assert found.exact
    assert found.method == "solver"


def test_a_plan_is_compared_with_the_bound_of_the_pods_it_places() -> None:
    asked = problem([*pods(9, "1"), *pods(1, "99", "huge")], [SMALL, LARGE])
    plan = schedule(asked)

    found = bound(asked, placed(plan))

    assert len(placed(plan)) == 9
    assert found.price <= plan.price
    assert found.gap(plan.price) == pytest.approx(plan.price / found.price - 1)


def test_where_all_may_be_free_there_is_no_gap() -> None:
    assert Bound(price=0.0).gap(1.0) is None


def test_many_different_sizes_and_nodes_are_rounded_in_favour_of_the_plan() -> None:
    waiting = [pod for n in range(1200) for pod in pods(1, f"{500 + n}m", f"w{n}")]
    asked = problem(waiting, [LARGE])

    found = bound(asked, solver=False)

    assert len(found.parts) <= 1000
    assert found.price <= bound(asked).price * (1 + 1e-9)
    assert found.price > 0.9 * 3.0 * sum(500 + n for n in range(1200)) / 8000
