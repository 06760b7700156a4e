"""What every API server keeps to, the pretend one as the real one.

Objects get generated names, and what is asked is never more than these objects: a real server has others.
"""

from typing import Any

import pytest
from tests.builders import node_pool, pod, requirement
from tests.contract.servers import on_every_server

from joiner.kube.client import ADDED, BOOKMARK, DELETED, MODIFIED, Client, WatchEvent
from joiner.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from joiner.model.conditions import Condition
from joiner.model.meta import KubeObject, ObjectMeta, OwnerReference, replace
from joiner.model.node import Node, NodeSpec
from joiner.model.nodeclaim import NodeClaim, NodeClaimSpec
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod, condition
from joiner.model.taints import Taint

LETTERS = set("bcdfghjklmnpqrstvwxz2456789")
FINALIZER = "example.com/waits"


def unnamed(thing: Any, **metadata: Any) -> Any:
    return replace(thing, metadata=ObjectMeta(generate_name="contract-", **metadata))


def labelled(thing: Any, **labels: str) -> Any:
    return replace(thing, metadata=replace(thing.metadata, labels={**thing.metadata.labels, **labels}))


def annotated(thing: Any, **annotations: str) -> Any:
    return replace(thing, metadata=replace(thing.metadata, annotations={**thing.metadata.annotations, **annotations}))


def held_by(thing: Any, *finalizers: str) -> Any:
    return replace(thing, metadata=replace(thing.metadata, finalizers=finalizers))


def weighted(pool: NodePool, weight: int) -> NodePool:
    return replace(pool, spec=replace(pool.spec, weight=weight))


def claim() -> NodeClaim:
    reference = NodeClassReference(group="karpenter.kwok.sh", kind="KWOKNodeClass", name="default")
    return NodeClaim(spec=NodeClaimSpec(node_class_ref=reference))


async def is_gone(client: Client, thing: KubeObject) -> bool:
    try:
        await client.get(type(thing), thing.name, thing.metadata.namespace)
    except NotFound:
        return True
    return False


async def bound_pod(client: Client, **spec: Any) -> Pod:
    """A pod that is bound by this test, and that no other scheduler looks at."""
    made = await client.create(unnamed(pod(schedulerName="contract", **spec), namespace="default"))
    await client.bind("default", made.name, node="contract-node", uid=made.metadata.uid)
    return await client.get(Pod, made.name, "default")


# -- birth ---------------------------------------------------------------------------------------------------------------


@on_every_server
async def test_a_new_object_is_given_an_identity(client: Client) -> None:
    made = (await client.create(unnamed(Node()))).metadata

    assert made.uid
    assert made.resource_version
    assert made.generation in (0, 1)  # some kinds do not count their generations
    assert made.creation_timestamp is not None
    assert made.creation_timestamp.microsecond == 0


@on_every_server
async def test_a_generated_name_ends_with_five_letters(client: Client) -> None:
    made = await client.create(unnamed(Node()))

    assert made.name.startswith("contract-")
    assert len(made.name) == len("contract-") + 5
    assert set(made.name.removeprefix("contract-")) <= LETTERS


@on_every_server
async def test_a_name_is_given_once(client: Client) -> None:
    made = await client.create(unnamed(Node()))

    with pytest.raises(AlreadyExists, match=made.name):
        await client.create(Node(metadata=ObjectMeta(name=made.name)))


@on_every_server
async def test_defaults_are_filled_in(client: Client) -> None:
    made = await client.create(unnamed(node_pool()))

    assert [budget.nodes for budget in made.spec.disruption.budgets] == ["10%"]


@on_every_server
async def test_a_status_is_not_taken_at_birth(client: Client) -> None:
    pool = unnamed(node_pool())
    made = await client.create(replace(pool, status=replace(pool.status, nodes=3)))

    assert not made.status.nodes


