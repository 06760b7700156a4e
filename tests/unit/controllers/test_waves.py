"""Many claims at once, claims on their way, and pictures of the cluster that have moved on."""

import asyncio
from typing import Any

import pytest
from tests.builders import instance_type, offering, pod
from tests.unit.controllers.lifecycleworld import LifeWorld, bound, claim, live
from tests.unit.controllers.provisioningworld import Workshop, at_work, ready_pool, seconds, waiting_pod
from tests.unit.controllers.test_behind import Deaf
from tests.unit.controllers.test_reservation_ends import kinds, reserved
from tests.unit.controllers.test_static import both, scale

from joiner.cloud.errors import Transient
from joiner.kube.client import Key
from joiner.model.codec import decode
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import PodStatus
from joiner.model.storage import PersistentVolumeClaim, StorageClass
from joiner.sim.apiserver.client import Call, NoInterceptor
from joiner.sim.cloud.cloud import NoCloudInterceptor

APART: dict[str, Any] = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "apart"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    },
    "labels": {"app": "apart"},
}


class LowersTheLimit(NoInterceptor):
    """Just before the first claims of a plan are written, the limit of their pool is lowered."""

    shop: Workshop | None = None

    def before(self, call: Call) -> float:
        if self.shop is not None and (call.verb, call.kind) == ("get", NodePool):
            shop, self.shop = self.shop, None
            pool = shop.server.get(NodePool, "default")
            lowered = decode({"spec": {"limits": {"nodes": 60}}}, NodePool).spec.limits
            shop.server.patch("test", pool, replace(pool, spec=replace(pool.spec, limits=lowered)))
        return 0.0


def test_a_wave_of_more_than_fifty_claims_stays_within_the_limit() -> None:
    """Each claim counts against what the limit leaves, not each fifty anew."""
    lowers = LowersTheLimit()

    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(limits={"nodes": 300}))
        await seconds(1)
        lowers.shop = shop
        shop.load(*(waiting_pod(f"web-{number}", **APART) for number in range(120)))
        await seconds(4)

        assert len(shop.claims()) == 60

    at_work(test, interceptor=lowers)


def test_nodes_that_a_pool_has_count_when_its_limit_is_lowered_while_claims_are_written() -> None:
    lowers = LowersTheLimit()

    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(limits={"nodes": 300}))
        shop.load(*(waiting_pod(f"before-{number}", **APART) for number in range(50)))
        await seconds(4)
        for each in shop.claims():
            shop.join(each)
        await seconds(4)
        lowers.shop = shop
        shop.load(*(waiting_pod(f"web-{number}", **APART) for number in range(30)))
        await seconds(4)

        assert len(shop.claims()) == 60

    at_work(test, interceptor=lowers)


def test_a_plan_counts_claims_that_are_on_their_way_into_the_same_reservation() -> None:
    async def test(shop: Workshop) -> None:
        held = offering("reserved", zone="a", price=0.0, available=1, reservation="cr-1")
        shop.shop.types = (instance_type("m-2", [held]),)
        shop.load(ready_pool(), waiting_pod("a", "1500m"))
        await seconds(3)
        assert len(shop.claims()) == 1
        shop.load(waiting_pod("b", "1500m"))
        await seconds(60)

        assert len(shop.claims()) == 1

    at_work(test)


def test_a_place_in_a_reservation_that_becomes_free_is_seen_at_the_next_look() -> None:
    async def test(shop: Workshop) -> None:
        held = offering("reserved", zone="a", price=0.0, available=1, reservation="cr-1")
        shop.shop.types = (instance_type("m-2", [held]),)
        shop.load(ready_pool(), waiting_pod("a", "1500m"))
        await seconds(3)
        shop.load(waiting_pod("b", "1500m"))
        await seconds(15)
        shop.remove(shop.claims()[0])
        await seconds(5)

        assert len(shop.claims()) == 1

    at_work(test)


def test_pods_whose_claim_is_gone_are_planned_for_at_once() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), waiting_pod())
        await seconds(3)
        (first,) = shop.claims()
        await seconds(0.5)
        shop.remove(first)
        await seconds(3)

        assert len(shop.claims()) == 1

    at_work(test)


def test_a_pod_that_waited_for_its_volume_claim_is_planned_for_when_that_comes() -> None:
    async def test(shop: Workshop) -> None:
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        shop.load(ready_pool(), waiting_pod(volumes=[volume]))
        await seconds(5)
        assert not shop.claims()
        zonal = {
            "metadata": {"name": "zonal"},
            "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        wanted = {"metadata": {"name": "data", "namespace": "default"}, "spec": {"storageClassName": "zonal"}}
        shop.load(decode(zonal, StorageClass), decode(wanted, PersistentVolumeClaim))
        await seconds(15)

        assert len(shop.claims()) == 1

    at_work(test)


# -- static pools ---------------------------------------------------------------------------------------------------------


def test_a_static_pool_has_its_number_while_one_of_its_nodes_drains() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=2))
        await seconds(5)
        first, _ = shop.claims()
        shop.server.patch("test", first, replace(first, metadata=replace(first.metadata, finalizers=("x/y",))))
        shop.server.delete("test", NodeClaim, first.name)
        await seconds(10)

        assert sum(each.metadata.deletion_timestamp is None for each in shop.claims()) == 2

    at_work(test, more=both)


