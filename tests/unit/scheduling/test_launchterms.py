"""Offerings of one type that differ in more than price: a claim is written so that every launch of it is as planned."""

from typing import Any

import pytest
from tests.builders import VOCABULARY, instance_type, node_pool, offering, overlay, pod, problem, requirement, settings

from joiner.catalog.build import Adjustments, build
from joiner.catalog.market import InstanceType
from joiner.model import resources
from joiner.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from joiner.model.nodepool import NodePool
from joiner.scheduling.plan import Plan, PlannedClaim
from joiner.scheduling.problem import Policy, PoolOption
from joiner.scheduling.schedule import schedule

FUSE = "x/fuse"
KINDS = ("spot", "on-demand")


def sold(name: str, cpu: int = 2) -> InstanceType:
    ways = [offering(kind, zone, cpu * (0.4 if kind == "spot" else 1.0)) for kind in KINDS for zone in "abcd"]
    return instance_type(name, ways, capacity=resources.of(cpu=cpu, memory="8Gi", pods=20))


SMALL, LARGE = sold("small"), sold("large", 4)


def fuse(name: str = "fuse", **match: Any) -> Any:
    return overlay(name, capacity={FUSE: 1}, **match)


def planned(*rows: dict[str, Any], overlays: Any = (), memory: str = "1Gi", wants: bool = True, **more: Any) -> Plan:
    pool = node_pool(requirements=rows)
    market = build((SMALL, LARGE), Adjustments(overlays=tuple(overlays)), pool, VOCABULARY)
    waiting = [pod(memory=memory, extra={FUSE: "1"} if wants else {})]
    return schedule(problem(waiting, PoolOption(pool=pool, catalog=market), types=(SMALL, LARGE), **more))


def values(claim: PlannedClaim, key: str) -> list[str]:
    return sorted(claim.requirements.at(key).values)


def test_a_claim_is_narrowed_by_no_more_than_the_overlay_names() -> None:
    (claim,) = planned(overlays=[fuse(match={CAPACITY_TYPE: "on-demand"})]).claims

    assert values(claim, CAPACITY_TYPE) == ["on-demand"]
    assert values(claim, ZONE) == []
    assert [option.name for option in claim.options] == ["small", "large"]


def test_several_zones_can_be_what_a_claim_is_narrowed_to() -> None:
    zones = [{"key": ZONE, "operator": "In", "values": ["a", "b"]}]
    rows = [requirement(ZONE, "Exists", minValues=2)]

    (claim,) = planned(*rows, overlays=[overlay("fuse", capacity={FUSE: 1}, requirements=zones)]).claims

    assert values(claim, ZONE) == ["a", "b"]


MIXED = [
    fuse("a", match={CAPACITY_TYPE: "on-demand", INSTANCE_TYPE: "small"}),
    fuse("b", match={CAPACITY_TYPE: "spot", INSTANCE_TYPE: "large"}),
]
TWO_TYPES = requirement(INSTANCE_TYPE, "Exists", minValues=2)


def test_min_values_are_counted_on_what_is_left_of_the_types() -> None:
    plan = planned(TWO_TYPES, overlays=MIXED)

    assert not plan.claims
    assert str(plan.refusals[0]).startswith(
        f"NodePool default: minValues cannot be kept: {INSTANCE_TYPE} needs 2 and has 1"
    )


def test_best_effort_lowers_min_values_to_what_is_left_of_the_types() -> None:
    (claim,) = planned(TWO_TYPES, overlays=MIXED, policy=Policy(min_values="BestEffort")).claims

    assert len(claim.options) == claim.requirements[INSTANCE_TYPE].min_values == 1


def test_a_pool_that_cannot_keep_min_values_leaves_the_pod_to_the_next() -> None:
    first, second = node_pool("first", [TWO_TYPES], weight=50), node_pool("second")
    pools = [
        PoolOption(pool=each, catalog=build((SMALL, LARGE), Adjustments(overlays=tuple(MIXED)), each, VOCABULARY))
        for each in (first, second)
    ]

    plan = schedule(problem([pod(extra={FUSE: "1"})], *pools, types=(SMALL, LARGE)))

    assert [claim.nodepool for claim in plan.claims] == ["second"]


def test_min_values_may_keep_a_claim_from_its_cheapest_offering_and_its_price_says_so() -> None:
    smaller = overlay("less", match={CAPACITY_TYPE: "spot", INSTANCE_TYPE: "small"}, overhead={"memory": "5Gi"})

    (claim,) = planned(TWO_TYPES, overlays=[smaller], memory="4Gi", wants=False).claims

    assert values(claim, CAPACITY_TYPE) == ["on-demand"]
    assert claim.price == 2.0
    assert len(claim.options) == 2


