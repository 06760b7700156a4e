"""Launches over the pretend account: what is asked of EC2, and what becomes of its answers."""

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.awsworld import START, AwsWorld
from tests.builders import node_pool

from joiner.catalog.market import Option
from joiner.cloud.aws.api import AwsError
from joiner.cloud.errors import InsufficientCapacity, LaunchFailed, NodeClassNotReady, Transient
from joiner.cloud.provider import Instance
from joiner.model import labels
from joiner.model.codec import decode
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool

GROUP = "karpenter.k8s.aws"


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld()
    yield made
    made.close()


def pool(name: str = "default") -> NodePool:
    made = node_pool()
    reference = NodeClassReference(group=GROUP, kind="EC2NodeClass", name=name)
    spec = replace(made.spec.template.spec, node_class_ref=reference)
    return replace(made, spec=replace(made.spec, template=replace(made.spec.template, spec=spec)))


def claim(uid: str = "uid-a", **spec: Any) -> NodeClaim:
    reference = {"group": GROUP, "kind": "EC2NodeClass", "name": "default"}
    metadata = {"name": f"claim-{uid}", "uid": uid, "labels": {labels.NODEPOOL: "web", "team": "a"}}
    return decode({"metadata": metadata, "spec": {"nodeClassRef": reference, **spec}}, NodeClaim)


def options(world: AwsWorld, capacity_type: str = "on-demand", *names: str) -> list[Option]:
    types = world.run(world.provider.instance_types(pool()))
    return [
        Option(name=each.name, offering=offering)
        for each in types
        if not names or each.name in names
        for offering in each.offerings
        if offering.capacity_type == capacity_type and offering.launchable
    ]


def buy(world: AwsWorld, wanted: NodeClaim, given: list[Option]) -> Instance:
    return world.run(world.provider.create(wanted, given))


def template_data(world: AwsWorld) -> Any:
    return world.asked("create_launch_template")[-1]["LaunchTemplateData"]


def test_one_call_for_a_claim_with_its_uid_as_token_and_tag(world: AwsWorld) -> None:
    world.put(tags={"team": "a"}, context="abc")
    made = buy(world, claim(), options(world, "on-demand", "m5.large", "c5.large"))

    (request,) = world.asked("create_fleet")
    assert (request["Type"], request["ClientToken"], request["Context"]) == ("instant", "uid-a", "abc")
    assert request["TargetCapacitySpecification"] == {
        "TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"
    }  # fmt: skip
    assert request["OnDemandOptions"] == {"AllocationStrategy": "lowest-price"}
    assert {each["ResourceType"] for each in request["TagSpecifications"]} == {"instance", "volume", "fleet"}
    tags = {each["Key"]: each["Value"] for each in request["TagSpecifications"][0]["Tags"]}
    assert tags == {
        "team": "a", "kubernetes.io/cluster/prod": "owned", "eks:eks-cluster-name": "prod",
        "karpenter.k8s.aws/ec2nodeclass": "default", "karpenter.sh/nodepool": "web",
        "karpenter.sh/nodeclaim": "claim-uid-a", "karpenter.sh/nodeclaim-uid": "uid-a",
        "karpenter.k8s.aws/ec2nodeclass-hash": made.annotations["karpenter.k8s.aws/ec2nodeclass-hash"],
        "karpenter.k8s.aws/ec2nodeclass-hash-version": "joiner-v1",
    }  # fmt: skip
    assert made.labels[labels.INSTANCE_TYPE] == "c5.large"  # the cheaper one
    assert made.annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"] == "joiner-v1"
    assert made.provider_id.startswith("aws:///us-east-1")


