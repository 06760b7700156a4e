"""What a move may buy: strictly cheaper together, with as much choice as is asked for."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.builders import instance_type, node_pool, offering, pod, pool_option, problem, requirement
from tests.unit.disruption.fleets import machine, situation

from joiner.disruption.consolidation.replacements import SPOT_CHOICE, Bought, Refused, cheaper
from joiner.disruption.eligibility import Candidate, candidate
from joiner.disruption.nodeprice import NodePrice, saved
from joiner.model import labels, resources
from joiner.model.meta import replace
from joiner.scheduling.schedule import schedule

FAMILY = "example.com/instance-memory"


def types(count: int, *kinds: str) -> tuple[Any, ...]:
    """So many types of one size, each a cent dearer than the one before."""
    return tuple(
        instance_type(
            f"t{number:02}",
            [offering(kind, price=0.10 + 0.01 * number) for kind in kinds or (labels.ON_DEMAND,)],
            capacity=resources.of(cpu=4, memory="16Gi", pods=50),
        )
        for number in range(count)
    )


def going(price: float, count: int = 1, capacity_type: str = labels.ON_DEMAND, size: str = "large") -> list[Candidate]:
    """Nodes at that price together."""
    seen = situation(*(machine(f"n{number}", size, capacity_type) for number in range(count)))
    return [replace(candidate(each, seen), price=NodePrice(bill=price / count)) for each in seen.snapshot.nodes]


def bought(
    gone: Sequence[Candidate],
    shelf: tuple[Any, ...],
    *,
    pods: int = 1,
    at_least: int | None = None,
    spot_to_spot: bool = True,
    capacity_types: Sequence[str] = (),
) -> Bought:
    wanted = [{**requirement(labels.INSTANCE_TYPE, "Exists"), "minValues": at_least}] if at_least else []
    if capacity_types:
        wanted.append(requirement(labels.CAPACITY_TYPE, "In", *capacity_types))
    option = pool_option(node_pool("default", wanted), shelf)
    plan = schedule(problem([pod(f"p{number}", cpu="3") for number in range(pods)], option, types=shelf))
    return cheaper(plan.claims, {"default": option.catalog}, gone, spot_to_spot=spot_to_spot)


def names(found: Bought) -> list[int]:
    return [len(claim.options) for claim in found.claims]


def test_only_strictly_cheaper_types_are_left() -> None:
    assert names(bought(going(0.15), types(20))) == [5]


def test_nothing_is_bought_at_the_same_price() -> None:
    with pytest.raises(Refused, match="cheaper"):
        bought(going(0.10), types(20))


def test_the_dearest_launches_of_two_claims_together_are_cheaper_than_what_goes() -> None:
    found = bought(going(0.30), types(20), pods=2)
    dearest = [max(option.offering.cost for option in claim.options) for claim in found.claims]

    assert len(found.claims) == 2
    assert sum(dearest) < 0.30


def test_min_values_is_checked_again_after_the_price_filter() -> None:
    with pytest.raises(Refused, match="minValues"):
        bought(going(0.15), types(20), at_least=6)
    assert names(bought(going(0.15), types(20), at_least=5)) == [5]


def test_eleven_types_with_ten_wanted_lead_from_the_dearest_to_the_ten_below_and_no_further() -> None:
    assert names(bought(going(0.20), types(11), at_least=10)) == [10]
    with pytest.raises(Refused, match="minValues"):
        bought(going(0.19), types(11), at_least=10)


@pytest.mark.parametrize(
    ("at_least", "kept"), [(None, SPOT_CHOICE), (30, 30), (3, SPOT_CHOICE)], ids=["none", "thirty", "three"]
)
def test_spot_for_spot_keeps_fifteen_types_or_as_many_as_are_asked_for(at_least: int | None, kept: int) -> None:
    found = bought(going(9.0, capacity_type=labels.SPOT), types(40, labels.SPOT), at_least=at_least)

    assert names(found) == [kept]


def test_spot_for_spot_needs_fifteen_cheaper_types_and_the_gate() -> None:
    spot = going(0.24, capacity_type=labels.SPOT)

    with pytest.raises(Refused, match="15 cheaper types"):
        bought(spot, types(40, labels.SPOT), at_least=3)
    with pytest.raises(Refused, match="SpotToSpotConsolidation"):
        bought(going(9.0, capacity_type=labels.SPOT), types(40, labels.SPOT), spot_to_spot=False)


def test_one_spot_node_in_place_of_several_needs_no_choice_and_two_do() -> None:
    spot = going(0.24, count=2, capacity_type=labels.SPOT, size="medium")

    assert names(bought(spot, types(10, labels.SPOT))) == [10]
    with pytest.raises(Refused, match="15 cheaper types"):
        bought(spot, types(10, labels.SPOT), pods=2)


def test_a_claim_that_may_be_either_is_pinned_to_spot() -> None:
    found = bought(going(9.0), types(20, labels.SPOT, labels.ON_DEMAND))

    assert found.claims[0].requirements.at(labels.CAPACITY_TYPE).values == {labels.SPOT}


def test_what_goes_is_not_bought_again() -> None:
    sizes = {"nano": 0.05, "small": 0.1, "xl": 0.3, "2xl": 0.6}
    shelf = tuple(
        instance_type(name, [offering(price=price)], capacity=resources.of(cpu=4, memory="16Gi", pods=50))
        for name, price in sizes.items()
    )
    seen = situation(*(machine(f"n{number}") for number in range(3)))
    gone = [
        replace(
            candidate(each, seen),
            state=replace(each, labels={**each.labels, labels.INSTANCE_TYPE: name}),
            price=NodePrice(bill=sizes[name]),
        )
        for each, name in zip(seen.snapshot.nodes, ("2xl", "2xl", "small"), strict=True)
    ]

    assert [option.name for option in bought(gone, shelf).claims[0].options] == ["nano"]
    with pytest.raises(Refused, match="what goes"):
        bought(gone, shelf[1:])


@pytest.mark.parametrize(
    ("gone", "new", "wanted"),
    [
        (NodePrice(bill=1.0), NodePrice(reserved=5.0), 1.0),
        (NodePrice(reserved=5.0), NodePrice(reserved=2.0), 0.3),
        (NodePrice(reserved=2.0), NodePrice(reserved=5.0), 0.0),
        (NodePrice(reserved=5.0), NodePrice(bill=0.1), -0.1),
        (NodePrice(bill=1.0), NodePrice(bill=0.4), 0.6),
    ],
    ids=["into a reservation", "to a smaller one", "to a larger one", "out of one", "on the market"],
)
def test_what_a_move_saves_with_reservations(gone: NodePrice, new: NodePrice, wanted: float) -> None:
    assert saved(gone, new) == pytest.approx(wanted)
