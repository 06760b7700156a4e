"""The marks on claims that disruption reads."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, NamedTuple

from tests.apiworld import Served, served
from tests.builders import SHELF, VOCABULARY, node_pool
from tests.unit.controllers.lifecycleworld import claim
from tests.unit.controllers.sharedparts import shared

from joiner.catalog.market import InstanceType
from joiner.cloud.errors import CloudError, InstanceNotFound, Transient
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.controllers.indexes import INDEXES
from joiner.controllers.nodeclaim.conditions import ClaimConditions
from joiner.kube.informer import Informers
from joiner.kube.manager import Manager
from joiner.model import labels
from joiner.model.conditions import Condition, is_true
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject, replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.sim.virtualtime import EPOCH

MINUTE = 60.0
HOUR = 60 * MINUTE
POOL = node_pool()
BOUGHT = {
    labels.INSTANCE_TYPE: SHELF[0].name,
    labels.ZONE: SHELF[0].offerings[0].zone,
    labels.CAPACITY_TYPE: SHELF[0].offerings[0].capacity_type,
}


class Cloud:
    """A provider that says of every claim whether it drifted, or that it does not know."""

    name = "cloud"

    def __init__(self, answer: str | CloudError = "") -> None:
        self.answer = answer
        self.types: tuple[InstanceType, ...] | CloudError = tuple(SHELF)
        self.moves = 0

    def node_classes(self) -> tuple[type[KubeObject], ...]:
        return (KWOKNodeClass,)

    def vocabulary(self) -> Vocabulary:
        return VOCABULARY

    def generation(self, pool: NodePool) -> Hashable:
        return self.moves

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        if isinstance(self.types, CloudError):
            raise self.types
        return self.types

    async def drift_reason(self, claim: NodeClaim) -> str:
        if isinstance(self.answer, CloudError):
            raise self.answer
        return self.answer


class Marking(NamedTuple):
    """A complete claim `c` that is being marked."""

    world: Served
    cloud: Cloud
    failures: list[Exception]

    def marks(self) -> tuple[str, ...]:
        found = self.world.server.get(NodeClaim, "c").status.conditions
        return tuple(kind for kind in ("Drifted", "Consolidatable") if is_true(found, kind))


def marking(test: Callable[[Marking], Awaitable[None]], pool: NodePool, answer: str | CloudError = "") -> Marking:
    """Run a test while marks are kept, and give what there is in the end."""

    async def main(world: Served) -> Marking:
        done = [
            Condition(type=kind, status="True", reason=kind, last_transition_time=EPOCH, observed_generation=1)
            for kind in ("Launched", "Registered", "Initialized")
        ]
        made = claim("c")
        labelled = {**made.metadata.labels, **BOUGHT}
        made = replace(made, metadata=replace(made.metadata, labels=labelled))
        world.server.load([pool, replace(made, status=replace(made.status, conditions=tuple(done)))])
        informers, cloud = Informers(world.client, INDEXES), Cloud(answer)
        provider: Any = cloud
        marks = ClaimConditions(shared(world.client, informers, world.clock, provider))
        found = Marking(world, cloud, [])
        manager = Manager(informers, [marks], lambda name, key, error: found.failures.append(error))
        task = asyncio.get_running_loop().create_task(manager.run())
        await test(found)
        task.cancel()
        return found

    return served(main)


def marked(answer: str | CloudError, pool: NodePool = POOL) -> tuple[tuple[str, ...], int]:
    """The marks after a minute, and how often something went wrong."""

    async def test(found: Marking) -> None:
        await asyncio.sleep(MINUTE)

    found = marking(test, pool, answer)
    return found.marks(), len(found.failures)


def test_a_claim_that_the_provider_no_longer_wants_is_marked() -> None:
    assert marked("ImageDrift") == (("Drifted", "Consolidatable"), 0)


def test_a_provider_that_does_not_know_whether_a_claim_drifted_does_not_hold_up_the_other_mark() -> None:
    marks, failures = marked(Transient("not now"))

    assert marks == ("Consolidatable",)
    assert failures > 1


def test_a_claim_whose_machine_is_gone_has_not_drifted() -> None:
    assert marked(InstanceNotFound("it is gone")) == (("Consolidatable",), 0)


def test_a_claim_of_a_pool_that_keeps_a_number_of_nodes_is_never_consolidated() -> None:
    assert marked("", node_pool(replicas=1)) == ((), 0)


def test_a_claim_whose_type_is_no_longer_there_is_marked_within_minutes() -> None:
    async def test(found: Marking) -> None:
        await asyncio.sleep(2 * HOUR)
        assert "Drifted" not in found.marks()

        found.cloud.types, found.cloud.moves = tuple(SHELF[1:]), 1
        await asyncio.sleep(5 * MINUTE)
        assert "Drifted" in found.marks()

    marking(test, POOL)


def test_a_type_that_goes_while_the_list_cannot_be_had_is_noticed_when_it_can() -> None:
    async def test(found: Marking) -> None:
        await asyncio.sleep(2 * HOUR)
        found.cloud.types, found.cloud.moves = Transient("not now"), 1
        await asyncio.sleep(20 * MINUTE)
        assert "Drifted" not in found.marks()

        found.cloud.types = tuple(SHELF[1:])
        await asyncio.sleep(6 * MINUTE)
        assert "Drifted" in found.marks()

    marking(test, POOL)


def test_a_provider_that_could_not_say_what_drifted_when_its_supply_moved_is_asked_again() -> None:
    async def test(found: Marking) -> None:
        await asyncio.sleep(MINUTE)
        found.cloud.answer, found.cloud.moves = Transient("not now"), 1
        await asyncio.sleep(20 * MINUTE)
        assert "Drifted" not in found.marks()

        found.cloud.answer = "ImageDrift"
        await asyncio.sleep(6 * MINUTE)
        assert "Drifted" in found.marks()

    marking(test, POOL)
