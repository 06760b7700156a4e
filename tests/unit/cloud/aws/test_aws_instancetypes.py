"""What an EC2NodeClass makes of EC2's types."""

from typing import Any

import pytest
from tests.unit.cloud.aws.builders import node_class

from joiner.catalog.market import InstanceType
from joiner.cloud.aws.instancetypes import instance_types, why_not
from joiner.cloud.aws.offline import region_of, resolved
from joiner.cloud.aws.settings import AwsSettings, BadSetting, read
from joiner.cloud.sources import facts
from joiner.cloud.sources.reservation import Reservation
from joiner.model import resources
from joiner.model.labels import ZONE
from joiner.model.meta import replace

REGION = "us-east-1"
NAMES = ("a1.large", "g4dn.xlarge", "m5.large", "m5d.large", "m6g.large", "p4d.24xlarge", "t2.micro", "trn1.32xlarge")
FACTS = replace(facts.load(), types=tuple(each for each in facts.load().types if each.name in NAMES))


def types(settings: AwsSettings | None = None, status: Any = None, **spec: Any) -> dict[str, InstanceType]:
    made = resolved(node_class(status=status, **spec), REGION)
    return {each.name: each for each in instance_types(FACTS, REGION, made, settings or AwsSettings())}


def capacity(name: str = "m5.large", settings: AwsSettings | None = None, **spec: Any) -> dict[str, str]:
    return resources.written(types(settings, **spec)[name].capacity)


def test_a_class_that_says_nothing_gives_the_numbers_of_an_al2023_node() -> None:
    assert capacity() == {"cpu": "2", "memory": "7577Mi", "pods": "29", "ephemeral-storage": "20Gi"}
    allocatable = resources.written(types()["m5.large"].allocatable())
    assert allocatable == {"cpu": "1930m", "memory": "6903Mi", "pods": "29", "ephemeral-storage": "17Gi"}


def mapping(device: str, size: str, **more: Any) -> dict[str, Any]:
    return {"deviceName": device, "ebs": {"volumeSize": size}, **more}


VOLUMES = [
    pytest.param({"blockDeviceMappings": [mapping("/dev/xvda", "200Gi")]}, "200Gi", id="the family's own device"),
    pytest.param({"blockDeviceMappings": [mapping("/dev/xvdz", "200Gi")]}, "20Gi", id="another device"),
    pytest.param(
        {"blockDeviceMappings": [mapping("/dev/xvda", "9Gi"), mapping("/dev/b", "1000Gi", rootVolume=True)]},
        "1000Gi",
        id="the root volume",
    ),
    pytest.param(
        {"amiFamily": "Custom", "blockDeviceMappings": [mapping("/dev/a", "9Gi"), mapping("/dev/b", "30Gi")]},
        "30Gi",
        id="the last one of a custom image",
    ),
    pytest.param({"amiSelectorTerms": [{"alias": "bottlerocket@latest"}]}, "20Gi", id="Bottlerocket"),
    pytest.param(
        {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}], "blockDeviceMappings": [mapping("/dev/xvdb", "99Gi")]},
        "99Gi",
        id="Bottlerocket's second device",
    ),
    pytest.param({"instanceStorePolicy": "RAID0"}, "20Gi", id="no local disks"),
]


@pytest.mark.parametrize(("spec", "storage"), VOLUMES)
def test_pods_write_to(spec: dict[str, Any], storage: str) -> None:
    assert capacity(**spec)["ephemeral-storage"] == storage


def test_local_disks_are_what_pods_write_to_where_the_class_wants_it() -> None:
    assert capacity("m5d.large", instanceStorePolicy="RAID0")["ephemeral-storage"] == "75000000000"
    assert capacity("m5d.large")["ephemeral-storage"] == "20Gi"


@pytest.mark.parametrize(
    ("spec", "pods", "memory"),
    [
        ({"kubelet": {"maxPods": 110}}, "110", "574Mi"),
        ({"kubelet": {"podsPerCore": 4}}, "8", "574Mi"),
        ({"amiFamily": "Bottlerocket", "amiSelectorTerms": [{"id": "ami-1"}], "kubelet": {"podsPerCore": 4}}, "29", "574Mi"),
        ({"amiFamily": "Bottlerocket", "amiSelectorTerms": [{"id": "ami-1"}], "kubelet": {"maxPods": 10}}, "10", "365Mi"),
    ],
)  # fmt: skip
def test_pods_and_what_is_kept_back_for_them(spec: dict[str, Any], pods: str, memory: str) -> None:
    m5 = types(**spec)["m5.large"]

    assert resources.written(m5.capacity)["pods"] == pods
    assert resources.written(m5.overhead.kube_reserved)["memory"] == memory


def test_settings_of_the_cluster_count() -> None:
    assert capacity(settings=AwsSettings(reserved_enis=1))["pods"] == "20"
    assert capacity(settings=AwsSettings(vm_memory_overhead_percent=0))["memory"] == "8Gi"


def test_memory_that_a_node_was_seen_to_have_replaces_the_guess() -> None:
    made = resolved(node_class(), REGION)
    seen = {"m5.large": 7800 * (1 << 20) * 1000}
    found = {each.name: each for each in instance_types(FACTS, REGION, made, AwsSettings(), discovered_memory=seen)}

    assert resources.written(found["m5.large"].capacity)["memory"] == "7800Mi"
    assert resources.written(found["m5.large"].vm_overhead)["memory"] == "392Mi"
    assert resources.written(found["m5d.large"].capacity)["memory"] == "7577Mi"