def test_the_template_holds_what_the_class_says(world: AwsWorld) -> None:
    world.put(
        detailedMonitoring=True,
        associatePublicIPAddress=False,
        blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "100G", "encrypted": True}}],
        kubelet={"evictionThreshold": {"hard": {"memoryAvailable": "5%"}}, "serializeImagePulls": False},
        userData="#!/bin/sh\necho mine",
    )
    buy(
        world,
        claim(taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}]),
        options(world, "on-demand", "m5.large"),
    )

    data = template_data(world)
    assert data["BlockDeviceMappings"] == [{"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True, "VolumeSize": 94}}]
    assert (data["Monitoring"], data["MetadataOptions"]["HttpTokens"]) == ({"Enabled": True}, "required")
    assert data["NetworkInterfaces"][0]["Groups"] == ["sg-1"]
    assert data["NetworkInterfaces"][0]["AssociatePublicIpAddress"] is False
    assert "CapacityReservationSpecification" not in data
    text = base64.b64decode(data["UserData"]).decode()
    assert text.index("echo mine") < text.index("NodeConfig")
    config = json.loads(text[text.index("{") : text.rindex("}") + 1])["spec"]
    assert config["cluster"] == {
        "name": "prod", "apiServerEndpoint": "https://prod.example.com", "certificateAuthority": "Q0E=",
        "cidr": "10.100.0.0/16",
    }  # fmt: skip
    kubelet = config["kubelet"]["config"]
    assert kubelet["evictionHard"] == {"memory.available": "5%"}
    assert "evictionThreshold" not in kubelet
    assert (kubelet["maxPods"], kubelet["serializeImagePulls"], kubelet["clusterDNS"]) == (29, False, ["10.100.0.10"])
    assert [each["key"] for each in kubelet["registerWithTaints"]] == ["a", "karpenter.sh/unregistered"]
    assert config["kubelet"]["flags"] == [
        "--node-labels=karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=web,team=a"
    ]


def test_types_with_other_images_or_pods_get_templates_of_their_own(world: AwsWorld) -> None:
    world.put()
    buy(world, claim(), options(world, "on-demand", "m5.large", "m5.xlarge", "m6g.large", "g4dn.xlarge"))

    (request,) = world.asked("create_fleet")
    assert len(request["LaunchTemplateConfigs"]) == 4
    images = {c["Overrides"][0]["InstanceType"]: c["Overrides"][0]["ImageId"] for c in request["LaunchTemplateConfigs"]}
    assert images == {"m5.large": "ami-1", "m5.xlarge": "ami-1", "m6g.large": "ami-4", "g4dn.xlarge": "ami-2"}


def test_machines_carry_the_names_of_eks_auto_mode_too(world: AwsWorld) -> None:
    """The labels of the machine become those of claim and node: kube-scheduler binds pods that ask for either name."""
    world.put()
    made = buy(world, claim(), options(world, "on-demand", "m5.large"))

    for name, value in (("instance-cpu", "2"), ("instance-family", "m5"), ("instance-category", "m")):
        assert made.labels[f"eks.amazonaws.com/{name}"] == made.labels[f"karpenter.k8s.aws/{name}"] == value
    assert world.run(world.provider.get(made.provider_id)).labels == made.labels


def test_a_second_launch_uses_the_template_of_the_first(world: AwsWorld) -> None:
    world.put()
    for uid in ("a", "b"):
        buy(world, claim(uid), options(world, "on-demand", "m5.large"))

    assert len(world.asked("create_launch_template")) == 1


def test_a_template_that_vanished_is_made_again_once(world: AwsWorld) -> None:
    world.put()
    buy(world, claim("a"), options(world, "on-demand", "m5.large"))
    world.account.templates.clear()

    assert buy(world, claim("b"), options(world, "on-demand", "m5.large")).provider_id
    assert len(world.asked("create_launch_template")) == 2


def test_idle_templates_are_deleted(world: AwsWorld) -> None:
    world.put()
    buy(world, claim(), options(world, "on-demand", "m5.large"))
    world.run(world.provider.templates.sweep())
    assert len(world.account.templates) == 1

    world.forward(timedelta(minutes=6))
    world.run(world.provider.templates.sweep())

    assert world.account.templates == {}


def test_spot_machines_are_bought_by_price_and_capacity(world: AwsWorld) -> None:
    world.put()
    made = buy(world, claim(), options(world, "spot"))

    (request,) = world.asked("create_fleet")
    assert request["SpotOptions"] == {"AllocationStrategy": "price-capacity-optimized"}
    assert made.labels[labels.CAPACITY_TYPE] == "spot"
    (listed,) = world.run(world.provider.list())
    assert listed.labels == made.labels


def test_no_spot_machine_is_asked_for_that_costs_more_than_one_on_demand(world: AwsWorld) -> None:
    world.put()
    dear = [replace(each, offering=replace(each.offering, price=9.0)) for each in options(world, "spot", "m5.large")]
    buy(world, claim(), [*options(world, "spot", "r5.large"), *options(world, "on-demand", "c5.large"), *dear])

    configs = world.asked("create_fleet")[0]["LaunchTemplateConfigs"]
    assert {each["InstanceType"] for config in configs for each in config["Overrides"]} == {"r5.large"}


def test_machines_of_another_cluster_in_the_account_are_not_ours(world: AwsWorld) -> None:
    """None of our claims bought them: taken for ours they would be ended as garbage."""
    world.put()
    ours, theirs = (buy(world, claim(uid), options(world, "on-demand", "m5.large")) for uid in ("uid-a", "uid-b"))
    (other,) = (each for each in world.account.machines.values() if each.provider_id == theirs.provider_id)
    other.tags["eks:eks-cluster-name"] = "another"

    assert [each.provider_id for each in world.run(world.provider.list())] == [ours.provider_id]


@pytest.mark.parametrize(("kind", "field", "strategy"), [
    ("on-demand", "OnDemandOptions", "prioritized"),
    ("spot", "SpotOptions", "capacity-optimized-prioritized"),
])  # fmt: skip
def test_prices_of_the_user_decide_the_order(world: AwsWorld, kind: str, field: str, strategy: str) -> None:
    world.put()
    own = [
        replace(each, offering=replace(each.offering, price=0.001 if each.name == "r5.large" else each.offering.price))
        for each in options(world, kind, "m5.large", "r5.large")
    ]
    own.sort(key=lambda each: each.offering.order)
    made = buy(world, claim(), own)

    assert world.asked("create_fleet")[0][field] == {"AllocationStrategy": strategy}
    assert made.labels[labels.INSTANCE_TYPE] == "r5.large"


def test_what_ran_dry_is_remembered_also_when_something_else_was_launched(world: AwsWorld) -> None:
    world.put()
    for zone in "abcdef":
        world.account.limits["on-demand", "c5.large", f"us-east-1{zone}"] = 0
    before = world.provider.generation(pool())
    made = buy(world, claim(), options(world, "on-demand", "c5.large", "m5.large"))

    assert made.labels[labels.INSTANCE_TYPE] == "m5.large"
    assert options(world, "on-demand", "c5.large") == []
    assert options(world, "spot", "c5.large")
    assert world.provider.generation(pool()) != before
    world.forward(timedelta(minutes=4))
    assert options(world, "on-demand", "c5.large")


def test_a_subnet_without_addresses_leaves_the_zone_to_the_others_and_a_zone_without_any_is_left_out(
    world: AwsWorld,
) -> None:
    subnet = world.account.subnets["subnet-1"]
    world.account.subnets["subnet-99"] = {**subnet, "free": 3000}
    world.put()
    given = options(world, "on-demand", "m5.large", "c5.large")
    here = [each for each in given if each.offering.zone == subnet["zone"]]
    subnet["free"] = 0
    with pytest.raises(InsufficientCapacity):
        buy(world, claim("uid-a"), here)
    assert {each.name for each in options(world) if each.offering.zone == subnet["zone"]} > {"m5.large", "c5.large"}

    made = buy(world, claim("uid-b"), here)
    assert world.account.machines[made.provider_id.rpartition("/")[2]].subnet == "subnet-99"

    world.account.subnets["subnet-99"]["free"] = 0
    with pytest.raises(InsufficientCapacity):
        buy(world, claim("uid-c"), here)
    assert not [each for each in options(world, "on-demand", "m5.large", "c5.large") if each in here]
    assert options(world, "on-demand", "m5.large")


def test_launches_that_are_not_answered_yet_take_addresses_in_their_subnets(world: AwsWorld) -> None:
    subnet = world.account.subnets["subnet-1"]
    world.account.subnets["subnet-99"] = {**subnet, "free": 80}
    subnet["free"] = 100
    world.put()
    here = [each for each in options(world, "on-demand", "m5.large") if each.offering.zone == subnet["zone"]]

    async def together() -> None:
        await asyncio.gather(*(world.provider.create(claim(f"uid-{number}"), here) for number in range(5)))

    world.run(together())
    used = Counter(each.subnet for each in world.account.machines.values())
    assert used == {"subnet-1": 3, "subnet-99": 2}


def failing(code: str, message: str = "") -> Any:
    def fail(operation: str, parameters: Any) -> None:
        if operation == "create_fleet":
            raise AwsError(code, message)

    return fail


@pytest.mark.parametrize(("code", "message", "kind", "reason"), [
    ("UnauthorizedOperation", "You are not authorized to perform this operation", LaunchFailed, "Unauthorized"),
    ("InvalidAMIID.NotFound", "", LaunchFailed, "AMINotFound"),
    ("InvalidParameterValue", "Invalid IAM Instance Profile name", LaunchFailed, "InstanceProfileNameInvalid"),
    ("SomethingElse", "", LaunchFailed, "LaunchFailed"),
    ("RequestLimitExceeded", "", Transient, ""),
    ("ExpiredToken", "", LaunchFailed, "Unauthorized"),
])  # fmt: skip
def test_errors_of_the_call_are_told_with_their_reason(
    world: AwsWorld, code: str, message: str, kind: type[Exception], reason: str
) -> None:
    world.put()
    given = options(world)
    world.face.before = failing(code, message)

    with pytest.raises(kind) as caught:
        buy(world, claim(), given)

    assert getattr(caught.value, "reason", "") == reason
    assert world.account.machines == {}


def test_one_error_that_is_no_shortage_is_told_to_the_user(world: AwsWorld) -> None:
    world.put()
    given = options(world, "on-demand", "m5.large")
    world.account.limits["on-demand", "m5.large", "us-east-1a"] = 0
    del world.account.subnets["subnet-2"]
    for number in (3, 4, 5, 6):
        world.account.subnets[f"subnet-{number}"]["free"] = 0

    with pytest.raises(LaunchFailed, match=r"InvalidSubnetID\.NotFound"):
        buy(world, claim(), given)


def test_a_lost_answer_costs_no_second_machine(world: AwsWorld) -> None:
    world.put()
    given = options(world)
    world.face.after = failing("Unreachable", "the answer was lost")
    with pytest.raises(Transient):
        buy(world, claim(), given)
    world.face.after = lambda operation, parameters: None

    made = buy(world, claim(), given)

    assert [each.provider_id for each in world.run(world.provider.list())] == [made.provider_id]


def test_a_lost_answer_costs_no_second_machine_when_lists_are_behind(world: AwsWorld) -> None:
    """EC2 does not show the machine yet: the token alone keeps a second one from being launched."""
    world.put()
    world.account.timing.shows = 30.0
    given = options(world)
    world.face.after = failing("Unreachable", "the answer was lost")
    with pytest.raises(Transient):
        buy(world, claim(), given)
    world.face.after = lambda operation, parameters: None

    other = world.connect()  # the process was started again
    world.run(other.refresh())
    world.provider = other
    world.look()
    with pytest.raises(Transient, match="earlier launch"):
        buy(world, claim(), options(world, "on-demand", "m5.large"))
    assert buy(world, claim(), given).provider_id
    world.forward(timedelta(minutes=1))

    assert len(world.run(world.provider.list())) == 1


def test_a_launch_that_found_nothing_is_not_answered_with_its_own_past(world: AwsWorld) -> None:
    world.put()
    given = options(world, "on-demand", "m5.large")
    for zone in "abcdef":
        world.account.limits["on-demand", "m5.large", f"us-east-1{zone}"] = 0
    with pytest.raises(InsufficientCapacity):
        buy(world, claim(), given)
    world.account.limits.clear()
    world.forward(timedelta(minutes=4))

    assert buy(world, claim(), given).provider_id


def test_a_class_that_was_edited_is_looked_at_before_it_is_launched_from(world: AwsWorld) -> None:
    made = world.put()
    given = options(world)
    world.classes["default"] = replace(made, metadata=replace(made.metadata, generation=2))

    with pytest.raises(NodeClassNotReady, match="was changed"):
        buy(world, claim(), given)


def reserved(world: AwsWorld, **terms: Any) -> list[Option]:
    world.put(capacityReservationSelectorTerms=[terms or {"id": "cr-1"}])
    return options(world, "reserved")


def test_a_reserved_launch_names_its_reservation_and_others_stay_out_of_it(world: AwsWorld) -> None:
    world.reserve()
    (option,) = reserved(world)
    made = buy(world, claim("a"), [option])

    wanted = template_data(world)["CapacityReservationSpecification"]
    assert wanted == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": "cr-1"},
    }
    assert made.labels[labels.CAPACITY_TYPE] == "reserved"
    assert world.run(world.provider.get(made.provider_id)).labels == made.labels
    buy(world, claim("b"), options(world, "on-demand", "m5.large"))
    assert template_data(world)["CapacityReservationSpecification"] == {"CapacityReservationPreference": "none"}


def test_of_two_reservations_of_a_type_and_zone_the_fuller_one_is_taken(world: AwsWorld) -> None:
    world.reserve("cr-1", count=3)
    world.reserve("cr-2", count=5)
    buy(world, claim(), reserved(world, instanceType="m5.large"))

    (machine,) = world.account.machines.values()
    assert machine.reservation == "cr-2"


def test_a_reservation_that_another_cluster_filled_is_empty_from_then_on(world: AwsWorld) -> None:
    held = world.reserve()
    given = reserved(world)
    held.elsewhere = 2

    with pytest.raises(InsufficientCapacity, match="ReservationCapacityExceeded"):
        buy(world, claim(), given)
    assert options(world, "reserved") == []
    assert options(world, "on-demand", "m5.large")


def test_a_capacity_block_is_asked_for_as_one(world: AwsWorld) -> None:
    world.reserve(kind="capacity-block", end=START + timedelta(hours=2))
    given = reserved(world)
    buy(world, claim(), given)

    (request,) = world.asked("create_fleet")
    assert request["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "capacity-block"
    assert template_data(world)["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    world.forward(timedelta(minutes=81))
    assert options(world, "reserved") == []


def test_300_reservations_are_offered_and_the_status_lists_100(world: AwsWorld) -> None:
    for number in range(300):
        world.reserve(f"cr-{number:03}", tags={"team": "a"})
    made = world.put(capacityReservationSelectorTerms=[{"tags": {"team": "*"}}])

    assert (len(made.status.capacity_reservations), made.status.capacity_reservation_count) == (100, 300)
    assert made.status.capacity_reservations[0].available_instance_count == 2
    assert len(options(world, "reserved")) == 300


DRIFT = {
    "NodeClassDrift": lambda world: world.put(userData="#!/bin/sh"),
    "AMIDrift": lambda world: world.account.parameters.update(
        {key: "ami-9" for key in world.account.parameters if "x86_64/standard" in key}
    ),
    "SecurityGroupDrift": lambda world: world.account.groups.update(
        {"sg-2": {"name": "more", "tags": {"karpenter.sh/discovery": "prod"}}}
    ),
    "SubnetDrift": lambda world: [world.account.subnets.pop(f"subnet-{number}") for number in range(1, 6)],
    "CapacityReservationDrift": lambda world: world.put(capacityReservationSelectorTerms=[{"id": "cr-2"}]),
    "": lambda world: setattr(world.account.reservations["cr-1"], "cancelled", True),
}


@pytest.mark.parametrize(("reason", "change"), DRIFT.items(), ids=lambda each: each if isinstance(each, str) else "")
def test_a_machine_drifts(world: AwsWorld, reason: str, change: Any) -> None:
    world.reserve()
    world.reserve("cr-2", type="c5.large")
    world.account.images["ami-9"] = {**world.account.images["ami-1"], "created": "2026-02-01T00:00:00.000Z"}
    made = buy(world, claim(), reserved(world))
    bought = replace(claim(), metadata=replace(claim().metadata, annotations=made.annotations))
    bought = replace(bought, status=replace(bought.status, provider_id=made.provider_id))
    assert world.run(world.provider.drift_reason(bought)) == ""
    change(world)
    world.look()
    stamp = world.provider._annotations(world.classes["default"])
    world.classes["default"] = replace(
        world.classes["default"], metadata=replace(world.classes["default"].metadata, annotations=stamp)
    )

    assert world.run(world.provider.drift_reason(bought)) == reason


def test_a_machine_remembers_the_class_it_was_launched_from(world: AwsWorld) -> None:
    world.put()
    made = buy(world, claim(), options(world))
    world.put(userData="#!/bin/sh")

    assert (
        buy(world, claim(), options(world)).annotations == world.run(world.provider.get(made.provider_id)).annotations
    )
    assert world.run(world.provider.get(made.provider_id)).annotations.items() <= made.annotations.items()
