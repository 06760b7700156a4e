"""Laws of conditions: whatever is set in whatever order."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from joiner.model import conditions as status
from joiner.model.conditions import Condition, Conditions, ConditionSet
from joiner.model.meta import ObjectMeta

BORN = datetime(2026, 1, 1, tzinfo=UTC)
KIND = ConditionSet(dependents=("A", "B"))
Step = tuple[str, Literal["True", "False", "Unknown"], str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["A", "B", "Free"]),
        st.sampled_from(["True", "False", "Unknown"]),
        st.sampled_from(["one", "two"]),
        st.integers(0, 1),
    ),
    max_size=12,
)


def meta(generation: int, deleted: bool) -> ObjectMeta:
    return ObjectMeta(generation=generation, creation_timestamp=BORN, deletion_timestamp=BORN if deleted else None)


def walk(steps: list[Step], deleted: bool = False) -> list[tuple[Conditions, ObjectMeta, datetime]]:
    """The conditions after each step; a step may be a new generation, and a minute passes each time."""
    generation, now = 1, BORN
    seen = [(KIND.initialised((), meta(1, deleted), now), meta(1, deleted), now)]
    for kind, value, reason, newer in steps:
        generation, now = generation + newer, now + timedelta(minutes=1)
        subject = meta(generation, deleted)
        after, _ = KIND.set(seen[-1][0], Condition(type=kind, status=value, reason=reason), subject, now)
        seen.append((after, subject, now))
    return seen


@given(STEPS, st.booleans())
def test_the_root_is_last_and_the_others_are_in_order_of_time(steps: list[Step], deleted: bool) -> None:
    for conditions, _, _ in walk(steps, deleted):
        *others, root = conditions
        moments = [each.last_transition_time for each in others]
        assert root.type == "Ready"
        assert moments == sorted(moments, key=lambda moment: moment or BORN)


@given(STEPS, st.booleans())
def test_every_type_is_there_once(steps: list[Step], deleted: bool) -> None:
    for conditions, _, _ in walk(steps, deleted):
        kinds = [each.type for each in conditions]
        assert len(kinds) == len(set(kinds))
        assert {"A", "B", "Ready"} <= set(kinds)


@given(STEPS, st.booleans())
def test_the_root_is_true_exactly_when_every_dependent_is_and_is_current(steps: list[Step], deleted: bool) -> None:
    for conditions, subject, _ in walk(steps, deleted)[1:]:
        current = {each.type for each in conditions if each.observed_generation == subject.generation}
        whole = all(status.is_true(conditions, kind) and kind in current for kind in KIND.dependents)
        if "Ready" in current:
            assert status.is_true(conditions, "Ready") == whole


@given(STEPS, st.booleans())
def test_setting_again_what_is_set_changes_nothing(steps: list[Step], deleted: bool) -> None:
    conditions, subject, now = walk(steps, deleted)[-1]
    for each in conditions:
        if each.observed_generation == subject.generation:
            assert KIND.set(conditions, each, subject, now + timedelta(hours=1)) == (conditions, False)


@given(STEPS)
def test_a_transition_time_moves_only_with_the_status(steps: list[Step]) -> None:
    history = walk(steps)
    for (before, _, _), (after, _, now) in pairwise(history):
        for each in after:
            old = status.find(before, each.type)
            if old is not None:
                moved = each.last_transition_time != old.last_transition_time
                assert moved == (each.status != old.status)
                assert not moved or each.last_transition_time == now
