"""The table of the guide to capacity reservations, row by row: what is asked of EC2, what it says, what follows."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.awsworld import START, AwsWorld
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options, template_data

from joiner.cloud.errors import InsufficientCapacity

PAGE = (Path(__file__).parents[4] / "docs/guide/capacity-reservations.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.split("## What EC2 is asked")[1].splitlines()
    if line.startswith("| ") and not line.startswith(("| Launch", "| ---"))
]
ONLY = "`capacity-reservations-only` with the id"


@dataclass(frozen=True)
class Case:
    """A launch."""

    terms: bool = True
    capacity_type: str = "reserved"
    reservation: tuple[tuple[str, Any], ...] = ()
    full: bool = False


CASES = {
    "reserved": Case(),
    "reserved, full": Case(full=True),
    "interruptible": Case(reservation=(("interruptible", True),)),
    "capacity block": Case(reservation=(("kind", "capacity-block"), ("end", START + timedelta(hours=2)))),
    "on-demand, class with terms": Case(capacity_type="on-demand"),
    "spot, class with terms": Case(capacity_type="spot"),
    "on-demand, class without terms": Case(capacity_type="on-demand", terms=False),
}


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld()
    yield made
    made.close()


def preference(data: Any) -> str:
    wanted = data.get("CapacityReservationSpecification", {})
    if not wanted:
        return "not written"
    target = wanted.get("CapacityReservationTarget", {}).get("CapacityReservationId")
    said = f"`{wanted['CapacityReservationPreference']}`"
    return f"{said} with the id" if target == "cr-1" else said


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_of_the_table(world: AwsWorld, row: list[str]) -> None:
    name, wanted, market, said, follows = row
    case = CASES[name]
    held = world.reserve(**dict(case.reservation))
    world.put(capacityReservationSelectorTerms=[{"id": "cr-1"}] if case.terms else [])
    given = options(world, case.capacity_type, "m5.large")
    before = world.provider.account.left("cr-1")
    if case.full:
        held.elsewhere = held.count
        with pytest.raises(InsufficientCapacity, match="ReservationCapacityExceeded"):
            buy(world, claim(), given)
        assert (said, world.provider.account.left("cr-1")) == ("`ReservationCapacityExceeded`", 0)
        assert follows.startswith("nothing is left")
        assert options(world, "on-demand", "m5.large")
    else:
        made = buy(world, claim(), given)
        assert (said, made.labels["karpenter.sh/capacity-type"]) == ("a machine", case.capacity_type)
        one_less = world.provider.account.left("cr-1") == before - 1
        assert one_less is (follows == "one less is left")

    assert preference(template_data(world)) == wanted
    (request,) = world.asked("create_fleet")
    assert request["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == market


def test_the_table_has_every_case() -> None:
    assert {row[0] for row in ROWS} == set(CASES)
