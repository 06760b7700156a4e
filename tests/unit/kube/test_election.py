"""Leader election, on virtual time: one leads, and one that lost its lease stops before another begins."""

import asyncio
from random import Random
from typing import Any

import pytest
from tests.apiworld import Intercepting, Served, served

from joiner.kube.election import LEASE_S, RENEW_WITHIN_S, Election, LeadershipLost, NotLeading
from joiner.kube.errors import Unreachable
from joiner.kube.tasks import Tasks
from joiner.model.clusterobjects import Lease
from joiner.sim.apiserver.client import Call


def replica(world: Served, name: str, interceptor: Any = None, told: Any = None) -> Election:
    client = world.server.client(name, interceptor=interceptor)
    return Election(
        client,
        namespace="kube-system",
        name="karpenter-leader-election",
        identity=name,
        clock=world.clock,
        random=Random(name),
        told=told or (lambda holder: None),
    )


def holder(world: Served) -> str | None:
    return world.server.get(Lease, "karpenter-leader-election", "kube-system").spec.holder_identity


def test_the_first_leads_and_the_second_waits_until_it_gives_up() -> None:
    async def test(world: Served) -> None:
        heard: list[str] = []
        one, two = replica(world, "one"), replica(world, "two", told=heard.append)
        await one.acquire()
        tasks = Tasks()
        tasks.start("one", one.hold())
        tasks.start("two", two.acquire())
        await asyncio.sleep(120)
        assert (one.leads, two.leads, holder(world)) == (True, False, "one")
        await tasks.close()

        await one.release()
        assert not one.leads
        start = world.clock.monotonic()
        await two.acquire()

        assert world.clock.monotonic() - start < 3
        assert (holder(world), heard) == ("two", ["one", "two"])
        assert world.server.get(Lease, "karpenter-leader-election", "kube-system").spec.lease_transitions == 1

    served(test)


def test_a_leader_that_vanishes_is_followed_after_its_lease() -> None:
    async def test(world: Served) -> float:
        one, two = replica(world, "one"), replica(world, "two")
        await one.acquire()
        start = world.clock.monotonic()
        await two.acquire()
        return world.clock.monotonic() - start

    assert LEASE_S <= served(test) <= LEASE_S + 5


@pytest.mark.parametrize("failing", ["before", "after"])
def test_a_leader_that_cannot_renew_stops_writing_before_another_may_lead(failing: str) -> None:
    """Whether the renewals do not arrive, or only their answers do not."""

    async def test(world: Served) -> tuple[float, float, float]:
        broken = Intercepting()
        one, two = replica(world, "one", broken), replica(world, "two")
        await one.acquire()
        broken._answers[failing] = Unreachable("no answer")
        start, stopped = world.clock.monotonic(), 0.0

        async def follow() -> None:
            await two.acquire()

        tasks = Tasks()
        tasks.start("two", follow())
        with pytest.raises(LeadershipLost):
            await one.hold()
        stopped = world.clock.monotonic() - start
        with pytest.raises(NotLeading):
            one.permit()
        while not two.leads:
            await asyncio.sleep(0.1)
        took = world.clock.monotonic() - start
        await tasks.close()
        return stopped, took, start

    stopped, took, _ = served(test)
    assert stopped <= RENEW_WITHIN_S + 2.5
    assert took >= LEASE_S - 1
    assert stopped < took


def test_a_lease_counts_from_the_moment_it_was_asked_for_and_not_from_a_late_answer() -> None:
    class Late(Intercepting):
        def after(self, call: Call) -> float:
            return 4.0 if call.kind is Lease else 0.0  # once for the look, once for the write

    async def test(world: Served) -> None:
        one = replica(world, "one", Late())
        await one.acquire()

        assert one.permit() <= LEASE_S - 8
        await asyncio.sleep(RENEW_WITHIN_S - 8)
        assert not one.leads

    served(test)


def test_a_write_may_last_no_longer_than_the_lease_does() -> None:
    async def test(world: Served) -> None:
        one = replica(world, "one")
        with pytest.raises(NotLeading):
            one.permit()
        await one.acquire()
        await asyncio.sleep(8)
        assert 6 <= one.permit() <= LEASE_S - 8
        await asyncio.sleep(RENEW_WITHIN_S - 8)
        with pytest.raises(NotLeading):
            one.permit()

    served(test)


def test_a_process_that_was_stopped_for_a_minute_writes_nothing_when_it_wakes() -> None:
    async def test(world: Served) -> None:
        one, two = replica(world, "one"), replica(world, "two")
        await one.acquire()
        await two.acquire()  # one does nothing meanwhile, as a process that is stopped
        with pytest.raises(NotLeading):
            one.permit()
        with pytest.raises(LeadershipLost):
            await one.hold()
        assert holder(world) == "two"
        await one.release()
        assert holder(world) == "two"

    served(test)


def test_why_the_lease_cannot_be_had_is_told_once_and_is_the_reason_of_its_loss() -> None:
    async def test(world: Served) -> tuple[list[str], str]:
        broken = Intercepting()
        troubles: list[str] = []
        one = replica(world, "one", broken)
        one._troubled = troubles.append
        await one.acquire()
        broken._answers["before"] = Unreachable("the token has expired")
        with pytest.raises(LeadershipLost) as lost:
            await one.hold()
        return troubles, str(lost.value)

    troubles, why = served(test)

    assert troubles == ["the token has expired"]
    assert why == "the lease kube-system/karpenter-leader-election could not be renewed in time: the token has expired"


def test_who_took_the_lease_is_told() -> None:
    async def test(world: Served) -> str:
        one, two = replica(world, "one"), replica(world, "two")
        await one.acquire()
        await two.acquire()
        with pytest.raises(LeadershipLost) as lost:
            await one.hold()
        return str(lost.value)

    assert served(test).endswith("was taken by two")
