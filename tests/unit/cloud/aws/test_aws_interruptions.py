"""Messages of EventBridge in a queue of SQS: what they are read as, and what becomes of them and of the claims they are about."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.awsworld import REGION, START, AwsWorld
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options, pool, reserved
from tests.unit.controllers.sharedparts import shared

from joiner.cloud.aws.api import AwsError, ReadOnly
from joiner.cloud.aws.interruptions import read
from joiner.cloud.aws.inventory import LiveInventory
from joiner.cloud.aws.live import LiveAwsProvider
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.aws.settings import BadSetting
from joiner.cloud.aws.settings import read as read_settings
from joiner.cloud.errors import CloudError, LaunchFailed, Transient
from joiner.cloud.interruption import Kind, Notice, NoticeQueue, interruptions_of
from joiner.cloud.provider import Instance
from joiner.controllers.indexes import INDEXES
from joiner.controllers.nodeclaim.interruption import Interruption
from joiner.kube.informer import Informers
from joiner.kube.manager import Manager
from joiner.model import labels
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.observe.metrics import Metrics
from joiner.sim.apiserver.server import ApiServer
from joiner.sim.cloud.ec2.queue import Queue
from joiner.sim.trace import Trace
from joiner.state.managed import Managed

ID = "i-0123456789abcdef0"
OTHER = "i-0fedcba9876543210"
STATE_CHANGE = "EC2 Instance State-change Notification"


def event(about: str, source: str = "aws.ec2", version: str = "0", **detail: Any) -> dict[str, Any]:
    return {
        "version": version, "id": "1", "detail-type": about, "source": source, "account": "123456789012",
        "time": "2030-01-01T00:00:00Z", "region": "us-east-1", "resources": [], "detail": detail,
    }  # fmt: skip


def spot(identity: str = ID) -> dict[str, Any]:
    about = "EC2 Spot Instance Interruption Warning"
    return event(about, **{"instance-id": identity, "instance-action": "terminate"})


def health(service: str = "EC2", category: str = "scheduledChange", entities: Any = ()) -> dict[str, Any]:
    return event(
        "AWS Health Event", "aws.health", service=service, eventTypeCategory=category, affectedEntities=entities
    )


KNOWN = {
    "spot": (spot(), "spot_interrupted", (ID,)),
    "rebalance": (
        event("EC2 Instance Rebalance Recommendation", **{"instance-id": ID}), "rebalance_recommendation", (ID,)
    ),
    "reservation": (
        event("EC2 Capacity Reservation Instance Interruption Warning", **{"instance-id": ID}),
        "capacity_reservation_interrupted", (ID,),
    ),
    "stopping": (event(STATE_CHANGE, state="stopping", **{"instance-id": ID}), "instance_stopped", (ID,)),
    "stopped": (event(STATE_CHANGE, state="stopped", **{"instance-id": ID}), "instance_stopped", (ID,)),
    "shutting-down": (event(STATE_CHANGE, state="shutting-down", **{"instance-id": ID}), "instance_terminated", (ID,)),
    "terminated": (event(STATE_CHANGE, state="terminated", **{"instance-id": ID}), "instance_terminated", (ID,)),
    "maintenance of two": (
        health(entities=[{"entityValue": ID}, {"entityValue": OTHER}, {"entityValue": ID}]), "scheduled_change", (ID, OTHER)
    ),
}  # fmt: skip
UNKNOWN: dict[str, Any] = {
    "a machine that starts": event(STATE_CHANGE, state="running", **{"instance-id": ID}),
    "another event of EC2": event("EBS Volume Notification", **{"instance-id": ID}),
    "another source": event("EC2 Spot Instance Interruption Warning", "aws.s3", **{"instance-id": ID}),
    "another version": event("EC2 Spot Instance Interruption Warning", version="1", **{"instance-id": ID}),
    "another service": health("RDS", entities=[{"entityValue": ID}]),
    "another category": health(category="issue", entities=[{"entityValue": ID}]),
    "entities that are no machines": health(entities=[{"entityValue": "vol-1"}, "x", {"entityValue": 5}, {}]),
    "entities that are no list": health(entities={"entityValue": ID}),
    "no machine": event("EC2 Spot Instance Interruption Warning"),
    "a machine that is a list": {**spot(), "detail": {"instance-id": [ID]}},
    "a detail that is text": {**spot(), "detail": "x"},
    "a list": [spot()],
    "no JSON": "{",
    "nothing": "",
    "JSON without an end": "[" * 100_000,
}


@pytest.mark.parametrize(("body", "kind", "instances"), KNOWN.values(), ids=KNOWN)
def test_messages_are_read(body: Any, kind: Kind, instances: tuple[str, ...]) -> None:
    assert read("handle", json.dumps(body)) == Notice(id="handle", kind=kind, instances=instances, sent_at=START)


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN)
def test_everything_else_means_nothing(body: Any) -> None:
    made = read("handle", body if isinstance(body, str) else json.dumps(body))

    assert (made.id, made.kind, made.instances) == ("handle", "no_op", ())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(spot())), JSON)
def test_whatever_stands_in_a_field_it_is_read(field: str, value: Any) -> None:
    assert read("handle", json.dumps({**spot(), field: value})).kind in ("no_op", "spot_interrupted")


class Interrupted(AwsWorld):
    """An account with a queue."""

    def __init__(self) -> None:
        super().__init__(interruption_queue="prod")
        self.queue = Queue()
        self.account.queues["prod"] = self.queue

    def notices(self) -> NoticeQueue:
        found = interruptions_of(self.provider)
        assert found is not None
        return found


@pytest.fixture
def world() -> Iterator[Interrupted]:
    made = Interrupted()
    yield made
    made.close()


def named(made: Instance) -> NodeClaim:
    bought = replace(claim(), metadata=replace(claim().metadata, labels={**claim().metadata.labels, **made.labels}))
    return replace(bought, status=replace(bought.status, provider_id=made.provider_id))


def test_messages_are_waited_for_given_again_and_deleted(world: Interrupted) -> None:
    notices = world.notices()
    assert world.run(notices.receive()) == ()
    waited = (world.clock.now() - START).total_seconds()
    assert waited >= 20
    for number in range(12):
        world.queue.send(spot(f"i-{number}"))

    first, second = world.run(notices.receive()), world.run(notices.receive())
    assert (len(first), len(second)) == (10, 2)
    for each in first:
        world.run(notices.acknowledge(each))
    world.forward(timedelta(seconds=20))

    assert world.run(notices.receive()) == second
    asked = world.asked("receive_message")[0]
    assert asked == {
        "QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/prod",
        "MaxNumberOfMessages": 10, "VisibilityTimeout": 20, "WaitTimeSeconds": 20,
    }  # fmt: skip
    assert len(world.asked("get_queue_url")) == 1


def test_a_queue_that_is_not_there_is_told_and_found_once_it_is(world: Interrupted) -> None:
    notices = world.notices()
    world.run(notices.receive())
    del world.account.queues["prod"]
    for _ in range(2):
        with pytest.raises(CloudError, match="INTERRUPTION_QUEUE: there is no queue prod"):
            world.run(notices.receive())
    world.account.queues["prod"] = world.queue
    world.queue.send(spot())

    assert len(world.run(notices.receive())) == 1


@pytest.mark.parametrize(("code", "kind"), [("RequestThrottled", Transient), ("AccessDenied", LaunchFailed)])
def test_what_sqs_refuses_is_told_with_the_name_of_the_queue(
    world: Interrupted, code: str, kind: type[Exception]
) -> None:
    def fail(operation: str, parameters: Any) -> None:
        raise AwsError(code, "no")

    world.face.before = fail
    with pytest.raises(kind, match="INTERRUPTION_QUEUE prod"):
        world.run(world.notices().receive())


def test_a_dry_run_receives_nothing(world: Interrupted) -> None:
    known, inventory = world.settings, LiveInventory(world.api, world.clock, REGION)
    assert LiveAwsProvider(world, world.clock, known, ReadOnly(world.api), inventory).interruptions() is None


@pytest.mark.parametrize("name", ["https://sqs.us-east-1.amazonaws.com/1/prod", "arn:aws:sqs:us-east-1:1:prod", "a b"])
def test_a_name_of_a_queue_that_is_none_is_told(name: str) -> None:
    assert read_settings({"INTERRUPTION_QUEUE": "prod-1_a.fifo"}).interruption_queue == "prod-1_a.fifo"
    with pytest.raises(BadSetting, match="write the name alone"):
        read_settings({"INTERRUPTION_QUEUE": name})


def test_a_spot_offering_whose_machine_is_taken_back_is_not_offered_for_a_while(world: Interrupted) -> None:
    world.put()
    made = buy(world, claim(), options(world, "spot", "m5.large"))
    zones = {each.offering.zone for each in options(world, "spot", "m5.large")}
    before = world.provider.generation(pool())
    notices = world.notices()
    notices.mark_unavailable(Notice(id="a", kind="rebalance_recommendation"), named(made))
    assert world.provider.generation(pool()) == before

    notices.mark_unavailable(Notice(id="a", kind="spot_interrupted"), named(made))

    assert {each.offering.zone for each in options(world, "spot", "m5.large")} == zones - {made.labels[labels.ZONE]}
    assert {each.offering.zone for each in options(world, "on-demand", "m5.large")} >= zones
    assert world.provider.generation(pool()) != before
    world.forward(timedelta(minutes=4))
    assert {each.offering.zone for each in options(world, "spot", "m5.large")} == zones


def test_a_reservation_that_takes_its_machine_back_has_nothing_left(world: Interrupted) -> None:
    world.reserve()
    made = buy(world, claim(), reserved(world))
    assert options(world, "reserved")

    world.notices().mark_unavailable(Notice(id="a", kind="capacity_reservation_interrupted"), named(made))

    assert options(world, "reserved") == []


def test_the_controller_deletes_the_claims_and_every_message(world: Interrupted) -> None:
    """The real interruption controller over the queue: spot machine, a foreign one, and messages that mean nothing."""
    world.put()
    machine = named(buy(world, claim(), options(world, "spot", "m5.large")))
    server = ApiServer(world.clock, Random(1), Trace())
    server.load([world.classes["default"], machine])
    client = server.client("joiner")
    informers = Informers(client, INDEXES)
    metrics = Metrics()
    common = shared(client, informers, world.clock, world.provider, metrics=metrics, managed=Managed((EC2NodeClass,)))
    errors: list[Exception] = []
    manager = Manager(
        informers,
        (Interruption(common, notices=world.notices()),),
        lambda controller, key, error: errors.append(error),
    )
    for body in (spot(OTHER), "{", {"version": "0"}, spot(machine.status.provider_id.rpartition("/")[2])):
        world.queue.send(body)

    async def story() -> None:
        running = asyncio.get_running_loop().create_task(manager.run())
        await asyncio.sleep(30)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    world.run(story())

    assert errors == []
    assert server.find(NodeClaim, machine.name) is None
    assert world.queue.messages == {}
    received = metrics.interruption_received_messages_total
    assert (received.labels("no_op")._value.get(), received.labels("spot_interrupted")._value.get()) == (2, 2)
    assert machine.metadata.labels[labels.ZONE] not in {
        each.offering.zone for each in options(world, "spot", "m5.large")
    }
