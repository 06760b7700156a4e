"""Placement groups: machines are launched into the group of their class, and drift when it is another one."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.awsworld import AwsWorld
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options, pool, template_data

from joiner.cloud.aws.nodeclass.placement import GROUP_ID, PARTITION
from joiner.cloud.aws.provider import VOCABULARY
from joiner.cloud.errors import InsufficientCapacity, Transient
from joiner.cloud.provider import Instance
from joiner.cloud.registration import Answer, hooks_of
from joiner.model.meta import replace
from joiner.model.nodeclaim import NodeClaim


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld()
    for number, strategy in ((1, "cluster"), (2, "partition")):
        made.account.placement_groups[f"pg-{number}"] = {
            "GroupId": f"pg-{number}", "GroupName": f"group-{number}", "Strategy": strategy, "State": "available",
            **({"PartitionCount": 3} if strategy == "partition" else {}),
        }  # fmt: skip
    yield made
    made.close()


def bought(made: Instance) -> NodeClaim:
    return replace(claim(), status=replace(claim().status, provider_id=made.provider_id))


@pytest.mark.parametrize("selector", [{"name": "group-1"}, {"id": "pg-1"}])
def test_machines_are_launched_into_the_group_of_their_class(world: AwsWorld, selector: dict[str, str]) -> None:
    world.put(placementGroupSelector=selector)
    buy(world, claim(), options(world, "on-demand", "m5.large"))

    assert template_data(world)["Placement"] == {"Tenancy": "default", "GroupId": "pg-1"}
    (machine,) = world.account.machines.values()
    assert machine.placement_group == "pg-1"


def test_ec2_chooses_the_partition_of_a_claim_that_asks_for_none_and_the_node_waits_for_it(world: AwsWorld) -> None:
    world.put(placementGroupSelector={"name": "group-2"})
    made = buy(world, claim(), options(world, "on-demand", "m5.large"))
    (hook,) = hooks_of(world.provider)

    assert template_data(world)["Placement"] == {"Tenancy": "default", "GroupId": "pg-2"}
    assert made.labels[GROUP_ID] == "pg-2"
    assert PARTITION not in made.labels
    assert world.run(hook.registered(bought(made))).again_s is not None
    (machine,) = world.account.machines.values()
    machine.partition = 3
    assert world.run(hook.registered(bought(made))) == Answer(labels={PARTITION: "3"})
    assert world.run(world.provider.get(made.provider_id)).labels[PARTITION] == "3"


def test_the_lowest_partition_that_a_claim_asks_for_is_launched_into(world: AwsWorld) -> None:
    world.put(placementGroupSelector={"name": "group-2"})
    wanted = [{"key": PARTITION, "operator": "In", "values": ["3", "2", "9"]}]
    made = buy(world, claim(requirements=wanted), options(world, "on-demand", "m5.large"))

    assert template_data(world)["Placement"] == {"Tenancy": "default", "GroupId": "pg-2", "PartitionNumber": 2}
    assert made.labels[PARTITION] == "2"
    (hook,) = hooks_of(world.provider)
    asked = len(world.asked("describe_instances"))
    assert world.run(
        hook.registered(replace(bought(made), metadata=replace(bought(made).metadata, labels=made.labels)))
    )
    assert len(world.asked("describe_instances")) == asked


@pytest.mark.parametrize(("selector", "group", "partitions"), [
    (None, set(), set()), ({"name": "group-1"}, {"pg-1"}, set()), ({"name": "group-2"}, {"pg-2"}, {"1", "2", "3"}),
])  # fmt: skip
def test_types_say_the_group_and_its_partitions_or_that_there_are_none(
    world: AwsWorld, selector: dict[str, str] | None, group: set[str], partitions: set[str]
) -> None:
    world.put(placementGroupSelector=selector)
    kind = next(each for each in world.run(world.provider.instance_types(pool())) if each.name == "m5.large")

    for key, values in ((GROUP_ID, group), (PARTITION, partitions)):
        assert (kind.requirements.at(key).values, kind.requirements.at(key).complement) == (frozenset(values), False)
    assert VOCABULARY.well_known >= {GROUP_ID, PARTITION}


def test_a_shortage_in_a_group_is_one_of_the_group_alone(world: AwsWorld) -> None:
    world.put("outside")
    world.put(placementGroupSelector={"name": "group-1"})
    for zone in "abcdef":
        world.account.limits["on-demand", "m5.large", f"us-east-1{zone}"] = 0
    with pytest.raises(InsufficientCapacity):
        buy(world, claim(), options(world, "on-demand", "m5.large"))

    def sold(name: str) -> bool:
        kinds = world.run(world.provider.instance_types(pool(name)))
        (kind,) = (each for each in kinds if each.name == "m5.large")
        return any(each.launchable for each in kind.offerings if each.capacity_type == "on-demand")

    assert (sold("default"), sold("outside")) == (False, True)


def test_a_spreading_group_that_is_full_in_a_zone_takes_nothing_more_there(world: AwsWorld) -> None:
    world.put(placementGroupSelector={"name": "group-1"})
    given = [each for each in options(world, "on-demand") if each.offering.zone in ("us-east-1a", "us-east-1b")]
    said = "You have reached the limit of 7 instances in this spread placement group"

    class Full:
        async def call(self, service: str, operation: str, /, **parameters: Any) -> Any:
            made = await world.face.call(service, operation, **parameters)
            if operation != "create_fleet":
                return made
            first = parameters["LaunchTemplateConfigs"][0]
            override = next(each for each in first["Overrides"] if each["AvailabilityZone"] == "us-east-1a")
            used = {"LaunchTemplateSpecification": first["LaunchTemplateSpecification"], "Overrides": override}
            error = {"LaunchTemplateAndOverrides": used, "ErrorCode": "InsufficientInstanceCapacity"}
            return {**made, "Errors": [{**error, "ErrorMessage": said}]}

    world.provider._fleet._api = Full()
    buy(world, claim(), given)

    assert {each.offering.zone for each in options(world, "on-demand")} & {"us-east-1a", "us-east-1b"} == {"us-east-1b"}


def test_a_class_without_a_group_says_nothing_about_placement(world: AwsWorld) -> None:
    world.put()
    buy(world, claim(), options(world, "on-demand", "m5.large"))

    assert "Placement" not in template_data(world)


@pytest.mark.parametrize("prefix", ["karpenter.k8s.aws", "eks.amazonaws.com"])
@pytest.mark.parametrize(("allowed", "tenancy"), [
    (("dedicated",), "dedicated"), (("default",), "default"), (("dedicated", "default"), "default"), ((), "default"),
])  # fmt: skip
def test_hardware_is_shared_unless_the_claim_forbids_it(
    world: AwsWorld, prefix: str, allowed: tuple[str, ...], tenancy: str
) -> None:
    world.put()
    key = f"{prefix}/instance-tenancy"
    wanted = [{"key": key, "operator": "In", "values": list(allowed)}] if allowed else []
    made = buy(world, claim(requirements=wanted), options(world, "on-demand", "m5.large"))

    assert template_data(world).get("Placement", {}) == ({"Tenancy": tenancy} if tenancy != "default" else {})
    assert made.labels[key] == tenancy
    assert world.run(world.provider.get(made.provider_id)).labels == made.labels


def test_a_process_that_was_just_started_launches_nothing_outside_of_the_group(world: AwsWorld) -> None:
    world.put(placementGroupSelector={"name": "group-1"})
    world.provider = world.connect()
    world.run(world.provider.refresh())

    with pytest.raises(Transient, match="placement group was not looked up yet"):
        buy(world, claim(), options(world, "on-demand", "m5.large"))
    assert world.account.machines == {}
    world.look()
    assert buy(world, claim(), options(world, "on-demand", "m5.large")).provider_id


@pytest.mark.parametrize("other", [{"name": "group-2"}, None])
def test_a_machine_in_another_group_than_that_of_its_class_drifts(
    world: AwsWorld, other: dict[str, str] | None
) -> None:
    world.put(placementGroupSelector={"name": "group-1"})
    machine = bought(buy(world, claim(), options(world, "on-demand", "m5.large")))
    before = world.provider.generation(pool())
    assert world.run(world.provider.drift_reason(machine)) == ""

    world.put(placementGroupSelector=other)

    assert world.run(world.provider.drift_reason(machine)) == "PlacementGroupDrift"
    assert world.provider.generation(pool()).placement_group != before.placement_group
