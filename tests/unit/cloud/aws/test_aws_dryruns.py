"""Permissions are asked for before the first launch: what EC2 refuses is a condition of the class with its cause and the fix."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.awsworld import AwsWorld
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options

from joiner.cloud.aws.api import AwsError
from joiner.cloud.errors import LaunchFailed, NodeClassNotReady
from joiner.model.conditions import Condition, find


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld(disable_dry_run=False)
    yield made
    made.close()


def validated(world: AwsWorld, **spec: Any) -> Condition:
    found = find(world.put(**spec).status.conditions, "ValidationSucceeded")
    assert found is not None
    return found


def refusing(operation: str, code: str = "UnauthorizedOperation") -> Any:
    def fail(called: str, parameters: Any) -> None:
        if called == operation and (parameters.get("DryRun") or operation == "create_launch_template"):
            raise AwsError(code, "You are not authorized to perform this operation.")

    return fail


def dry(world: AwsWorld, operation: str) -> list[Any]:
    return [each for each in world.asked(operation) if each.get("DryRun")]


def test_a_class_is_ready_when_ec2_would_launch_its_machines(world: AwsWorld) -> None:
    assert validated(world).status == "True"
    (fleet,), (machine,) = dry(world, "create_fleet"), dry(world, "run_instances")

    assert len(fleet["LaunchTemplateConfigs"][0]["Overrides"]) == len(world.account.subnets)
    assert machine["NetworkInterfaces"][0]["SubnetId"] in world.account.subnets
    assert machine["NetworkInterfaces"][0]["Groups"] == ["sg-1"]
    assert world.account.machines == {}


@pytest.mark.parametrize(("operation", "reason"), [
    ("create_launch_template", "CreateLaunchTemplateAuthCheckFailed"), ("create_fleet", "CreateFleetAuthCheckFailed"),
    ("run_instances", "RunInstancesAuthCheckFailed"),
])  # fmt: skip
def test_a_missing_permission_is_told_before_anything_is_bought(world: AwsWorld, operation: str, reason: str) -> None:
    world.face.before = refusing(operation)
    found = validated(world)

    assert (found.status, found.reason) == ("False", reason)
    assert "IAM policy" in found.message
    assert "DISABLE_DRY_RUN" in found.message
    with pytest.raises(NodeClassNotReady):
        options(world)


def test_one_subnet_that_can_be_launched_into_is_enough(world: AwsWorld) -> None:
    def fail(called: str, parameters: Any) -> None:
        if called == "run_instances" and parameters["NetworkInterfaces"][0]["SubnetId"] != "subnet-4":
            raise AwsError("UnauthorizedOperation", "no")

    world.face.before = fail
    assert validated(world).status == "True"


def test_a_busy_cloud_leaves_it_open_and_the_types_stay(world: AwsWorld) -> None:
    world.face.before = refusing("create_fleet", "RequestLimitExceeded")
    found = validated(world)

    assert (found.status, found.reason) == ("Unknown", "AWSUnavailable")
    given = options(world, "on-demand", "m5.large")
    assert given
    with pytest.raises(LaunchFailed, match="RequestLimitExceeded") as caught:
        buy(world, claim(), given)
    assert caught.value.reason == "NodeClassReadinessUnknown"


def test_the_answer_is_believed_for_half_an_hour_or_until_the_class_changes(world: AwsWorld) -> None:
    world.put()
    world.look()
    world.forward(timedelta(minutes=20))
    world.look()
    assert len(dry(world, "create_fleet")) == 1
    world.forward(timedelta(minutes=11))
    world.look()
    assert len(dry(world, "create_fleet")) == 2
    world.put(userData="#!/bin/sh")
    assert len(dry(world, "create_fleet")) == 3


def test_user_data_that_is_too_long_is_told_before_the_first_launch(world: AwsWorld) -> None:
    found = validated(world, userData="#!/bin/sh\n" + "x" * 20_000)

    assert (found.status, found.reason) == ("False", "UserDataSizeLimitExceeded")
    assert "spec.userData" in found.message


def test_nothing_is_tried_where_it_is_switched_off() -> None:
    world = AwsWorld(disable_dry_run=True)
    world.face.before = refusing("create_fleet")
    assert validated(world).status == "True"
    assert world.asked("create_launch_template") == []
    world.close()


def test_subnets_that_cannot_be_asked_for_leave_the_class_open(world: AwsWorld) -> None:
    def busy(called: str, parameters: Any) -> None:
        if called == "describe_subnets":
            raise AwsError("RequestLimitExceeded", "slower")

    world.put()
    world.face.before = busy
    conditions = world.look().status.conditions

    assert {each.type: each.status for each in conditions if each.status != "True"} == {
        "SubnetsReady": "Unknown", "ValidationSucceeded": "Unknown", "Ready": "Unknown"
    }  # fmt: skip
    assert options(world)
