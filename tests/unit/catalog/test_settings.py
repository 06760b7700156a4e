"""What InstanceType settings do to a type."""

from typing import Any

import pytest
from tests.builders import VOCABULARY, instance_type, offering, settings

from joiner.catalog.market import InstanceType, Overhead
from joiner.catalog.settings import EntryOutcome, settle
from joiner.model import resources
from joiner.model.kubelet import Threshold
from joiner.model.labels import CAPACITY_TYPE, PRICE, ZONE
from joiner.requirements import Requirements


def settled(raw: InstanceType, **spec: Any) -> InstanceType:
    return settle((raw,), [settings(raw.name, **spec)], VOCABULARY).types[0]


def outcome(raw: InstanceType, **spec: Any) -> tuple[EntryOutcome, ...]:
    return settle((raw,), [settings(raw.name, **spec)], VOCABULARY).outcomes[0].entries


def prices(of: InstanceType) -> dict[str, float | None]:
    return {f"{each.capacity_type}/{each.zone}": each.price for each in of.offerings}


MARKET = [
    offering("spot", "a", 0.3),
    offering("spot", "b", 0.31),
    offering("on-demand", "a", 1),
    offering("on-demand", "b", 1),
]


def test_resources_are_added_and_overridden() -> None:
    result = settled(instance_type(), resources={"hardware-vendor.example/foo": "2", "cpu": "1500m"})

    assert result.capacity["hardware-vendor.example/foo"] == 2000
    assert result.capacity["cpu"] == 1500
    assert result.capacity["memory"] == instance_type().capacity["memory"]


def test_memory_given_is_what_the_node_reports() -> None:
    raw = instance_type(vm_overhead=resources.of(memory="615Mi"))

    assert settled(raw, resources={"memory": "16Gi"}).allocatable()["memory"] == resources.of(memory="16Gi")["memory"]


def test_overhead_is_taken_off_memory_that_was_given() -> None:
    result = settled(instance_type(), resources={"memory": "16Gi"}, overhead={"memory": "1Gi"})

    assert resources.written(result.allocatable())["memory"] == "15Gi"


def test_overhead_takes_the_place_of_the_hypervisors_share() -> None:
    raw = instance_type(capacity=resources.of(memory="7577Mi"), vm_overhead=resources.of(memory="615Mi"))

    assert resources.written(settled(raw, overhead={"memory": "200Mi"}).capacity)["memory"] == "7992Mi"


def test_overhead_is_subtracted_where_the_provider_has_none() -> None:
    result = settled(instance_type(), overhead={"memory": "200Mi"})

    assert resources.written(result.allocatable())["memory"] == "7992Mi"


def test_overhead_larger_than_the_machine_leaves_nothing_and_never_less() -> None:
    assert settled(instance_type(), overhead={"memory": "9Gi"}).allocatable()["memory"] == 0


@pytest.mark.parametrize(("limit", "pods"), [(None, 110), (50, 50), (200, 110)])
def test_pods_are_the_smaller_of_settings_and_node_class(limit: int | None, pods: int) -> None:
    raw = instance_type(pods_limit=limit * 1000 if limit else None)

    assert settled(raw, resources={"pods": 110}).capacity["pods"] == pods * 1000


def test_an_eviction_share_follows_the_new_capacity() -> None:
    raw = instance_type(overhead=Overhead(eviction_hard={"ephemeral-storage": Threshold(millionths=100_000)}))

    result = settled(raw, resources={"ephemeral-storage": "100Gi"})

    assert resources.written(result.allocatable())["ephemeral-storage"] == "90Gi"


def test_offerings_replace_the_providers_list_completely() -> None:
    result = settled(
        instance_type(offerings=MARKET),
        offerings=[{CAPACITY_TYPE: "spot", ZONE: "b", PRICE: 0.40}, {CAPACITY_TYPE: "spot", ZONE: "a"}],
    )

    assert prices(result) == {"spot/b": 0.40, "spot/a": 0.3}


def test_a_key_left_out_is_expanded_over_what_the_provider_offers() -> None:
    entries = [{CAPACITY_TYPE: "on-demand", ZONE: "b", PRICE: "0.60"}, {CAPACITY_TYPE: "spot", PRICE: "0.40"}]

    result = settled(instance_type(offerings=MARKET), offerings=entries)

    assert prices(result) == {"spot/a": 0.40, "spot/b": 0.40, "on-demand/b": 0.60}


