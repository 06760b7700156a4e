"""What moves the generation of a pool, one test for each trigger of the design of the cache, and for those it left out.

Until then the cache gives the very same catalogue; then it gives another one, and once more the same.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.awsworld import START, AwsWorld
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options, pool

from joiner.catalog.build import NO_ADJUSTMENTS, Catalog
from joiner.cloud.catalogcache import Catalogs
from joiner.cloud.errors import InsufficientCapacity
from joiner.model.meta import replace


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld()
    made.reserve()
    made.reserve("cr-2", type="c5.large", kind="capacity-block", end=START + timedelta(hours=5))
    made.account.placement_groups["pg-1"] = {"GroupId": "pg-1", "GroupName": "one", "Strategy": "cluster"}
    made.put(capacityReservationSelectorTerms=[{"id": "cr-1"}, {"id": "cr-2"}])
    yield made
    made.close()


def sell(world: AwsWorld, **changes: Any) -> None:
    facts = world.account.facts
    place = facts.regions["us-east-1"]
    types = {**place.types, "m5.large": replace(place.types["m5.large"], **changes)}
    world.account.facts = replace(facts, regions={"us-east-1": replace(place, types=types)})
    world.run(world.provider.refresh())


def describe(world: AwsWorld) -> None:
    facts = world.account.facts
    types = tuple(replace(each, memory_mib=each.memory_mib + 1024) for each in facts.types)
    world.account.facts = replace(facts, types=types)
    world.run(world.provider.refresh())


def run_dry(world: AwsWorld) -> None:
    given = options(world, "on-demand", "m5.large")
    for zone in "abcdef":
        world.account.limits["on-demand", "m5.large", f"us-east-1{zone}"] = 0
    with pytest.raises(InsufficientCapacity):
        buy(world, claim(), given)


def use_a_place(world: AwsWorld) -> None:
    buy(world, claim(), options(world, "reserved", "m5.large"))


def another_cluster_uses_a_place(world: AwsWorld) -> None:
    world.account.reservations["cr-1"].elsewhere = 1
    world.look()


def edit(world: AwsWorld) -> None:
    world.put(capacityReservationSelectorTerms=[{"id": "cr-1"}, {"id": "cr-2"}], kubelet={"maxPods": 20})


def another_image(world: AwsWorld) -> None:
    for path, image in world.account.parameters.items():
        if image == "ami-4":
            world.account.parameters[path] = "none"
    world.look()


def a_zone_less(world: AwsWorld) -> None:
    world.account.subnets.pop("subnet-1")
    world.look()


def into_a_group(world: AwsWorld) -> None:
    world.put(placementGroupSelector={"name": "one"})


def memory(world: AwsWorld) -> None:
    world.provider._memory.learn(world.classes["default"], "m5.large", "ami-1", 7 << 40)


TRIGGERS: dict[str, tuple[Callable[[AwsWorld], None], set[str]]] = {
    "instance type info update": (describe, {"inventory"}),
    "zone offerings update": (lambda world: sell(world, zones=("us-east-1a",)), {"inventory"}),
    "on-demand pricing update": (lambda world: sell(world, on_demand=9.0), {"inventory"}),
    "spot pricing update": (lambda world: sell(world, spot=0.01), {"inventory"}),
    "ICE error": (run_dry, {"unavailable"}),
    "ICE error expiry": (lambda world: world.forward(timedelta(minutes=4)), {"unavailable"}),
    "capacity reservation change": (another_cluster_uses_a_place, {"node_class", "reservations"}),
    "a launch into a reservation": (use_a_place, {"reservations"}),
    "NodeClass change": (edit, {"node_class"}),
    "another image": (another_image, {"node_class"}),
    "another zone": (a_zone_less, {"node_class"}),
    "a placement group": (into_a_group, {"node_class", "placement_group", "reservations"}),
    "memory that a node shows": (memory, {"memory"}),
    "a block that soon ends": (lambda world: world.forward(timedelta(hours=4, minutes=21)), {"reservations"}),
}


@pytest.mark.parametrize(("trigger", "parts"), TRIGGERS.values(), ids=TRIGGERS)
def test_the_generation_moves_exactly_with(
    world: AwsWorld, trigger: Callable[[AwsWorld], None], parts: set[str]
) -> None:
    catalogs = Catalogs(world.provider, lambda: NO_ADJUSTMENTS, world.clock)

    def asked() -> Catalog:
        return world.run(catalogs.get(pool()))

    if parts == {"unavailable"} and trigger is not run_dry:
        run_dry(world)
    first = asked()
    before = world.provider.generation(pool())
    world.forward(timedelta(seconds=1))
    world.look()
    world.run(world.provider.refresh())
    assert asked() is first

    trigger(world)

    after = world.provider.generation(pool())
    assert {name for name in after._fields if getattr(after, name) != getattr(before, name)} == parts
    second = asked()
    assert second is not first
    assert second.types != first.types
    assert asked() is second
