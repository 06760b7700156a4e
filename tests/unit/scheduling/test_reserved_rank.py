"""Reserved capacity is a rank of its own; a large reserved machine is left to pods that need it."""

import pytest
from tests.builders import instance_type, node_pool, offering, pods, problem, requirement

from joiner.catalog.market import RESERVED_DIVISOR, InstanceType
from joiner.model import resources
from joiner.model.labels import CAPACITY_TYPE
from joiner.scheduling.problem import Policy
from joiner.scheduling.schedule import schedule


@pytest.mark.parametrize(("reserved", "spot"), [(0.2, 0.07), (1e-5, 0.07), (0.5, 0.01)], ids=str)
def test_reservations_come_first_whatever_price_they_are_given(reserved: float, spot: float) -> None:
    box = instance_type("box", [offering("reserved", "a", reserved, 2, "cr"), offering("spot", "a", spot)])

    plan = schedule(problem(pods(3, cpu="1500m"), types=[box]))

    assert sorted(claim.reservations for claim in plan.claims) == [(), ("cr",), ("cr",)]


def reserved(name: str, cpu: int, count: int) -> InstanceType:
    ways = [offering("reserved", "a", float(cpu), count, f"cr-{name}", divisor=RESERVED_DIVISOR)]
    return instance_type(name, ways, capacity=resources.of(cpu=cpu, memory="64Gi", pods=50))


@pytest.mark.parametrize("node_price", [0.0, 0.01])
def test_small_pods_leave_a_large_reserved_machine_alone_while_small_ones_are_free(node_price: float) -> None:
    types = [reserved("small", 2, 5), reserved("huge", 192, 1)]

    plan = schedule(problem(pods(3, cpu="1500m"), types=types, policy=Policy(node_price=node_price)))

    assert [claim.reservations for claim in plan.claims] == [("cr-small",)] * 3


def test_a_reservation_has_as_many_machines_left_as_the_smallest_of_its_counts() -> None:
    one, two = (
        instance_type(name, [offering("reserved", "a", 1e-7, count, "cr"), offering("on-demand", "a", 1.0)])
        for name, count in (("one", 2), ("two", 0))
    )

    plan = schedule(problem(pods(3, cpu="1500m"), types=[one, two]))

    assert [claim.reservations for claim in plan.claims] == [(), (), ()]


def test_a_pool_of_nothing_but_reservations_names_the_gate_that_is_off() -> None:
    pool = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "reserved")])

    plan = schedule(problem(pods(1), pool, types=[reserved("small", 2, 5)], policy=Policy(reserved_capacity=False)))

    assert "feature gate ReservedCapacity is off" in str(plan.refusals[0])