def test_a_static_pool_that_was_short_at_its_limit_is_filled_when_there_is_room() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=2, limits={"nodes": "2"}))
        await seconds(5)
        first, _ = shop.claims()
        held = shop.server.patch("test", first, replace(first, metadata=replace(first.metadata, finalizers=("x/y",))))
        shop.server.delete("test", NodeClaim, first.name)
        await seconds(10)
        deaf.on = True  # of its end no watch tells
        shop.remove(held)
        shop.cluster.apply(NodeClaim, held, None)
        await seconds(60)

        assert len(shop.claims()) == 2

    deaf = Deaf(NodeClaim)
    at_work(test, more=both, interceptor=deaf)


def test_a_static_pool_that_shrinks_loses_no_more_than_it_should_while_the_watch_is_late() -> None:
    deaf = Deaf(NodeClaim)

    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=5))
        await seconds(5)
        deaf.on = True
        for replicas in (4, 3):
            scale(shop, replicas)
            await seconds(5)

        assert len(shop.claims()) == 3

    at_work(test, more=both, interceptor=deaf)


def test_a_claim_that_was_deleted_already_is_not_spared_for_another_one() -> None:
    """The watch is late, and pods that come meanwhile make the other node the one that would be missed less."""
    deaf = Deaf(NodeClaim)

    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=2))
        await seconds(5)
        both_of_them = shop.claims()
        for each in both_of_them:
            shop.join(each)
        await seconds(5)
        deaf.on = True
        scale(shop, 1)
        await seconds(5)
        (kept,) = shop.claims()
        (gone,) = (each for each in both_of_them if each.name != kept.name)
        shop.load(replace(pod("late", nodeName=f"node-{gone.name}"), status=PodStatus(phase="Running")))
        pool = shop.server.get(NodePool, "default")
        shop.server.patch("test", pool, replace(pool, metadata=replace(pool.metadata, labels={"edited": "yes"})))
        await seconds(5)

        assert [each.name for each in shop.claims()] == [kept.name]

    at_work(test, more=both, interceptor=deaf)


# -- looked at again ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["types", "get"])
def test_the_end_of_a_reservation_is_seen_after_a_busy_moment_of_the_cloud(call: str) -> None:
    class Busy(NoCloudInterceptor):
        on = False

        def before(self, asked: str, about: str) -> float:
            if self.on and asked == call:
                raise Transient("the cloud is busy")
            return 0.0

    busy = Busy()

    async def story(world: LifeWorld) -> None:
        await reserved(world)
        busy.on = True
        world.cloud.cancel_reservation("cr-1")
        await asyncio.sleep(130)
        busy.on = False
        await asyncio.sleep(200)

        assert kinds(world) == ("on-demand", None) * 2

    live(story, claim("other"), cloud_interceptor=busy)


# -- memory ---------------------------------------------------------------------------------------------------------------


def sizes(thing: Any, depth: int = 3) -> dict[str, int]:
    """How many entries every table of an object has, those of the objects it is made of among them."""
    found: dict[str, int] = {}
    for name, value in vars(thing).items():
        if isinstance(value, dict | set | list | frozenset):
            found[name] = len(value)
        elif depth and type(value).__module__.startswith("joiner.controllers") and hasattr(value, "__dict__"):
            found.update({f"{name}.{key}": size for key, size in sizes(value, depth - 1).items()})
    return found


def test_controllers_forget_claims_nodes_and_pods_that_are_gone() -> None:
    """Two hundred claims come, join, get a pod and go; what the controllers remember does not grow with them."""

    async def story(world: LifeWorld) -> None:
        controllers = [each.controller for each in world.manager._running]
        for number in range(200):
            name = f"c-{number}"
            world.put(claim(name))
            await asyncio.sleep(2)
            node = world.join(name)
            await asyncio.sleep(2)
            world.put(bound(pod(f"web-{number}", terminationGracePeriodSeconds=0), node.name, world.clock))
            world.delete(world.claim(name))
            await asyncio.sleep(8)
            if world.there(type(pod()), f"web-{number}", "default"):
                world.server.delete("kubelet", type(pod()), f"web-{number}", "default", grace_s=0)
            await asyncio.sleep(25)
            assert not world.there(NodeClaim, name)
        remembered = {
            f"{each.name} {name}": size
            for each in controllers
            for name, size in sizes(each).items()
            if not name.endswith(("_known", "_settling"))  # these are forgotten by the thousand
        }
        assert {name: size for name, size in remembered.items() if size > 60} == {}

    live(story)


def test_pods_that_were_evicted_long_ago_are_forgotten() -> None:
    async def story(world: LifeWorld) -> None:
        for number in range(3_000):
            world.evictions._settle(pod(f"web-{number}", uid=str(number)))
            await asyncio.sleep(1)

        assert len(world.evictions._settling) <= 1_000
        assert Key("default", "web-1") not in world.evictions._orders

    live(story)
