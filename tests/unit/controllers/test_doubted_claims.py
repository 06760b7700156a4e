"""Claims of which it is not known whether they were written: they count until it is known, and are never written twice."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.controllers.provisioningworld import Workshop, at_work, ready_pool, seconds, waiting_pod
from tests.unit.controllers.test_static import both

from joiner.kube.client import WatchEvent
from joiner.kube.errors import Conflict, Invalid, KubeError, Throttled, Unreachable
from joiner.model.nodeclaim import NodeClaim
from joiner.sim.apiserver.client import Call, NoInterceptor, WatchedChange


class Faults(NoInterceptor):
    """What each creation of a claim and each look at one meets, one after the other; the watch of claims is late."""

    def __init__(
        self,
        creations: dict[int, KubeError] | None = None,
        looks: dict[int, KubeError] | None = None,
        lost: Callable[[int], bool] = lambda number: number == 1,
        late_s: float = 40.0,
    ) -> None:
        self.creations, self.looks, self.lost, self.late_s = creations or {}, looks or {}, lost, late_s
        self.created = self.looked = 0

    def before(self, call: Call) -> float:
        if call.kind is NodeClaim and call.verb == "create":
            self.created += 1
            if self.created in self.creations:
                raise self.creations[self.created]
        if call.kind is NodeClaim and call.verb == "get":
            self.looked += 1
            if self.looked in self.looks:
                raise self.looks[self.looked]
        return 0.0

    def after(self, call: Call) -> float:
        if call.kind is NodeClaim and call.verb == "create" and self.lost(self.created):
            raise Unreachable("the answer was lost")
        return 0.0

    def event(self, call: Call, event: WatchEvent[Any]) -> WatchedChange:
        return WatchedChange(delay_s=self.late_s if call.kind is NodeClaim else 0.0)


SECOND: dict[str, Faults] = {
    "the look is throttled": Faults(looks={1: Throttled("too many requests", after_s=1.0)}),
    "the look finds no answer": Faults(looks={1: Unreachable("no answer")}),
    "a conflict": Faults({2: Conflict("another client was faster")}),
    "it is not accepted any more": Faults({2: Invalid("a webhook says no")}),
    "throttled to the end": Faults({number: Throttled("too many requests") for number in range(2, 7)}),
    "no answer to the end": Faults(lost=lambda number: number <= 6),
}


@pytest.mark.parametrize("faults", SECOND.values(), ids=SECOND)
def test_a_pod_gets_one_claim_whatever_the_second_attempt_meets(faults: Faults) -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(limits={"nodes": 1}), waiting_pod())
        await seconds(60)

        assert len(shop.claims()) == 1

    at_work(test, interceptor=faults, may_fail=True)


def test_two_waves_stay_within_the_limit_of_their_pool() -> None:
    """The second pod comes while nobody knows what became of the claim for the first."""

    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(limits={"nodes": 1}), waiting_pod("a"))
        await seconds(3)
        shop.load(waiting_pod("b", cpu="14"))
        await seconds(30)

        assert len(shop.claims()) == 1

    at_work(test, interceptor=Faults({2: Conflict("another client was faster")}), may_fail=True)


def test_a_claim_that_was_never_written_is_forgotten_and_nothing_is_learned_from_it() -> None:
    """The requests break before they arrive: nothing says that its machines cannot be had."""
    faults = Faults({number: Unreachable("no connection") for number in range(1, 7)}, lost=lambda number: False)

    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), waiting_pod())
        await seconds(12)
        assert not shop.claims()
        await seconds(60)

        assert len(shop.claims()) == 1
        assert not shop.told("FailedScheduling")

    at_work(test, interceptor=faults, may_fail=True)


def test_a_claim_that_a_late_watch_has_not_told_of_is_not_forgotten() -> None:
    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), waiting_pod())
        await seconds(60)

        assert len(shop.claims()) == 1

    at_work(test, interceptor=Faults(lost=lambda number: False, late_s=120.0))


def test_an_error_of_a_write_reaches_whoever_asked_for_it() -> None:
    """Claims that could not be written are not forgotten in silence: the same pods are planned for again."""
    faults = Faults({1: Conflict("another client was faster")}, lost=lambda number: False)

    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(), waiting_pod())
        await seconds(3)

        assert [type(error) for _, _, error in shop.failures] == [Conflict]
        assert len(shop.claims()) == 1

    at_work(test, interceptor=faults, may_fail=True)


def test_a_static_pool_is_filled_after_claims_that_were_never_written_are_forgotten() -> None:
    faults = Faults({number: Unreachable("no connection") for number in range(1, 13)}, lost=lambda number: False)

    async def test(shop: Workshop) -> None:
        shop.load(ready_pool(replicas=2))
        await seconds(120)

        assert len(shop.claims()) == 2

    at_work(test, more=both, interceptor=faults, may_fail=True)
