"""The queue that gets pods to leave."""

import asyncio
from typing import Any

from tests.builders import pod
from tests.unit.controllers.lifecycleworld import LifeWorld, bound, live, seconds

from joiner.kube.client import WatchEvent
from joiner.kube.errors import Conflict
from joiner.model.codec import decode
from joiner.model.meta import replace
from joiner.model.pod import Pod
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.sim.apiserver.client import Call, NoInterceptor, WatchedChange

MINUTE = 60.0
BUDGET = decode(
    {
        "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    },
    PodDisruptionBudget,
)


def requests(world: LifeWorld) -> dict[str, float]:
    """Code to how many evictions were answered with it."""
    samples = next(iter(world.metrics.pods_eviction_requests_total.collect())).samples
    return {each.labels["code"]: each.value for each in samples if each.name.endswith("_total")}


def going(world: LifeWorld, name: str = "web") -> bool:
    return world.server.get(Pod, name, "default").metadata.deletion_timestamp is not None


async def a_pod(world: LifeWorld, name: str = "web") -> Pod:
    node = await world.settled()
    world.put(bound(pod(name, labels={"app": "web"}), node.name, world.clock))
    await asyncio.sleep(1)
    return world.server.get(Pod, name, "default")


def test_a_pod_that_is_asked_is_evicted_once() -> None:
    async def story(world: LifeWorld) -> None:
        web = await a_pod(world)
        for _ in range(3):
            world.evictions.ask(web, node="node-c", reason="Empty", deadline=None)
        await asyncio.sleep(0.02)
        world.evictions.ask(web, node="node-c", reason="Empty", deadline=None)
        await asyncio.sleep(MINUTE)

        assert going(world)
        assert requests(world) == {"200": 1.0}
        assert world.events("Evicted") == ["Pod default/web"]

    live(story)


class Deaf(NoInterceptor):
    """From some moment on nothing that happens to pods is heard of."""

    deaf = False

    def event(self, call: Call, event: WatchEvent[Any]) -> WatchedChange:
        return WatchedChange(delay_s=MINUTE if self.deaf and call.kind is Pod else 0.0)


def test_a_pod_is_not_evicted_again_before_the_cache_has_heard_of_it() -> None:
    interceptor = Deaf()

    async def story(world: LifeWorld) -> None:
        web = await a_pod(world)
        interceptor.deaf = True
        for _ in range(4):
            world.evictions.ask(web, node="node-c", reason="Empty", deadline=None)
            await asyncio.sleep(1)

        assert requests(world) == {"200": 1.0}

    live(story, interceptor=interceptor)


def test_a_budget_is_asked_again_with_patience() -> None:
    async def story(world: LifeWorld) -> None:
        world.put(BUDGET)
        web = await a_pod(world)
        world.evictions.ask(web, node="node-c", reason="Empty", deadline=None)
        await asyncio.sleep(MINUTE)
        refused = requests(world)["429"]
        assert not going(world)
        assert 8 <= refused <= 13
        assert world.events("FailedDraining") == ["Node node-c"]

        world.delete(world.server.get(PodDisruptionBudget, "keep", "default"))
        await asyncio.sleep(11)
        assert going(world)

    live(story)


def test_every_pod_that_a_budget_holds_is_told_of_besides_what_the_drain_tells() -> None:
    async def story(world: LifeWorld) -> None:
        world.put(replace(BUDGET, spec=replace(BUDGET.spec, min_available=2)))
        await a_pod(world, "one")
        world.put(bound(pod("two", labels={"app": "web"}), "node-c", world.clock))
        await asyncio.sleep(1)
        world.delete(world.node("node-c"))
        await asyncio.sleep(MINUTE)

        told = [each.message for each in world.recorder.recent if each.reason == "FailedDraining"]
        held = {name for name in ("one", "two") if any(f"/{name} cannot" in each and "keep" in each for each in told)}
        assert held == {"one", "two"}
        assert any("2 pods have not left yet" in each for each in told)

    live(story)


def test_asking_again_does_not_hurry_a_budget() -> None:
    async def story(world: LifeWorld) -> None:
        world.put(BUDGET)
        web = await a_pod(world)
        for _ in range(600):
            world.evictions.ask(web, node="node-c", reason="Empty", deadline=None)
            await asyncio.sleep(0.1)

        assert requests(world)["429"] <= 13

    live(story)


def test_a_pod_whose_time_is_over_is_deleted_whatever_the_budget_says() -> None:
    async def story(world: LifeWorld) -> None:
        world.put(BUDGET)
        web = await a_pod(world)
        world.evictions.ask(web, node="node-c", reason="Empty", deadline=world.now() + seconds(20))
        await asyncio.sleep(1)

        assert world.server.get(Pod, "web", "default").metadata.deletion_grace_period_seconds in (19, 20)
        assert world.events("Disrupted") == ["Pod default/web"]
        drained = world.metrics.registry.get_sample_value("karpenter_pods_drained_total", {"reason": "Empty"})
        assert drained == 1
        assert requests(world) == {}

    live(story)


def test_the_earliest_deadline_holds() -> None:
    async def story(world: LifeWorld) -> None:
        world.put(BUDGET)
        web = await a_pod(world)
        world.evictions.ask(web, node="node-c", reason="Empty", deadline=world.now() + seconds(40))
        await asyncio.sleep(1)
        world.evictions.ask(web, node="node-c", reason="Empty", deadline=None)
        await asyncio.sleep(20)

        assert going(world)

    live(story)


def test_a_pod_of_the_same_name_that_came_later_is_not_meant() -> None:
    async def story(world: LifeWorld) -> None:
        web = await a_pod(world)
        earlier = replace(web, metadata=replace(web.metadata, uid="another"))
        world.evictions.ask(earlier, node="node-c", reason="Empty", deadline=None)
        await asyncio.sleep(MINUTE)

        assert not going(world)

    live(story)


def test_a_pod_whose_node_is_gone_is_dropped() -> None:
    async def story(world: LifeWorld) -> None:
        web = await a_pod(world)
        world.evictions.ask(web, node="gone", reason="Empty", deadline=None)
        await asyncio.sleep(MINUTE)

        assert not going(world)

    live(story)


def test_pods_of_a_node_that_stays_are_asked_no_longer() -> None:
    async def story(world: LifeWorld) -> None:
        world.put(BUDGET)
        web = await a_pod(world)
        world.evictions.ask(web, node="node-c", reason="Empty", deadline=None)
        await asyncio.sleep(5)
        world.evictions.drop("node-c")
        world.delete(world.server.get(PodDisruptionBudget, "keep", "default"))
        await asyncio.sleep(MINUTE)

        assert not going(world)

    live(story)


class Disagrees(NoInterceptor):
    """The first eviction is answered with a conflict."""

    def __init__(self) -> None:
        self.asked = 0

    def before(self, call: Call) -> float:
        if call.verb == "evict":
            self.asked += 1
            if self.asked == 1:
                raise Conflict("somebody was faster")
        return 0.0


def test_a_pod_is_asked_again_after_a_conflict() -> None:
    async def story(world: LifeWorld) -> None:
        web = await a_pod(world)
        world.evictions.ask(web, node="node-c", reason="Empty", deadline=None)
        await asyncio.sleep(1)

        assert going(world)
        assert requests(world) == {"409": 1.0, "200": 1.0}

    live(story, interceptor=Disagrees())
