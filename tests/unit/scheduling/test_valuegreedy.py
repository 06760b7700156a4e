"""Planning by price, where the answer can be seen."""

import pytest
from tests.builders import instance_type, offering, pods, problem

from joiner.model import resources
from joiner.model.labels import CAPACITY_TYPE, ON_DEMAND
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.planners.valuegreedy import ValueGreedy
from joiner.scheduling.report.plannedclaims import to_plan

MACHINE = instance_type(
    "only",
    [offering("spot", price=1.0), offering(ON_DEMAND, price=1.2)],
    capacity=resources.of(cpu=8, memory="32Gi", pods=100),
    overhead=None,
)


@pytest.mark.parametrize("small", [1, 4])
def test_a_claim_becomes_dearer_where_those_who_join_are_worth_it(small: int) -> None:
    picky = pods(small, "picky", cpu="1", nodeSelector={CAPACITY_TYPE: ON_DEMAND})
    run = ValueGreedy(problem([*pods(1, "large", cpu="4"), *picky], types=(MACHINE,)), Unlimited())

    run.place()

    assert [claim.price for claim in to_plan(run).claims] == [1.2]
