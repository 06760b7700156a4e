import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.builders import node_pool

from joiner.catalog.market import Option
from joiner.clock import SystemClock
from joiner.cloud.errors import CloudError, InstanceNotFound, InsufficientCapacity, Transient
from joiner.cloud.kwok import supply
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.kwok.provider import KwokProvider, connect
from joiner.cloud.provider import K
from joiner.cloud.sources import ec2
from joiner.kube.errors import Invalid, KubeError, Unreachable
from joiner.kube.tasks import Tasks
from joiner.model import labels, resources
from joiner.model.codec import decode
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.taints import UNREGISTERED
from joiner.sim.apiserver.client import Call, NoInterceptor
from joiner.sim.apiserver.server import ApiServer
from joiner.sim.trace import Trace
from joiner.sim.virtualtime import VirtualClock, VirtualLoop, run

TYPE = "c-1x-amd64-linux"


class Spoiler(NoInterceptor):
    """Loses the next so many requests, or answers, of one verb."""

    def __init__(self) -> None:
        self.verb, self.side, self.left = "", "", 0
        self.error: KubeError = Unreachable("no answer")

    def lose(self, verb: str, times: int = 1, side: str = "after") -> None:
        self.verb, self.side, self.left = verb, side, times

    def before(self, call: Call) -> float:
        return self._spoil("before", call)

    def after(self, call: Call) -> float:
        return self._spoil("after", call)

    def _spoil(self, side: str, call: Call) -> float:
        if (side, call.verb) == (self.side, self.verb) and self.left:
            self.left -= 1
            raise self.error
        return 0.0


class World:
    """The provider over a pretend API server."""

    def __init__(self, loop: VirtualLoop) -> None:
        clock = VirtualClock(loop)
        self.spec: dict[str, Any] = {}
        self.server = ApiServer(clock, Random(1), Trace())
        self.spoiler = Spoiler()
        self.tasks = Tasks()
        self.clock = clock
        self.provider = self.connect()

    def connect(self) -> KwokProvider:
        client = self.server.client("joiner", interceptor=self.spoiler)
        return connect(node_classes=self, clock=self.clock, client=client, tasks=self.tasks)

    def get(self, kind: type[K], name: str) -> K | None:
        found = decode({"metadata": {"name": name}, "spec": self.spec}, KWOKNodeClass)
        return found if isinstance(found, kind) else None

    async def options(self) -> list[Option]:
        types = await self.provider.instance_types(node_pool())
        return [Option(name=each.name, offering=o) for each in types if each.name == TYPE for o in each.offerings]

    def nodes(self) -> list[str]:
        return [each.name for each in self.server.objects(Node)]


def claim(uid: str = "one", **status: str) -> NodeClaim:
    raw = {
        "metadata": {"name": "claim", "uid": uid, "labels": {"example.com/floor": "2"}},
        "spec": {
            "nodeClassRef": {"group": KWOKNodeClass.group, "kind": KWOKNodeClass.kind, "name": "default"},
            "requirements": [{"key": "example.com/team", "operator": "In", "values": ["a"]}],
            "resources": {"requests": {"cpu": "500m", "example.com/gpu": "1"}},
        },
        "status": status,
    }
    return decode(raw, NodeClaim)


