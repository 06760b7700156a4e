"""Requests that AWS would not understand are refused in every test, by the models that the SDK itself has of AWS."""

import asyncio
from typing import Any

import pytest
from tests import awsmodels
from tests.awsworld import AwsWorld

from joiner.cloud.aws.api import AwsError
from joiner.sim.cloud.ec2.face import Ec2Face

FLEET: dict[str, Any] = {
    "LaunchTemplateConfigs": [],
    "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "spot"},
}
WRONG: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "unknown name": ("ec2", "create_fleet", {**FLEET, "Clienttoken": "a"}, "Unknown parameter"),
    "missing": ("ec2", "create_fleet", {"Type": "instant"}, "Missing required parameter"),
    "unknown name inside": (
        "ec2",
        "create_fleet",
        {**FLEET, "LaunchTemplateConfigs": [{"Overrides": [{"Zone": "us-east-1a"}]}]},
        "Unknown parameter",
    ),
    "text for a number": (
        "ec2",
        "create_fleet",
        {**FLEET, "TargetCapacitySpecification": {"TotalTargetCapacity": "1"}},
        "Invalid type",
    ),
    "number for a text": ("ec2", "create_tags", {"Resources": [1], "Tags": []}, "Invalid type"),
    "text for a list": ("ec2", "terminate_instances", {"InstanceIds": "i-1"}, "Invalid type"),
    "text for a structure": (
        "ec2",
        "create_launch_template",
        {"LaunchTemplateName": "abc", "LaunchTemplateData": "abc"},
        "Invalid type",
    ),
    "too small": ("ec2", "describe_launch_templates", {"MaxResults": 0}, "valid min value"),
    "unknown operation": ("ec2", "buy", {}, "no operation buy"),
    "of another service": ("iam", "describe_instances", {}, "no operation describe_instances"),
    "ssm": ("ssm", "get_parameter", {}, "Missing required parameter"),
    "iam": ("iam", "get_instance_profile", {"InstanceProfileName": ""}, "Invalid length"),
    "sqs": ("sqs", "receive_message", {"QueueUrl": "a", "WaitTimeSeconds": 1.5}, "Invalid type"),
    "eks": ("eks", "describe_cluster", {"Name": "prod"}, "Unknown parameter"),
    "pricing": ("pricing", "get_products", {"Filters": []}, "Missing required parameter"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_request_that_aws_would_not_understand_is_refused(name: str) -> None:
    service, operation, parameters, reason = WRONG[name]
    world = AwsWorld()

    with pytest.raises(AwsError, match=reason):
        asyncio.run(world.face.call(service, operation, **parameters))

    world.close()
    assert len(awsmodels.FOUND) == 1
    awsmodels.FOUND.clear()  # it was meant


def test_an_answer_that_aws_would_not_give_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = AwsWorld()
    world.account.subnets["subnet-1"]["free"] = "many"
    world.run(world.face.call("ec2", "describe_subnets"))
    world.close()

    assert "AvailableIpAddressCount" in awsmodels.FOUND[0]
    awsmodels.FOUND.clear()


def test_the_models_look_at_every_account_of_the_tests() -> None:
    assert Ec2Face.judge is awsmodels.judge
