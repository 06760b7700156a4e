"""The IAM policy of the guide: all that the provider calls in the whole life of a cluster, and nothing else."""

import json
import re
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.awsworld import START, AwsWorld
from tests.unit.cloud.aws.test_aws_joined import join, look
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options

from joiner.cloud.errors import InstanceNotFound
from joiner.cloud.interruption import interruptions_of
from joiner.model.meta import replace
from joiner.sim.apiserver.server import ApiServer
from joiner.sim.cloud.ec2.queue import Queue
from joiner.sim.trace import Trace

ROOT = Path(__file__).parents[4]
SOURCE = ROOT / "src/joiner/cloud/aws"
POLICY: Any = json.loads((ROOT / "docs/guide/aws-iam-policy.json").read_text(encoding="utf-8"))
CALL = re.compile(r'"(ec2|iam|ssm|eks|pricing|sqs)",\s*"([a-z_]+)"')
WITHOUT_A_CALL = {
    "iam:PassRole",  # when an instance profile is given to a machine
    "iam:TagInstanceProfile",  # when a profile is made with tags
    "ec2:RunInstances",  # what CreateFleet does, besides its own dry run
}


def action(service: str, operation: str) -> str:
    return f"{service}:{''.join(part.capitalize() for part in operation.split('_'))}"


def allowed() -> set[str]:
    return {each for statement in POLICY["Statement"] for each in statement["Action"]}


def life() -> set[str]:
    """Everything that is called while a class is made, machines come and go, and the class is deleted."""
    world = AwsWorld(disable_dry_run=False, interruption_queue="prod")
    queue = world.account.queues["prod"] = Queue()
    world.account.placement_groups["pg-1"] = {"GroupId": "pg-1", "GroupName": "group-1", "Strategy": "cluster"}
    world.reserve(kind="capacity-block", end=START + timedelta(minutes=5))
    world.put(placementGroupSelector={"name": "group-1"}, capacityReservationSelectorTerms=[{"id": "cr-1"}])
    server = ApiServer(world.clock, Random(1), Trace())
    client = server.client("joiner")
    join(world, server, "a", "7800Mi")
    look(world, client)
    (made,) = world.run(world.provider.list())
    machine = replace(claim("a"), status=replace(claim("a").status, provider_id=made.provider_id))
    world.run(world.provider.reboot(machine, "first"))
    world.run(world.provider.drift_reason(machine))
    queue.send({"version": "0"})
    notices = interruptions_of(world.provider)
    assert notices is not None
    for each in world.run(notices.receive()):
        world.run(notices.acknowledge(each))
    world.run(world.provider.delete(made.provider_id))
    world.forward(timedelta(minutes=10))
    with pytest.raises(InstanceNotFound):
        world.run(world.provider.delete(made.provider_id))
    world.run(world.provider.templates.sweep())
    world.put(
        placementGroupSelector={"name": "group-1"},
        role=None,
        instanceProfile=world.classes["default"].status.instance_profile,
    )
    world.run(world.provider.classes.profiles.delete_of(world.classes["default"]))
    called = {action(service, operation) for service, operation, _ in world.face.calls}
    world.close()
    return called


def test_what_is_called_is_allowed_and_what_is_allowed_is_called() -> None:
    called = life()

    assert called - allowed() == set()
    assert allowed() - called - WITHOUT_A_CALL == set()


def test_every_call_of_the_source_is_allowed() -> None:
    found = {
        action(match[1], match[2])
        for path in SOURCE.rglob("*.py")
        for match in CALL.finditer(path.read_text(encoding="utf-8"))
    }

    assert len(found) > 20
    assert found - allowed() == set()


def test_what_changes_something_is_limited_to_what_is_the_clusters_own() -> None:
    for statement in POLICY["Statement"]:
        changes = [each for each in statement["Action"] if not re.search(r":(Describe|Get|List|Receive)", each)]
        resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        assert not changes or "*" not in resources, statement["Sid"]
        bounded = "Condition" in statement or all("CLUSTER_NAME" in each or "QUEUE" in each for each in resources)
        assert not changes or bounded or statement["Sid"] == "LaunchFromWhatIsThere", statement["Sid"]


def test_a_launch_of_each_market_needs_nothing_more() -> None:
    world = AwsWorld()
    world.put()
    for number, kind in enumerate(("on-demand", "spot")):
        buy(world, claim(f"uid-{number}"), options(world, kind, "m5.large"))
    assert {action(service, operation) for service, operation, _ in world.face.calls} <= allowed()
    world.close()
