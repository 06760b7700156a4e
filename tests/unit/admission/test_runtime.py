"""Objects that came past an older CRD, or past none: judged as typed values."""

from typing import Any

import pytest
from tests.unit.admission.table import ENTRY, TEMPLATE, claim, pool, requirement

from joiner.admission.runtime import nodepool_problems, runtime_problems
from joiner.model.codec import decode
from joiner.model.labels import Vocabulary
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool

OTHER = Vocabulary().extended(well_known=["cloud.example/size"], restricted_domains=["cloud.example"])

RULES: list[tuple[str, dict[str, Any], str]] = [
    ("In without values", requirement(values=[]), f"{ENTRY}.values"),
    ("Gt with text", requirement(operator="Gt", values=["a"]), f"{ENTRY}.values"),
    ("minValues above the values", requirement(minValues=3), f"{ENTRY}.minValues"),
    ("a reserved domain", requirement("karpenter.sh/a"), f"{ENTRY}.key"),
    ("the pool label", requirement("karpenter.sh/nodepool"), f"{ENTRY}.key"),
    ("a bad key", requirement("a b"), f"{ENTRY}.key"),
    ("a bad value", requirement(values=["a b"]), f"{ENTRY}.values[0]"),
]


@pytest.mark.parametrize(("entry", "path"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_the_rules_of_the_crd_hold_at_run_time_too(entry: dict[str, Any], path: str) -> None:
    problems = nodepool_problems(decode(pool(entry), NodePool), Vocabulary())

    assert [problem.path for problem in problems] == [path]


def test_the_provider_says_which_labels_are_its_own() -> None:
    typed = decode(pool(requirement("cloud.example/size"), requirement("cloud.example/mine")), NodePool)

    assert [problem.path for problem in nodepool_problems(typed, OTHER)] == [f"{TEMPLATE}.requirements[1].key"]
    assert nodepool_problems(typed, Vocabulary()) == ()


def test_a_former_spelling_of_a_reserved_label_is_reserved() -> None:
    vocabulary = Vocabulary(aliases={"old/hostname": "kubernetes.io/hostname"})

    problems = nodepool_problems(decode(pool(requirement("old/hostname")), NodePool), vocabulary)

    assert [problem.path for problem in problems] == [f"{ENTRY}.key"]


def test_an_overlay_that_shuns_no_value_is_an_error_and_not_one_for_everything() -> None:
    nothing = {"requirements": [{"key": "team", "operator": "NotIn"}], "price": "0.1"}

    (problem,) = runtime_problems(decode({"metadata": {"name": "o"}, "spec": nothing}, NodeOverlay), Vocabulary())

    assert (problem.path, problem.is_error) == ("spec.requirements[0].values", True)


def test_all_problems_are_collected() -> None:
    taint = {"key": "a", "effect": "NoSchedule"}
    raw = pool(requirement(values=[]), template={"taints": [taint, taint]}, labels={"karpenter.sh/a": "b c"})

    assert len(nodepool_problems(decode(raw, NodePool), Vocabulary())) == 4


def test_a_claim_has_nothing_left_to_judge() -> None:
    assert runtime_problems(decode(claim(), NodeClaim), Vocabulary()) == ()