def in_world(tell: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def test() -> None:
        run(lambda loop: tell(World(loop)))

    return test


@in_world
async def test_the_node_carries_what_is_settled_and_waits_to_be_registered(world: World) -> None:
    bought = await world.provider.create(claim(), await world.options())

    (node,) = world.server.objects(Node)
    own = node.metadata.labels
    assert node.spec.provider_id == bought.provider_id == f"kwok://{node.name}"
    assert node.spec.taints == (UNREGISTERED,)
    assert (own[labels.INSTANCE_TYPE], own[labels.HOSTNAME]) == (TYPE, "claim")
    assert (own["example.com/team"], own["example.com/floor"]) == ("a", "2")
    assert own["kwok.x-k8s.io/node"] == node.metadata.annotations["kwok.x-k8s.io/node"] == "fake"
    assert node.status.allocatable["cpu"] == resources.of(cpu="900m")["cpu"]
    assert node.status.capacity["example.com/gpu"] == 1000


@in_world
async def test_a_node_joins_after_the_delay_and_counts_from_the_start(world: World) -> None:
    world.spec = {"nodeRegistrationDelay": "5m"}

    bought = await world.provider.create(claim(), await world.options())

    assert [each.provider_id for each in await world.provider.list()] == [bought.provider_id]
    assert (await world.provider.create(claim(), await world.options())).provider_id == bought.provider_id
    await asyncio.sleep(299)
    assert world.nodes() == []
    await asyncio.sleep(2)
    assert len(world.nodes()) == len(await world.provider.list()) == 1


@in_world
async def test_a_machine_that_is_deleted_on_its_way_never_joins(world: World) -> None:
    world.spec = {"nodeRegistrationDelay": "5m"}
    bought = await world.provider.create(claim(), await world.options())

    with pytest.raises(InstanceNotFound) as gone:
        await world.provider.delete(bought.provider_id)
    assert gone.value.certain
    await asyncio.sleep(600)

    assert world.nodes() == []


@pytest.mark.parametrize("restarted", [False, True], ids=["by the same process", "by the next one"])
@pytest.mark.parametrize("side", ["before", "after"], ids=["request", "answer"])
def test_a_purchase_whose_request_or_answer_was_lost_is_made_once(side: str, restarted: bool) -> None:
    async def tell(world: World) -> None:
        options = await world.options()
        world.spoiler.lose("create", side=side)
        with pytest.raises(Transient, match="no answer"):
            await world.provider.create(claim(), options)

        if restarted:
            world.provider = world.connect()
        bought = await world.provider.create(claim(), options)

        assert [f"kwok://{name}" for name in world.nodes()] == [bought.provider_id]

    run(lambda loop: tell(World(loop)))


@in_world
async def test_a_late_node_is_tried_until_the_server_answers(world: World) -> None:
    world.spec = {"nodeRegistrationDelay": "1m"}
    await world.provider.create(claim(), await world.options())
    world.spoiler.lose("create", times=3)

    await asyncio.sleep(70)

    assert len(world.nodes()) == 1
    assert world.spoiler.left < 3


@in_world
async def test_a_machine_whose_node_the_cluster_turns_away_runs_and_does_not_join(world: World) -> None:
    options = await world.options()
    world.spoiler.error = Invalid("no such nodes here")
    world.spoiler.lose("create", times=30, side="before")

    bought = await world.provider.create(claim(), options)

    await asyncio.sleep(20)
    assert (world.nodes(), (await world.provider.get(bought.provider_id)).claim_name) == ([], "claim")
    await asyncio.sleep(20)
    assert [f"kwok://{name}" for name in world.nodes()] == [bought.provider_id]


@in_world
async def test_another_claim_of_the_same_name_gets_another_machine(world: World) -> None:
    options = await world.options()

    first, second = [await world.provider.create(claim(uid), options) for uid in ("one", "two")]

    assert first.provider_id != second.provider_id


@in_world
async def test_a_full_reservation_is_seen_by_a_process_that_just_started(world: World) -> None:
    world.spec = {"capacityReservations": [{"id": "cr", "instanceType": TYPE, "zone": "test-zone-a", "count": 1}]}
    reserved = [each for each in await world.options() if each.offering.reserved]
    await world.provider.create(claim(), reserved)

    world.provider = world.connect()

    with pytest.raises(InsufficientCapacity):
        await world.provider.create(claim("two"), reserved)


@in_world
async def test_a_node_that_is_held_while_it_is_deleted_is_gone_and_listed_as_going(world: World) -> None:
    bought = await world.provider.create(claim(), await world.options())
    (node,) = world.server.objects(Node)
    held = replace(node, metadata=replace(node.metadata, finalizers=(labels.TERMINATION_FINALIZER,)))
    world.server.patch("user", node, held)

    with pytest.raises(InstanceNotFound):
        await world.provider.delete(bought.provider_id)

    with pytest.raises(InstanceNotFound):
        await world.provider.get(bought.provider_id)
    assert [each.terminating for each in await world.provider.list()] == [True]


@in_world
async def test_a_claim_without_a_node_cannot_be_rebooted_yet(world: World) -> None:
    bought = await world.provider.create(claim(), await world.options())

    with pytest.raises(Transient, match="no Node yet"):
        await world.provider.reboot(claim(providerID=bought.provider_id), "op")


class NoClasses:
    def get(self, kind: type[K], name: str) -> K | None:
        return None


def test_without_an_api_server_nothing_can_be_bought_and_that_is_said() -> None:
    provider = connect(node_classes=NoClasses(), clock=SystemClock())

    with pytest.raises(CloudError, match="without a Kubernetes API"):
        asyncio.run(provider.list())


def test_a_machine_of_ec2_carries_the_names_of_eks_auto_mode_too() -> None:
    machine = next(each for each in ec2.catalogue("us-east-1").types if each.name == "m5.large")

    own = supply.settled_labels(machine, machine.offerings[0])

    assert own["eks.amazonaws.com/instance-cpu"] == own["karpenter.k8s.aws/instance-cpu"] == "2"


class OneClass:
    """The only NodeClass there is; tests put another one in its place."""

    def __init__(self, **spec: Any) -> None:
        self.write(**spec)

    def write(self, **spec: Any) -> None:
        self.only = decode({"metadata": {"name": "default"}, "spec": spec}, KWOKNodeClass)

    def get(self, kind: type[K], name: str) -> K | None:
        return self.only if isinstance(self.only, kind) and name == "default" else None


def test_a_machine_in_a_reservation_that_its_class_dropped_has_drifted() -> None:
    reservation = {"id": "cr-1", "instanceType": "m-2x-amd64-linux", "zone": "test-zone-a", "count": 2}
    classes = OneClass(capacityReservations=[reservation])
    provider = KwokProvider(classes, SystemClock())
    own = {labels.CAPACITY_TYPE: labels.RESERVED, provider.vocabulary().reservation_id: "cr-1"}
    reserved = replace(claim(), metadata=replace(claim().metadata, labels=own))
    before = provider.generation(node_pool())

    assert asyncio.run(provider.drift_reason(reserved)) == ""
    classes.write(capacityReservations=[{**reservation, "id": "cr-2"}])

    assert asyncio.run(provider.drift_reason(reserved)) == "CapacityReservationDrift"
    assert asyncio.run(provider.drift_reason(claim())) == ""
    assert provider.generation(node_pool()) != before


def test_a_catalogue_file_that_is_written_again_moves_the_generation(tmp_path: Path) -> None:
    file = tmp_path / "machines.json"
    file.write_text("[]")
    provider = KwokProvider(OneClass(instanceTypes=str(file)), SystemClock())
    seen = [provider.generation(node_pool()), provider.generation(node_pool())]
    file.write_text("[ ]")
    seen.append(provider.generation(node_pool()))
    file.unlink()
    seen.append(provider.generation(node_pool()))

    assert seen[0] == seen[1]
    assert len(set(seen)) == 3
