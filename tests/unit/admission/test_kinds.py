import pytest

from joiner.admission.kinds import CORE_KINDS, Kinds
from joiner.admission.problem import FieldProblem, nearest
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.model.nodepool import NodePool
from joiner.model.typesettings import InstanceTypeSettings


def test_the_core_kinds_are_these() -> None:
    names = [kind.kind for kind in CORE_KINDS]

    assert names == ["NodePool", "NodeClaim", "NodeOverlay", "InstanceType", "CapacityBuffer"]


def test_a_kind_is_found_by_version_and_name() -> None:
    assert CORE_KINDS.find("karpenter.sh/v1alpha1", "InstanceType") is InstanceTypeSettings
    assert CORE_KINDS.find("karpenter.sh/v1", "InstanceType") is None


def test_a_provider_adds_its_kinds_to_a_copy() -> None:
    more = Kinds.of(NodePool).plus(KWOKNodeClass)

    assert more.find("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass") is KWOKNodeClass
    assert CORE_KINDS.find("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass") is None


@pytest.mark.parametrize(
    ("word", "found"),
    [("notin", "NotIn"), ("Exist", "Exists"), ("NotExists", "Exists"), ("zzz", None), ("", None)],
)
def test_the_nearest_spelling_is_found_if_there_is_one(word: str, found: str | None) -> None:
    assert nearest(word, ["In", "NotIn", "Exists"]) == found


def test_a_problem_reads_as_one_line() -> None:
    problem = FieldProblem(path="spec.weight", message="0 is not between 1 and 100")

    assert str(problem) == "spec.weight: 0 is not between 1 and 100"
    assert str(FieldProblem(path="", message="no", allowed=("a", "b"))) == "no; allowed: a, b"
    assert str(FieldProblem(path="", message="no", allowed=("a", "b"), nearest="a")) == "no; did you mean a?"
