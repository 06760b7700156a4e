"""The test vectors of Karpenter's AWS provider, asked of ours: types through an EC2NodeClass, reservations and errors of a fleet.

Where the numbers come from: `docs/guide/aws.md` names what is decided otherwise. The price of a reservation only orders it among
reservations, so of an ordinary one and a block the one with the lower price is taken, as there.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.awsworld import START, AwsWorld
from tests.unit.cloud.aws.builders import node_class
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options, reserved

from joiner.catalog.market import InstanceType
from joiner.cloud.aws.account import ReservationAccount
from joiner.cloud.aws.api import NO_SPOT_ROLE
from joiner.cloud.aws.instancetypes import instance_types
from joiner.cloud.aws.nodeclass.ec2nodeclass import CapacityReservation
from joiner.cloud.aws.offline import resolved
from joiner.cloud.aws.settings import AwsSettings
from joiner.cloud.errors import InsufficientCapacity, LaunchFailed
from joiner.cloud.interruption import interruptions_of
from joiner.cloud.sources import facts
from joiner.model import resources
from joiner.model.meta import replace

NAMES = frozenset(
    {
        "m5.large",
        "m5.xlarge",
        "m5.2xlarge",
        "m5.24xlarge",
        "m6g.large",
        "p4d.24xlarge",
        "trn1.32xlarge",
        "u7in-32tb.224xlarge",
    }
)
FACTS = replace(facts.load(), types=tuple(each for each in facts.load().types if each.name in NAMES))


def kind(name: str, settings: AwsSettings | None = None, **spec: Any) -> InstanceType:
    region = next(place for place, sold in FACTS.regions.items() if name in sold.types)
    made = resolved(node_class(**spec), region)
    return next(each for each in instance_types(FACTS, region, made, settings or AwsSettings()) if each.name == name)


def own(name: str, label: str) -> str | None:
    return kind(name).requirements.at(f"karpenter.k8s.aws/{label}").any()


def test_m5_large() -> None:
    made = kind("m5.large")
    overhead = made.overhead

    assert resources.written(made.capacity) == {
        "cpu": "2",
        "memory": "7577Mi",
        "pods": "29",
        "ephemeral-storage": "20Gi",
    }
    assert resources.written(overhead.kube_reserved) == {"cpu": "70m", "memory": "574Mi", "ephemeral-storage": "1Gi"}
    assert resources.written(overhead.eviction(made.capacity)) == {"memory": "100Mi", "ephemeral-storage": "2Gi"}
    left = resources.written(made.allocatable())
    assert (left["cpu"], left["memory"], left["ephemeral-storage"]) == ("1930m", "6903Mi", "17Gi")


def test_arm_machines_lack_what_their_firmware_takes() -> None:
    assert resources.written(kind("m6g.large").capacity)["memory"] == "7518Mi"


def test_a_network_interface_less_for_pods_keeps_back_as_much_memory() -> None:
    made = kind("m5.large", AwsSettings(reserved_enis=1))
    assert resources.written(made.capacity)["pods"] == "20"
    assert resources.written(made.overhead.kube_reserved)["memory"] == "574Mi"


@pytest.mark.parametrize(("alias", "pods"), [("al2023@latest", "8"), ("bottlerocket@latest", "29")])
def test_four_pods_for_each_core(alias: str, pods: str) -> None:
    made = kind("m5.large", kubelet={"podsPerCore": 4}, amiSelectorTerms=[{"alias": alias}])
    assert resources.written(made.capacity)["pods"] == pods


@pytest.mark.parametrize(("name", "cpu"), [("m5.xlarge", "80m"), ("m5.2xlarge", "90m"), ("m5.24xlarge", "310m")])
def test_the_kubelet_keeps_back_less_of_each_further_core(name: str, cpu: str) -> None:
    assert resources.written(kind(name).overhead.kube_reserved)["cpu"] == cpu


def test_p4d_24xlarge() -> None:
    capacity = resources.written(kind("p4d.24xlarge").capacity)
    assert (capacity["nvidia.com/gpu"], capacity["vpc.amazonaws.com/efa"]) == ("8", "4")
    found = [own("p4d.24xlarge", f"instance-{each}") for each in ("gpu-name", "gpu-memory", "local-nvme")]
    assert found == ["a100", "40960", "8000"]
    disks = kind("p4d.24xlarge", instanceStorePolicy="RAID0").capacity["ephemeral-storage"]
    assert disks == 8000 * 10**9 * 1000


def test_trn1_32xlarge() -> None:
    capacity = resources.written(kind("trn1.32xlarge").capacity)
    assert (capacity["aws.amazon.com/neuron"], capacity["aws.amazon.com/neuroncore"]) == ("16", "32")
    assert own("trn1.32xlarge", "instance-accelerator-name") == "trainium"


def test_a_family_with_a_size_of_memory_in_its_name() -> None:
    found = [own("u7in-32tb.224xlarge", f"instance-{each}") for each in ("family", "category", "generation")]
    assert found == ["u7in-32tb", "u", "7"]


def account(count: int = 2) -> ReservationAccount:
    made = ReservationAccount()
    known = CapacityReservation(
        id="cr-1",
        instance_type="m5.large",
        availability_zone="us-east-1a",
        available_instance_count=count,
        total_instance_count=3,
    )
    made.synced((known,), START, START + timedelta(seconds=1))
    return made


def test_the_account_of_a_reservation_with_two_left() -> None:
    made = account()
    made.launched("cr-1", START + timedelta(seconds=1))
    assert made.left("cr-1") == 1
    made.launched("cr-1", START - timedelta(seconds=1))  # EC2 was asked after it, and counted it
    assert made.left("cr-1") == 1
    made.exhausted("cr-1")
    assert made.left("cr-1") == 0
    made.launched("cr-1", START + timedelta(seconds=2))
    assert made.left("cr-1") == 0
    made.ended("cr-1", START + timedelta(seconds=3))
    assert made.left("cr-1") == 1
    made.launched("cr-2", START)
    made.ended("cr-2", START)
    assert (made.left("cr-2"), made.knows("cr-2")) == (0, False)


def test_a_machine_that_may_have_been_gone_when_ec2_told_its_count_frees_no_place_twice() -> None:
    made = account()
    made.ended("cr-1", START + timedelta(seconds=0.5))  # while EC2 was answering
    assert made.left("cr-1") == 2
    made.ended("cr-1", START + timedelta(seconds=1))
    assert made.left("cr-1") == 3
    made.ended("cr-1", START + timedelta(seconds=2))
    assert made.left("cr-1") == 3  # there are no more


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld()
    yield made
    made.close()


def test_of_an_ordinary_reservation_and_a_dearer_block_the_ordinary_one_is_taken(world: AwsWorld) -> None:
    world.reserve("cr-1", type="m5.large", count=3)
    world.reserve("cr-2", type="m5.large", count=5)
    world.reserve("cr-3", type="m5.2xlarge", kind="capacity-block", end=START + timedelta(days=1))
    given = sorted(reserved(world, type="targeted"), key=lambda each: (each.offering.order, each.name))
    assert len(given) == 3
    made = buy(world, claim(), given)

    assert made.labels["karpenter.k8s.aws/capacity-reservation-id"] == "cr-2"
    (request,) = world.asked("create_fleet")
    assert {o["InstanceType"] for c in request["LaunchTemplateConfigs"] for o in c["Overrides"]} == {"m5.large"}


def dry(world: AwsWorld, name: str, zones: str) -> None:
    for zone in zones:
        world.account.limits["on-demand", name, f"us-east-1{zone}"] = 0


def test_a_shortage_beside_a_machine_is_remembered_for_three_minutes(world: AwsWorld) -> None:
    world.put()
    given = options(world, "on-demand", "m5.large", "c5.large")
    dry(world, "c5.large", "abcdef")
    made = buy(world, claim(), given)

    assert made.labels["node.kubernetes.io/instance-type"] == "m5.large"
    world.forward(timedelta(minutes=2, seconds=50))
    assert options(world, "on-demand", "c5.large") == []
    world.forward(timedelta(seconds=15))
    assert options(world, "on-demand", "c5.large")


class Told:
    """An account whose fleets fail with these codes, one for each type."""

    def __init__(self, world: AwsWorld, *codes: tuple[str, str]) -> None:
        self._world, self._codes = world, codes

    async def call(self, service: str, operation: str, /, **parameters: Any) -> Any:
        if operation != "create_fleet" or parameters.get("DryRun"):
            return await self._world.face.call(service, operation, **parameters)
        overrides = [o for config in parameters["LaunchTemplateConfigs"] for o in config["Overrides"]]
        errors = [
            {"ErrorCode": code, "ErrorMessage": message, "LaunchTemplateAndOverrides": {"Overrides": override}}
            for (code, message), override in zip(self._codes, overrides, strict=False)
        ]
        return {"FleetId": "fleet-1", "Errors": errors, "Instances": []}


def refused(world: AwsWorld, *codes: tuple[str, str]) -> Exception:
    world.put()
    given = options(world, "on-demand", "m5.large", "c5.large")
    world.provider._fleet._api = Told(world, *codes)
    with pytest.raises((InsufficientCapacity, LaunchFailed)) as caught:
        buy(world, claim(), given)
    return caught.value


SHORT = ("InsufficientInstanceCapacity", "none is left")
UNFULFILLABLE = [
    "InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "UnfulfillableCapacity", "Unsupported",
    "InsufficientFreeAddressesInSubnet", "MaxFleetCountExceeded", "ReservationCapacityExceeded",
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
]  # fmt: skip


@pytest.mark.parametrize("code", UNFULFILLABLE)
def test_codes_that_mean_a_shortage(world: AwsWorld, code: str) -> None:
    assert isinstance(refused(world, (code, "")), InsufficientCapacity)


def test_a_fleet_without_machine_and_error_is_a_shortage(world: AwsWorld) -> None:
    assert isinstance(refused(world), InsufficientCapacity)


def test_without_the_role_for_spot_no_spot_machine_is_offered_for_three_minutes_and_it_is_told(world: AwsWorld) -> None:
    told: list[tuple[str, str, str]] = []
    world.provider.tell_with(lambda thing, reason, message: told.append((thing.metadata.name, reason, message)))
    world.put()
    given = options(world, "spot", "m5.large")
    world.provider._fleet._api = Told(world, (NO_SPOT_ROLE, ""))
    with pytest.raises(InsufficientCapacity):
        buy(world, claim(), given)

    assert options(world, "spot") == []
    assert options(world, "on-demand")
    assert told[0][:2] == ("default", "SpotSLRCreationFailed")
    assert "create-service-linked-role" in told[0][2]
    world.forward(timedelta(minutes=4))
    assert options(world, "spot")


REASONS = {
    "Unauthorized": ("UnauthorizedOperation", "You are not authorized to perform this operation."),
    "InsufficientPermissionBoundary": (
        "UnauthorizedOperation",
        "You are not authorized to perform: ec2:RunInstances because no permissions boundary allows the ec2:RunInstances action",
    ),
    "UnauthorizedBySCP": (
        "UnauthorizedOperation",
        "You are not authorized to perform: ec2:RunInstances with an explicit deny in a service control policy",
    ),
    "AMIAuthorizationFailure": ("AuthFailure", "Not authorized for images: [ami-1]"),
    "SecurityGroupSubnetVPCMismatch": (
        "InvalidParameter", "Security group sg-1 and subnet-1 are in different networks."
    ),
    "InstanceProfileNameInvalid": ("InvalidParameterValue", "Invalid IAM Instance Profile name"),
    "UserDataSizeLimitExceeded": ("InvalidParameterValue", "User data is limited to 16384 bytes"),
    "InvalidAMIID": ("InvalidAMIID.Malformed", "Invalid id"),
    "AMINotFound": ("InvalidAMIID.NotFound", "The image id '[ami-1]' does not exist"),
    "RequestLimitExceeded": ("RequestLimitExceeded", "Request limit exceeded."),
    "InternalError": ("InternalError", "An internal error has occurred"),
    "FreeTierIneligible": ("InvalidParameterCombination", "The specified instance type is not eligible for Free Tier."),
    "FleetQuotaExceeded": ("InvalidState", "Fleet quota is used up: you've reached your quota"),
    "AccountPendingVerification": ("PendingVerification", "Your account is currently being verified."),
    "LaunchFailed": ("SomethingNew", "nobody knows"),
}  # fmt: skip


@pytest.mark.parametrize(("reason", "told"), REASONS.items(), ids=REASONS)
def test_one_code_that_is_no_shortage_is_shown_with_its_reason(
    world: AwsWorld, reason: str, told: tuple[str, str]
) -> None:
    error = refused(world, SHORT, told)
    assert isinstance(error, LaunchFailed)
    assert error.reason == reason
    assert told[0] in str(error)


@pytest.mark.parametrize(("kind", "minutes", "expires"), [
    ("capacity-block", 39, True), ("capacity-block", 41, False), ("default", 39, False),
])  # fmt: skip
def test_a_capacity_block_is_left_forty_minutes_before_its_end(
    world: AwsWorld, kind: str, minutes: int, expires: bool
) -> None:
    world.reserve(kind=kind, end=START + timedelta(hours=5))
    made = buy(world, claim(), reserved(world))
    world.forward(START + timedelta(hours=5) - timedelta(minutes=minutes) - world.clock.now())
    found = world.look().status.capacity_reservations[0]
    notices = interruptions_of(world.provider)
    assert notices is not None

    assert found.state == ("expiring" if expires else "active")
    assert bool(options(world, "reserved")) is not expires
    assert [each.instances[0] in made.provider_id for each in world.run(notices.receive())] == [True] * expires