# -- labels that settings put on offerings --------------------------------------------------------------------------------

CHEAP_FOR_WEB = settings(
    "small",
    offerings=[
        {CAPACITY_TYPE: "on-demand", "team": "web", "karpenter.sh/price": "0.01"},
        {CAPACITY_TYPE: "on-demand", "karpenter.sh/price": "0.50"},
    ],
)


def of_team(pool: NodePool, **selector: str) -> PlannedClaim:
    market = build((SMALL,), Adjustments(settings=(CHEAP_FOR_WEB,)), pool, VOCABULARY)
    waiting = [pod(nodeSelector=selector)]
    (claim,) = schedule(problem(waiting, PoolOption(pool=pool, catalog=market), types=(SMALL,))).claims
    return claim


@pytest.mark.parametrize(
    ("row", "selector", "price", "team"),
    [
        pytest.param(("In", "batch", "web"), {}, 0.01, ["web"], id="the cheaper one of two"),
        pytest.param(("Exists",), {}, 0.01, ["web"], id="any"),
        pytest.param(("In", "batch", "web"), {"team": "batch"}, 0.5, ["batch"], id="as the pod wants"),
        pytest.param(("In", "batch", "ops"), {}, 0.5, ["batch", "ops"], id="no offering tells these apart"),
    ],
)
def test_a_claim_has_the_labels_of_the_offering_it_was_priced_with(
    row: tuple[str, ...], selector: dict[str, str], price: float, team: list[str]
) -> None:
    claim = of_team(node_pool(requirements=[requirement("team", *row)]), **selector)

    assert (claim.price, values(claim, "team")) == (price, team)


def test_a_label_that_the_pool_does_not_define_is_not_made_up() -> None:
    claim = of_team(node_pool())

    assert claim.price == 0.5
    assert "team" not in claim.requirements


def test_min_values_count_only_types_that_have_an_offering_for_the_label_that_is_chosen() -> None:
    only_batch = settings("small", offerings=[{CAPACITY_TYPE: "on-demand", "team": "batch", "karpenter.sh/price": "2"}])
    web_or_batch = settings(
        "large",
        offerings=[
            {CAPACITY_TYPE: "on-demand", "team": "web", "karpenter.sh/price": "1"},
            {CAPACITY_TYPE: "on-demand", "team": "batch", "karpenter.sh/price": "3"},
        ],
    )
    pool = node_pool(requirements=[requirement("team", "In", "batch", "web"), TWO_TYPES])
    market = build((SMALL, LARGE), Adjustments(settings=(only_batch, web_or_batch)), pool, VOCABULARY)

    (claim,) = schedule(problem([pod()], PoolOption(pool=pool, catalog=market), types=(SMALL, LARGE))).claims

    assert values(claim, "team") == ["batch"]
    assert [option.name for option in claim.options] == ["small", "large"]


# -- offerings of which the provider has so many --------------------------------------------------------------------------


def in_a_rack(count: int, *others: InstanceType, price: float = 0.5) -> tuple[InstanceType, ...]:
    return (instance_type("box", [offering(available=count, price=price)]), *others)


def bought(types: tuple[InstanceType, ...], number: int) -> Plan:
    return schedule(problem([pod(f"web-{n}", "1500m") for n in range(number)], types=types))


def test_no_more_machines_are_planned_than_the_provider_has() -> None:
    plan = bought(in_a_rack(2), 7)

    assert [claim.options[0].name for claim in plan.claims] == ["box", "box"]
    assert len(plan.refusals) == 5
    assert "every machine that the provider has left is planned for" in str(plan.refusals[0])


@pytest.mark.parametrize(("price", "of_rack"), [(0.5, 2), (3.0, 0)], ids=["cheaper", "dearer"])
def test_machines_with_a_count_are_bought_where_they_are_cheaper(price: float, of_rack: int) -> None:
    plan = bought(in_a_rack(2, instance_type("cloud"), price=price), 5)

    assert not plan.refusals
    assert [claim.options[0].name for claim in plan.claims].count("box") == of_rack


def test_a_claim_for_machines_without_a_count_cannot_be_launched_as_one_that_is_counted() -> None:
    both = instance_type("box", [offering(available=1, price=0.5), offering(zone="b", price=0.9)])

    plan = bought((both,), 3)

    assert sorted((claim.price, values(claim, ZONE)) for claim in plan.claims) == [
        (0.5, ["a"]),
        (0.9, ["b"]),
        (0.9, ["b"]),
    ]
