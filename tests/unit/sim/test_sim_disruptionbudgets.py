import asyncio
from typing import Any

import pytest
from tests.apiworld import Served, served
from tests.builders import pod

from joiner.kube.errors import EvictionBlocked, Invalid
from joiner.model.codec import decode
from joiner.model.meta import OwnerReference, replace
from joiner.model.pod import Pod, PodCondition
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.workload import Deployment, ReplicaSet


def budget(name: str = "web", app: str = "web", **spec: Any) -> PodDisruptionBudget:
    metadata = {"name": name, "namespace": "default"}
    chosen = {"selector": {"matchLabels": {"app": app}}}
    return decode({"metadata": metadata, "spec": {**chosen, **spec}}, PodDisruptionBudget)


async def workload(world: Served, replicas: int) -> OwnerReference:
    """A ReplicaSet of a Deployment, as an owner."""
    raw = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": replicas}}
    top = await world.client.create(decode(raw, Deployment))
    mine = OwnerReference(api_version="apps/v1", kind="Deployment", name="web", uid=top.metadata.uid, controller=True)
    below = decode(raw, ReplicaSet)
    below = replace(below, metadata=replace(below.metadata, owner_references=(mine,)))
    made = await world.client.create(replace(below, spec=replace(below.spec, replicas=1)))
    return replace(mine, kind="ReplicaSet", uid=made.metadata.uid)


async def running(world: Served, name: str, owner: OwnerReference | None = None, *, ready: bool = True) -> None:
    made = pod(name, labels={"app": "web"}, nodeName="node-a")
    owners = () if owner is None else (owner,)
    await world.client.create(replace(made, metadata=replace(made.metadata, owner_references=owners)))
    await set_ready(world, name, ready)


async def set_ready(world: Served, name: str, ready: bool) -> None:
    made = await world.client.get(Pod, name, "default")
    told = PodCondition(type="Ready", status="True" if ready else "False")
    await world.client.patch_status(
        made, replace(made, status=replace(made.status, phase="Running", conditions=(told,)))
    )


async def state(world: Served) -> tuple[int, int, int, int]:
    """Allowed, healthy, desired, expected."""
    await asyncio.sleep(1)
    status = world.server.get(PodDisruptionBudget, "web", "default").status
    return status.disruptions_allowed, status.current_healthy, status.desired_healthy, status.expected_pods


async def evicted(world: Served, *names: str) -> list[bool]:
    answers = []
    for name in names:
        try:
            await world.client.evict("default", name)
            answers.append(True)
        except EvictionBlocked:
            answers.append(False)
    return answers


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"minAvailable": 2}, (1, 3, 2, 3)),
        ({"minAvailable": 5}, (0, 3, 5, 3)),
        ({"minAvailable": "50%"}, (1, 3, 2, 4)),
        ({"minAvailable": "26%"}, (1, 3, 2, 4)),
        ({"maxUnavailable": 1}, (0, 3, 3, 4)),
        ({"maxUnavailable": 2}, (1, 3, 2, 4)),
        ({"maxUnavailable": "30%"}, (1, 3, 2, 4)),
        ({"maxUnavailable": "100%"}, (3, 3, 0, 4)),
    ],
    ids=str,
)
def test_the_status_of_a_budget_follows_its_pods(spec: dict[str, Any], wanted: tuple[int, ...]) -> None:
    """Three of four replicas are there and ready."""

    async def test(world: Served) -> None:
        owner = await workload(world, 4)
        await world.client.create(budget(**spec))
        for number in range(3):
            await running(world, f"web-{number}", owner)

        assert await state(world) == wanted

    served(test)


def test_a_status_follows_pods_replicas_and_the_budget_itself() -> None:
    async def test(world: Served) -> None:
        owner = await workload(world, 2)
        for number in range(2):
            await running(world, f"web-{number}", owner)
        made = await world.client.create(budget(maxUnavailable=1))
        seen = [await state(world)]
        await set_ready(world, "web-0", False)
        seen.append(await state(world))
        await world.client.patch(made, replace(made, spec=replace(made.spec, max_unavailable=2)))
        seen.append(await state(world))
        top = await world.client.get(Deployment, "web", "default")
        await world.client.patch(top, replace(top, spec=replace(top.spec, replicas=3)))
        seen.append(await state(world))

        assert seen == [(1, 2, 1, 2), (0, 1, 1, 2), (1, 1, 0, 2), (0, 1, 1, 3)]

    served(test)


