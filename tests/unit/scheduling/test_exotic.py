"""Machines for special work are bought only when asked for, or when nothing else will do."""

from typing import Any

import pytest
from tests.builders import instance_type, node_pool, offering, pod, problem, requirement

from joiner.catalog import launchoptions
from joiner.cloud.sources import ec2
from joiner.model import resources
from joiner.model.labels import INSTANCE_TYPE
from joiner.scheduling.plan import Plan
from joiner.scheduling.schedule import schedule

GPU = "nvidia.com/gpu"


def sold(name: str, cpu: int, price: float, exotic: bool = False, **more: Any) -> Any:
    capacity = {**resources.of(cpu=cpu, memory="16Gi", pods=20), **more}
    return instance_type(name, [offering(price=price)], capacity=capacity, exotic=exotic)


TYPES = (
    sold("plain", 4, 1.0),
    sold("metal", 16, 0.5, exotic=True),
    sold("gpu", 4, 0.7, exotic=True, **{GPU: 1000}),
)


def planned(*waiting: Any, rows: Any = ()) -> Plan:
    return schedule(problem(waiting, node_pool(requirements=rows), types=TYPES))


def names(plan: Plan) -> list[list[str]]:
    return sorted([option.name for option in claim.options] for claim in plan.claims)


def test_plain_pods_get_plain_machines_though_others_are_cheaper() -> None:
    assert names(planned(*(pod(f"web-{n}") for n in range(5)))) == [["plain"], ["plain"]]


@pytest.mark.parametrize(
    ("waiting", "rows", "expected"),
    [
        pytest.param(pod(extra={GPU: "1"}), (), [["gpu"]], id="an accelerator is requested"),
        pytest.param(pod(nodeSelector={INSTANCE_TYPE: "metal"}), (), [["metal"]], id="the pod names one"),
        pytest.param(
            pod(), [requirement(INSTANCE_TYPE, "In", "metal", "gpu")], [["metal", "gpu"]], id="the pool allows no other"
        ),
        pytest.param(pod(cpu="8"), (), [["metal"]], id="no other is large enough"),
    ],
)
def test_they_are_bought_when_nothing_else_will_do(waiting: Any, rows: Any, expected: list[list[str]]) -> None:
    assert names(planned(waiting, rows=rows)) == expected


def test_one_pod_that_needs_one_does_not_open_them_to_the_others() -> None:
    plan = planned(pod("big", cpu="12"), *(pod(f"web-{n}", cpu="3") for n in range(4)))

    assert names(plan) == [["metal"], ["plain"], ["plain"], ["plain"]]


def test_all_types_count_where_min_values_ask_for_a_choice() -> None:
    plan = planned(pod(), rows=[requirement(INSTANCE_TYPE, "Exists", minValues=3)])

    assert names(plan) == [["metal", "gpu", "plain"]]


def test_a_launch_leaves_them_out_where_others_will_do() -> None:
    (option,) = problem([], node_pool(), types=TYPES).pools

    def launched(**requests: str) -> list[str]:
        return [
            each.name
            for each in launchoptions.options(option.catalog, option.catalog.requirements, resources.of(**requests))
        ]

    assert launched(cpu="1") == ["plain"]
    assert launched(cpu="8") == ["metal"]


def test_the_types_of_ec2_say_which_they_are() -> None:
    exotic = {each.name for each in ec2.catalogue("us-east-1").types if each.exotic}

    assert {"m5.metal", "g5.xlarge", "inf2.xlarge", "trn1.2xlarge", "p4d.24xlarge"} <= exotic
    assert not exotic & {"m5.large", "c7g.xlarge", "r6i.32xlarge", "t3.nano"}
