"""`joiner plan --explain` and `--costs`: the story of one pod, and what wishes cost."""

import json
from functools import lru_cache
from typing import Any

import pytest
from click.testing import CliRunner

from joiner.cli.main import cli

WORLD = """\
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: spare}
spec:
  weight: 10
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      taints: [{key: spare, effect: NoSchedule}]
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
"""
NODES = "".join(
    f"""\
---
apiVersion: v1
kind: Node
metadata: {{name: node-{number}}}
status: {{capacity: {{cpu: "1", memory: 1Gi, pods: "9"}}, allocatable: {{cpu: "1", memory: 1Gi, pods: "9"}}}}
"""
    for number in range(12)
)


def deployment(name: str, replicas: int = 1, cpu: str = "2", **spec: Any) -> str:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "2Gi"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    made = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    whole = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": made}
    return f"---\n{json.dumps(whole)}\n"


LIKED = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["test-zone-a"]}
PREFERS = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
    {"weight": 1, "preference": {"matchExpressions": [LIKED]}},
]}}  # fmt: skip
TYPO = {"topology.kubernetes.io/zone": "test-zone-aa"}
HOST = "kubernetes.io/hostname"
ALL = "".join(
    (
        WORLD,
        NODES,
        deployment("typo", 2, nodeSelector=TYPO),
        deployment("slip", 3, nodeSelector=TYPO),
        deployment("web", 2, affinity=PREFERS),
    )
)


@lru_cache
def said(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["plan", "-f", "-", *arguments], input=ALL)
    assert result.exit_code == 0, result.output
    return result.stdout


def told(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(*arguments, "-o", "json"))
    return found


# -- a pod that finds no place -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "NodePool spare    taints        the pod does not tolerate spare:NoSchedule\n",
        "did you mean test-zone-a?\n",
        "Types of NodePool default that are left\nTYPES  AFTER\n",
        "Why not a node that is there\nNODES  RULE       WHY ",
        "   12  resources  cpu 2 is asked for and 1 is free, memory 2Gi is asked for and 1Gi is free  node-0, node-1 …\n",
        "What would let it in\n",
        "Pod default/typo-0  nodeSelector topology.kubernetes.io/zone: test-zone-aa  remove it: ",
        "found out by planning again without it\n",
    ],
    ids=["pool", "hint", "funnel", "nodes", "summary of nodes", "remedy", "what to change", "proof"],
)
def test_a_refused_pod_is_told_everything_that_keeps_it_out(words: str) -> None:
    assert words in said("--explain", "typo-0")


def test_data_holds_every_reason_in_parts() -> None:
    found = told("--explain", "typo-0")
    by_pool = {each["object"]: each for each in found["refusal"]["reasons"]}
    first = by_pool["NodePool default"]

    assert (first["rule"], first["wanted"]) == ("requirements", "topology.kubernetes.io/zone In [test-zone-aa]")
    assert first["funnel"][-1]["left"] == 0
    assert first["hint"].endswith("did you mean test-zone-a?")
    assert by_pool["NodePool spare"]["had"] == "spare:NoSchedule"
    assert len(found["existingNodes"]) == 12


def test_data_holds_what_would_help() -> None:
    (change,) = told("--explain", "typo-0")["wouldHelp"]["changes"]

    assert change["hint"].endswith("did you mean test-zone-a?")
    assert change["constraints"] == [
        {
            "rule": "requirements",
            "object": "Pod default/typo-0",
            "field": "spec.nodeSelector[topology.kubernetes.io/zone]",
            "says": "nodeSelector topology.kubernetes.io/zone: test-zone-aa",
            "change": "remove it",
        }
    ]


def test_those_with_the_same_reason_are_one_row_and_are_told_what_would_help() -> None:
    text = said()

    assert "Deployment slip, Deployment typo     5  NodePool spare: the pod does not tolerate" in text
    assert text.count("spare:NoSchedule") == 1
    assert "would have a place without the nodeSelector topology.kubernetes.io/zone: test-zone-aa of Pod" in text


# -- a pod that has a place ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "  why this:    the cheapest of ",
        "  runner-up:   ",
        "  why there:   no other NodePool takes these pods\n",
        "spare         10       the pod does not tolerate spare:NoSchedule\n",
        "What its wishes cost\nWISH ",
        "preferred node affinity topology.kubernetes.io/zone In [test-zone-a] ",
    ],
    ids=["type", "runner-up", "pool", "other pool", "costs", "wish"],
)
def test_a_placed_pod_is_told_why_its_node_was_bought(words: str) -> None:
    assert words in said("--explain", "web-0", "--costs")


