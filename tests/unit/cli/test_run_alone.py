"""Two controllers with leases of their own would both buy nodes: the second does not start."""

import json
from random import Random
from typing import Any

import pytest
from tests.apiworld import Intercepting, Served, served

from joiner.cli.run import checks
from joiner.cli.run.settings import StartProblem
from joiner.kube.election import Election
from joiner.kube.errors import Forbidden
from joiner.kube.tasks import Tasks
from joiner.observe.logs import Log

NAME = "karpenter-leader-election"


def another(world: Served, namespace: str) -> Election:
    return Election(
        world.server.client("another"),
        namespace=namespace,
        name=NAME,
        identity="karpenter-abc_1",
        clock=world.clock,
        random=Random(1),
    )


async def looked(world: Served, interceptor: Any = None, namespace: str = "kube-system") -> list[dict[str, Any]]:
    lines: list[str] = []
    log = Log(world.clock, write=(lines.append,))
    await checks.alone(world.server.client("joiner", interceptor=interceptor), namespace=namespace, name=NAME, log=log)
    return [json.loads(line) for line in lines]


def test_a_holder_that_lives_in_another_namespace_is_named_with_what_to_do() -> None:
    async def test(world: Served) -> None:
        other, tasks = another(world, "karpenter"), Tasks()
        await other.acquire()
        tasks.start("other", other.hold())
        try:
            await looked(world)
        finally:
            await tasks.close()

    with pytest.raises(StartProblem) as told:
        served(test)

    assert "karpenter-abc_1 already works on this cluster with the lease karpenter/karpenter-leader-election" in str(
        told.value
    )
    assert "stop it, or stand by for it with --leader-election-namespace=karpenter" in str(told.value)


def test_a_lease_that_a_killed_controller_left_is_no_obstacle() -> None:
    async def test(world: Served) -> list[dict[str, Any]]:
        await another(world, "karpenter").acquire()
        return await looked(world)

    assert served(test) == []


def test_a_holder_of_the_same_lease_is_waited_for_and_no_obstacle() -> None:
    async def test(world: Served) -> float:
        other, tasks = another(world, "kube-system"), Tasks()
        await other.acquire()
        tasks.start("other", other.hold())
        before = world.clock.monotonic()
        await looked(world)
        await tasks.close()
        return world.clock.monotonic() - before

    assert served(test) < 1.0  # virtual seconds: the way of one request


def test_where_leases_may_not_be_listed_it_is_told_and_the_start_goes_on() -> None:
    [line] = served(lambda world: looked(world, Intercepting(before=Forbidden("leases may not be listed"))))

    assert line["message"] == "it is not known whether another controller works on this cluster"
    assert line["reason"] == "leases may not be listed"


def test_without_a_lease_of_its_own_no_other_may_work_on_the_cluster() -> None:
    async def test(world: Served) -> None:
        other, tasks = another(world, "kube-system"), Tasks()
        await other.acquire()
        tasks.start("other", other.hold())
        try:
            await looked(world, namespace="")
        finally:
            await tasks.close()

    with pytest.raises(StartProblem, match="already works on this cluster"):
        served(test)
