"""Which options of a claim are asked of EC2: one kind of capacity, sixty types, minValues kept after everything."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.awsworld import AwsWorld
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options

from joiner.catalog.market import Option
from joiner.cloud.aws.inventory import LiveInventory
from joiner.cloud.errors import InsufficientCapacity
from joiner.cloud.sources import facts
from joiner.model import labels
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim

FAMILY = "karpenter.k8s.aws/instance-family"


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    """An account in which all types are sold."""
    made = AwsWorld()
    made.account.facts = facts.load()
    made.run(made.provider.refresh())
    made.put()
    yield made
    made.close()


def asked(world: AwsWorld) -> list[dict[str, Any]]:
    (request,) = world.asked("create_fleet")
    return [override for config in request["LaunchTemplateConfigs"] for override in config["Overrides"]]


def by_price(found: list[Option]) -> list[Option]:
    return sorted(found, key=lambda each: (each.offering.order, each.name, each.offering.zone))


def wanting(**min_values: int) -> NodeClaim:
    keys = {"types": labels.INSTANCE_TYPE, "families": FAMILY, "zones": labels.ZONE}
    requirements = [
        {"key": keys[name], "operator": "Exists", "minValues": wanted} for name, wanted in min_values.items()
    ]
    return claim(requirements=requirements)


def test_sixty_types_at_most_and_the_cheapest(world: AwsWorld) -> None:
    given = by_price(options(world, "on-demand"))
    buy(world, claim(), given)

    names = list(dict.fromkeys(each.name for each in given))
    bootable = {each["InstanceType"] for each in asked(world)}
    assert len(bootable) == 60
    assert bootable <= set(names[:70])


@pytest.mark.parametrize("wanted", [
    {"types": 10, "families": 2}, {"types": 30}, {"families": 40}, {"types": 50, "families": 50, "zones": 6},
])  # fmt: skip
def test_min_values_are_kept_after_the_cut(world: AwsWorld, wanted: dict[str, int]) -> None:
    buy(world, wanting(**wanted), by_price(options(world, "on-demand")))

    found = asked(world)
    names = {each["InstanceType"] for each in found}
    seen = {
        "types": len(names), "families": len({name.partition(".")[0] for name in names}),
        "zones": len({each["AvailabilityZone"] for each in found}),
    }  # fmt: skip
    assert len(names) <= 60
    assert {key: seen[key] >= number for key, number in wanted.items()} == dict.fromkeys(wanted, True)


def test_types_that_cannot_be_launched_do_not_count_for_min_values(world: AwsWorld) -> None:
    given = by_price(options(world, "on-demand"))
    for number in range(2, 7):
        world.account.subnets.pop(f"subnet-{number}")
    world.look()

    with pytest.raises(InsufficientCapacity, match="minValues"):
        buy(world, wanting(zones=2), given)
    assert world.asked("create_fleet") == []
    relaxed = wanting(zones=2)
    relaxed = replace(relaxed, metadata=replace(relaxed.metadata, annotations={labels.MIN_VALUES_RELAXED: "true"}))
    assert buy(world, relaxed, given).provider_id


def test_a_claim_whose_min_values_were_relaxed_sends_no_context(world: AwsWorld) -> None:
    world.put(context="abc")
    given = options(world, "on-demand", "m5.large")
    buy(world, claim("a"), given)
    relaxed = replace(
        claim("b"), metadata=replace(claim("b").metadata, annotations={labels.MIN_VALUES_RELAXED: "true"})
    )
    buy(world, relaxed, given)

    assert ["Context" in each for each in world.asked("create_fleet")] == [True, False]


def test_spot_machines_that_cost_more_than_one_on_demand_are_left_out(world: AwsWorld) -> None:
    given = by_price([*options(world, "spot"), *options(world, "on-demand", "m5.large")])
    limit = min(each.offering.cost for each in given if each.offering.capacity_type == "on-demand")
    buy(world, claim("a"), given)

    prices = {
        (each.name, each.offering.zone): each.offering.cost for each in given if each.offering.capacity_type == "spot"
    }
    (request,) = world.asked("create_fleet")
    assert request["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "spot"
    assert max(prices[each["InstanceType"], each["AvailabilityZone"]] for each in asked(world)) <= limit
    world.face.calls.clear()
    flexible = by_price([each for each in given if each.name in ("m5.large", "p4d.24xlarge")])
    wanted = replace(wanting(types=2), metadata=replace(claim("b").metadata))
    buy(world, wanted, flexible)
    assert {each["InstanceType"] for each in asked(world)} == {"m5.large", "p4d.24xlarge"}


def test_only_the_types_that_may_be_bought_are_derived(world: AwsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    given = by_price(options(world, "on-demand"))
    derived: list[str] = []
    real = world.provider._types

    def count(node_class: Any, names: Any = None) -> Any:
        made = real(node_class, names)
        derived.extend(each.name for each in made)
        return made

    monkeypatch.setattr(world.provider, "_types", count)
    buy(world, claim(), given)

    assert 60 <= len(derived) <= 180


def test_no_call_names_more_than_fifty_templates(world: AwsWorld) -> None:
    buy(world, wanting(types=50, families=50), by_price(options(world, "on-demand")))

    assert len(world.asked("create_fleet")[0]["LaunchTemplateConfigs"]) <= 50


def test_a_fresh_inventory_has_all_types(world: AwsWorld) -> None:
    fresh = LiveInventory(world.api, world.clock, "us-east-1")
    world.run(fresh.refresh_types())

    assert len(fresh.facts(world.classes["default"])[0].types) == len(facts.load().types)