@on_every_server
async def test_what_is_wrong_is_told_all_at_once(client: Client) -> None:
    pool = unnamed(node_pool(requirements=[requirement("a", "In"), requirement("b", "Gt", "x")], weight=1000))

    with pytest.raises(Invalid) as refused:
        await client.create(pool)

    assert len(refused.value.causes) == 3


@on_every_server
async def test_a_label_that_is_none_is_refused(client: Client) -> None:
    with pytest.raises(Invalid, match="labels"):
        await client.create(unnamed(Node(), labels={"app": "x" * 64}))


# -- change --------------------------------------------------------------------------------------------------------------


@on_every_server
async def test_versions_grow_over_all_kinds(client: Client) -> None:
    node = await client.create(unnamed(Node()))
    pool = await client.create(unnamed(node_pool()))
    changed = await client.patch(node, labelled(node, a="1"))

    versions = [int(each.metadata.resource_version) for each in (node, pool, changed)]
    assert versions == sorted(set(versions))


@on_every_server
async def test_two_writers_of_different_fields_do_not_fight(client: Client) -> None:
    made = await client.create(unnamed(Node(), labels={"a": "1"}))

    await client.patch(made, labelled(made, b="2"))
    result = await client.patch(made, labelled(made, c="3"))

    assert result.metadata.labels == {"a": "1", "b": "2", "c": "3"}


@on_every_server
async def test_a_list_is_replaced_as_a_whole(client: Client) -> None:
    one, other = (Taint(key=key, effect="NoSchedule") for key in ("one", "other"))
    made = await client.create(unnamed(Node()))

    await client.patch(made, replace(made, spec=NodeSpec(taints=(one,))))
    result = await client.patch(made, replace(made, spec=NodeSpec(taints=(other,))))

    assert result.spec.taints == (other,)


@on_every_server
async def test_a_locked_write_on_an_old_reading_is_a_conflict(client: Client) -> None:
    old = await client.create(unnamed(Node()))
    await client.patch(old, labelled(old, a="1"))

    with pytest.raises(Conflict):
        await client.patch(old, labelled(old, b="2"), locked=True)


@on_every_server
async def test_a_write_does_not_reach_another_object_of_the_same_name(client: Client) -> None:
    old = await client.create(unnamed(Node()))
    await client.delete(Node, old.name)
    new = await client.create(replace(Node(), metadata=ObjectMeta(name=old.name)))

    with pytest.raises(Conflict):
        await client.patch(old, labelled(old, a="1"))

    assert (await client.get(Node, new.name)).metadata.labels == new.metadata.labels


@on_every_server
async def test_a_locked_write_on_a_fresh_reading_goes_through(client: Client) -> None:
    made = await client.create(unnamed(Node()))

    result = await client.patch(made, labelled(made, b="2"), locked=True)

    assert result.metadata.labels == {"b": "2"}


@on_every_server
async def test_a_write_that_changes_nothing_makes_no_version(client: Client) -> None:
    old = await client.create(unnamed(Node()))
    first = await client.patch(old, labelled(old, a="1"))

    again = await client.patch(old, labelled(old, a="1"))

    assert again == first


@on_every_server
async def test_the_generation_counts_changes_of_the_spec(client: Client) -> None:
    made = await client.create(unnamed(node_pool()))

    changed = await client.patch(made, labelled(weighted(made, 5), a="1"))
    told = await client.patch_status(changed, replace(changed, status=replace(changed.status, nodes=2)))
    named = await client.patch(told, labelled(told, b="2"))

    assert [each.metadata.generation for each in (made, changed, told, named)] == [1, 2, 2, 2]


@on_every_server
async def test_spec_and_status_are_written_apart(client: Client) -> None:
    made = await client.create(unnamed(node_pool()))
    wanted = replace(weighted(made, 5), status=replace(made.status, nodes=2))

    spec_only = await client.patch(made, wanted)
    status_only = await client.patch_status(made, replace(wanted, spec=replace(wanted.spec, weight=9)))

    assert not spec_only.status.nodes
    assert (status_only.spec.weight, status_only.status.nodes) == (5, 2)


