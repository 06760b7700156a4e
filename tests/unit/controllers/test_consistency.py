"""Whether a node is what was bought."""

import asyncio

import pytest
from tests.unit.controllers.lifecycleworld import LifeWorld, live

from joiner.model.conditions import find
from joiner.model.meta import replace

MINUTE = 60.0


@pytest.mark.parametrize(("share", "status"), [(90, "True"), (89, "False")], ids=["close enough", "too small"])
def test_a_node_may_be_a_little_smaller_than_expected(share: int, status: str) -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        smaller = {**node.status.capacity, "cpu": node.status.capacity["cpu"] * share // 100}
        world.change(node, status=replace(node.status, capacity=smaller))
        await asyncio.sleep(5)

        assert world.condition("ConsistentStateFound").status == status

    live(story)


def test_people_are_reminded_of_a_node_that_is_too_small_until_it_is_mended() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        whole = node.status.capacity
        node = world.change(node, status=replace(node.status, capacity={**whole, "cpu": 500}))
        await asyncio.sleep(25 * MINUTE)
        assert world.condition("ConsistentStateFound").reason == "ConsistencyCheckFailed"
        assert world.events("FailedConsistencyCheck") == ["NodeClaim c"] * 3

        world.change(node, status=replace(node.status, capacity=whole))
        await asyncio.sleep(5)
        assert world.condition("ConsistentStateFound").status == "True"

    live(story)


def test_a_node_that_is_not_complete_yet_is_not_judged() -> None:
    async def story(world: LifeWorld) -> None:
        await asyncio.sleep(5)
        node = world.join(ready=False, allocatable={})
        world.change(node, status=replace(node.status, capacity={**node.status.capacity, "cpu": 500}))
        await asyncio.sleep(MINUTE)

        assert find(world.claim().status.conditions, "ConsistentStateFound") is None
        assert world.events("FailedConsistencyCheck") == []

    live(story)


def test_resources_that_nobody_asked_for_do_not_matter() -> None:
    async def story(world: LifeWorld) -> None:
        node = await world.settled()
        world.change(node, status=replace(node.status, capacity={**node.status.capacity, "memory": 1000}))
        await asyncio.sleep(5)

        assert world.condition("ConsistentStateFound").status == "True"

    live(story)
