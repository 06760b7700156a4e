"""What every cluster does besides storing: budgets, garbage collection, forgetting, bookmarks; pretend and real alike."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.builders import node_pool, pod
from tests.contract.servers import on_every_server
from tests.contract.test_client import FINALIZER, bound_pod, claim, held_by, is_gone, labelled, unnamed

from joiner.kube.client import BOOKMARK, Client
from joiner.kube.errors import Conflict, EvictionBlocked, Gone
from joiner.model.clusterobjects import Event, EventSource, ObjectReference
from joiner.model.meta import ObjectMeta, OwnerReference, replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod, PodCondition
from joiner.model.podpolicy import PodDisruptionBudget
from joiner.model.selector import LabelSelector

PATIENCE = 600


async def until(true: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait for what controllers of the cluster do in their own time."""
    for _ in range(PATIENCE):
        if await true():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"in vain: {what}")


async def running_pod(client: Client, *, ready: bool = True, **labels: str) -> Pod:
    """A pod on a node, as a kubelet would report it."""
    made = await bound_pod(client)
    made = await client.patch(made, labelled(made, **labels))
    status = "True" if ready else "False"
    told = replace(
        made.status,
        phase="Running",
        conditions=(*made.status.conditions, PodCondition(type="Ready", status=status)),
    )
    return await client.patch_status(made, replace(made, status=told))


async def budget(client: Client, app: str, pods: int, *, healthy: int = 1, **spec: Any) -> PodDisruptionBudget:
    """A budget over the pods of an app, when it has counted them."""
    made = PodDisruptionBudget(metadata=ObjectMeta(generate_name="contract-", namespace="default"))
    wanted = replace(made.spec, selector=LabelSelector(match_labels={"app": app}), **spec)
    made = await client.create(replace(made, spec=wanted))

    async def counted() -> bool:
        status = (await client.get(PodDisruptionBudget, made.name, "default")).status
        return (status.expected_pods, status.current_healthy) == (pods, healthy)

    await until(counted, f"the budget of {app} counts {healthy} of {pods} pods")
    return made


# -- evictions -----------------------------------------------------------------------------------------------------------


@on_every_server
async def test_a_budget_that_is_used_up_blocks_an_eviction(client: Client) -> None:
    one = await running_pod(client, app="blocked")
    await budget(client, "blocked", 1, min_available=1)

    with pytest.raises(EvictionBlocked):
        await client.evict("default", one.name)

    assert (await client.get(Pod, one.name, "default")).metadata.deletion_timestamp is None


@on_every_server
async def test_a_budget_lets_go_as_many_as_it_allows(client: Client) -> None:
    one = await running_pod(client, app="counted")
    other = await running_pod(client, app="counted")
    await budget(client, "counted", 2, healthy=2, min_available=1)

    await client.evict("default", one.name)
    with pytest.raises(EvictionBlocked):
        await client.evict("default", other.name)

    assert (await client.get(Pod, one.name, "default")).metadata.deletion_timestamp is not None


@on_every_server
async def test_two_budgets_over_one_pod_block_its_eviction(client: Client) -> None:
    one = await running_pod(client, app="twice")
    for _ in range(2):
        await budget(client, "twice", 1, min_available=0)

    with pytest.raises(EvictionBlocked):
        await client.evict("default", one.name)


@on_every_server
async def test_a_pod_that_is_not_ready_is_held_by_a_budget_that_lacks_pods(client: Client) -> None:
    one = await running_pod(client, app="unready", ready=False)
    await budget(client, "unready", 1, healthy=0, min_available=1)

    with pytest.raises(EvictionBlocked):
        await client.evict("default", one.name)


@on_every_server
async def test_a_pod_that_is_not_ready_goes_where_the_budget_always_allows_it(client: Client) -> None:
    one = await running_pod(client, app="always", ready=False)
    await budget(client, "always", 1, healthy=0, min_available=1, unhealthy_pod_eviction_policy="AlwaysAllow")

    await client.evict("default", one.name)

    assert (await client.get(Pod, one.name, "default")).metadata.deletion_timestamp is not None


@on_every_server
async def test_a_pod_that_waits_goes_whatever_its_budget_says(client: Client) -> None:
    one = await client.create(unnamed(pod(), namespace="default", labels={"app": "pending"}))
    await budget(client, "pending", 1, healthy=0, min_available=1)

    await client.evict("default", one.name)

    assert await is_gone(client, one)


@on_every_server
async def test_an_eviction_of_another_pod_of_the_same_name_is_refused(client: Client) -> None:
    one = await running_pod(client, app="uid")

    with pytest.raises(Conflict):
        await client.evict("default", one.name, uid="another")


# -- pods ----------------------------------------------------------------------------------------------------------------


