"""What is learned of machines whose nodes joined, and the tags they get."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from tests.awsworld import AwsWorld
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options, pool

from joiner.cloud.aws.api import AwsError
from joiner.cloud.aws.launch.joined import looked_after
from joiner.kube.client import Client
from joiner.kube.tasks import Tasks
from joiner.model import resources
from joiner.model.codec import decode
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.sim.apiserver.server import ApiServer
from joiner.sim.trace import Trace

GIB = 1 << 30


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld()
    made.put()
    yield made
    made.close()


def join(world: AwsWorld, server: ApiServer, uid: str, memory: str, name: str = "m5.large") -> str:
    """A machine is bought, and its node joins; the id of the machine."""
    made = buy(world, claim(uid), options(world, "on-demand", name))
    node = f"node-{uid}"
    status = {"providerID": made.provider_id, "nodeName": node}
    raw = {"metadata": {"name": f"claim-{uid}", "uid": uid}, "status": status}
    bought = replace(decode(raw, NodeClaim), spec=claim().spec)
    server.load([
        bought, decode({"metadata": {"name": node}, "status": {"capacity": {"memory": memory}}}, Node),
    ])  # fmt: skip
    return made.provider_id.rpartition("/")[2]


def look(world: AwsWorld, client: Client) -> None:
    world.forward(timedelta(seconds=10))

    async def once() -> None:
        await world.provider._joined.look(client, await world.provider._machines.all())

    world.run(once())


def memory(world: AwsWorld, name: str = "m5.large") -> str:
    found = next(each for each in world.run(world.provider.instance_types(pool())) if each.name == name)
    return resources.written(found.capacity)["memory"]


@pytest.fixture
def server(world: AwsWorld) -> ApiServer:
    return ApiServer(world.clock, Random(1), Trace())


def test_the_memory_of_a_node_replaces_the_guess_for_its_type(world: AwsWorld, server: ApiServer) -> None:
    before = world.provider.generation(pool())
    join(world, server, "a", "7800Mi")
    look(world, server.client("joiner"))

    assert (memory(world), memory(world, "m5.xlarge")) == ("7800Mi", "15155Mi")
    after = world.provider.generation(pool())
    assert after.memory != before.memory
    join(world, server, "b", "7900Mi")
    look(world, server.client("joiner"))
    assert (memory(world), world.provider.generation(pool()).memory) == ("7800Mi", after.memory)
    join(world, server, "c", "7700Mi")
    look(world, server.client("joiner"))
    assert memory(world) == "7700Mi"


def test_it_is_forgotten_after_sixty_days_and_with_other_images(world: AwsWorld, server: ApiServer) -> None:
    join(world, server, "a", "7800Mi")
    look(world, server.client("joiner"))
    before = world.provider.generation(pool())
    world.forward(timedelta(days=61))
    assert world.provider.generation(pool()).memory != before.memory
    assert memory(world) == "7577Mi"

    join(world, server, "b", "7800Mi")
    look(world, server.client("joiner"))
    assert memory(world) == "7800Mi"
    world.account.images["ami-9"] = {**world.account.images["ami-1"], "created": "2026-02-01T00:00:00.000Z"}
    for path, image in world.account.parameters.items():
        if image == "ami-1":
            world.account.parameters[path] = "ami-9"
    world.look()
    assert memory(world) == "7577Mi"


def test_a_machine_is_named_after_its_node_once(world: AwsWorld, server: ApiServer) -> None:
    identity = join(world, server, "a", "7800Mi")
    client = server.client("joiner")
    for _ in range(3):
        look(world, client)

    assert world.account.machines[identity].tags["Name"] == "node-a"
    assert len(world.asked("create_tags")) == 1


def test_a_machine_of_karpenter_gets_the_tags_that_it_lacks(world: AwsWorld, server: ApiServer) -> None:
    identity = join(world, server, "a", "7800Mi")
    tags = world.account.machines[identity].tags
    tags["Name"] = "mine"
    for key in ("karpenter.sh/nodeclaim", "karpenter.sh/nodeclaim-uid"):
        del tags[key]
    client = server.client("joiner")
    look(world, client)

    known = world.run(client.get(NodeClaim, "claim-a"))
    assert tags["Name"] == "mine"
    assert tags["karpenter.sh/nodeclaim"] == known.name
    assert tags["karpenter.sh/nodeclaim-uid"] == known.metadata.uid


def test_a_machine_without_a_node_is_looked_at_again(world: AwsWorld, server: ApiServer) -> None:
    made = buy(world, claim("a"), options(world, "on-demand", "m5.large"))
    client = server.client("joiner")
    look(world, client)
    assert world.asked("create_tags") == []
    status = {"providerID": made.provider_id, "nodeName": "late"}
    raw: dict[str, Any] = {"metadata": {"name": "claim-a", "uid": "a"}, "status": status}
    server.load([replace(decode(raw, NodeClaim), spec=claim().spec)])
    look(world, client)
    assert world.asked("create_tags") == []
    server.load([decode({"metadata": {"name": "late"}, "status": {"capacity": {"memory": "7800Mi"}}}, Node)])
    look(world, client)

    assert len(world.asked("create_tags")) == 1


def test_what_cannot_be_asked_now_is_asked_the_next_time(world: AwsWorld, server: ApiServer) -> None:
    identity = join(world, server, "a", "7800Mi")
    failures = [AwsError("RequestLimitExceeded", "slower"), AwsError("UnauthorizedOperation", "no")]

    def fail(operation: str, parameters: Any) -> None:
        if operation in ("describe_instances", "create_tags") and failures:
            raise failures.pop()

    world.face.before = fail

    async def a_while() -> None:
        tasks = Tasks()
        work = looked_after(world.provider._joined, server.client("joiner"), world.provider._machines.all, 60.0)
        tasks.start("joined", work)
        await asyncio.sleep(600)
        assert len(tasks) == 1
        await tasks.close()

    world.run(a_while())
    assert failures == []
    assert world.account.machines[identity].tags["Name"] == "node-a"
