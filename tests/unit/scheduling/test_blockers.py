"""The one constraint that keeps a pod out, one table row for every kind of it."""

from typing import Any

import pytest
from tests.builders import (
    SHELF,
    away_from,
    existing_node,
    instance_type,
    near_term,
    near_to,
    node_pool,
    offering,
    pod,
    pods,
    problem,
    requirement,
    spread_over,
)

from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.labels import ARCH, HOSTNAME, INSTANCE_TYPE, ZONE
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Problem
from joiner.scheduling.schedule import schedule
from joiner.scheduling.whatif import blockers as blaming
from joiner.scheduling.whatif.blockers import LiftedVerdict, blame, lifted

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
TAINTED = decode({"metadata": {"name": "default"}, "spec": {"template": {"spec": {"taints": [TAINT]}}}}, NodePool)


def node_affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}}}


def alone(**spec: Any) -> Problem:
    return problem([pod(**spec)])


def in_pool(waiting: Pod, **spec: Any) -> Problem:
    return problem([waiting], node_pool(**spec))


ZONE_A = (instance_type("one", [offering(zone="a")]),)
CASES: dict[str, tuple[Problem, list[str]]] = {
    "a selector": (alone(nodeSelector={ZONE: "nowhere"}), [f"nodeSelector {ZONE}: nowhere"]),
    "one selector of two": (alone(nodeSelector={ZONE: "a", ARCH: "riscv"}), [f"nodeSelector {ARCH}: riscv"]),
    "an expression": (
        alone(affinity=node_affinity([requirement(ZONE, "In", "x"), requirement(ARCH, "Exists")])),
        [f"node affinity {ZONE} In [x]"],
    ),
    "two alternatives of one expression each": (
        alone(affinity=node_affinity([requirement(ZONE, "In", "x")], [requirement(ZONE, "In", "y")])),
        ["node affinity of 2 terms"],
    ),
    "an alternative of which something is left": (
        alone(
            affinity=node_affinity(
                [requirement(ZONE, "In", "x")], [requirement(ZONE, "In", "y"), requirement(ARCH, "Exists")]
            )
        ),
        ["node affinity of 2 terms", f"node affinity {ZONE} In [y]"],
    ),
    "a restricted label": (alone(nodeSelector={HOSTNAME: "me"}), [f"nodeSelector {HOSTNAME}: me"]),
    "a taint": (problem([pod()], TAINTED), ["taint dedicated=x:NoSchedule"]),
    "a spread": (
        alone(
            nodeSelector={ZONE: "a"},
            labels={"app": "web"},
            topologySpreadConstraints=[spread_over("web", "rack", minDomains=2)],
        ),
        ["spread of pods with app=web over rack, maxSkew 1, minDomains 2"],
    ),
    "an affinity": (alone(affinity=near_to("db")), [f"affinity to pods with app=db by {ZONE}"]),
    "an anti-affinity": (
        problem(
            [pod(affinity=away_from("old", ZONE))],
            types=ZONE_A,
            nodes=(existing_node(allocatable={}),),
            bound=(pod("old", labels={"app": "old"}, nodeName="node-a"),),
        ),
        [f"anti-affinity to pods with app=old by {ZONE}"],
    ),
    "the anti-affinity of another": (
        problem(
            [pod(labels={"app": "web"})],
            types=ZONE_A,
            nodes=(existing_node(allocatable={}),),
            bound=(pod("old", affinity=away_from("web", ZONE), nodeName="node-a"),),
        ),
        [f"anti-affinity to pods with app=web by {ZONE}"],
    ),
    "a volume": (alone(claims=["data"]), ["volume data (PersistentVolumeClaim data)"]),
    "a request": (alone(cpu="100"), ["request of cpu 100"]),
    "an extended request": (alone(extra={"example.com/gpu": "1"}), ["request of example.com/gpu 1"]),
    "a host port": (
        problem([pod(ports=[80])], daemons=(pod("agent", ports=[80]),)),
        ["host port 80/TCP", "daemon"],
    ),
    "a daemon": (
        problem([pod(cpu="12")], daemons=(pod("agent", cpu="6"),)),
        ["request of cpu 12", "daemon"],
    ),
    "a limit": (in_pool(pod(), limits={"cpu": "0"}), ["limit cpu 0"]),
    "a limit of nodes": (in_pool(pod(), limits={"nodes": "0"}), ["limit nodes 0"]),
    "minValues": (
        problem([pod()], node_pool("default", [requirement(INSTANCE_TYPE, "Exists", minValues=9)])),
        [f"minValues 9 of {INSTANCE_TYPE}", f"requirement {INSTANCE_TYPE} Exists minValues 9"],
    ),
    "a requirement of the pool": (
        problem([pod(nodeSelector={ZONE: "b"})], node_pool("default", [requirement(ZONE, "In", "a")])),
        [f"nodeSelector {ZONE}: b", f"requirement {ZONE} In [a]"],
    ),
}


def refused(plan: Plan) -> list[str]:
    return [each.pod for each in plan.refusals]


def judged(question: Problem) -> LiftedVerdict:
    plan = schedule(question)
    return blame(question, plan, refused(plan)[0])


@pytest.mark.parametrize(("question", "said"), CASES.values(), ids=CASES)
def test_the_constraint_is_named(question: Problem, said: list[str]) -> None:
    found = judged(question).blames

    assert sorted(each.says for blamed in found for each in blamed.constraints) == sorted(said)
    assert {len(blamed.constraints) for blamed in found} == {1}


