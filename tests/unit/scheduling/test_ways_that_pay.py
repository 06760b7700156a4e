"""Each way of planning is needed: without it a plan costs more, or leaves more pods over. `tools/ablate.py` measures how much."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from benchmarks import mixes
from tests.differential.recordings import recordings
from tests.differential.terms import Json
from tools import ablate

from joiner.model.meta import replace
from joiner.offline.scenario.reader import read
from joiner.scheduling.tuning import NODE_PRICE


def recorded(name: str) -> Json:
    (scenario,) = (each.scenario for each in recordings(name.partition("/")[0]) if each.name == name)
    return scenario


services = partial(mixes.deployments, 70, 10)
NEEDED: dict[str, Callable[[], Json]] = {
    "worth": partial(recorded, "topology-prices/10"),
    "worth, constrained first": partial(recorded, "topology-prices/13"),
    "guarded": partial(recorded, "topology-prices/16"),
    "guarded, tight": partial(recorded, "topology-prices/18"),
    "first-fit, first place": partial(recorded, "found/38"),
    "rounded": partial(services, seed=2),
    "repriced": partial(mixes.benchmark, 100, seed=3),
    "rescue: settled_domains": partial(recorded, "topology-prices/1"),
    "rescue: baseline_kept": partial(recorded, "found/22"),
    "rescue: reservations_left": partial(recorded, "found/37"),
    "phase: second charge for nodes": partial(mixes.benchmark, 100, seed=7),
    "phase: each domain as the favourite": partial(recorded, "found/9"),
    "phase: again without those left over": partial(recorded, "found/27"),
    "phase: those left over first": partial(recorded, "volumes/0"),
    "phase: local search": partial(recorded, "topology-prices/2"),
    "phase: local search from dearer plans": partial(recorded, "host-spread/11"),
    "engine: domains by the price of the group": partial(recorded, "topology-prices/8"),
}
ELSEWHERE = {
    "rescue: another_domain": "test_of_domains_that_are_as_good_the_one_is_taken_that_leaves_fewest_out",
    "rescue: important_first": "test_when_limits_bind_the_less_important_pod_is_refused",
    "engine: pods held by volumes are called back": "test_nobody_is_held_where_spread_never_lets_them_go",
}
"""Ways with a test of their own."""
CHARGED = {"phase: second charge for nodes"}
"""Ways that matter for a few pods where nodes are charged."""
ONLY_FASTER = {"phase: proof that ends the search", "phase: agreement on one node"}


@pytest.mark.parametrize(("way", "scenario"), NEEDED.items(), ids=NEEDED)
def test_without_it_a_plan_is_worse(way: str, scenario: Callable[[], Json]) -> None:
    problem = read(json.dumps(scenario()).encode(), Path()).problem
    if way in CHARGED:
        problem = replace(problem, policy=replace(problem.policy, node_price=NODE_PRICE))
    whole = ablate.planned(problem)

    with ablate.ways()[way]():
        without = ablate.planned(problem)

    assert (without.left, without.price) > (whole.left, whole.price * (1 + 1e-9))


def test_there_is_a_question_for_every_way() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))

    assert set(ablate.ways()) == NEEDED.keys() | ELSEWHERE.keys() | ONLY_FASTER
    assert all(f"def {test}(" in tests for test in ELSEWHERE.values())


@pytest.mark.parametrize("way", sorted(ONLY_FASTER))
def test_what_only_saves_time_gives_as_good_a_plan(way: str) -> None:
    problem = read(json.dumps(recorded("plain/1")).encode(), Path()).problem
    whole = ablate.planned(problem)

    with ablate.ways()[way]():
        assert whole.price <= 1.02 * ablate.planned(problem).price
