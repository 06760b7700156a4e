"""The end of old claims."""

import asyncio

import pytest
from tests.unit.controllers.lifecycleworld import LifeWorld, claim, live

MINUTE = 60.0


@pytest.mark.parametrize("restarts", [False, True], ids=["in one life", "over a restart"])
def test_a_claim_goes_when_it_is_old_enough(restarts: bool) -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        await asyncio.sleep(20 * MINUTE)
        if restarts:
            await world.restart()
        await asyncio.sleep(10 * MINUTE - 11)
        assert world.claim().metadata.deletion_timestamp is None

        await asyncio.sleep(2)
        assert world.claim().metadata.deletion_timestamp is not None
        assert world.disrupted() == {"expired": 1.0}

    live(story, claim(expireAfter="30m"))


def test_a_claim_that_never_expires_stays() -> None:
    async def story(world: LifeWorld) -> None:
        await world.settled()
        world.clock.step(1000 * 24 * 60 * MINUTE)
        await world.restart()
        await asyncio.sleep(5)

        assert world.claim().metadata.deletion_timestamp is None
        assert world.errors == []

    live(story, claim(expireAfter="Never"))
