from pathlib import Path
from typing import Any

import pytest
from tests.unit.admission import table
from tests.unit.admission.rows import Bad, document
from tests.unit.admission.table import BAD, FOREIGN, GOOD, overlay, pool, requirement, settings

from joiner import yamldoc
from joiner.admission.kinds import CORE_KINDS
from joiner.admission.validate import judge, normalise
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.model.labels import Vocabulary

KINDS = CORE_KINDS.plus(KWOKNodeClass, EC2NodeClass)
VOCABULARY = Vocabulary().extended(
    well_known=["karpenter.kwok.sh/instance-family"], restricted_domains=["karpenter.kwok.sh"]
)
FILE = Path(__file__).parents[2] / "data" / "admission" / "design-examples.yaml"
EXAMPLES = yamldoc.documents(FILE.read_text(encoding="utf-8"), FILE.name)


@pytest.mark.parametrize("raw", GOOD.values(), ids=GOOD)
def test_a_good_object_has_no_problem(raw: Any) -> None:
    assert judge(raw, KINDS, VOCABULARY) == ()


@pytest.mark.parametrize("bad", BAD, ids=[bad.case for bad in BAD])
def test_a_bad_object_is_blamed_where_it_is_wrong(bad: Bad) -> None:
    problems = [problem for problem in judge(bad.document, KINDS, VOCABULARY, old=bad.old) if problem.path == bad.path]

    assert [problem.severity for problem in problems] == ["error"]
    assert bad.nearest is None or problems[0].nearest == bad.nearest
    assert bad.words in str(problems[0]) + problems[0].message


@pytest.mark.parametrize("bad", BAD, ids=[bad.case for bad in BAD])
def test_one_mistake_is_one_problem(bad: Bad) -> None:
    problems = judge(bad.document, KINDS, VOCABULARY, old=bad.old)

    assert len(problems) == bad.problems, [str(problem) for problem in problems]


@pytest.mark.parametrize(("api_version", "kind"), FOREIGN)
def test_kinds_of_others_are_passed_over(api_version: str, kind: str) -> None:
    assert judge(document(api_version, kind), KINDS, VOCABULARY) == ()


def test_all_problems_are_told_at_once() -> None:
    raw = pool(
        requirement(operator="Inn"),
        requirement("karpenter.sh/a", values=[]),
        labels={"karpenter.sh/b": "c"},
        weight=0,
        replicas=1,
        limits={"cpu": "1GB"},
    )

    paths = {problem.path for problem in judge(raw, KINDS, VOCABULARY)}

    assert paths >= {"spec.weight", "spec.limits[cpu]", f"{table.LABELS}[karpenter.sh/b]", f"{table.ENTRY}.operator"}
    assert paths >= {f"{table.TEMPLATE}.requirements[1].key", f"{table.TEMPLATE}.requirements[1].values", "spec.limits"}


def test_problems_at_run_time_are_told_beside_those_of_the_schema() -> None:
    taint = {"key": "a", "effect": "NoSchedule"}
    raw = table.without(pool(template={"taints": [taint, taint]}), "spec", "template", "spec", "nodeClassRef")

    paths = [problem.path for problem in judge(raw, KINDS, VOCABULARY)]

    assert paths == [f"{table.TEMPLATE}.nodeClassRef", f"{table.TEMPLATE}.taints[1]"]


@pytest.mark.parametrize("example", EXAMPLES.documents, ids=lambda example: example.data["metadata"]["name"])
def test_every_example_of_the_designs_is_accepted(example: yamldoc.Document) -> None:
    raw, warnings = normalise(example.data)

    assert judge(raw, KINDS, VOCABULARY) == ()
    assert all(warning.severity == "warning" for warning in warnings)


def test_one_mapping_of_expressions_becomes_a_list_and_numbers_become_text() -> None:
    written = {"key": "a", "operator": "Gt", "values": [2048]}
    raw = overlay(selector={"matchExpressions": written, "matchLabels": {"b": 3}})

    changed, warnings = normalise(raw)

    selector = changed["spec"]["selector"]
    assert selector == {"matchExpressions": [{**written, "values": ["2048"]}], "matchLabels": {"b": "3"}}
    assert len(warnings) == 3
    assert raw["spec"]["selector"]["matchExpressions"] == {"key": "a", "operator": "Gt", "values": [2048]}


def test_a_price_stays_as_it_was_written() -> None:
    changed, warnings = normalise(settings(offerings=[{"karpenter.sh/price": yamldoc.Number("0.40"), "rack": 7}]))

    assert changed["spec"]["offerings"] == [{"karpenter.sh/price": "0.40", "rack": "7"}]
    assert warnings == ()


@pytest.mark.parametrize("raw", [None, [], "text", {}, {"spec": []}, overlay(selector=[1]), settings(offerings=[1])])
def test_normalising_leaves_alone_what_it_does_not_understand(raw: Any) -> None:
    assert normalise(raw) == (raw, ())


def test_values_of_an_operator_without_values_are_only_odd() -> None:
    raw = pool(requirement(operator="Exists"), requirement("karpenter.sh/capacity-type", values=["spot", "cheap"]))

    assert [problem.severity for problem in judge(raw, KINDS, VOCABULARY)] == ["warning", "warning"]


@pytest.mark.parametrize(("text", "wrong"), [("10 minutes", True), ("-1s", True), ("Never", True), ("0s", False)])
def test_an_annotation_that_cannot_be_read_is_told_and_the_pool_can_be_used(text: str, wrong: bool) -> None:
    raw = pool(requirement())
    raw["metadata"] = {**raw["metadata"], "annotations": {"joiner.dev/eviction-cost": text}}
    problems = judge(raw, KINDS, VOCABULARY)

    assert [(each.path, each.severity) for each in problems] == [
        ("metadata.annotations[joiner.dev/eviction-cost]", "warning")
    ] * wrong
    assert all(f"{text!r}: allowed is a duration of 0s or more" in each.message for each in problems)


CLASS_LABEL = "karpenter.kwok.sh/kwoknodeclass"


def test_an_overlay_may_choose_by_the_label_of_a_class() -> None:
    raw = overlay(requirements=[requirement(CLASS_LABEL)])

    assert judge(raw, KINDS, VOCABULARY.with_node_classes(CLASS_LABEL)) == ()
    assert [problem.severity for problem in judge(raw, KINDS, VOCABULARY)] == ["warning"]


def test_a_pool_may_not_choose_the_label_of_its_class() -> None:
    (problem,) = judge(pool(requirement(CLASS_LABEL)), KINDS, VOCABULARY.with_node_classes(CLASS_LABEL))

    assert problem.message == f"{CLASS_LABEL} is set by Joiner on every node of the pool and cannot be chosen"


@pytest.mark.parametrize(
    ("group", "allowed", "nearest"),
    [
        ("karpenter.sh/v1", ("InstanceType", "NodeClaim", "NodeOverlay", "NodePool"), "NodePool"),
        ("karpenter.kwok.sh/v1alpha1", ("KWOKNodeClass",), None),
    ],
)
def test_an_unknown_kind_is_answered_with_the_kinds_of_its_group(
    group: str, allowed: tuple[str, ...], nearest: str | None
) -> None:
    (problem,) = judge({"apiVersion": group, "kind": "NodePools", "metadata": {"name": "a"}}, KINDS, VOCABULARY)

    assert (problem.allowed, problem.nearest) == (allowed, nearest)
