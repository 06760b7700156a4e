"""Capacity reservations as EC2 describes them, and which of them a class means."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cloud.aws.builders import node_class

from joiner.cloud.aws.offline import read_reservations, resolved
from joiner.cloud.aws.reservations import described, is_expiring, offered, selected
from joiner.cloud.sources.catalogue import CatalogueError

NOW = datetime(2030, 1, 1, tzinfo=UTC)
RAW: dict[str, Any] = {
    "CapacityReservationId": "cr-1",
    "InstanceType": "m5.2xlarge",
    "AvailabilityZone": "us-east-1a",
    "OwnerId": "123456789012",
    "InstanceMatchCriteria": "targeted",
    "InstancePlatform": "Linux/UNIX",
    "Tenancy": "default",
    "State": "active",
    "AvailableInstanceCount": 3,
    "TotalInstanceCount": 5,
    "Tags": [{"Key": "team", "Value": "a"}],
}
OTHER = {**RAW, "CapacityReservationId": "cr-2", "InstanceMatchCriteria": "open", "InstanceType": "c5.large"}
SHARED = {**RAW, "CapacityReservationId": "cr-3", "OwnerId": "210987654321", "Tags": []}
KNOWN = [described(each) for each in (SHARED, OTHER, RAW)]


@pytest.mark.parametrize(
    ("terms", "found"),
    [
        ([{"id": "cr-2"}], ["cr-2"]),
        ([{"id": "cr-9"}], []),
        ([{"instanceType": "m5.2xlarge"}], ["cr-1", "cr-3"]),
        ([{"ownerID": "210987654321"}], ["cr-3"]),
        ([{"type": "open"}], ["cr-2"]),
        ([{"instanceMatchCriteria": "targeted"}], ["cr-1", "cr-3"]),
        ([{"tags": {"team": "*"}}], ["cr-1", "cr-2"]),
        ([{"tags": {"team": "b"}}], []),
        ([{"tags": {"team": "a"}, "instanceType": "c5.large"}], ["cr-2"]),
        ([{"id": "cr-1"}, {"tags": {"team": "a"}}], ["cr-1", "cr-2"]),
        ([], []),
    ],
)
def test_terms_are_alternatives_and_their_fields_go_together(terms: list[Any], found: list[str]) -> None:
    wanted = node_class(capacityReservationSelectorTerms=terms).spec

    assert [each.id for each in selected(wanted, KNOWN)] == found


@pytest.mark.parametrize(
    ("platform", "image", "words"),
    [
        ("Linux/UNIX", {}, ""),
        ("Red Hat Enterprise Linux", {}, "billed as plain Linux"),
        ("Red Hat Enterprise Linux", {"amiFamily": "Custom", "amiSelectorTerms": [{"id": "ami-1"}]}, ""),
        ("Windows", {"amiFamily": "Custom", "amiSelectorTerms": [{"id": "ami-1"}]}, "run Linux"),
    ],
)
def test_what_a_reservation_is_billed_as_must_be_what_the_images_are(
    platform: str, image: dict[str, Any], words: str
) -> None:
    known = described({**RAW, "InstancePlatform": platform})
    wanted = node_class(capacityReservationSelectorTerms=[{"id": known.reservation.id}], **image).spec
    (found,) = selected(wanted, [known])

    assert words in found.problem
    assert bool(words) is bool(found.problem)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"InstancePlatform": "Windows"}, "Windows"),
        ({"Tenancy": "dedicated"}, "dedicated"),
        ({"State": "expired"}, "expired"),
        ({"ReservationType": "futuristic"}, "futuristic"),
    ],
)
def test_one_that_the_class_cannot_launch_into_is_listed_with_the_reason(changes: Any, words: str) -> None:
    made = described({**RAW, **changes}).reservation

    assert words in made.problem
    assert offered(made, 3, NOW).count == 0


def test_a_capacity_block_takes_nothing_more_forty_minutes_before_its_end() -> None:
    def ends(minutes: int, kind: str) -> Any:
        end = (NOW + timedelta(minutes=minutes)).isoformat()
        return described({**RAW, "ReservationType": kind, "EndDate": end}).reservation

    assert is_expiring(ends(39, "capacity-block"), NOW)
    assert not is_expiring(ends(41, "capacity-block"), NOW)
    assert not is_expiring(ends(39, "default"), NOW)
    assert offered(ends(39, "capacity-block"), 3, NOW).count == 0
    assert offered(ends(39, "default"), 3, NOW).count == 3


def test_a_file_of_the_aws_command_line_fills_the_status(tmp_path: Path) -> None:
    path = tmp_path / "reservations.json"
    path.write_text(json.dumps({"CapacityReservations": [RAW, OTHER]}))
    made = resolved(
        node_class(capacityReservationSelectorTerms=[{"id": "cr-1"}]),
        "us-east-1",
        read_reservations(path),
    )

    (found,) = made.status.capacity_reservations
    assert (found.id, found.available_instance_count, found.total_instance_count) == ("cr-1", 3, 5)
    assert len(made.status.subnets) == 6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "is not JSON"),
        ("{}", "has no list CapacityReservations"),
        ('{"CapacityReservations": [{}]}', r"CapacityReservations\[0\] has no CapacityReservationId"),
        ('[{"CapacityReservationId": "cr-1"}]', "has no InstanceType"),
        ("[1]", "cannot be read"),
    ],
)
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "file.json").write_text(text)

    with pytest.raises(CatalogueError, match=words):
        read_reservations(tmp_path / "file.json")
    with pytest.raises(CatalogueError, match="cannot be read"):
        read_reservations(tmp_path / "missing.json")
