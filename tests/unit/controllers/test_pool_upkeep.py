"""What is kept up to date on NodePools while nobody looks."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.builders import node_pool
from tests.unit.controllers.lifecycleworld import REFERENCE, claim

from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.model import labels
from joiner.model.clusterobjects import Event
from joiner.model.codec import decode
from joiner.model.conditions import Condition, is_true
from joiner.model.meta import ObjectMeta, replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.nodepoolhash import HASH_VERSION, nodepool_hash
from joiner.sim.virtualtime import VirtualLoop, run
from joiner.sim.world import World

OLD = {labels.NODEPOOL_HASH: "1", labels.NODEPOOL_HASH_VERSION: "v1"}


def live(test: Callable[[World], Coroutine[Any, Any, None]], *things: Any) -> None:
    """Run a test in a world with a NodeClass and these."""

    async def main(loop: VirtualLoop) -> None:
        world = World(loop, seed=1)
        world.load([KWOKNodeClass(metadata=ObjectMeta(name="default")), *things])
        await world.start()
        await asyncio.sleep(20)
        try:
            await test(world)
        finally:
            await world.stop()

    run(main)


def old(name: str, *conditions: Condition) -> NodeClaim:
    """A claim with the hash of an older release."""
    made = claim(name)
    status = replace(made.status, conditions=conditions)
    return replace(made, metadata=replace(made.metadata, annotations=OLD), status=status)


def test_claims_take_over_a_hash_that_is_made_by_new_rules_unless_they_have_drifted() -> None:
    drifted = Condition(type="Drifted", status="True", reason="NodePoolDrifted")
    pool = node_pool()

    async def test(world: World) -> None:
        told = {each.name: each.metadata.annotations for each in world.server.objects(NodeClaim)}
        assert told["same"] == {**told["same"], labels.NODEPOOL_HASH: nodepool_hash(pool)}
        assert told["other"][labels.NODEPOOL_HASH] == "1"
        assert {each[labels.NODEPOOL_HASH_VERSION] for each in told.values()} == {HASH_VERSION}
        assert world.server.get(NodePool, pool.name).metadata.annotations[labels.NODEPOOL_HASH] == nodepool_hash(pool)

    annotated = replace(pool, metadata=replace(pool.metadata, annotations=OLD))
    live(test, annotated, old("same"), old("other", drifted))


def test_what_karpenter_wrote_about_a_template_stays_and_nobody_drifts() -> None:
    karpenters = {labels.NODEPOOL_HASH: "12745407319442031341", labels.NODEPOOL_HASH_VERSION: "v3"}
    pool, made = node_pool(), claim("c")

    async def test(world: World) -> None:
        told = {each.type for each in world.server.get(NodeClaim, "c").status.conditions}
        for thing in (world.server.get(NodePool, "default"), world.server.get(NodeClaim, "c")):
            assert karpenters.items() <= thing.metadata.annotations.items()
        assert "Drifted" not in told

    live(
        test,
        replace(pool, metadata=replace(pool.metadata, annotations=karpenters)),
        replace(made, metadata=replace(made.metadata, annotations=karpenters)),
    )


def test_a_pool_without_nodes_counts_zeros() -> None:
    async def test(world: World) -> None:
        status = world.server.get(NodePool, "default").status
        assert status.nodes == 0
        assert dict(status.resources) == dict.fromkeys(("cpu", "memory", "pods", "ephemeral-storage", "nodes"), 0)

    live(test, node_pool())


def test_a_class_that_is_being_deleted_makes_its_pool_wait() -> None:
    kept = KWOKNodeClass(metadata=ObjectMeta(name="kept", finalizers=("x/y",)))
    pool = node_pool(template={"spec": {"nodeClassRef": {**REFERENCE, "name": "kept"}}})

    async def test(world: World) -> None:
        assert is_true(world.server.get(NodePool, "default").status.conditions, "Ready")
        world.server.delete("test", KWOKNodeClass, "kept")
        await asyncio.sleep(5)

        found = {each.type: each for each in world.server.get(NodePool, "default").status.conditions}
        assert found["NodeClassReady"].reason == "NodeClassTerminating"
        assert found["Ready"].status == "False"

    live(test, kept, pool)


def test_a_class_that_does_not_say_whether_it_is_ready_makes_its_pool_wait() -> None:
    silent = decode({"metadata": {"name": "silent"}, "status": {"conditions": []}}, KWOKNodeClass)
    pool = node_pool(template={"spec": {"nodeClassRef": {**REFERENCE, "name": "silent"}}})

    async def test(world: World) -> None:
        found = {each.type: each for each in world.server.get(NodePool, "default").status.conditions}
        assert found["NodeClassReady"].reason == "NodeClassReadinessUnknown"
        assert found["Ready"].status == "False"

    live(test, silent, pool)


def test_how_many_nodes_an_edit_will_have_replaced_is_told_once() -> None:
    pool = node_pool()
    mine = {labels.NODEPOOL_HASH: nodepool_hash(pool), labels.NODEPOOL_HASH_VERSION: HASH_VERSION}
    launched = Condition(type="Launched", status="True")
    made = [replace(claim(name), metadata=replace(claim(name).metadata, annotations=mine)) for name in ("a", "b")]
    claims = [replace(each, status=replace(each.status, conditions=(launched,))) for each in made]

    async def test(world: World) -> None:
        assert not [each for each in world.server.objects(Event) if each.reason == "DriftExpected"]
        known = world.server.get(NodePool, "default")
        template = known.spec.template
        newer = replace(template, metadata=replace(template.metadata, labels={"release": "second"}))
        world.server.patch("test", known, replace(known, spec=replace(known.spec, template=newer)))
        await asyncio.sleep(60)
        (told,) = [each for each in world.server.objects(Event) if each.reason == "DriftExpected"]
        assert told.involved_object.name == "default"
        assert told.message.startswith("2 of 2 nodes differ from what it would buy (NodePoolDrifted: 2)")
        assert told.message.endswith("its budgets allow 1 at a time")

    live(test, pool, *claims)
