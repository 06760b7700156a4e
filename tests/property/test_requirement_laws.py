"""The laws of the requirement algebra, for every operator and every combination hypothesis can think of."""

from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import VALUES, requirement_sets, requirements_on

from joiner.requirements import Requirement, Requirements

one = requirements_on("key")
value = st.sampled_from(VALUES)


@given(one, one, value)
def test_an_intersection_has_what_both_have(left: Requirement, right: Requirement, item: str) -> None:
    assert (left & right).has(item) == (left.has(item) and right.has(item))


@given(one, one)
def test_intersection_commutes(left: Requirement, right: Requirement) -> None:
    assert left & right == right & left


@given(one, one, one)
def test_intersection_is_associative(a: Requirement, b: Requirement, c: Requirement) -> None:
    assert (a & b) & c == a & (b & c)


@given(one)
def test_intersection_with_itself_changes_nothing(each: Requirement) -> None:
    assert each & each == each


@given(one, value)
def test_intersection_with_exists_keeps_every_value_and_refuses_absence(each: Requirement, item: str) -> None:
    there = each & Requirement("key", complement=True)

    assert there.has(item) == each.has(item)
    assert there.must_exist or there.operator == "DoesNotExist"


@given(one, one)
def test_the_quick_answer_is_the_long_one(left: Requirement, right: Requirement) -> None:
    both = left & right

    assert left.intersects(right) == (both.complement or bool(both.values))


@given(one, one, value)
def test_within_means_that_nothing_is_lost(left: Requirement, right: Requirement, item: str) -> None:
    if left.is_within(right) and left.has(item):
        assert right.has(item)


@given(one, one)
def test_within_agrees_with_the_intersection_for_listed_values(left: Requirement, right: Requirement) -> None:
    if not left.complement and left.values:
        assert left.is_within(right) == ((left & right).values == left.values)


@given(one)
def test_writing_and_reading_again_gives_the_same(each: Requirement) -> None:
    assert Requirements.read(each.written())["key"] == each


@given(one)
def test_any_value_is_one_that_is_allowed(each: Requirement) -> None:
    chosen = each.any()

    assert chosen is None or each.has(chosen)


@given(one, one)
def test_equal_values_hash_alike(left: Requirement, right: Requirement) -> None:
    if left == right:
        assert hash(left) == hash(right)
        assert str(left) == str(right)


@given(requirement_sets, requirement_sets)
def test_sets_intersect_exactly_when_no_key_conflicts(left: Requirements, right: Requirements) -> None:
    assert left.intersects(right) == (not left.conflicts(right))
    assert left.intersects(right) == right.intersects(left)


@given(requirement_sets, requirement_sets)
def test_compatible_means_no_problem_is_named(left: Requirements, right: Requirements) -> None:
    assert left.compatible(right) == (not left.problems(right))


@given(requirement_sets, requirement_sets)
def test_with_every_label_allowed_compatible_is_intersects(left: Requirements, right: Requirements) -> None:
    assert left.compatible(right, frozenset(right)) == left.intersects(right)


lists = st.lists(requirements_on("a") | requirements_on("b"), max_size=5)


@given(lists.flatmap(lambda parts: st.tuples(st.just(parts), st.permutations(parts))))
def test_the_order_of_a_list_does_not_matter(lists: tuple[list[Requirement], list[Requirement]]) -> None:
    parts, shuffled = lists

    assert Requirements(parts) == Requirements(shuffled)
    assert hash(Requirements(parts)) == hash(Requirements(shuffled))
