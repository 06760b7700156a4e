"""Pools that keep a number of nodes."""

from collections.abc import Iterable

from tests.builders import pod
from tests.unit.controllers.provisioningworld import Workshop, at_work, ready_pool, seconds, waiting_pod

from joiner.controllers.nodepool.static import StaticDeprovisioning, StaticProvisioning
from joiner.disruption.cost import DELETION_COST
from joiner.kube.controller import Controller
from joiner.kube.errors import Throttled
from joiner.model.labels import DO_NOT_DISRUPT, NODEPOOL
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import PodStatus
from joiner.sim.apiserver.client import Call, NoInterceptor


def both(shop: Workshop) -> Iterable[Controller]:
    yield StaticProvisioning(shop.shared, claims=shop.claims_writer)
    yield StaticDeprovisioning(shop.shared)


def scale(shop: Workshop, replicas: int) -> None:
    pool = shop.server.get(NodePool, "default")
    shop.server.patch("test", pool, replace(pool, spec=replace(pool.spec, replicas=replicas)))


def test_a_pool_gets_as_many_claims_as_it_should_have_and_no_pod_is_asked() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=3), waiting_pod())
        await seconds(60)

        assert [claim.metadata.labels[NODEPOOL] for claim in shop.claims()] == ["default"] * 3
        assert shop.told("Nominated") == []

    at_work(test, more=both)


def test_a_claim_that_is_lost_is_replaced_once_it_goes() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=2))
        await seconds(5)
        lost, kept = shop.claims()
        shop.remove(lost)
        await seconds(5)

        names = [claim.name for claim in shop.claims()]
        assert (len(names), kept.name in names, lost.name in names) == (2, True, False)

    at_work(test, more=both)


def test_a_limit_on_nodes_is_never_passed_and_a_claim_that_goes_still_counts() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=3, limits={"nodes": "2"}))
        await seconds(5)
        first, _ = shop.claims()
        kept = shop.server.patch("test", first, replace(first, metadata=replace(first.metadata, finalizers=("x/y",))))
        shop.server.delete("test", NodeClaim, first.name)
        await seconds(60)
        assert len(shop.claims()) == 2

        shop.remove(kept)
        await seconds(60)
        assert len(shop.claims()) == 2
        assert first.name not in [claim.name for claim in shop.claims()]

    at_work(test, more=both)


def test_what_is_too_much_goes_the_least_missed_first() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=4))
        await seconds(5)
        unlaunched, empty, shielded, busy = shop.claims()
        for claim in (empty, shielded, busy):
            shop.join(claim)
        guarded = pod("b", nodeName=f"node-{shielded.name}", cpu="100m")
        annotated = replace(guarded.metadata, annotations={DO_NOT_DISRUPT: "true"})
        for each in (replace(guarded, metadata=annotated), pod("a", nodeName=f"node-{busy.name}")):
            shop.load(replace(each, status=PodStatus(phase="Running")))
        await seconds(5)

        order = []
        for replicas in (3, 2, 1):
            before = {claim.name for claim in shop.claims()}
            scale(shop, replicas)
            await seconds(5)
            order += sorted(before - {claim.name for claim in shop.claims()})
        assert order == [unlaunched.name, empty.name, busy.name]

    at_work(test, more=both)


def test_an_empty_node_goes_before_one_whose_pods_would_not_mind() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=2))
        await seconds(5)
        busy, empty = shop.claims()
        for claim in (busy, empty):
            shop.join(claim)
        willing = replace(pod("a", nodeName=f"node-{busy.name}"), status=PodStatus(phase="Running"))
        shop.load(replace(willing, metadata=replace(willing.metadata, annotations={DELETION_COST: "-2147483648"})))
        await seconds(5)
        scale(shop, 1)
        await seconds(5)

        assert [claim.name for claim in shop.claims()] == [busy.name]

    at_work(test, more=both)


def test_a_pool_that_is_not_ready_gets_nothing() -> None:
    async def test(shop: Workshop) -> None:
        pool = ready_pool(replicas=3)
        shop.load(replace(pool, status=replace(pool.status, conditions=())))
        await seconds(60)

        assert shop.claims() == []

    at_work(test, more=both)


def test_scaling_to_nothing_removes_every_claim_once() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=2))
        await seconds(5)
        scale(shop, 0)
        await seconds(30)

        assert shop.claims() == []

    at_work(test, more=both)


def test_a_pool_that_can_buy_nothing_waits_until_it_can() -> None:
    async def test(shop: Workshop) -> None:
        shop.shop.sell_out()
        shop.load(ready_pool(replicas=2))
        await seconds(170)
        assert shop.claims() == []

        await seconds(60)
        assert len(shop.claims()) == 2

    at_work(test, more=both)


def test_a_pool_whose_machines_cannot_be_had_tries_with_one_claim_at_a_time() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=3))
        await seconds(5)
        for each in shop.claims():
            shop.remove(each)
        await seconds(1.5)
        assert len(shop.claims()) <= 1
        await seconds(60)

        assert len(shop.claims()) == 1

    at_work(test, more=both)


def test_a_claim_that_could_not_be_deleted_is_tried_again() -> None:
    class Busy(NoInterceptor):
        on = True

        def before(self, call: Call) -> float:
            if self.on and (call.verb, call.kind) == ("delete", NodeClaim):
                raise Throttled("not now", 5.0)
            return 0.0

    busy = Busy()

    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=3))
        await seconds(5)
        scale(shop, 1)
        await seconds(12)
        assert len(shop.claims()) == 3
        busy.on = False
        await seconds(12)

        assert len(shop.claims()) == 1
        shop.failures.clear()

    at_work(test, more=both, interceptor=busy)
