"""Whether machines of a pool join, as the pool says it."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from tests.apiworld import Served, served
from tests.builders import node_pool
from tests.unit.controllers.sharedparts import shared

from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.controllers.indexes import INDEXES
from joiner.controllers.nodepool.registrationhealth import HEALTHY, RegistrationHealth
from joiner.kube.informer import Informers
from joiner.kube.manager import Manager
from joiner.model.conditions import find
from joiner.model.duration import Duration
from joiner.model.meta import ObjectMeta, replace
from joiner.model.nodepool import NodePool
from joiner.sim.cloud.cloud import PretendCloud
from joiner.sim.cloud.provider import PretendProvider
from joiner.sim.trace import Trace


class Ward:
    """A pool, its NodeClass, and somebody who keeps count of the machines that join."""

    def __init__(self, world: Served) -> None:
        self.world = world
        self.begin()

    def begin(self) -> None:
        """Keep count, with no memory of before."""
        informers = Informers(self.world.client, INDEXES)
        cloud = PretendCloud(clock=self.world.clock, random=Random(1), trace=Trace())
        provider = PretendProvider(cloud, node_classes=informers, clock=self.world.clock)
        self.health = RegistrationHealth(shared(self.world.client, informers, self.world.clock, provider))
        manager = Manager(informers, [self.health], lambda *failure: None)
        self.task = asyncio.get_running_loop().create_task(manager.run())

    def pool(self) -> NodePool:
        return self.world.server.get(NodePool, "default")

    async def outcomes(self, *joined: bool, uid: str = "") -> str:
        """Machines join or do not; what the pool says then."""
        for each in joined:
            owner = uid or self.pool().metadata.uid
            if each:
                self.health.success("default", owner)
            else:
                self.health.failure("default", owner, "RegistrationFailed", "it never came")
        return await self.says()

    async def says(self) -> str:
        await asyncio.sleep(1)
        said = find(self.pool().status.conditions, HEALTHY)
        return "" if said is None else said.status


def in_a_ward(test: Callable[[Ward], Awaitable[None]]) -> None:
    async def main(world: Served) -> None:
        world.server.load([KWOKNodeClass(metadata=ObjectMeta(name="default")), node_pool()])
        ward = Ward(world)
        assert await ward.says() == "Unknown"
        await test(ward)
        ward.task.cancel()

    served(main)


def edit_pool(ward: Ward) -> None:
    pool = ward.pool()
    ward.world.server.patch("test", pool, replace(pool, spec=replace(pool.spec, weight=7)))


def edit_class(ward: Ward) -> None:
    found = ward.world.server.get(KWOKNodeClass, "default")
    slower = replace(found.spec, node_registration_delay=Duration.of_seconds(9))
    ward.world.server.patch("test", found, replace(found, spec=slower))


@pytest.mark.parametrize("edit", [edit_pool, edit_class], ids=["the pool", "its NodeClass"])
def test_what_happened_before_an_edit_no_longer_counts(edit: Callable[[Ward], None]) -> None:
    async def test(ward: Ward) -> None:
        assert await ward.outcomes(False, False) == "False"
        edit(ward)

        assert await ward.says() == "Unknown"
        assert await ward.outcomes(True) == "True"

    in_a_ward(test)


def test_machines_of_an_earlier_pool_of_the_same_name_do_not_count() -> None:
    async def test(ward: Ward) -> None:
        assert await ward.outcomes(False, False, uid="of the pool before") == "Unknown"

    in_a_ward(test)


def test_a_pool_that_is_not_healthy_does_not_become_so_by_a_restart() -> None:
    async def test(ward: Ward) -> None:
        assert await ward.outcomes(False, False) == "False"
        ward.task.cancel()
        ward.begin()

        assert await ward.says() == "False"
        assert await ward.outcomes(True) == "False"
        assert await ward.outcomes(True, True) == "True"

    in_a_ward(test)
