import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.apiworld import Served, served
from tests.builders import node_pool, pod, requirement

from joiner.kube.client import Key
from joiner.kube.errors import AlreadyExists, Conflict, Invalid
from joiner.model.clusterobjects import Event, Lease, LeaseSpec, ObjectReference
from joiner.model.meta import ObjectMeta, OwnerReference, replace
from joiner.model.microtime import MicroTime
from joiner.model.node import Node, NodeCondition, NodeStatus
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod, PodStatus
from joiner.model.workload import ReplicaSet
from joiner.sim.apiserver.server import Write
from joiner.sim.virtualtime import EPOCH


def owner(thing: Any, uid: str = "") -> OwnerReference:
    return OwnerReference(
        api_version=thing.api_version(),
        kind=thing.kind,
        name=thing.name,
        uid=uid or thing.metadata.uid,
        controller=True,
    )


def owned(name: str, *owners: OwnerReference, **metadata: Any) -> ReplicaSet:
    return ReplicaSet(metadata=ObjectMeta(name=name, namespace="default", owner_references=owners, **metadata))


def test_every_accepted_write_is_told_with_its_actor() -> None:
    async def test(world: Served) -> None:
        made = await world.client.create(Node(metadata=ObjectMeta(name="a")))
        with pytest.raises(AlreadyExists):
            await world.client.create(made)
        other = world.server.client("kubelet")
        ready = NodeStatus(conditions=(NodeCondition(type="Ready", status="True"),))
        await other.patch_status(made, replace(made, status=ready))
        await other.delete(Node, "a")

        told = [line.split()[1:] for line in world.trace.last]
        assert told == [
            ["test", "create", "Node", "a"],
            ["kubelet", "status", "Node", "a", "status.conditions[Ready=True]"],
            ["kubelet", "remove", "Node", "a"],
        ]

    served(test)


def test_observers_see_every_step() -> None:
    async def test(world: Served) -> None:
        seen: list[Write] = []
        world.server.observers.append(seen.append)
        made = await world.client.create(pod())
        await world.client.bind("default", "web", node="a")
        await world.client.delete(Pod, "web", "default", grace_period_s=0)

        assert [(write.verb, write.before is None, write.after is None) for write in seen] == [
            ("create", True, False),
            ("bind", False, False),
            ("remove", False, True),
        ]
        assert seen[1].before == made

    served(test)


def test_what_a_world_begins_with_keeps_its_status() -> None:
    async def test(world: Served) -> None:
        world.server.load([replace(pod(), status=PodStatus(phase="Running"))])

        assert world.server.get(Pod, "web", "default").status.phase == "Running"

    served(test)


def test_the_status_at_birth_depends_on_the_kind() -> None:
    async def test(world: Served) -> None:
        running = await world.client.create(replace(pod(), status=PodStatus(phase="Running")))
        ready = NodeStatus(conditions=(NodeCondition(type="Ready", status="True"),))
        node = await world.client.create(Node(metadata=ObjectMeta(name="a"), status=ready))

        assert running.status == PodStatus(phase="Pending")
        assert node.status == ready

    served(test)


def test_times_are_whole_seconds_from_birth() -> None:
    async def test(world: Served) -> None:
        moment = EPOCH + timedelta(seconds=1.5)
        ready = NodeCondition(type="Ready", status="True", last_transition_time=moment)
        node = await world.client.create(Node(metadata=ObjectMeta(name="a"), status=NodeStatus(conditions=(ready,))))

        assert node.status.conditions[0].last_transition_time == EPOCH + timedelta(seconds=1)

    served(test)


def test_a_status_that_is_so_already_is_not_written_again() -> None:
    async def test(world: Served) -> None:
        old = await world.client.create(pod())
        running = replace(old, status=PodStatus(phase="Running"))
        first = await world.client.patch_status(old, running)
        again = await world.client.patch_status(old, running)

        assert again is first

    served(test)


def test_a_kind_without_a_status_has_none_to_write() -> None:
    async def test(world: Served) -> None:
        made = await world.client.create(Lease(metadata=ObjectMeta(name="a", namespace="default")))
        with pytest.raises(Invalid, match="no status"):
            await world.client.patch_status(made, replace(made, spec=LeaseSpec(holder_identity="me")))

    served(test)