def test_data_tells_why_a_node_was_bought() -> None:
    found = told("--explain", "web-0", "--costs")

    assert found["why"]["typesThatWouldDo"] == len(found["claim"]["options"])
    assert found["why"]["otherNodePools"][0]["nodePool"] == "spare"
    assert found["claim"]["runnerUp"] == found["claim"]["options"][1]
    assert [(each["pods"], each["hourly"] >= 0) for each in found["costs"]] == [(2, True)]


# -- the whole plan ------------------------------------------------------------------------------------------------------


def test_what_wishes_cost_is_told_only_on_request() -> None:
    assert "What wishes cost" not in said()
    assert "What wishes cost\nWORKLOAD        PODS  WISH" in said("--costs")
    assert "costs" not in told()
    assert [each["pods"] for each in told("--costs")["costs"]] == [2]


def test_with_costs_every_claim_says_why_it_is_bought() -> None:
    assert all("why" in claim for claim in told("--costs")["claims"])


def test_amounts_of_one_column_are_in_one_unit() -> None:
    table = said().split("What would be bought\n")[1].split("\n\n")[0]
    words = [word for line in table.splitlines()[1:] for word in line.split() if "/" in word and "Gi" in word]

    assert words
    assert not any("Mi" in line or "m/" in line for line in table.splitlines())


def test_nothing_to_price_is_said() -> None:
    result = CliRunner().invoke(cli, ["plan", "-f", "-", "--costs"], input=WORLD + deployment("plain"))

    assert "No pod has a preference, a spread constraint or an affinity that could cost anything" in result.output


def test_far_from_the_bound_what_decides_before_prices_is_said() -> None:
    tolerant = deployment("web", 4, tolerations=[{"operator": "Exists"}])
    dear_first = WORLD.replace("weight: 10", "weight: 1").replace(
        "{name: default}\nspec:\n", "{name: default}\nspec:\n  weight: 9\n"
    )
    result = CliRunner().invoke(cli, ["plan", "-f", "-", "--bound"], input=dear_first + tolerant)

    assert (
        "NodePools are asked by weight, the highest first; NodePools of equal weight are asked by name" in result.output
    )
    assert "; with spare asked first a plan costs" in result.output


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (
            "",
            "why there:   NodePools of equal weight are asked by name, the last in the alphabet first, and its name is",
        ),
        ("  weight: 9\n", "why there:   its weight of 9 goes before the others that would do\n"),
    ],
)
def test_why_a_pool_was_asked_first_is_said_whatever_the_others_cost(weight: str, words: str) -> None:
    cheap_last = WORLD.replace("  weight: 10\n", weight).replace("[spot]", "[x]").replace("on-demand", "spot")
    tolerant = deployment("web", tolerations=[{"operator": "Exists"}])
    given = cheap_last.replace("[x]", "[on-demand]") + tolerant

    result = CliRunner().invoke(cli, ["plan", "-f", "-", "--explain", "web-0"], input=given)

    assert words in result.stdout
    assert ("NodePool default would cost " in result.stdout) == (not weight)


def test_every_row_of_what_is_left_over_has_a_remedy_and_a_pod_to_ask_about() -> None:
    slips = "".join(deployment(f"slip{n}", 2, nodeSelector={f"rack{n}": "x"}) for n in range(5))

    result = CliRunner().invoke(cli, ["plan", "-f", "-"], input=WORLD + slips)

    assert result.stdout.count(" would have a place without the nodeSelector ") == 5
    assert result.stdout.endswith("--explain POD tells more of a pod, for instance --explain slip0-0\n")


def test_a_pod_that_nothing_helps_is_the_one_to_ask_about() -> None:
    given = WORLD + deployment("huge", cpu="9999", nodeSelector=TYPO) + deployment("slip", nodeSelector=TYPO)
    lost = given + deployment("zoo", cpu="9999", nodeSelector={**TYPO, "rack": "x"})

    result = CliRunner().invoke(cli, ["plan", "-f", "-"], input=lost)

    assert result.stdout.endswith("for instance --explain zoo-0\n")


def test_how_many_wishes_were_not_priced_is_said() -> None:
    many = "".join(deployment(f"web{n}", cpu="100m", affinity=PREFERS) for n in range(22))

    drawn, data = (
        CliRunner().invoke(cli, ["plan", "-f", "-", "--costs", *form], input=WORLD + many).stdout
        for form in ((), ("-o", "json"))
    )

    assert drawn.endswith("and 2 more that were not looked at; --explain POD --costs does so for one pod\n")
    assert json.loads(data)["costsNotLookedAt"] == 2


def test_a_pod_that_was_never_tried_is_told_why_without_a_speaker() -> None:
    result = CliRunner().invoke(cli, ["plan", "-f", "-"], input=WORLD + deployment("odd", nodeSelector={HOST: "x"}))

    assert f"never tried: label {HOST} is restricted" in result.stdout
