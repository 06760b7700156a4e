"""boto3 against moto's server: a second opinion on the requests of the AWS provider, for the calls that moto knows."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from tests.unit.cloud.aws.builders import node_class

from joiner.clock import SystemClock
from joiner.cloud.aws import interruptions
from joiner.cloud.aws.api import AwsError, pages
from joiner.cloud.aws.boto import BotoApi
from joiner.cloud.aws.counts import Counts
from joiner.cloud.aws.launch.cluster import ClusterFacts
from joiner.cloud.aws.launch.machines import Machines
from joiner.cloud.aws.launch.templates import LaunchTemplates, Template
from joiner.cloud.aws.nodeclass import resolve
from joiner.cloud.aws.nodeclass.dryruns import DryRuns
from joiner.cloud.aws.notices import InstanceStatus
from joiner.cloud.errors import CloudError, InstanceNotFound
from joiner.model.meta import replace

REGION = "us-west-2"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture
def api(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[BotoApi]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    made = BotoApi(REGION, endpoint)
    yield made
    made.close()


def test_a_class_is_resolved_and_a_machine_is_launched_listed_and_ended(api: BotoApi, endpoint: str) -> None:
    ec2 = boto3.client("ec2", region_name=REGION, endpoint_url=endpoint)
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    ec2.create_tags(Resources=[subnet], Tags=[{"Key": "karpenter.sh/discovery", "Value": "prod"}])
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    spec = node_class(
        amiFamily="Custom",
        amiSelectorTerms=[{"id": image}],
        subnetSelectorTerms=[{"tags": {"karpenter.sh/discovery": "*"}}],
        securityGroupSelectorTerms=[{"name": "default"}],
    ).spec

    async def story() -> dict[str, Any]:
        clock = SystemClock()
        subnets = await resolve.subnets(api, spec)
        groups = await resolve.security_groups(api, spec)
        images = await resolve.amis(api, spec, "1.33", clock.now())
        made = node_class()
        made = replace(made, spec=spec, status=replace(made.status, security_groups=groups, instance_profile="nodes"))
        templates = LaunchTemplates(api, clock, "prod")
        tags = {"eks:eks-cluster-name": "prod"}
        name = await templates.ensure(Template(image_id=images[0].id, user_data="#!/bin/sh"), made, tags)
        override = {
            "InstanceType": "m5.large", "SubnetId": subnets[0].subnet.id, "ImageId": images[0].id,
            "AvailabilityZone": subnets[0].subnet.zone, "Priority": 0.0,
        }  # fmt: skip
        fleet = await api.call(
            "ec2",
            "create_fleet",
            Type="instant",
            ClientToken="uid-a",
            LaunchTemplateConfigs=[
                {
                    "LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"},
                    "Overrides": [override],
                }
            ],
            TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
            OnDemandOptions={"AllocationStrategy": "lowest-price"},
            TagSpecifications=[
                {"ResourceType": "instance", "Tags": [{"Key": "eks:eks-cluster-name", "Value": "prod"}]}
            ],
        )
        filters = [{"Name": "tag:eks:eks-cluster-name", "Values": ["prod"]}]
        listed = await pages(api, "ec2", "describe_instances", "Reservations", Filters=filters, MaxResults=1000)
        ids = fleet["Instances"][0]["InstanceIds"]
        ended = await api.call("ec2", "terminate_instances", InstanceIds=ids)
        await templates.delete_all("default")
        return {"subnets": subnets, "groups": groups, "images": images, "listed": listed, "ended": ended}

    done = asyncio.run(story())

    assert [each.subnet.id for each in done["subnets"]] == [subnet]
    assert [each.name for each in done["groups"]] == ["default"]
    assert [each.id for each in done["images"]] == [image]
    assert len(done["listed"]) == 1
    assert len(done["ended"]["TerminatingInstances"]) == 1


def test_notices_are_received_and_deleted(api: BotoApi, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruptions, "WAIT_S", 1)
    sqs = boto3.client("sqs", region_name=REGION, endpoint_url=endpoint)
    url = sqs.create_queue(QueueName="prod")["QueueUrl"]
    state = {"instance-id": "i-1", "state": "terminated"}
    event = {
        "version": "0", "source": "aws.ec2", "detail-type": "EC2 Instance State-change Notification", "detail": state
    }  # fmt: skip
    for body in (json.dumps(event), "{"):
        sqs.send_message(QueueUrl=url, MessageBody=body)

    async def story() -> list[tuple[str, tuple[str, ...]]]:
        queue = interruptions.SqsNotices(api, "prod", lambda notice, claim: None)
        found = await queue.receive()
        for each in found:
            await queue.acknowledge(each)
        with pytest.raises(CloudError, match="there is no queue none"):
            await interruptions.SqsNotices(api, "none", lambda notice, claim: None).receive()
        return [(each.kind, each.instances) for each in found]

    assert sorted(asyncio.run(story())) == [("instance_terminated", ("i-1",)), ("no_op", ())]
    left = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (left["ApproximateNumberOfMessages"], left["ApproximateNumberOfMessagesNotVisible"]) == ("0", "0")


def test_a_long_poll_keeps_no_process_from_ending(api: BotoApi, endpoint: str) -> None:
    """Threads of a pool are waited for when Python ends; daemon threads are not."""
    sqs = boto3.client("sqs", region_name=REGION, endpoint_url=endpoint)
    url = sqs.create_queue(QueueName="empty")["QueueUrl"]

    async def story() -> list[threading.Thread]:
        poll = asyncio.get_running_loop().create_task(
            api.call("sqs", "receive_message", QueueUrl=url, WaitTimeSeconds=2)
        )
        await asyncio.sleep(0)
        waiting = [each for each in threading.enumerate() if each.name == "aws poll"]
        poll.cancel()
        await asyncio.gather(poll, return_exceptions=True)
        return waiting

    (thread,) = asyncio.run(story())
    assert thread.daemon
    thread.join()  # its answer comes when the loop is gone, and harms nothing


def test_errors_come_with_the_code_of_aws_and_a_dead_endpoint_is_told(api: BotoApi) -> None:
    async def ask(using: BotoApi, operation: str, **parameters: Any) -> str:
        try:
            await using.call("ec2", operation, **parameters)
        except AwsError as error:
            return error.code
        return ""

    missing = asyncio.run(ask(api, "describe_launch_templates", LaunchTemplateNames=["none"]))
    assert missing == "InvalidLaunchTemplateName.NotFoundException"
    assert (
        asyncio.run(ask(api, "describe_instances", InstanceIds=["i-0123456789abcdef0"])) == "InvalidInstanceID.NotFound"
    )
    assert asyncio.run(ask(api, "create_fleet", Nonsense=1)) == "InvalidParameter"


def test_permissions_are_asked_for_by_dry_runs(api: BotoApi, endpoint: str) -> None:
    ec2 = boto3.client("ec2", region_name=REGION, endpoint_url=endpoint)
    subnet = ec2.describe_subnets()["Subnets"][0]
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    arch = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
    made = node_class(
        status={
            "subnets": [{"id": subnet["SubnetId"], "zone": subnet["AvailabilityZone"]}],
            "securityGroups": [{"id": ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]}],
            "amis": [{"id": image, "requirements": [arch]}],
            "instanceProfile": "nodes",
        }
    )
    known = ClusterFacts(name="prod", endpoint="https://prod", service_cidr="10.100.0.0/16", dns="10.100.0.10")
    asked: list[tuple[str, str]] = []

    class Listening:
        async def call(self, service: str, operation: str, /, **parameters: Any) -> Any:
            try:
                return await api.call(service, operation, **parameters)
            except AwsError as error:
                asked.append((operation, error.code))
                raise

    clock = SystemClock()
    runs = DryRuns(Listening(), clock, LaunchTemplates(api, clock, "prod"))
    asyncio.run(runs.check(made, known))

    assert asked == [("create_fleet", "DryRunOperation"), ("run_instances", "DryRunOperation")]
    alive = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    assert ec2.describe_instances(Filters=alive)["Reservations"] == []


def test_machines_are_asked_for_by_id_and_for_their_checks(api: BotoApi) -> None:
    clock = SystemClock()
    machines = Machines(api, clock, "prod", lambda name, kind: (None, None), Counts())

    async def story() -> tuple[Any, ...]:
        with pytest.raises(InstanceNotFound):
            await machines.get("aws:///us-west-2a/i-0123456789abcdef0")
        return await InstanceStatus(api, clock, Counts()).poll()

    assert asyncio.run(story()) == ()
