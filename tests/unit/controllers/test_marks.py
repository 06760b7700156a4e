"""The marks on claims that disruption reads."""

import asyncio
from collections.abc import Hashable
from typing import Any

from tests.builders import SHELF, VOCABULARY, node_pool
from tests.served import Served, served
from tests.unit.controllers.lifeworld import claim

from joiner.catalog.build import NO_ADJUSTMENTS
from joiner.catalog.market import InstanceType
from joiner.cloud.cached import Catalogs
from joiner.cloud.errors import CloudError, InstanceNotFound, Transient
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.controllers.indexes import INDEXES
from joiner.controllers.marks import Marks
from joiner.kube.informer import Informers
from joiner.kube.manager import Manager
from joiner.model.conditions import Condition, is_true
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject, replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.sim.loop import EPOCH


class Cloud:
    """A provider that says of every claim whether it drifted, or that it does not know."""

    name = "cloud"

    def __init__(self, answer: str | CloudError) -> None:
        self.answer = answer

    def node_classes(self) -> tuple[type[KubeObject], ...]:
        return (KWOKNodeClass,)

    def vocabulary(self) -> Vocabulary:
        return VOCABULARY

    def generation(self, pool: NodePool) -> Hashable:
        return 0

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        return tuple(SHELF)

    async def drift_reason(self, claim: NodeClaim) -> str:
        if isinstance(self.answer, CloudError):
            raise self.answer
        return self.answer


def marked(answer: str | CloudError) -> tuple[tuple[str, ...], int]:
    """The marks of a complete claim after a minute, and how often something went wrong."""
    failures: list[Exception] = []

    async def test(world: Served) -> tuple[str, ...]:
        done = [
            Condition(type=kind, status="True", reason=kind, last_transition_time=EPOCH, observed_generation=1)
            for kind in ("Launched", "Registered", "Initialized")
        ]
        made = claim("c")
        world.server.load([node_pool(), replace(made, status=replace(made.status, conditions=tuple(done)))])
        informers, cloud = Informers(world.client, INDEXES), Cloud(answer)
        provider: Any = cloud
        catalogs = Catalogs(provider, lambda: NO_ADJUSTMENTS, world.clock)
        marks = Marks(
            client=world.client,
            informers=informers,
            provider=provider,
            catalogs=catalogs,
            clock=world.clock,
            vocabulary=VOCABULARY,
        )
        manager = Manager(informers, [marks], lambda name, key, error: failures.append(error))
        task = asyncio.get_running_loop().create_task(manager.run())
        await asyncio.sleep(60)
        task.cancel()
        found = world.server.get(NodeClaim, "c").status.conditions
        return tuple(kind for kind in ("Drifted", "Consolidatable") if is_true(found, kind))

    return served(test), len(failures)


def test_a_claim_that_the_provider_no_longer_wants_is_marked() -> None:
    assert marked("ImageDrift") == (("Drifted", "Consolidatable"), 0)


def test_a_provider_that_does_not_know_whether_a_claim_drifted_does_not_hold_up_the_other_mark() -> None:
    marks, failures = marked(Transient("not now"))

    assert marks == ("Consolidatable",)
    assert failures > 1


def test_a_claim_whose_machine_is_gone_has_not_drifted() -> None:
    assert marked(InstanceNotFound("it is gone")) == (("Consolidatable",), 0)
