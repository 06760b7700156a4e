"""What holds for every plan: it is valid, it does not depend on chance or order, and it leaves its question alone."""

import copy
import json
import os
import random
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.differential import pieces
from tests.differential.judge import complaints
from tests.differential.recordings import recordings
from tests.differential.terms import Json
from tests.strategies import scenarios

from joiner.model.meta import replace
from joiner.offline.scenario import answer
from joiner.offline.scenario.reader import Scenario, read
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.firstfit import FirstFit, NothingNew
from joiner.scheduling.engine.prepared import PreparedProblem
from joiner.scheduling.plan import Plan, PlannedClaim
from joiner.scheduling.planners import podsizes
from joiner.scheduling.planners.firstfitvariants import AtHome
from joiner.scheduling.planners.valuegreedy import ValueGreedy
from joiner.scheduling.problem import Problem
from joiner.scheduling.report.plannedclaims import to_plan
from joiner.scheduling.schedule import schedule

# A whole scenario takes minutes to shrink; a failure prints it as it was drawn.
_NOT_SHRUNK = (Phase.explicit, Phase.generate)
SOME = settings(max_examples=120, phases=_NOT_SHRUNK)
FEW = settings(max_examples=60, phases=_NOT_SHRUNK)


def question(scenario: Json) -> Scenario:
    return read(json.dumps(scenario).encode(), Path())


def planned(scenario: Json) -> Plan:
    return schedule(question(scenario).problem)


def kinds(problem: Problem) -> dict[str, str]:
    """Pod to a name for everything about it that is not its own name."""
    return {
        pod.key: repr((pod.metadata.namespace, sorted(pod.metadata.labels.items()), pod.spec)) for pod in problem.pods
    }


