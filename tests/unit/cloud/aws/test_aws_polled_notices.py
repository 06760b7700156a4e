"""What EC2 says of machines without a message: failed checks, planned maintenance, capacity blocks that end."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.awsworld import START, AwsWorld
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options, reserved

from joiner.cloud.aws.api import AwsError
from joiner.cloud.errors import CloudError
from joiner.cloud.interruption import Notice, NoticeQueue, interruptions_of


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld()
    yield made
    made.close()


def notices(world: AwsWorld) -> NoticeQueue:
    found = interruptions_of(world.provider)
    assert found is not None
    return found


def check(field: str, since: datetime) -> dict[str, Any]:
    details = [{"Name": "reachability", "Status": "failed", "ImpairedSince": since}]
    return {field: {"Status": "impaired", "Details": details}}


def event(code: str, description: str = "") -> dict[str, Any]:
    return {"Events": [{"Code": code, "Description": description}]}


AGO = START - timedelta(hours=1)
SAID = {
    "a failed check of the system": (check("InstanceStatus", AGO), ["instance_status"]),
    "a failed check of the hardware": (check("SystemStatus", AGO), ["system_status"]),
    "a check that has just failed": (check("InstanceStatus", START), []),
    "maintenance": (event("system-maintenance"), ["event_status"]),
    "retirement": (event("instance-retirement"), ["event_status"]),
    "maintenance that is over": (event("system-reboot", "[Completed] it was restarted"), []),
    "a volume that is slow": ({"AttachedEbsStatus": {"Status": "impaired"}}, []),
}


@pytest.mark.parametrize(("said", "kinds"), SAID.values(), ids=SAID)
def test_what_ec2_finds_out_by_itself_is_a_notice(world: AwsWorld, said: dict[str, Any], kinds: list[str]) -> None:
    world.put()
    made = buy(world, claim(), options(world, "on-demand", "m5.large"))
    world.forward(timedelta(seconds=10))
    identity = made.provider_id.rpartition("/")[2]
    world.account.checks[identity] = said

    found = world.run(notices(world).receive())

    assert [(each.kind, each.instances) for each in found] == [(kind, (identity,)) for kind in kinds]
    counted = {each.about.name: each.totals for each in world.provider.counts()}
    total = counted["karpenter_interruption_instance_status_unhealthy_total"]
    assert total == {(kind,): 1.0 for kind in kinds}


def test_it_is_told_until_it_is_acknowledged_and_again_when_it_was_over_meanwhile(world: AwsWorld) -> None:
    world.put()
    made = buy(world, claim(), options(world, "on-demand", "m5.large"))
    world.forward(timedelta(seconds=10))
    identity, queue = made.provider_id.rpartition("/")[2], notices(world)
    world.account.checks[identity] = event("instance-stop")
    told: list[Notice] = []
    for _ in range(2):
        told += world.run(queue.receive())
    assert len(told) == 2
    world.run(queue.acknowledge(told[0]))
    assert world.run(queue.receive()) == ()

    world.account.checks.clear()
    assert world.run(queue.receive()) == ()
    world.account.checks[identity] = event("instance-stop")
    assert len(world.run(queue.receive())) == 1


def test_without_the_permission_nothing_more_is_asked(world: AwsWorld) -> None:
    world.put()

    def refuse(operation: str, parameters: Any) -> None:
        if operation == "describe_instance_status":
            raise AwsError("UnauthorizedOperation", "no")

    world.face.before = refuse
    queue = notices(world)
    for _ in range(3):
        assert world.run(queue.receive()) == ()

    assert len(world.asked("describe_instance_status")) == 1


def test_machines_are_polled_also_when_the_queue_is_gone() -> None:
    world = AwsWorld(interruption_queue="missing")
    world.put()
    made = buy(world, claim(), options(world, "on-demand", "m5.large"))
    world.forward(timedelta(seconds=10))
    world.account.checks[made.provider_id.rpartition("/")[2]] = event("instance-stop")
    queue = notices(world)

    assert [each.kind for each in world.run(queue.receive())] == ["event_status"]
    with pytest.raises(CloudError, match="there is no queue missing"):
        world.run(queue.receive())
    world.close()


def test_a_machine_in_a_capacity_block_is_drained_forty_minutes_before_its_end(world: AwsWorld) -> None:
    world.reserve(kind="capacity-block", end=START + timedelta(hours=2))
    world.reserve("cr-2", type="c5.large", end=START + timedelta(hours=2))
    made = buy(world, claim(), reserved(world, instanceType="m5.large"))
    queue = notices(world)
    world.forward(timedelta(minutes=79))
    assert world.run(queue.receive()) == ()

    world.forward(timedelta(minutes=2))
    found = world.run(queue.receive())

    assert [(each.kind, each.instances) for each in found] == [
        ("capacity_reservation_interrupted", (made.provider_id.rpartition("/")[2],))
    ]