def test_pods_that_are_going_are_not_healthy() -> None:
    async def test(world: Served) -> None:
        await world.client.create(budget(minAvailable=1))
        for number in range(2):
            await running(world, f"web-{number}")
        await world.client.delete(Pod, "web-0", "default")

        assert await state(world) == (0, 1, 1, 2)

    served(test)


def test_no_more_are_evicted_at_once_than_the_budget_allows() -> None:
    async def test(world: Served) -> None:
        await world.client.create(budget(minAvailable=2))
        for number in range(4):
            await running(world, f"web-{number}")

        assert await evicted(world, *(f"web-{number}" for number in range(4))) == [True, True, False, False]

    served(test)


def test_an_eviction_counts_before_the_status_is_written() -> None:
    async def test(world: Served) -> None:
        await world.client.create(budget(minAvailable=1))
        for number in range(2):
            await running(world, f"web-{number}")
        await asyncio.sleep(1)
        world.server.evict("me", "default", "web-0")
        allowed = world.server.get(PodDisruptionBudget, "web", "default").status.disruptions_allowed
        with pytest.raises(EvictionBlocked, match="default/web needs 1 healthy pods and has 1"):
            world.server.evict("me", "default", "web-1")

        assert allowed == 0

    served(test)


def test_a_pod_under_two_budgets_cannot_be_evicted() -> None:
    async def test(world: Served) -> None:
        await running(world, "web-0")
        for name in ("one", "two"):
            await world.client.create(budget(name, maxUnavailable="100%"))
        with pytest.raises(EvictionBlocked, match=r"more than one PodDisruptionBudget \(one, two\)"):
            await world.client.evict("default", "web-0")

    served(test)


def test_a_budget_of_others_has_no_say() -> None:
    async def test(world: Served) -> None:
        await running(world, "web-0")
        await world.client.create(budget(app="shop", maxUnavailable=0))

        assert await evicted(world, "web-0") == [True]

    served(test)


def test_a_pod_that_has_not_begun_may_always_go() -> None:
    async def test(world: Served) -> None:
        await world.client.create(budget(minAvailable=1))
        await world.client.create(pod("web-0", labels={"app": "web"}))

        assert await evicted(world, "web-0") == [True]

    served(test)


@pytest.mark.parametrize(
    ("policy", "healthy", "wanted"),
    [
        (None, 2, True),
        (None, 1, False),
        ("IfHealthyBudget", 1, False),
        ("AlwaysAllow", 1, True),
    ],
    ids=["enough are healthy", "too few are", "said so", "always"],
)
def test_an_unready_pod_goes_as_the_policy_says(policy: str | None, healthy: int, wanted: bool) -> None:
    async def test(world: Served) -> None:
        policies = {"unhealthyPodEvictionPolicy": policy} if policy else {}
        await world.client.create(budget(minAvailable=2, **policies))
        for number in range(healthy):
            await running(world, f"web-{number}")
        await running(world, "sick", ready=False)

        assert await evicted(world, "sick") == [wanted]

    served(test)


def test_a_quiet_budget_is_not_written() -> None:
    async def test(world: Served) -> None:
        await world.client.create(budget(minAvailable=1))
        await running(world, "web-0", await workload(world, 1))
        await state(world)
        before = len(world.trace)
        await world.client.create(pod("other"))
        top = await world.client.get(Deployment, "web", "default")
        await world.client.patch(top, replace(top, spec=replace(top.spec, replicas=5)))
        await asyncio.sleep(10)

        assert len(world.trace) == before + 2

    served(test)


def test_nobody_knows_how_many_pods_without_a_controller_there_should_be() -> None:
    async def test(world: Served) -> None:
        await world.client.create(budget(maxUnavailable=1))
        await running(world, "web-0")

        assert await state(world) == (0, 1, 0, 0)

    served(test)


def test_a_budget_that_asks_for_nobody_lets_no_unready_pod_go() -> None:
    async def test(world: Served) -> None:
        await world.client.create(budget(minAvailable=0))
        await running(world, "sick", ready=False)

        assert await evicted(world, "sick") == [False]

    served(test)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"minAvailable": "many"}, "spec.minAvailable: 'many'"),
        ({"maxUnavailable": "-5%"}, "spec.maxUnavailable: '-5%'"),
        ({"minAvailable": -1}, "spec.minAvailable: -1"),
        ({"minAvailable": 1, "maxUnavailable": 1}, "exclude each other"),
    ],
)
def test_a_budget_that_nobody_can_count_with_is_refused(spec: dict[str, Any], said: str) -> None:
    async def test(world: Served) -> None:
        with pytest.raises(Invalid) as refused:
            await world.client.create(budget(**spec))
        assert said in str(refused.value)

    served(test)
