"""Conditions and the root that sums them up."""

from datetime import UTC, datetime, timedelta

import pytest

from joiner.model import conditions as status
from joiner.model.conditions import Condition, Conditions, ConditionSet
from joiner.model.meta import ObjectMeta, replace

BORN = datetime(2026, 1, 1, tzinfo=UTC)
LATER = BORN + timedelta(minutes=5)
MUCH_LATER = BORN + timedelta(hours=1)
META = ObjectMeta(name="a", generation=1, creation_timestamp=BORN)
KIND = ConditionSet(dependents=("Launched", "Registered"))


def root(conditions: Conditions) -> Condition:
    found = status.find(conditions, "Ready")
    assert found is not None
    return found


def healthy() -> Conditions:
    conditions: Conditions = ()
    for kind in KIND.dependents:
        conditions, _ = KIND.set_true(conditions, kind, META, LATER)
    return conditions


def test_every_missing_condition_begins_as_unknown() -> None:
    conditions = KIND.initialised((), META, LATER)

    assert [(each.type, each.status) for each in conditions] == [
        ("Launched", "Unknown"),
        ("Registered", "Unknown"),
        ("Ready", "Unknown"),
    ]
    assert conditions[0].reason == "AwaitingReconciliation"
    assert root(conditions).message == "Launched=Unknown, Registered=Unknown"


def test_dependents_begin_with_the_object_and_others_now() -> None:
    conditions, _ = KIND.set_true(KIND.initialised((), META, LATER), "Drifted", META, LATER)

    assert status.find(conditions, "Launched") == replace(conditions[0], last_transition_time=BORN)
    assert root(conditions).last_transition_time == LATER
    assert [each.last_transition_time for each in conditions if each.type == "Drifted"] == [LATER]


def test_a_kind_without_dependents_waits_to_be_looked_at() -> None:
    assert root(ConditionSet().initialised((), META, LATER)).reason == "AwaitingReconciliation"


def test_set_true_without_a_reason_takes_the_type_for_one() -> None:
    conditions, changed = KIND.set_true((), "Drifted", META, LATER)

    assert changed
    assert conditions[0].reason == "Drifted"
    assert conditions[0].message == ""


def test_a_new_reason_keeps_the_time_of_the_transition() -> None:
    first, _ = KIND.set_false((), "Launched", META, LATER, reason="A", message="a")
    second, changed = KIND.set_false(first, "Launched", META, MUCH_LATER, reason="B", message="b")

    launched = status.find(second, "Launched")
    assert changed
    assert launched is not None
    assert (launched.reason, launched.last_transition_time) == ("B", BORN)


def test_a_new_status_moves_the_time_of_the_transition() -> None:
    first = KIND.initialised((), META, LATER)
    second, _ = KIND.set_true(first, "Launched", META, MUCH_LATER)

    launched = status.find(second, "Launched")
    assert launched is not None
    assert launched.last_transition_time == MUCH_LATER


def test_setting_the_same_again_changes_nothing() -> None:
    assert KIND.set_true(healthy(), "Launched", META, MUCH_LATER) == (healthy(), False)


def test_a_new_generation_alone_is_a_change() -> None:
    newer = replace(META, generation=2)
    conditions, changed = KIND.set_true(healthy(), "Launched", newer, MUCH_LATER)

    assert changed
    assert root(conditions).status == "Unknown"
    assert root(conditions).message == "Registered=True"


def test_the_root_is_true_when_every_dependent_is() -> None:
    assert root(healthy()).status == "True"
    assert root(healthy()).reason == "Ready"


def test_the_root_is_false_when_a_dependent_is() -> None:
    conditions, _ = KIND.set_false(healthy(), "Registered", META, MUCH_LATER, reason="Gone", message="gone")

    assert (root(conditions).status, root(conditions).reason) == ("False", "UnhealthyDependents")
    assert root(conditions).message == "Registered=False"


def test_a_false_of_an_older_generation_leaves_the_root_unknown() -> None:
    conditions, _ = KIND.set_false(healthy(), "Registered", META, LATER, reason="Gone", message="gone")
    conditions, _ = KIND.set_true(conditions, "Launched", replace(META, generation=2), MUCH_LATER)

    assert (root(conditions).status, root(conditions).reason) == ("Unknown", "ReconcilingDependents")


def test_the_latest_transition_is_named_first() -> None:
    conditions = KIND.initialised((), META, LATER)
    conditions, _ = KIND.set_false(conditions, "Registered", META, LATER, reason="Gone", message="gone")

    assert root(conditions).message == "Registered=False, Launched=Unknown"


def test_free_standing_conditions_do_not_move_the_root() -> None:
    conditions, _ = KIND.set_false(healthy(), "Drifted", META, MUCH_LATER, reason="No", message="no")

    assert root(conditions) == root(healthy())


def test_on_a_deleted_object_setting_one_counts_as_looking_at_all() -> None:
    leaving = replace(META, generation=2, deletion_timestamp=LATER)
    conditions, _ = KIND.set_true(healthy(), "InstanceTerminating", leaving, MUCH_LATER)

    assert {each.observed_generation for each in conditions} == {2}
    assert root(conditions).status == "True"


def test_a_free_standing_condition_can_be_cleared() -> None:
    conditions, _ = KIND.set_true(healthy(), "Drifted", META, MUCH_LATER)

    assert KIND.clear(conditions, "Drifted") == (healthy(), True)
    assert KIND.clear(healthy(), "Drifted") == (healthy(), False)


@pytest.mark.parametrize("kind", ["Ready", "Launched"])
def test_the_root_and_its_dependents_cannot_be_cleared(kind: str) -> None:
    with pytest.raises(ValueError, match="always present"):
        KIND.clear(healthy(), kind)


def test_is_true_asks_for_presence_and_status() -> None:
    assert status.is_true(healthy(), "Launched")
    assert not status.is_true(KIND.initialised((), META, LATER), "Launched")
    assert not status.is_true((), "Launched")