@on_every_server
async def test_times_come_back_in_whole_seconds(client: Client) -> None:
    made = await client.create(unnamed(claim()))
    moment = made.metadata.creation_timestamp.replace(microsecond=123456)
    ready = Condition(type="Ready", status="True", reason="Ready", last_transition_time=moment)

    told = await client.patch_status(made, replace(made, status=replace(made.status, conditions=(ready,))))

    assert told.status.conditions[0].last_transition_time == moment.replace(microsecond=0)


@on_every_server
async def test_a_change_that_the_rules_forbid_is_refused(client: Client) -> None:
    made = await client.create(unnamed(claim()))
    taints = (Taint(key="a", effect="NoSchedule"),)

    with pytest.raises(Invalid, match="spec"):
        await client.patch(made, replace(made, spec=replace(made.spec, taints=taints)))


@on_every_server
async def test_a_condition_without_a_reason_is_refused(client: Client) -> None:
    made = await client.create(unnamed(claim()))
    odd = Condition(type="no type", status="True", last_transition_time=made.metadata.creation_timestamp)

    with pytest.raises(Invalid, match="conditions"):
        await client.patch_status(made, replace(made, status=replace(made.status, conditions=(odd,))))


@on_every_server
async def test_nothing_can_be_done_to_what_is_not_there(client: Client) -> None:
    missing = Node(metadata=ObjectMeta(name="contract-missing"))

    for ask in (
        client.get(Node, missing.name),
        client.patch(missing, labelled(missing, a="1")),
        client.delete(Node, missing.name),
        client.evict("default", "contract-missing"),
        client.bind("default", "contract-missing", node="a"),
    ):
        with pytest.raises(NotFound):
            await ask


# -- going ---------------------------------------------------------------------------------------------------------------


@on_every_server
async def test_what_nobody_holds_goes_at_once(client: Client) -> None:
    made = await client.create(unnamed(Node()))

    await client.delete(Node, made.name)

    assert await is_gone(client, made)


@on_every_server
async def test_what_is_held_is_marked_once_and_goes_with_the_last_hold(client: Client) -> None:
    made = await client.create(unnamed(Node(), finalizers=(FINALIZER,)))

    await client.delete(Node, made.name)
    marked = await client.get(Node, made.name)
    await client.delete(Node, made.name)
    again = await client.get(Node, made.name)
    await client.patch(again, held_by(again))

    assert marked.metadata.deletion_timestamp is not None
    assert again == marked
    assert await is_gone(client, made)


@on_every_server
async def test_nobody_takes_hold_of_what_is_going(client: Client) -> None:
    made = await client.create(unnamed(Node(), finalizers=(FINALIZER,)))
    await client.delete(Node, made.name)
    going = await client.get(Node, made.name)

    with pytest.raises(Invalid, match="finalizers"):
        await client.patch(going, held_by(going, FINALIZER, "example.com/late"))
    assert (await client.patch(going, annotated(going, a="1"))).metadata.annotations == {"a": "1"}


@on_every_server
async def test_another_object_of_the_same_name_is_not_meant(client: Client) -> None:
    made = await client.create(unnamed(Node()))

    with pytest.raises(Conflict):
        await client.delete(Node, made.name, uid="another")
    assert not await is_gone(client, made)


# -- pods ----------------------------------------------------------------------------------------------------------------


@on_every_server
async def test_a_pod_is_bound_once(client: Client) -> None:
    made = await bound_pod(client)

    found = condition(made, "PodScheduled")
    assert (made.spec.node_name, found and found.status) == ("contract-node", "True")
    with pytest.raises(Conflict):
        await client.bind("default", made.name, node="another")