def test_a_lease_keeps_its_microseconds() -> None:
    async def test(world: Served) -> None:
        moment = MicroTime.of(EPOCH + timedelta(microseconds=5))
        lease = Lease(metadata=ObjectMeta(name="a", namespace="default"), spec=LeaseSpec(renew_time=moment))

        assert (await world.client.create(lease)).spec.renew_time == moment

    served(test)


def test_a_namespaced_object_without_one_is_in_the_default_namespace() -> None:
    async def test(world: Served) -> None:
        made = await world.client.create(replace(pod(), metadata=ObjectMeta(name="web")))

        assert made.metadata.namespace == "default"

    served(test)


def test_the_pool_of_a_node_is_not_in_a_namespace() -> None:
    async def test(world: Served) -> None:
        pool = node_pool()
        with pytest.raises(Invalid, match="in no namespace"):
            await world.client.create(replace(pool, metadata=replace(pool.metadata, namespace="default")))

    served(test)


def test_a_pod_needs_a_container() -> None:
    async def test(world: Served) -> None:
        with pytest.raises(Invalid, match="container"):
            await world.client.create(Pod(metadata=ObjectMeta(name="a")))

    served(test)


def test_a_pool_that_only_controllers_find_wrong_may_enter() -> None:
    async def test(world: Served) -> None:
        made = await world.client.create(
            node_pool(requirements=[requirement("karpenter.sh/capacity-type", "In", "nonsense")])
        )

        assert isinstance(made, NodePool)

    served(test)


def test_deleting_moves_the_generation_once() -> None:
    async def test(world: Served) -> None:
        made = await world.client.create(pod(nodeName="a"))
        for grace in (None, 10, 5):
            await world.client.delete(Pod, "web", "default", grace_period_s=grace)

        assert world.server.get(Pod, "web", "default").metadata.generation == made.metadata.generation + 1

    served(test)


def test_the_hour_of_a_pod_is_when_its_grace_is_over() -> None:
    async def test(world: Served) -> None:
        await world.client.create(pod(nodeName="a"))
        hours = []
        for grace in (None, 10):
            world.server.delete("test", Pod, "web", "default", grace_s=grace)
            hours.append(world.server.get(Pod, "web", "default").metadata.deletion_timestamp)

        assert hours == [EPOCH + timedelta(seconds=30), EPOCH + timedelta(seconds=10)]

    served(test)


def test_a_pod_that_has_ended_needs_no_grace() -> None:
    async def test(world: Served) -> None:
        await world.client.create(pod())
        await world.client.bind("default", "web", node="a")
        bound = await world.client.get(Pod, "web", "default")
        await world.client.patch_status(bound, replace(bound, status=replace(bound.status, phase="Succeeded")))
        await world.client.delete(Pod, "web", "default")

        assert world.server.find(Pod, "web", "default") is None

    served(test)


def test_a_held_pod_goes_when_both_its_grace_and_its_finalizer_are_over() -> None:
    async def test(world: Served) -> None:
        made = pod()
        await world.client.create(replace(made, metadata=replace(made.metadata, finalizers=("example.com/waits",))))
        await world.client.bind("default", "web", node="a")
        await world.client.delete(Pod, "web", "default")
        await world.client.delete(Pod, "web", "default", grace_period_s=0)
        held = await world.client.get(Pod, "web", "default")
        await world.client.patch(held, replace(held, metadata=replace(held.metadata, finalizers=())))

        assert held.metadata.deletion_grace_period_seconds == 0
        assert world.server.find(Pod, "web", "default") is None

    served(test)


def test_a_pod_whose_finalizer_goes_first_still_has_its_grace() -> None:
    async def test(world: Served) -> None:
        made = pod()
        await world.client.create(replace(made, metadata=replace(made.metadata, finalizers=("example.com/waits",))))
        await world.client.bind("default", "web", node="a")
        await world.client.delete(Pod, "web", "default")
        held = await world.client.get(Pod, "web", "default")
        await world.client.patch(held, replace(held, metadata=replace(held.metadata, finalizers=())))

        assert world.server.get(Pod, "web", "default").metadata.deletion_grace_period_seconds == 30

    served(test)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"schedulingGates": [{"name": "example.com/wait"}]}, "gates"),
        ({"nodeName": "b"}, "already on node b"),
    ],
    ids=["gated", "bound"],
)
def test_not_every_pod_can_be_bound(change: dict[str, Any], match: str) -> None:
    async def test(world: Served) -> None:
        await world.client.create(pod(**change))
        with pytest.raises(Conflict, match=match):
            await world.client.bind("default", "web", node="a")

    served(test)


