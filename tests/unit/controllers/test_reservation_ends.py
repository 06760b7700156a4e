"""Reservations that are over."""

import asyncio
from typing import Any

from tests.builders import requirement
from tests.unit.controllers.lifecycleworld import LifeWorld, claim, live

from joiner.cloud.kwok.nodeclass import CapacityReservation, KWOKNodeClass
from joiner.model import labels
from joiner.model.meta import replace

ID = "karpenter.k8s.aws/capacity-reservation-id"
RESERVED = claim(requirements=[requirement(labels.CAPACITY_TYPE, "In", labels.RESERVED), requirement(ID, "In", "cr-1")])


def reserve(world: LifeWorld, *ids: str) -> None:
    held = tuple(
        CapacityReservation(id=each, instance_type="c-2x-amd64-linux", zone="test-zone-a", count=2) for each in ids
    )
    known = world.server.get(KWOKNodeClass, "default")
    world.change(known, spec=replace(known.spec, capacity_reservations=held))


def kinds(world: LifeWorld) -> tuple[Any, ...]:
    """Capacity type and reservation of the claim and of its node."""
    return tuple(
        thing.metadata.labels.get(key)
        for thing in (world.claim(), world.node("node-c"))
        for key in (labels.CAPACITY_TYPE, ID)
    )


async def reserved(world: LifeWorld) -> None:
    reserve(world, "cr-1")
    await asyncio.sleep(1)
    world.put(RESERVED)
    await world.settled()
    assert kinds(world) == ("reserved", "cr-1") * 2


def test_a_machine_whose_reservation_ended_runs_on_demand_from_then_on() -> None:
    async def story(world: LifeWorld) -> None:
        await reserved(world)
        world.cloud.cancel_reservation("cr-1")
        await asyncio.sleep(130)

        assert kinds(world) == ("on-demand", None) * 2

    live(story, claim("other"))


def test_a_reservation_that_is_there_changes_nothing() -> None:
    async def story(world: LifeWorld) -> None:
        await reserved(world)
        version = world.claim().metadata.resource_version
        await asyncio.sleep(3600)

        assert world.claim().metadata.resource_version == version

    live(story, claim("other"))


def test_a_machine_in_a_reservation_that_the_class_no_longer_names_stays_reserved() -> None:
    async def story(world: LifeWorld) -> None:
        await reserved(world)
        reserve(world, "cr-2")
        await asyncio.sleep(600)

        assert kinds(world) == ("reserved", "cr-1") * 2

        world.cloud.cancel_reservation("cr-1")
        await asyncio.sleep(130)
        assert kinds(world) == ("on-demand", None) * 2

    live(story, claim("other"))