@pytest.mark.parametrize("question", [case for case, _ in CASES.values()], ids=CASES)
def test_without_it_the_pod_is_placed(question: Problem) -> None:
    name = refused(schedule(question))[0]

    for blamed in judged(question).blames:
        assert name not in refused(schedule(lifted(question, name, blamed)))


def test_where_no_single_one_helps_two_are_named_together() -> None:
    (blamed,) = judged(alone(cpu="100", memory="1000Gi")).blames

    assert [each.says for each in blamed.constraints] == ["request of cpu 100", "request of memory 1000Gi"]


def test_two_expressions_of_one_term_can_be_lifted_together() -> None:
    term = [requirement(ZONE, "In", "x"), requirement(ARCH, "In", "riscv")]
    question = alone(affinity=node_affinity(term))

    (blamed,) = judged(question).blames

    assert len(blamed.constraints) == 2
    assert not schedule(lifted(question, "default/web", blamed)).refusals


def test_a_pod_that_nothing_helps_has_nobody_to_blame() -> None:
    assert judged(problem([pod()], types=())).blames == ()


def test_what_looks_mistyped_comes_first_with_what_was_meant() -> None:
    term = [requirement(ARCH, "NotIn", "arm64")]
    question = problem(
        [pod(nodeSelector={ZONE: "us-west-2aa"}, affinity=node_affinity(term))],
        node_pool("default", [requirement(ZONE, "In", "us-west-2a")]),
        types=(instance_type("one", [offering(zone="us-west-2a")]),),
    )

    first = judged(question).blames[0]

    assert first.constraints[0].says == f"nodeSelector {ZONE}: us-west-2aa"
    assert first.hint == f"{ZONE} is nowhere us-west-2aa; did you mean us-west-2a?"


@pytest.mark.parametrize(
    "asks",
    [{"topologySpreadConstraints": [spread_over("web", f"{ZONE}e")]}, {"affinity": away_from("web", f"{ZONE}e")}],
    ids=["spread", "anti-affinity"],
)
def test_a_mistyped_topology_is_told_with_what_was_meant(asks: dict[str, Any]) -> None:
    assert judged(problem([pod(**asks)])).blames[0].hint == f"no node has a label {ZONE}e; did you mean {ZONE}?"


def test_it_is_lifted_for_all_pods_of_the_workload() -> None:
    question = problem(pods(4, affinity=away_from("web", ZONE)))
    (blamed,) = judged(question).blames

    after = lifted(question, refused(schedule(question))[0], blamed)

    assert {bool(each.spec.affinity.pod_anti_affinity.required) for each in after.pods} == {False}


def test_preferences_are_never_blamed() -> None:
    likes = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": near_term("db", ZONE)}]
    }

    (blamed,) = judged(alone(cpu="100", affinity={"podAffinity": likes})).blames

    assert blamed.constraints[0].rule == "resources"


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        pytest.param(pod("odd", nodeSelector={ZONE: "x"}), {f"nodeSelector {ZONE}: x"}, id="its own demand"),
        pytest.param(pod("odd", cpu="900m", memory="9Gi"), {"limit cpu 200"}, id="what others took"),
    ],
)
@pytest.mark.parametrize("verified", [0, 1000], ids=["very many", "many"])
def test_among_many_pods_the_others_stay_where_the_plan_has_them(
    waiting: Pod, said: set[str], verified: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blaming, "VERIFIED", verified)
    question = problem([*pods(100, cpu="2", memory="8Gi"), waiting], node_pool(limits={"cpu": "200"}))
    plan = schedule(question)

    verdict = blame(question, plan, "default/odd")

    assert verdict.on_the_plan == (verified == 0)
    assert {each.says for blamed in verdict.blames for each in blamed.constraints} >= said
    assert all(not schedule(lifted(question, "default/odd", each)).refusals for each in verdict.blames)


def test_every_type_is_too_small_for_pods_of_that_many_gpus() -> None:
    types = (*SHELF, instance_type("gpu", capacity=resources.of(cpu=8, memory="32Gi", pods=20)))

    assert [
        each.constraints[0].rule for each in judged(problem([pod(extra={"x.com/gpu": "2"})], types=types)).blames
    ] == ["resources"]


@pytest.mark.parametrize(("expressions", "cut_short"), [(20, False), (100, True)])
def test_where_there_is_very_much_to_blame_not_all_of_it_is_tried(expressions: int, cut_short: bool) -> None:
    odd = [requirement(ZONE, "In", "x"), *(requirement(ZONE, "NotIn", str(number)) for number in range(expressions))]
    asked = alone(affinity=node_affinity(odd))

    found = blame(asked, schedule(asked), "default/web")

    assert found.blames
    assert found.cut_short is cut_short


def test_alternatives_are_told_with_what_was_meant_by_each() -> None:
    terms = [requirement(ZONE, "In", "x")], [requirement(ARCH, "In", "amd46")]

    (blamed,) = judged(alone(affinity=node_affinity(*terms))).blames

    assert blamed.hint == f"{ZONE} is nowhere x; there is a, b, c; {ARCH} is nowhere amd46; did you mean amd64?"


def test_of_a_resource_that_nobody_has_less_is_not_advised() -> None:
    (blamed,) = judged(alone(extra={"example.com/gpu": "1"})).blames

    assert (blamed.constraints[0].change, blamed.hint) == ("remove it", "no type has example.com/gpu")
