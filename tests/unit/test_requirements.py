"""The algebra, by example: every vector of Karpenter's own tables, and what is ours."""

import pickle

import pytest

from joiner.model.labels import WELL_KNOWN, Vocabulary
from joiner.model.requirement import SelectorRequirement, SelectorRequirementWithMinValues
from joiner.requirements import Requirement, Requirements, integer, similar_key


def one(text: str) -> Requirement:
    """`In A B`, `Gt 1`, `Exists` on the key `key`."""
    operator, *values = text.split()
    return Requirement.of("key", operator, *values)


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("Exists", "In A", one("In A")),
        ("Exists", "DoesNotExist", one("DoesNotExist")),
        ("In A", "In B", one("DoesNotExist")),
        ("In A", "NotIn A", one("DoesNotExist")),
        ("NotIn A", "In A B", one("In B")),
        ("NotIn A", "NotIn 1 2", one("NotIn A 1 2")),
        ("NotIn 1 2", "Gt 1", Requirement("key", ["2"], complement=True, gte=2)),
        ("NotIn 1 2", "Gt 9", Requirement("key", complement=True, gte=10)),
        ("NotIn 1 2", "Lt 9", Requirement("key", ["1", "2"], complement=True, lte=8)),
        ("In 1 9", "Gt 1", one("In 9")),
        ("In A", "Gt 1", one("DoesNotExist")),
        ("Gt 1", "Lt 9", Requirement("key", complement=True, gte=2, lte=8)),
        ("Gt 9", "Lt 9", one("DoesNotExist")),
        ("Gte 2", "Lte 2", Requirement("key", complement=True, gte=2, lte=2)),
        ("Gte 3", "In 2 3 4", one("In 3 4")),
        ("Lte 3", "In 2 3 4 x", one("In 2 3")),
        ("Exists", "Exists", one("Exists")),
        ("DoesNotExist", "NotIn A", one("DoesNotExist")),
    ],
)
def test_intersection(left: str, right: str, result: Requirement) -> None:
    assert one(left) & one(right) == result
    assert one(right) & one(left) == result


def test_the_larger_minimum_of_values_survives_an_intersection() -> None:
    left = Requirement.of("key", "In", "a", "b", min_values=2)
    right = Requirement.of("key", "NotIn", "x", min_values=3)

    assert (left & right).min_values == 3


def test_a_label_that_must_exist_still_must_when_values_are_excluded() -> None:
    both = one("Exists") & one("NotIn A")

    assert both.operator == "NotIn"
    assert not both.agrees(one("DoesNotExist"))
    assert [entry.operator for entry in both.written()] == ["Exists", "NotIn"]
    assert not one("NotIn A").is_within(one("Exists"))


@pytest.mark.parametrize(
    ("requirement", "inside", "outside"),
    [
        ("In A B", ["A", "B"], ["C", ""]),
        ("NotIn A", ["B", "", "1"], ["A"]),
        ("Exists", ["A", "1"], []),
        ("DoesNotExist", [], ["A", ""]),
        ("Gt 5", ["6", "+7", "007"], ["5", "-9", "six", "", "6.5", "1_0", " 7"]),
        ("Lt 5", ["4", "-4"], ["5", "x"]),
        ("Gte 5", ["5"], ["4"]),
        ("Lte 5", ["5"], ["6"]),
        ("Gt 9223372036854775807", [], ["9223372036854775807"]),
    ],
)
def test_membership(requirement: str, inside: list[str], outside: list[str]) -> None:
    wanted = one(requirement)

    assert [value for value in inside + outside if wanted.has(value)] == inside


@pytest.mark.parametrize(
    ("requirement", "smallest"),
    [
        ("In b a", "a"),
        ("Exists", "0"),
        ("NotIn 0 1", "2"),
        ("Gt 5", "6"),
        ("Lt -3", "-4"),
        ("Lt 9", "0"),
        ("DoesNotExist", None),
    ],
)
def test_any_value_is_the_smallest_one(requirement: str, smallest: str | None) -> None:
    assert one(requirement).any() == smallest


NEGATIVE = {"NotIn A", "DoesNotExist"}
ALL = ["In A", "NotIn A", "Exists", "DoesNotExist", "Gt 1", "Lt 9", "Gte 1", "Lte 9"]


@pytest.mark.parametrize("incoming", ALL)
def test_an_undefined_custom_label_is_only_fine_for_negative_operators(incoming: str) -> None:
    verdict = Requirements().compatible(Requirements([one(incoming)]))

    assert verdict == (incoming in NEGATIVE)


@pytest.mark.parametrize("incoming", ALL)
def test_an_undefined_well_known_label_is_fine_for_every_operator(incoming: str) -> None:
    assert Requirements().compatible(Requirements([one(incoming)]), frozenset({"key"}))


