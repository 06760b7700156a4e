"""Nodes that hold the place their replacement needs: whose going would help, and how it is found out."""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.builders import RESERVATION, VOCABULARY, instance_type, node_pool, offering, pod, pool_option, requirement
from tests.unit.disruption.brokennodes import node, picture, running

from joiner.catalog.market import Offering
from joiner.disruption import simulate, terminatefirst
from joiner.model import resources
from joiner.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from joiner.scheduling.problem import Policy, PoolOption, Storage
from joiner.scheduling.schedule import schedule

FULL = offering(RESERVED, available=0, reservation="cr-1")
HELD = {CAPACITY_TYPE: RESERVED, RESERVATION: "cr-1", ZONE: "a"}
ONLY_RESERVED = requirement(CAPACITY_TYPE, "In", RESERVED)


def pool(ways: Iterable[Offering], *requirements: dict[str, Any], **spec: Any) -> PoolOption:
    """A pool with one type, which is bought in these ways."""
    return pool_option(node_pool(requirements=requirements, **spec), [instance_type(offerings=ways)])


@pytest.mark.parametrize(
    ("ways", "requirements", "full"),
    [
        pytest.param([FULL], [], True, id="nothing left"),
        pytest.param([offering(RESERVED, available=1, reservation="cr-1")], [], False, id="something left"),
        pytest.param([FULL, offering(RESERVED, "b", available=1, reservation="cr-2")], [], False, id="of another"),
        pytest.param([FULL, offering()], [], False, id="on demand besides"),
        pytest.param([FULL, offering(available=0)], [], False, id="on demand, though none now"),
        pytest.param([FULL, offering(SPOT)], [ONLY_RESERVED], True, id="spot that the pool does not take"),
        pytest.param([offering()], [ONLY_RESERVED], True, id="nothing that the pool takes"),
    ],
)
def test_reservations_are_full_when_nothing_else_could_ever_be_bought(
    ways: list[Offering], requirements: list[dict[str, Any]], full: bool
) -> None:
    assert terminatefirst.is_full(pool(ways, *requirements).catalog) is full


@pytest.mark.parametrize(
    ("ways", "offered"),
    [
        pytest.param([FULL], True, id="full"),
        pytest.param([offering(RESERVED, available=0, reservation="cr-2")], False, id="another one"),
        pytest.param(
            [offering(RESERVED, "b", available=0, reservation="cr-1")], False, id="where the pool does not buy"
        ),
        pytest.param([offering(RESERVED, price=None, available=0, reservation="cr-1")], False, id="never for sale"),
    ],
)
def test_a_place_helps_only_where_it_can_be_bought_again(ways: list[Offering], offered: bool) -> None:
    catalog = pool(ways, requirement(ZONE, "In", "a")).catalog

    assert terminatefirst.offers(catalog, "cr-1") is offered


@pytest.mark.parametrize(
    ("own", "held"),
    [
        pytest.param(HELD, "cr-1", id="reserved"),
        pytest.param({**HELD, CAPACITY_TYPE: ON_DEMAND}, "", id="the reservation is over"),
        pytest.param({CAPACITY_TYPE: RESERVED}, "", id="without an id"),
        pytest.param({}, "", id="nothing known"),
    ],
)
def test_a_node_holds_the_place_its_labels_tell_of(own: dict[str, str], held: str) -> None:
    (each,) = picture(node(labels=own)).nodes

    assert terminatefirst.reservation_of(each, VOCABULARY) == held


def test_one_place_is_given_back_to_every_pool_that_offers_the_reservation() -> None:
    before = (pool([FULL], ONLY_RESERVED), pool([FULL, offering()]), pool([offering()]))
    after = terminatefirst.credited(before, "cr-1")

    assert [each.catalog.market.stock.reservations() for each in before] == [{"cr-1": 0}, {"cr-1": 0}, {}]
    assert [each.catalog.market.stock.reservations() for each in after] == [{"cr-1": 1}, {"cr-1": 1}, {}]
    assert [each.catalog.eligible.bit_count() for each in after] == [1, 1, 1]
    assert after[2] is before[2]


@pytest.mark.parametrize("ways", [[offering()], [offering(RESERVED, available=0, reservation="cr-2")]])
def test_a_place_of_a_reservation_that_nobody_offers_changes_nothing(ways: list[Offering]) -> None:
    options = (pool(ways),)

    assert terminatefirst.credited(options, "cr-1") is options


def obstacle(ways: list[Offering], cpus: list[str], **spec: Any) -> tuple[bool, bool]:
    """Whether pods of such sizes on a node with a reserved machine lack a place: while it stays, and once it is gone."""
    here = [running(pod(f"web-{number}", cpu)) for number, cpu in enumerate(cpus)]
    snapshot = picture(node(labels=HELD), *here)
    option = pool(ways, **spec)
    option = PoolOption(pool=option.pool, catalog=option.catalog, used=snapshot.used["default"])

    def lacks(options: tuple[PoolOption, ...]) -> bool:
        question = simulate.question_without(
            snapshot.nodes, snapshot, options, storage=Storage(), policy=Policy(), vocabulary=VOCABULARY
        )
        return bool(simulate.judged(schedule(question), question, snapshot.nodes, snapshot).obstacle)

    return lacks((option,)), lacks(terminatefirst.credited((option,), "cr-1"))


@pytest.mark.parametrize(
    ("ways", "cpus", "lacks"),
    [
        pytest.param([FULL], ["2"], (True, False), id="its place is enough"),
        pytest.param([FULL], ["1", "1"], (True, False), id="for all of them"),
        pytest.param([FULL], ["2", "2"], (True, True), id="more than one place is needed"),
        pytest.param([FULL], ["9"], (True, True), id="it would not fit again"),
        pytest.param([FULL, offering()], ["2"], (False, False), id="something else can be bought"),
        pytest.param([FULL, offering(available=0)], ["2"], (True, False), id="nothing else can be bought now"),
        pytest.param([offering(RESERVED, available=0, reservation="cr-2")], ["2"], (True, True), id="not its own"),
        pytest.param([offering(RESERVED, price=None, available=0, reservation="cr-1")], ["2"], (True, True), id="gone"),
    ],
)
def test_the_place_of_a_node_is_enough_for_its_pods_or_not(
    ways: list[Offering], cpus: list[str], lacks: tuple[bool, bool]
) -> None:
    assert obstacle(ways, cpus) == lacks


def test_a_node_that_would_be_gone_counts_against_no_limit() -> None:
    assert obstacle([FULL], ["2"], limits={"nodes": "1", "cpu": "4"}) == (True, False)
    assert obstacle([offering()], ["2"], limits={"nodes": "1", "cpu": "4"}) == (False, False)
    assert obstacle([offering()], ["2"], limits={"nodes": "0"}) == (True, True)


def test_what_a_node_that_goes_has_is_taken_off_its_own_pool_only() -> None:
    snapshot = picture(node(labels=HELD))
    mine, other = pool([FULL]), pool_option(node_pool("other"), used=resources.of(nodes=3))
    question = simulate.question_without(
        snapshot.nodes,
        snapshot,
        (PoolOption(pool=mine.pool, catalog=mine.catalog, used=snapshot.used["default"]), other),
        storage=Storage(),
        policy=Policy(),
        vocabulary=VOCABULARY,
    )

    assert set(question.pools[0].used.values()) == {0}
    assert question.pools[1].used == resources.of(nodes=3)
