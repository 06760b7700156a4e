"""How fast AWS is asked, and what becomes one call."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.awsworld import AwsWorld
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options

from joiner.cloud.aws.api import AwsError
from joiner.cloud.errors import CloudError, InstanceNotFound, LaunchFailed


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld()
    made.put()
    yield made
    made.close()


def machines(world: AwsWorld, count: int) -> list[str]:
    given = options(world, "on-demand", "m5.large")

    async def all_of_them() -> list[str]:
        made = await asyncio.gather(*(world.provider.create(claim(f"uid-{n}"), given) for n in range(count)))
        return [each.provider_id for each in made]

    return world.run(all_of_them())


def test_launches_pass_a_bucket_of_tokens(world: AwsWorld) -> None:
    before = world.clock.monotonic()
    assert len(set(machines(world, 40))) == 40
    at_once = world.clock.monotonic() - before
    machines(world, 1)
    world.forward(timedelta(minutes=1))
    before = world.clock.monotonic()
    given = options(world, "on-demand", "m5.large")

    async def many() -> None:
        await asyncio.gather(*(world.provider.create(claim(f"other-{n}"), given) for n in range(100)))

    world.run(many())
    assert at_once < 5
    assert 10 <= world.clock.monotonic() - before <= 15  # fifty at once, fifty more at five a second


def test_a_launch_that_waited_for_its_turn_knows_what_others_found_dry(world: AwsWorld) -> None:
    given = options(world, "on-demand", "c5.large", "m5.large")
    for zone in "abcdef":
        world.account.limits["on-demand", "c5.large", f"us-east-1{zone}"] = 0

    async def many() -> None:
        await asyncio.gather(*(world.provider.create(claim(f"uid-{n}"), given) for n in range(60)))

    world.face.calls.clear()
    world.run(many())

    last = world.asked("create_fleet")[-1]["LaunchTemplateConfigs"]
    assert {each["InstanceType"] for config in last for each in config["Overrides"]} == {"m5.large"}
    first_questions = [operation for _, operation, _ in world.face.calls[:120] if operation == "describe_instances"]
    assert len(first_questions) <= 51


def test_questions_about_single_machines_are_one_call(world: AwsWorld) -> None:
    ids = machines(world, 30)
    world.face.calls.clear()

    async def look() -> list[str]:
        found = await asyncio.gather(*(world.provider.get(each) for each in ids))
        return [each.provider_id for each in found]

    assert world.run(look()) == ids
    assert len(world.asked("describe_instances")) == 1
    counted = {each.about.name: each for each in world.provider.counts()}
    sizes = counted["karpenter_cloudprovider_batcher_batch_size"]
    assert sizes.totals["describe_instances",] == 30.0


def test_machines_that_are_ended_together_are_ended_by_one_call(world: AwsWorld) -> None:
    ids = machines(world, 20)

    async def end() -> list[Any]:
        return await asyncio.gather(*(world.provider.delete(each) for each in ids), return_exceptions=True)

    assert world.run(end()) == [None] * 20
    assert len(world.asked("terminate_instances")) == 1
    world.forward(timedelta(minutes=1))
    assert all(isinstance(each, InstanceNotFound) for each in world.run(end()))
    assert len(world.asked("terminate_instances")) == 1


def test_one_machine_that_ec2_does_not_end_spares_no_other(world: AwsWorld) -> None:
    good, bad, gone = machines(world, 3)

    def refuse(operation: str, parameters: Any) -> None:
        if operation == "terminate_instances" and bad.rpartition("/")[2] in parameters["InstanceIds"]:
            raise AwsError("OperationNotPermitted", "it is protected")
        if operation == "terminate_instances" and gone.rpartition("/")[2] in parameters["InstanceIds"]:
            raise AwsError("InvalidInstanceID.NotFound", "it is gone")

    world.face.before = refuse

    async def end() -> list[Any]:
        return await asyncio.gather(
            *(world.provider.delete(each) for each in (good, bad, gone)), return_exceptions=True
        )

    first, second, third = world.run(end())
    assert first is None
    assert isinstance(second, LaunchFailed)
    assert "it is protected" in str(second)
    assert isinstance(third, InstanceNotFound)
    counted = {each.about.name: each.totals for each in world.provider.counts()}
    failures = counted["karpenter_cloudprovider_instance_termination_failures_total"]
    assert sum(failures.values()) == 1


def test_what_a_shared_call_raises_reaches_every_caller(world: AwsWorld) -> None:
    ids = machines(world, 3)

    def refuse(operation: str, parameters: Any) -> None:
        raise AwsError("RequestLimitExceeded", "slower")

    world.face.before = refuse

    async def look() -> list[Any]:
        return await asyncio.gather(*(world.provider.get(each) for each in ids), return_exceptions=True)

    assert all(isinstance(each, CloudError) for each in world.run(look()))


def test_a_caller_that_gives_up_takes_no_answer_from_others(world: AwsWorld) -> None:
    (one,) = machines(world, 1)

    async def look() -> str:
        first = asyncio.ensure_future(world.provider.get(one))
        second = asyncio.ensure_future(world.provider.get(one))
        await asyncio.sleep(0)
        first.cancel()
        return (await second).provider_id

    assert world.run(look()) == one


def test_failed_ways_to_launch_and_user_data_are_counted(world: AwsWorld) -> None:
    given = options(world, "on-demand", "m5.large", "c5.large")
    world.account.limits["on-demand", "c5.large", "us-east-1a"] = 0
    buy(world, claim(), [each for each in given if each.offering.zone == "us-east-1a"])

    counted = {each.about.name: each.totals for each in world.provider.counts()}
    (failed,) = counted["karpenter_cloudprovider_instance_launch_failures_total"]
    assert failed == ("us-east-1a", failed[1], "on-demand", "InsufficientInstanceCapacity")
    assert failed[1]
    assert counted["karpenter_ec2nodeclasses_userdata_bytes"]["default",] > 500