@on_every_server
async def test_a_pod_that_has_ended_needs_no_grace(client: Client) -> None:
    one = await bound_pod(client)
    one = await client.patch_status(one, replace(one, status=replace(one.status, phase="Succeeded")))

    await client.delete(Pod, one.name, "default")

    assert await is_gone(client, one)


@on_every_server
async def test_a_pod_that_goes_is_not_bound(client: Client) -> None:
    one = await client.create(unnamed(pod(), namespace="default", finalizers=(FINALIZER,)))
    await client.delete(Pod, one.name, "default")

    with pytest.raises(Conflict):
        await client.bind("default", one.name, node="contract-node")

    going = await client.get(Pod, one.name, "default")
    await client.patch(going, held_by(going))
    assert await is_gone(client, one)


@on_every_server
async def test_a_pod_behind_a_gate_is_not_bound(client: Client) -> None:
    one = await client.create(unnamed(pod(schedulingGates=[{"name": "example.com/waits"}]), namespace="default"))

    with pytest.raises(Conflict):
        await client.bind("default", one.name, node="contract-node")


# -- going ---------------------------------------------------------------------------------------------------------------


@on_every_server
async def test_a_deletion_that_is_held_counts_as_a_change(client: Client) -> None:
    made = await client.create(unnamed(claim(), finalizers=(FINALIZER,)))

    await client.delete(NodeClaim, made.name)
    going = await client.get(NodeClaim, made.name)
    await client.patch(going, held_by(going))

    assert (made.metadata.generation, going.metadata.generation) == (1, 2)
    assert going.metadata.deletion_grace_period_seconds == 0


@on_every_server
async def test_what_is_owned_goes_with_its_owner(client: Client) -> None:
    owner = await client.create(unnamed(node_pool()))
    reference = OwnerReference(
        api_version=owner.api_version(), kind=owner.kind, name=owner.name, uid=owner.metadata.uid
    )
    owned = await client.create(unnamed(claim(), owner_references=(reference,)))
    held = await client.create(unnamed(claim(), owner_references=(reference,), finalizers=(FINALIZER,)))

    await client.delete(NodePool, owner.name)

    await until(lambda: is_gone(client, owned), "the claim of a pool that is gone goes")

    async def going() -> bool:
        return (await client.get(NodeClaim, held.name)).metadata.deletion_timestamp is not None

    await until(going, "a claim that is held is marked")
    await client.patch(held, held_by(held))
    assert await is_gone(client, held)


@on_every_server
async def test_a_write_to_an_object_that_was_made_anew_is_refused(client: Client) -> None:
    first = await client.create(unnamed(Node()))
    await client.delete(Node, first.name)
    second = await client.create(Node(metadata=ObjectMeta(name=first.name)))

    with pytest.raises(Conflict):
        await client.patch(first, labelled(first, a="1"))

    assert (await client.get(Node, first.name)).metadata.labels == second.metadata.labels


@on_every_server
async def test_a_label_can_be_taken_away(client: Client) -> None:
    made = await client.create(unnamed(Node(), labels={"a": "1", "b": "2"}))

    changed = await client.patch(made, replace(made, metadata=replace(made.metadata, labels={"b": "2"})))

    assert changed.metadata.labels == {"b": "2"}


@on_every_server
async def test_an_event_about_a_node_lies_in_the_default_namespace(client: Client) -> None:
    node = await client.create(unnamed(Node()))
    about = ObjectReference(api_version="v1", kind="Node", name=node.name, uid=node.metadata.uid)
    told = Event(
        metadata=ObjectMeta(generate_name="contract-", namespace="default"),
        involved_object=about,
        reason="Contract",
        message="first",
        type="Normal",
        count=1,
        source=EventSource(component="karpenter"),
    )

    made = await client.create(told)
    again = await client.patch(made, replace(made, count=2))

    assert (again.count, again.source.component) == (2, "karpenter")


# -- watches -------------------------------------------------------------------------------------------------------------


@on_every_server(history=2)
async def test_a_watch_from_forgotten_times_is_told_so(client: Client) -> None:
    for _ in range(6):
        await client.create(unnamed(claim()))

    with pytest.raises(Gone):
        async for _ in client.watch(NodeClaim, "1"):  # from before there was such a kind
            pass


@on_every_server(patient=True, bookmark_every=5)
async def test_a_bookmark_tells_how_far_the_history_has_come(client: Client) -> None:
    start = (await client.list(Node)).resource_version
    last = await client.create(unnamed(Node()))
    for _ in range(5):
        await client.create(unnamed(claim()))

    async for event in client.watch(Node, start):
        if event.type == BOOKMARK:
            assert int(event.object.metadata.resource_version) >= int(last.metadata.resource_version)
            assert not event.object.name
            return
    raise AssertionError("the watch ended without a bookmark")