def test_interfaces_for_efa_alone_take_addresses_from_pods() -> None:
    first = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    efa = {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"}
    plain, made = capacity("p4d.24xlarge"), capacity("p4d.24xlarge", networkInterfaces=[first, efa])

    assert (plain["vpc.amazonaws.com/efa"], made["vpc.amazonaws.com/efa"]) == ("4", "1")
    assert int(plain["pods"]) - int(made["pods"]) == 49
    assert not any(o.launchable for o in types(networkInterfaces=[first, efa])["m5.large"].offerings)


@pytest.mark.parametrize(
    ("zones", "region"),
    [
        (("us-west-2b",), "us-west-2"),
        (("us-west-2-lax-1a", "us-west-2b"), "us-west-2"),
        (("us-gov-east-1a",), "us-gov-east-1"),
        ((), ""),
    ],
)
def test_the_subnets_of_a_status_say_the_region(zones: tuple[str, ...], region: str) -> None:
    status = {"subnets": [{"id": f"subnet-{number}", "zone": zone} for number, zone in enumerate(zones)]}
    assert region_of(node_class(status=status)) == region


def test_only_zones_of_the_subnets_are_sold_in() -> None:
    status = {"subnets": [{"id": "subnet-1", "zone": "us-east-1b", "zoneID": "use1-az9"}]}
    m5 = types(status=status)["m5.large"]

    assert m5.requirements[ZONE].values == {"us-east-1b"}
    assert {offering.zone for offering in m5.offerings} == {"us-east-1b"}
    assert m5.requirements["topology.k8s.aws/zone-id"].values == {"use1-az9"}


@pytest.mark.parametrize(
    ("spec", "name", "words"),
    [
        ({}, "a1.large", "AL2023"),
        ({"connectionTracking": {"udpTimeout": 30}}, "t2.micro", "Nitro"),
        ({"cpuOptions": {"nestedVirtualization": "enabled"}}, "m5.large", "nested"),
        (
            {"networkInterfaces": [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}]},
            "t2.micro",
            "ENA",
        ),
    ],
)
def test_what_the_class_cannot_launch_is_listed_and_not_available(spec: dict[str, Any], name: str, words: str) -> None:
    known = {each.name: replace(each, nested_virtualization=False, ena=False) for each in FACTS.types}
    made = resolved(node_class(**spec), REGION)
    found = {
        each.name: each
        for each in instance_types(replace(FACTS, types=tuple(known.values())), REGION, made, AwsSettings())
    }

    assert words in why_not(known[name], made.spec)
    assert not any(offering.launchable for offering in found[name].offerings)


def test_a_type_that_is_sold_in_capacity_blocks_alone_is_bought_out_of_its_reservation() -> None:
    block = tuple(
        replace(each, usage_classes=("capacity-block",)) for each in FACTS.types if each.name == "p4d.24xlarge"
    )
    sold = FACTS.regions[REGION].types["p4d.24xlarge"]
    held = Reservation(
        id="cr-1", instance_type="p4d.24xlarge", zone=sold.zones[0], count=2, reservation_type="capacity-block"
    )
    (made,) = instance_types(
        replace(FACTS, types=block), REGION, resolved(node_class(), REGION), AwsSettings(), reservations=(held,)
    )

    (offering,) = (each for each in made.offerings if each.launchable)
    assert (offering.capacity_type, offering.zone, offering.available) == ("reserved", sold.zones[0], 2)
    assert made.requirements.intersects(offering.requirements)


STANDARD = [
    {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "DoesNotExist"},
    {"key": "karpenter.k8s.aws/instance-accelerator-count", "operator": "DoesNotExist"},
]
NVIDIA = [{"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Exists"}]


def image(arch: str, requirements: list[Any]) -> dict[str, Any]:
    return {
        "id": "ami-1",
        "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": [arch]}, *requirements],
    }


@pytest.mark.parametrize(
    ("amis", "booted"),
    [
        ([], {"g4dn.xlarge", "m5.large", "m6g.large", "trn1.32xlarge"}),
        ([image("amd64", STANDARD)], {"m5.large"}),
        ([image("arm64", STANDARD)], {"m6g.large"}),
        ([image("amd64", NVIDIA)], {"g4dn.xlarge"}),
        ([image("amd64", NVIDIA), image("amd64", STANDARD)], {"g4dn.xlarge", "m5.large"}),
    ],
)
def test_types_that_no_image_boots_on_are_not_available(amis: list[Any], booted: set[str]) -> None:
    found = types(status={"amis": amis})

    asked = ("g4dn.xlarge", "m5.large", "m6g.large", "trn1.32xlarge")
    assert {name for name in asked if any(o.launchable for o in found[name].offerings)} == booted


def test_settings_are_read_from_the_environment_of_karpenter() -> None:
    made = read({"CLUSTER_NAME": "prod", "AWS_REGION": "eu-west-1", "RESERVED_ENIS": "2", "ISOLATED_VPC": "true"})

    assert (made.cluster_name, made.region, made.reserved_enis, made.isolated_vpc) == ("prod", "eu-west-1", 2, True)
    with pytest.raises(BadSetting) as caught:
        read({"RESERVED_ENIS": "-1", "AMI_REFRESH_INTERVAL": "10s", "ENABLE_ZONAL_SHIFT": "true"})
    assert all(word in str(caught.value) for word in ("RESERVED_ENIS", "AMI_REFRESH", "zonal shift is not supported"))


@pytest.mark.parametrize(("text", "fine"), [("true", True), ("", True), ("false", False)])
def test_eks_is_always_asked_for_the_version(text: str, fine: bool) -> None:
    if fine:
        read({"EKS_CONTROL_PLANE": text})
    else:
        with pytest.raises(BadSetting, match=r"EKS_CONTROL_PLANE: .* leave it out"):
            read({"EKS_CONTROL_PLANE": text})