def outcome(problem: Problem, plan: Plan, prices: bool = True) -> object:
    """The plan up to exchange of identical pods."""
    kind = kinds(problem)

    def sorts(pods: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
        return tuple(sorted(Counter(kind[pod] for pod in pods).items()))

    claims = Counter(
        (claim.nodepool, tuple(option.name for option in claim.options), claim.reservations, sorts(claim.pods))
        for claim in plan.claims
    )
    nodes = {name: sorts(pods) for name, pods in plan.placements.items() if pods}
    refused = sorts(tuple(refusal.pod for refusal in plan.refusals))
    return claims, nodes, refused, round(plan.price, 6) if prices else None


def told(scenario: Json) -> tuple[Json, Json]:
    asked = question(scenario)
    return scenario, answer.told(asked, schedule(asked.problem))


@SOME
@given(scenarios())
def test_every_plan_is_valid(scenario: Json) -> None:
    wrong = complaints(*told(scenario))

    assert not wrong, "\n".join(wrong)


@SOME
@given(scenarios(), st.randoms(use_true_random=False))
def test_the_order_of_the_question_does_not_matter(scenario: Json, chance: random.Random) -> None:
    problem = question(scenario).problem
    mixed = [list(part) for part in (problem.pods, problem.pools, problem.nodes, problem.daemons)]
    for part in mixed:
        chance.shuffle(part)
    pods, pools, nodes, daemons = map(tuple, mixed)

    shuffled = replace(problem, pods=pods, pools=pools, nodes=nodes, daemons=daemons)

    assert outcome(shuffled, schedule(shuffled)) == outcome(problem, schedule(problem))


@SOME
@given(scenarios(), st.randoms(use_true_random=False))
def test_the_order_in_which_pods_with_uids_are_written_does_not_matter(scenario: Json, chance: random.Random) -> None:
    # Without, the format has the place in the file for a UID, and UIDs tell who has the first turn.
    pods = [{**pod, "metadata": {**pod["metadata"], "uid": pod["metadata"]["name"]}} for pod in scenario["pods"]]
    shuffled = list(pods)
    chance.shuffle(shuffled)

    one, other = (question({**scenario, "pods": written}).problem for written in (pods, shuffled))

    assert outcome(one, schedule(one)) == outcome(other, schedule(other))


@FEW
@given(scenarios(), st.sampled_from([2.0**-20, 0.5, 4.0, 1024.0]))
def test_only_relations_between_prices_matter(scenario: Json, factor: float) -> None:
    scaled = copy.deepcopy(scenario)
    for machine in scaled["instanceTypes"]:
        for offering in machine["offerings"]:
            offering["price"] *= factor

    one, other = question(scenario).problem, question(scaled).problem

    assert outcome(one, schedule(one), prices=False) == outcome(other, schedule(other), prices=False)


def refused(plan: Plan) -> set[str]:
    return {each.pod for each in plan.refusals}


@FEW
@given(scenarios(plain=True), st.sampled_from("ab"), st.integers(0, 3))
def test_another_type_never_hurts(scenario: Json, zone: str, at: int) -> None:
    more = copy.deepcopy(scenario["instanceTypes"][at % len(scenario["instanceTypes"])])
    more["name"] = more["requirements"][0]["values"][0] = "t-9"
    more["offerings"] = [each for each in more["offerings"] if "reservationCapacity" not in each]

    richer = {**scenario, "instanceTypes": [*scenario["instanceTypes"], more]}

    assert refused(planned(richer)) <= refused(planned(scenario))


@FEW
@given(scenarios(plain=True), st.sampled_from("ab"), st.integers(0, 3))
def test_another_node_never_hurts(scenario: Json, zone: str, at: int) -> None:
    more = pieces.node("n00", scenario["instanceTypes"][at % len(scenario["instanceTypes"])], zone, owner=None)

    richer = {**scenario, "nodes": [*scenario["nodes"], more]}

    assert refused(planned(richer)) <= refused(planned(scenario))


@FEW
@given(scenarios())
def test_no_reservation_is_oversold(scenario: Json) -> None:
    plan = planned(scenario)
    left = {
        offering["requirements"][2]["values"][0]: offering["reservationCapacity"] if offering["available"] else 0
        for machine in scenario["instanceTypes"]
        for offering in machine["offerings"]
        if "reservationCapacity" in offering
    }

    given_out = Counter(name for claim in plan.claims for name in claim.reservations)

    assert all(given_out[name] <= left[name] for name in given_out)


@FEW
@given(scenarios())
def test_the_question_is_left_as_it_was(scenario: Json) -> None:
    problem = question(scenario).problem
    before = repr(problem), [repr(option.catalog.types) for option in problem.pools]

    schedule(problem)

    assert (repr(problem), [repr(option.catalog.types) for option in problem.pools]) == before


@FEW
@given(scenarios())
def test_the_same_question_has_the_same_answer(scenario: Json) -> None:
    problem = question(scenario).problem

    assert schedule(problem) == schedule(problem)


@FEW
@given(scenarios())
def test_every_pod_is_told_of_once(scenario: Json) -> None:
    problem = question(scenario).problem
    plan = schedule(problem)

    told_of = [pod for claim in plan.claims for pod in claim.pods]
    told_of += [pod for pods in plan.placements.values() for pod in pods]
    told_of += [each.pod for each in plan.refusals] + list(plan.not_attempted)

    assert sorted(told_of) == sorted(pod.key for pod in problem.pods)


@FEW
@given(scenarios())
def test_a_plan_leaves_no_more_pods_out_than_first_fit_and_is_not_dearer_for_the_same(scenario: Json) -> None:
    problem = question(scenario).problem
    net, plan = FirstFit(problem, Unlimited()), schedule(problem)
    net.place()
    plain = to_plan(net)

    assert len(plan.refusals) <= len(plain.refusals)
    assert len(plan.refusals) < len(plain.refusals) or plan.price <= plain.price + 1e-9


@FEW
@given(scenarios())
def test_a_claim_is_never_dearer_than_it_was_opened_at(scenario: Json) -> None:
    run = ValueGreedy(question(scenario).problem, Unlimited())
    run.place()
    limits = {tuple(sorted(run.key(position) for position in claim.positions)): claim for claim in run.claims}

    for claim in to_plan(run).claims:
        opened_at = limits[claim.pods].cost_max
        assert claim.reservations or opened_at is None or claim.price <= opened_at


@FEW
@given(scenarios())
def test_many_at_once_is_the_same_as_one_by_one(scenario: Json) -> None:
    problem = question(scenario).problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(podsizes, "countable", lambda each, step: False)
        one_by_one = ValueGreedy(problem, Unlimited())
        one_by_one.place()
    many = ValueGreedy(problem, Unlimited())
    many.place()

    assert outcome(problem, to_plan(many)) == outcome(problem, to_plan(one_by_one))


_PROGRAM = """
import json
from tests.differential.recordings import ours, recordings
for family in ("mixed", "reservations", "zone-spread", "soft-affinity", "overlays"):
    for recording in recordings(family)[:3]:
        print(json.dumps(ours(recording.scenario), sort_keys=True))
"""


def test_the_hash_seed_decides_nothing() -> None:
    root = Path(__file__).resolve().parents[2]
    answers = [
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            cwd=root,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]

    assert answers[0] == answers[1]
    assert answers[0].count(b"\n") == 15


@pytest.mark.parametrize("family", ["attachments", "deleting", "existing", "in-flight"])
def test_who_stays_at_home_is_where_first_fit_puts_everybody(family: str) -> None:
    stayed = 0
    for recording in recordings(family):
        problem = question(recording.scenario).problem
        first_fit = FirstFit(problem, Unlimited(), PreparedProblem(problem))
        first_fit.place()
        with suppress(NothingNew):
            at_home = AtHome(problem, Unlimited(), PreparedProblem(problem))
            at_home.place()
            assert said(to_plan(at_home)) == said(to_plan(first_fit)), recording.name
            stayed += 1

    assert stayed


def said(plan: Plan) -> object:
    return plan.claims, plan.placements, plan.refusals


@SOME
@given(scenarios(), st.lists(st.sampled_from(["0", "4", None]), min_size=4, max_size=4))
def test_pods_that_are_given_up_at_home_are_placed_by_nobody(scenario: Json, limits: list[str | None]) -> None:
    for pool, cpu in zip(scenario["nodePools"], limits, strict=False):
        pool["spec"]["limits"] = {"cpu": cpu} if cpu else {}
    problem = question(scenario).problem
    at_home = AtHome(problem, Unlimited(), PreparedProblem(problem))
    with suppress(NothingNew):
        at_home.place()
        for other in (FirstFit, ValueGreedy):
            run = other(problem, Unlimited(), PreparedProblem(problem))
            run.place()
            assert not at_home.waiting() - run.waiting()
            assert not run.claims


@SOME
@given(scenarios(plain=True), st.permutations([1, 50]))
def test_a_node_of_a_lighter_pool_is_only_bought_for_a_pod_that_no_heavier_one_takes(
    scenario: Json, weights: list[int]
) -> None:
    pools = copy.deepcopy(scenario["nodePools"])
    for pool, weight in zip(pools, weights, strict=False):
        pool["spec"]["weight"] = weight
        taints = pool["spec"]["template"]["spec"]["taints"]
        taints[:] = [taint for taint in taints if taint["effect"] != "PreferNoSchedule"]
    # Reservations run out like limits do, and whatever a pod prefers goes before a weight.
    options = {**scenario["options"], "preferencePolicy": "Ignore", "reservedCapacity": False}
    problem = question({**scenario, "nodePools": pools, "options": options, "nodes": [], "boundPods": []}).problem
    pods = {pod.key: pod for pod in problem.pods}
    weighs = {option.pool.name: option.pool.spec.weight for option in problem.pools}

    def takes(pod: str, claim: PlannedClaim) -> bool:
        """Whether a heavier pool would take the pod alone."""
        heavier = tuple(one for one in problem.pools if one.pool.spec.weight > weighs[claim.nodepool])
        return bool(schedule(replace(problem, pods=(pods[pod],), pools=heavier)).claims)

    def in_turn(pod: str) -> bool:
        """Whether a pod has alternatives: they are tried in the order in which they are written, each in all pools."""
        required = pods[pod].spec.affinity.node_affinity.required
        return required is not None and len(required.node_selector_terms) > 1

    for claim in schedule(problem).claims:
        assert any(in_turn(pod) or not takes(pod, claim) for pod in claim.pods), claim
