"""Spot width: claims with too few types to choose from are split, where that can be done and costs little."""

from typing import Any

import pytest
from tests.builders import SHELF, instance_type, node_pool, offering, pods, problem, requirement

from joiner.catalog.market import InstanceType
from joiner.model import resources
from joiner.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from joiner.model.pod import Pod
from joiner.scheduling.plan import Plan
from joiner.scheduling.problem import Policy
from joiner.scheduling.schedule import schedule

WIDE = Policy(spot_width=3, spot_width_cost=0.1)


def planned(waiting: tuple[Pod, ...], *pools: Any, policy: Policy = WIDE, **more: Any) -> Plan:
    return schedule(problem(waiting, *pools, policy=policy, **more))


def widths(plan: Plan) -> list[int]:
    return sorted(len(claim.options) for claim in plan.claims)


def test_a_claim_that_only_the_largest_type_could_be_is_split() -> None:
    off, on = planned(pods(16), policy=Policy()), planned(pods(16))

    assert widths(off) == [1]
    assert min(widths(on)) >= 3
    assert on.price == pytest.approx(off.price)


@pytest.mark.parametrize(
    ("waiting", "pools"),
    [
        pytest.param(pods(1, cpu="16"), [], id="a pod that only one type holds"),
        pytest.param(pods(16), [node_pool(limits={"nodes": "1"})], id="the pool may have one node"),
        pytest.param(
            pods(16), [node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")])], id="on demand"
        ),
        pytest.param(
            pods(
                16,
                affinity={
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
                        ]
                    }
                },
            ),
            [],
            id="pods that must share a node",
        ),
    ],
)
def test_where_it_cannot_be_wider_a_claim_stays_as_it_is(waiting: tuple[Pod, ...], pools: list[Any]) -> None:
    assert widths(planned(waiting, *pools)) == [1]


def bulk(discount: float) -> tuple[InstanceType, ...]:
    """The shelf, with its largest type cheaper than several small ones."""
    capacity = resources.of(cpu=16, memory="64Gi", pods=128)
    return (*SHELF[:4], instance_type("m-16", [offering("spot", "a", 0.64 * discount)], capacity=capacity))


@pytest.mark.parametrize(("discount", "width"), [pytest.param(0.95, 3, id="5%"), pytest.param(0.8, 1, id="25%")])
def test_it_may_cost_so_much_and_no_more(discount: float, width: int) -> None:
    assert min(widths(planned(pods(16), types=bulk(discount)))) == width


def test_pods_with_different_wishes_part_where_that_leaves_them_more_types() -> None:
    both = [requirement("size", "In", *"abcdef")]
    types = tuple(
        instance_type(f"t-{name}", [offering("spot", "a", 0.1)], {"size": name}, capacity=resources.of(cpu=8, pods=9))
        for name in "abcdef"
    )

    def near(name: str, *values: str) -> tuple[Pod, ...]:
        term = {"matchExpressions": [requirement("size", "In", *values)]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
        return pods(1, name, memory="0", affinity=affinity)

    waiting = (*near("one", *"abcd"), *near("other", *"cdef"))
    policy = Policy(spot_width=3, spot_width_cost=1.0)
    assert widths(planned(waiting, node_pool(requirements=both), types=types, policy=Policy())) == [2]
    assert widths(planned(waiting, node_pool(requirements=both), types=types, policy=policy)) == [4, 4]


def test_spread_pods_stay_in_their_zones() -> None:
    constraint = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    waiting = pods(48, topologySpreadConstraints=[{**constraint, "labelSelector": {"matchLabels": {"app": "web"}}}])
    plan = planned(waiting)

    counts = dict.fromkeys("abc", 0)
    for claim in plan.claims:
        counts[claim.options[0].offering.zone] += len(claim.pods)
    assert counts == {"a": 16, "b": 16, "c": 16}
    assert min(widths(plan)) >= 3


def test_several_widenings_share_what_they_may_cost() -> None:
    # Each of two nodes would cost 5% of its own price more; for 3% of the whole only one of them is split.
    one = planned(pods(32), types=bulk(0.95), policy=Policy(spot_width=3, spot_width_cost=0.03))

    assert sorted({len(claim.options) for claim in one.claims})[0] == 1
    assert sum(len(claim.pods) for claim in one.claims if len(claim.options) >= 3) == 16