def test_events_are_found_by_what_they_are_about() -> None:
    async def test(world: Served) -> None:
        for number, about in enumerate(("a", "b", "a")):
            metadata = ObjectMeta(name=f"event-{number}", namespace="default")
            await world.client.create(Event(metadata=metadata, involved_object=ObjectReference(name=about)))
        found = await world.client.list(Event, fields={"involvedObject.name": "a"})
        with pytest.raises(Invalid, match=r"spec\.color"):
            await world.client.list(Event, fields={"spec.color": "red"})

        assert [each.name for each in found.items] == ["event-0", "event-2"]

    served(test)


# -- garbage -------------------------------------------------------------------------------------------------------------


def test_what_belongs_to_an_owner_goes_after_it_all_the_way_down() -> None:
    async def test(world: Served) -> None:
        top = await world.client.create(owned("top"))
        middle = await world.client.create(owned("middle", owner(top)))
        await world.client.create(owned("bottom", owner(middle)))
        await asyncio.sleep(10)
        assert len(list(world.server.objects(ReplicaSet))) == 3
        await world.client.delete(ReplicaSet, "top", "default")
        await asyncio.sleep(10)

        assert list(world.server.objects(ReplicaSet)) == []

    served(test)


def test_who_has_another_owner_stays_and_forgets_the_one_that_went() -> None:
    async def test(world: Served) -> None:
        one = await world.client.create(owned("one"))
        other = await world.client.create(owned("other"))
        await world.client.create(owned("both", owner(one), owner(other)))
        await world.client.delete(ReplicaSet, "one", "default")
        await asyncio.sleep(10)

        assert world.server.get(ReplicaSet, "both", "default").metadata.owner_references == (owner(other),)

    served(test)


def test_who_belongs_to_nobody_that_ever_was_goes() -> None:
    async def test(world: Served) -> None:
        await world.client.create(owned("orphan", owner(owned("never"), uid="never-was")))
        await asyncio.sleep(10)

        assert world.server.find(ReplicaSet, "orphan", "default") is None

    served(test)


def test_an_owner_that_is_only_going_keeps_what_it_has() -> None:
    async def test(world: Served) -> None:
        held = await world.client.create(owned("held", finalizers=("example.com/waits",)))
        await world.client.create(owned("below", owner(held)))
        await world.client.delete(ReplicaSet, "held", "default")
        await asyncio.sleep(10)

        assert world.server.find(ReplicaSet, "below", "default") is not None

    served(test)


def test_an_adopted_object_goes_with_who_adopted_it() -> None:
    async def test(world: Served) -> None:
        one = await world.client.create(owned("one"))
        loose = await world.client.create(owned("loose"))
        adopted = replace(loose, metadata=replace(loose.metadata, owner_references=(owner(one),)))
        await world.client.patch(loose, adopted)
        await world.client.delete(ReplicaSet, "one", "default")
        await asyncio.sleep(10)

        assert world.server.find(ReplicaSet, "loose", "default") is None

    served(test)


def test_a_list_of_the_past_is_what_was_then() -> None:
    async def test(world: Served) -> None:
        first = await world.client.create(owned("first"))
        second = await world.client.create(owned("second"))
        then = world.server.version
        await world.client.delete(ReplicaSet, "first", "default")
        labelled = replace(second.metadata, labels={"a": "1"})
        await world.client.patch(second, replace(second, metadata=labelled))
        await world.client.create(owned("third"))

        past = world.server.list(ReplicaSet, version=then)
        assert past.items == (first, second)
        assert past.resource_version == str(then)
        assert [each.name for each in world.server.list(ReplicaSet).items] == ["second", "third"]
        assert world.server.list(ReplicaSet, version=0).items == ()

    served(test)


def test_keys_are_written_as_people_write_them() -> None:
    assert (str(Key("default", "web")), str(Key("", "node-a"))) == ("default/web", "node-a")
