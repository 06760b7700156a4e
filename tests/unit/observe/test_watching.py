"""What is counted and told as pods start, conditions turn and finalizers go."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.apiworld import Served, served
from tests.builders import node_pool, pod

from joiner.controllers.metrics import ConditionWatch, PodWatch
from joiner.kube.informer import Informers
from joiner.kube.tasks import Tasks
from joiner.model.clusterobjects import Event
from joiner.model.conditions import Condition
from joiner.model.labels import Vocabulary
from joiner.model.meta import replace
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod, PodCondition
from joiner.observe.conditions import Transitions, Watched
from joiner.observe.events import Recorder
from joiner.observe.metrics import Metrics
from joiner.state.cluster import Cluster


def watching(test: Callable[[Served, Metrics], Coroutine[Any, Any, None]]) -> None:
    async def main(world: Served) -> None:
        metrics, tasks, informers = Metrics(), Tasks(), Informers(world.client)
        recorder, kinds = Recorder(world.client, world.clock), (Watched(NodePool),)
        PodWatch(informers, Cluster(Vocabulary()), metrics)
        ConditionWatch(informers, Transitions(metrics.registry, world.clock, kinds), recorder, kinds)
        tasks.start("events", recorder.run())
        await informers.start(tasks)
        await test(world, metrics)
        await tasks.close()

    served(main)


def with_readiness(found: Pod, ready: bool, world: Served) -> Pod:
    condition = PodCondition(type="Ready", status=str(ready), last_transition_time=world.clock.now())
    return replace(found, status=replace(found.status, phase="Running", conditions=(condition,)))


def events(world: Served) -> list[tuple[str, str]]:
    return [(each.reason, each.message) for each in world.server.objects(Event)]


def test_a_pod_starts_once_however_often_it_becomes_ready() -> None:
    async def test(world: Served, metrics: Metrics) -> None:
        found = await world.client.create(pod("web"))
        for ready in (True, False, True):
            await asyncio.sleep(20)
            found = await world.client.patch_status(found, with_readiness(found, ready, world))
        await asyncio.sleep(1)
        assert metrics.registry.get_sample_value("karpenter_pods_startup_duration_seconds_count") == 1
        assert metrics.registry.get_sample_value("karpenter_pods_startup_duration_seconds_sum") == 20

    watching(test)


def test_the_first_word_about_a_condition_counts_from_the_birth_of_its_object() -> None:
    async def test(world: Served, metrics: Metrics) -> None:
        pool = await world.client.create(node_pool())
        await asyncio.sleep(7)
        said = Condition(type="NodeClassReady", status="True", reason="Fine", last_transition_time=world.clock.now())
        await world.client.patch_status(pool, replace(pool, status=replace(pool.status, conditions=(said,))))
        await asyncio.sleep(1)
        turned = {"type": "NodeClassReady", "status": "Unknown", "to_status": "True"}
        name = "operator_nodepool_status_condition_transition_seconds_sum"
        assert metrics.registry.get_sample_value(name, turned) == 7
        assert events(world) == [("NodeClassReady", "NodeClassReady turned from Unknown to True: Fine")]

    watching(test)


def test_a_condition_that_appears_as_unknown_has_not_turned() -> None:
    async def test(world: Served, metrics: Metrics) -> None:
        pool = await world.client.create(node_pool())
        now = world.clock.now()
        said = Condition(type="NodeClassReady", status="Unknown", reason="Later", last_transition_time=now)
        await world.client.patch_status(pool, replace(pool, status=replace(pool.status, conditions=(said,))))
        await asyncio.sleep(1)
        assert events(world) == []
        turned = {"type": "NodeClassReady", "status": "Unknown", "reason": "Later"}
        name = "operator_nodepool_status_condition_transitions_total"
        assert metrics.registry.get_sample_value(name, turned) is None

    watching(test)


def test_whoever_lets_go_of_an_object_is_told_also_when_that_ends_it() -> None:
    async def test(world: Served, metrics: Metrics) -> None:
        del metrics
        held = replace(node_pool().metadata, finalizers=("example.com/one", "example.com/two"))
        pool = await world.client.create(replace(node_pool(), metadata=held))
        await world.client.delete(NodePool, pool.name)
        for left in (("example.com/two",), ()):
            await asyncio.sleep(10)
            found = await world.client.get(NodePool, pool.name)
            await world.client.patch(found, replace(found, metadata=replace(found.metadata, finalizers=left)))
        await asyncio.sleep(1)
        assert events(world) == [("Finalized", f"example.com/{each} let it go") for each in ("one", "two")]

    watching(test)