@pytest.mark.parametrize("incoming", ALL)
def test_a_label_that_must_be_absent_agrees_only_with_negative_operators(incoming: str) -> None:
    existing = Requirements([one("DoesNotExist")])

    assert existing.compatible(Requirements([one(incoming)])) == (incoming in NEGATIVE)


@pytest.mark.parametrize("incoming", ALL)
def test_a_label_that_must_exist_agrees_with_everything_but_absence(incoming: str) -> None:
    existing = Requirements([one("Exists")])

    assert existing.compatible(Requirements([one(incoming)])) == (incoming != "DoesNotExist")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("zone", "topology.kubernetes.io/zone"),
        ("node.io/zone", "topology.kubernetes.io/zone"),
        ("topology.kubernetes.io/regio", "topology.kubernetes.io/region"),
        ("kubernetes.io/acrh", "kubernetes.io/arch"),
        ("topology.kubernetes.io/zonee", "topology.kubernetes.io/zone"),
        ("kubernetes.io/architecture", "kubernetes.io/arch"),
        ("something-else", None),
        ("topology.kubernetes.io/rack", None),
    ],
)
def test_a_mistyped_key_is_answered_with_the_likely_one(typed: str, meant: str | None) -> None:
    assert similar_key(typed, sorted(WELL_KNOWN)) == meant


def test_a_single_word_is_not_taken_for_a_label_that_contains_it() -> None:
    assert similar_key("type", sorted(WELL_KNOWN)) is None


def test_problems_name_the_label_and_both_sides() -> None:
    existing = Requirements([Requirement.of("arch", "In", "amd64")])
    incoming = Requirements([Requirement.of("arch", "In", "arm64"), Requirement.of("zone", "Exists")])

    assert existing.problems(incoming, WELL_KNOWN) == (
        "label zone is not defined (did you mean topology.kubernetes.io/zone?)",
        "arch In [arm64] is not possible with arch In [amd64]",
    )


def test_old_label_names_become_todays() -> None:
    written = SelectorRequirement(key="beta.kubernetes.io/arch", operator="In", values=("amd64",))

    assert Requirement.read(written) == Requirement.of("kubernetes.io/arch", "In", "amd64")


def test_values_have_aliases_too() -> None:
    vocabulary = Vocabulary(value_aliases={"topology.kubernetes.io/zone": {"zone-1": "us-west-2a"}})
    written = SelectorRequirement(key="failure-domain.beta.kubernetes.io/zone", operator="In", values=("zone-1",))

    assert Requirement.read(written, vocabulary).values == {"us-west-2a"}


def test_the_written_form_keeps_bounds_exclusions_and_minimum() -> None:
    requirement = one("NotIn 5") & one("Gt 1") & one("Lte 9")

    assert [(entry.operator, entry.values) for entry in requirement.written()] == [
        ("Gte", ("2",)),
        ("Lte", ("9",)),
        ("NotIn", ("5",)),
    ]


def test_the_minimum_of_values_is_written_on_every_entry() -> None:
    requirement = Requirement("key", complement=True, gte=1, lte=9, min_values=4)

    assert {entry.min_values for entry in requirement.written()} == {4}


def test_long_lists_of_values_are_cut_for_people() -> None:
    assert str(one("In a b c d e f g")) == "key In [a, b, c, d, e and 2 others]"


def test_the_hostname_is_not_told() -> None:
    assert str(Requirements.of_labels({"kubernetes.io/hostname": "node-1", "a": "b"})) == "a In [b]"


def test_a_requirement_does_not_change() -> None:
    with pytest.raises(AttributeError, match="make another one"):
        one("In A").key = "other"


def test_requirements_travel_between_processes() -> None:
    requirements = Requirements([one("NotIn 5") & one("Gt 1"), Requirement.of("other", "In", "a", min_values=1)])

    assert pickle.loads(pickle.dumps(requirements)) == requirements


def test_only_settled_labels_are_labels() -> None:
    requirements = Requirements([Requirement.of("a", "In", "x"), Requirement.of("b", "In", "x", "y"), one("Exists")])

    assert requirements.labels() == {"a": "x"}


@pytest.mark.parametrize("text", ["", "x", "1.5", "1_0", " 1", "9223372036854775808", "٣"])
def test_what_does_not_spell_an_integer(text: str) -> None:
    assert integer(text) is None


@pytest.mark.parametrize("values", [(), ("1", "2"), ("x",)])
def test_a_bound_needs_exactly_one_integer(values: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="needs exactly one integer"):
        Requirement.of("key", "Gt", *values)


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown operator 'Near'"):
        Requirement.of("key", "Near")


def test_a_requirement_with_min_values_is_read_whole() -> None:
    written = SelectorRequirementWithMinValues(key="key", operator="In", values=("a", "b"), min_values=2)

    assert Requirement.read(written).min_values == 2