def test_availability_and_reservations_stay_the_providers() -> None:
    reserved = offering("reserved", "a", 1, available=3, reservation="cr-1", divisor=10_000_000)

    result = settled(instance_type(offerings=[reserved, offering(available=0)]), offerings=[{PRICE: "0.5"}])

    assert [(each.available, each.cost) for each in result.offerings] == [(3, 0.5 / 10_000_000), (0, 0.5)]


def test_an_entry_that_matches_nothing_is_reported_and_never_offered() -> None:
    raw = instance_type(offerings=MARKET)

    assert settled(raw, offerings=[{ZONE: "z"}]).offerings == ()
    assert outcome(raw, offerings=[{ZONE: "z"}])[0].problem == (
        "the provider has no offering with topology.kubernetes.io/zone In [z]"
    )


def test_an_entry_for_another_operating_system_is_impossible() -> None:
    assert "rules out" in outcome(instance_type(), offerings=[{"kubernetes.io/os": "windows", PRICE: "2"}])[0].problem


def test_of_two_entries_for_one_offering_the_one_with_more_labels_wins() -> None:
    raw = instance_type(offerings=MARKET)
    entries = [{CAPACITY_TYPE: "on-demand", PRICE: "0.9"}, {CAPACITY_TYPE: "on-demand", ZONE: "b", PRICE: "0.8"}]

    assert prices(settled(raw, offerings=entries)) == {"on-demand/a": 0.9, "on-demand/b": 0.8}
    assert outcome(raw, offerings=entries)[0].overlaps == (1,)
    assert outcome(raw, offerings=entries)[0].problem == ""


def test_of_two_equal_entries_the_first_wins() -> None:
    raw = instance_type(offerings=[offering()])

    assert prices(settled(raw, offerings=[{PRICE: "0.1"}, {PRICE: "0.2"}])) == {"on-demand/a": 0.1}
    assert outcome(raw, offerings=[{PRICE: "0.1"}, {PRICE: "0.2"}])[1].overlaps == (0,)


def test_an_entry_of_which_nothing_is_left_is_a_problem() -> None:
    raw = instance_type(offerings=MARKET)
    wide = {CAPACITY_TYPE: "on-demand"}
    entries = [wide, wide | {ZONE: "a"}, wide | {ZONE: "b"}]

    assert outcome(raw, offerings=[{}, {}])[1].problem == "spec.offerings[0] comes first wherever it applies"
    assert [each.problem for each in outcome(raw, offerings=entries)] == [
        "spec.offerings[1] and spec.offerings[2] come first wherever it applies", "", "",
    ]  # fmt: skip


def test_a_label_of_the_pool_narrows_an_offering_to_nodes_that_carry_it() -> None:
    entries = [{"team": "red", PRICE: "0.5"}, {"team": "blue", PRICE: "0.6"}]

    result = settled(instance_type(), offerings=entries)

    red, nobody = Requirements.of_labels({"team": "red"}), Requirements()
    assert [o.price for o in result.offerings if red.compatible(o.requirements, VOCABULARY.well_known)] == [0.5]
    assert [o.price for o in result.offerings if nobody.compatible(o.requirements, VOCABULARY.well_known)] == []


def test_nodes_without_the_label_still_get_the_wider_entry() -> None:
    entries: list[dict[str, str]] = [{PRICE: "1.0"}, {"team": "red", "env": "prod", PRICE: "0.5"}]

    result = settled(instance_type(), offerings=entries)

    for carried, price in [
        ({}, 1.0),
        ({"team": "red"}, 1.0),
        ({"env": "prod"}, 1.0),
        ({"team": "red", "env": "prod"}, 0.5),
    ]:
        node = Requirements.of_labels(carried)
        assert [o.price for o in result.offerings if node.compatible(o.requirements, VOCABULARY.well_known)] == [price]


def test_a_price_makes_an_unpriced_offering_launchable() -> None:
    result = settled(instance_type(offerings=[offering(price=None)]), offerings=[{PRICE: "0.2"}])

    assert result.offerings[0].launchable


def test_settings_for_an_unknown_type_are_reported() -> None:
    outcomes = settle((instance_type(),), [settings("m5.lagre")], VOCABULARY).outcomes

    assert [(each.name, each.found) for each in outcomes] == [("m5.lagre", False)]


def test_types_without_settings_stay_the_same_objects() -> None:
    raw = (instance_type("a"), instance_type("b"))

    assert settle(raw, [settings("b", overhead={"memory": "1Gi"})], VOCABULARY).types[0] is raw[0]
    assert settle(raw, [], VOCABULARY).types is raw