@on_every_server
async def test_a_pod_without_a_node_goes_at_once(client: Client) -> None:
    made = await client.create(unnamed(pod(), namespace="default"))

    await client.delete(Pod, made.name, "default")

    assert await is_gone(client, made)


@on_every_server
async def test_a_pod_on_a_node_gets_its_grace(client: Client) -> None:
    made = await bound_pod(client, terminationGracePeriodSeconds=60)

    await client.delete(Pod, made.name, "default")
    going = (await client.get(Pod, made.name, "default")).metadata

    assert going.deletion_timestamp is not None
    assert going.deletion_grace_period_seconds == 60


@on_every_server
async def test_grace_is_only_ever_shortened(client: Client) -> None:
    made = await bound_pod(client)

    graces = []
    for asked in (None, 10, 20, None):
        await client.delete(Pod, made.name, "default", grace_period_s=asked)
        graces.append((await client.get(Pod, made.name, "default")).metadata.deletion_grace_period_seconds)
    await client.delete(Pod, made.name, "default", grace_period_s=0)

    assert graces == [30, 10, 10, 10]
    assert await is_gone(client, made)


@on_every_server
async def test_an_eviction_without_a_budget_is_a_deletion(client: Client) -> None:
    made = await bound_pod(client)

    await client.evict("default", made.name)

    assert (await client.get(Pod, made.name, "default")).metadata.deletion_grace_period_seconds == 30


@on_every_server
async def test_a_node_cannot_be_written_into_a_pod(client: Client) -> None:
    made = await client.create(unnamed(pod(), namespace="default"))

    with pytest.raises(Invalid):
        await client.patch(made, replace(made, spec=replace(made.spec, node_name="a")))


# -- lists and watches ---------------------------------------------------------------------------------------------------


@on_every_server
async def test_lists_choose_by_labels_and_fields(client: Client) -> None:
    made = await bound_pod(client)
    made = await client.patch(made, labelled(made, contract=made.name))
    other = await client.create(unnamed(pod(), namespace="default", labels={"contract": made.name}))

    mine = {"contract": made.name}
    both = await client.list(Pod, labels=mine)
    placed = await client.list(Pod, labels=mine, fields={"spec.nodeName": "contract-node"})
    named = await client.list(Pod, namespace="default", fields={"metadata.name": other.name})

    assert [each.name for each in both.items] == sorted([made.name, other.name])
    assert [each.name for each in (*placed.items, *named.items)] == [made.name, other.name]


@on_every_server
async def test_a_watch_tells_what_happens_after_a_list(client: Client) -> None:
    start = (await client.list(Node)).resource_version
    made = await client.create(unnamed(Node()))
    changed = await client.patch(made, labelled(made, a="1"))
    await client.delete(Node, made.name)

    events = await heard(client, made.name, start, 3)

    assert [event.type for event in events] == [ADDED, MODIFIED, DELETED]
    assert [event.object for event in events[:2]] == [made, changed]
    assert int(events[2].object.metadata.resource_version) > int(changed.metadata.resource_version)


@on_every_server
async def test_a_watch_goes_on_where_another_ended(client: Client) -> None:
    made = await client.create(unnamed(Node()))
    changed = await client.patch(made, labelled(made, a="1"))

    events = await heard(client, made.name, made.metadata.resource_version, 1)

    assert [event.object for event in events] == [changed]


async def heard(client: Client, name: str, version: str, count: int) -> list[WatchEvent[Node]]:
    """So many events about one node."""
    events: list[WatchEvent[Node]] = []
    async for event in client.watch(Node, version):
        if event.type != BOOKMARK and event.object.name == name:
            events.append(event)
        if len(events) == count:
            break
    return events


@on_every_server
async def test_owners_are_written_in_full(client: Client) -> None:
    with pytest.raises(Invalid, match="ownerReferences"):
        await client.create(unnamed(Node(), owner_references=(OwnerReference(kind="NodeClaim", name="a"),)))
