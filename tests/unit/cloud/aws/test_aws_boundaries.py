"""What belongs to others is left alone, and every field of a class reaches the field of EC2 that it is meant for."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.awsworld import START, AwsWorld
from tests.unit.cloud.aws.builders import node_class
from tests.unit.cloud.aws.test_aws_launch import buy, claim, options, reserved, template_data

from joiner.cloud.aws.inventory import LiveInventory
from joiner.cloud.aws.launch.templates import Template, interfaces
from joiner.model import labels
from joiner.model.meta import replace


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("term", "found"),
    [
        ({"name": "web-*"}, {"ami-own"}),
        ({"name": "web-*", "owner": "999999999999"}, {"ami-strange"}),
        ({"tags": {"team": "a"}}, {"ami-strange"}),
        ({"tags": {"team": "a"}, "owner": "self"}, {"ami-own"}),
    ],
    ids=["a name", "a name and its owner", "tags", "tags and their owner"],
)
def test_a_name_means_images_of_the_account_and_of_amazon_only(
    world: AwsWorld, term: dict[str, Any], found: set[str]
) -> None:
    """Anybody can publish an image under a name; the newer one is the stranger's."""
    image = {"name": "web-1", "architecture": "x86_64", "tags": {"team": "a"}}
    world.account.images["ami-own"] = {**image, "owner": "self", "created": "2026-01-01T00:00:00.000Z"}
    world.account.images["ami-strange"] = {**image, "owner": "999999999999", "created": "2027-01-01T00:00:00.000Z"}

    made = world.put(amiFamily="AL2023", amiSelectorTerms=[term])
    assert {each.id for each in made.status.amis} == found


def test_reservations_that_are_over_are_not_listed(world: AwsWorld) -> None:
    terms = [{"type": "targeted"}, {"id": "cr-2"}, {"id": "cr-3"}, {"id": "cr-99"}]
    world.reserve("cr-1")
    world.reserve("cr-2", cancelled=True)
    world.reserve("cr-3", end=START)
    made = world.put(capacityReservationSelectorTerms=terms)

    assert [each.id for each in made.status.capacity_reservations] == ["cr-1"]


def test_machines_of_other_clusters_and_other_programs_are_never_listed(world: AwsWorld) -> None:
    world.put()
    given = options(world, "on-demand", "m5.large")
    mine, strange, other = (buy(world, claim(f"uid-{each}"), given).provider_id for each in "abc")
    tags = {each.provider_id: each.tags for each in world.account.machines.values()}
    tags[strange]["eks:eks-cluster-name"] = "prod2"
    del tags[other]["karpenter.sh/nodepool"]

    assert [each.provider_id for each in world.run(world.provider.list())] == [mine]


def test_a_machine_that_only_fell_into_an_open_reservation_is_on_demand(world: AwsWorld) -> None:
    world.reserve(criteria="open")
    world.put()
    here = [each for each in options(world, "on-demand", "m5.large") if each.offering.zone == "us-east-1b"]
    buy(world, claim(), here)
    (machine,) = world.account.machines.values()
    assert machine.reservation == "cr-1"

    (listed,) = world.run(world.provider.list())
    assert listed.labels[labels.CAPACITY_TYPE] == "on-demand"
    assert "karpenter.k8s.aws/capacity-reservation-id" not in listed.labels


def test_of_two_capacity_blocks_the_first_alone_is_asked_for(world: AwsWorld) -> None:
    for identity, zone in (("cr-1", "us-east-1a"), ("cr-2", "us-east-1b")):
        world.reserve(identity, zone=zone, kind="capacity-block", end=START + timedelta(hours=5))
    given = reserved(world, type="targeted")
    assert len(given) == 2
    buy(world, claim(), given)

    (request,) = world.asked("create_fleet")
    assert len([each for config in request["LaunchTemplateConfigs"] for each in config["Overrides"]]) == 1


def test_launches_that_were_answered_take_the_addresses_of_their_pods(world: AwsWorld) -> None:
    subnet = world.account.subnets["subnet-1"]
    world.account.subnets["subnet-99"] = {**subnet, "free": 80}
    subnet["free"] = 100
    world.put()
    here = [each for each in options(world, "on-demand", "m5.large") if each.offering.zone == subnet["zone"]]
    for number in range(5):
        buy(world, claim(f"uid-{number}"), here)

    assert Counter(each.subnet for each in world.account.machines.values()) == {"subnet-1": 3, "subnet-99": 2}


def test_a_group_that_the_class_no_longer_selects_is_drift(world: AwsWorld) -> None:
    world.account.groups["sg-2"] = {"name": "more", "tags": {"karpenter.sh/discovery": "prod"}}
    world.put()
    made = buy(world, claim(), options(world, "on-demand", "m5.large"))
    machine = replace(claim(), status=replace(claim().status, provider_id=made.provider_id))
    assert world.run(world.provider.drift_reason(machine)) == ""
    del world.account.groups["sg-2"]
    world.look()

    assert world.run(world.provider.drift_reason(machine)) == "SecurityGroupDrift"


# -- fields of templates ----------------------------------------------------------------------------------------------


def test_volumes_metadata_and_interfaces_are_what_the_class_says(world: AwsWorld) -> None:
    world.put(
        ipPrefixCount=2,
        associatePublicIPAddress=True,
        connectionTracking={"tcpEstablishedTimeout": 90, "udpStreamTimeout": 70, "udpTimeout": 40},
        metadataOptions={
            "httpEndpoint": "disabled",
            "httpProtocolIPv6": "enabled",
            "httpPutResponseHopLimit": 3,
            "httpTokens": "optional",
        },
        blockDeviceMappings=[
            {
                "deviceName": "/dev/xvda",
                "rootVolume": True,
                "ebs": {
                    "deleteOnTermination": True,
                    "iops": 4000,
                    "kmsKeyID": "key",
                    "snapshotID": "snap-1",
                    "throughput": 300,
                    "volumeInitializationRate": 150,
                    "volumeSize": "1Ti",
                    "volumeType": "io2",
                },
            }
        ],
    )
    buy(world, claim(), options(world, "on-demand", "m5.large"))

    data = template_data(world)
    assert data["MetadataOptions"] == {
        "HttpEndpoint": "disabled",
        "HttpProtocolIpv6": "enabled",
        "HttpPutResponseHopLimit": 3,
        "HttpTokens": "optional",
        "InstanceMetadataTags": "disabled",
    }
    assert data["BlockDeviceMappings"][0]["Ebs"] == {
        "DeleteOnTermination": True,
        "Iops": 4000,
        "KmsKeyId": "key",
        "SnapshotId": "snap-1",
        "Throughput": 300,
        "VolumeInitializationRate": 150,
        "VolumeSize": 1024,
        "VolumeType": "io2",
    }
    assert data["NetworkInterfaces"] == [
        {
            "NetworkCardIndex": 0,
            "DeviceIndex": 0,
            "InterfaceType": "interface",
            "Groups": ["sg-1"],
            "AssociatePublicIpAddress": True,
            "Ipv4PrefixCount": 2,
            "ConnectionTrackingSpecification": {
                "TcpEstablishedTimeout": 90,
                "UdpStreamTimeout": 70,
                "UdpTimeout": 40,
            },
        }
    ]


def test_pods_that_ask_for_efa_get_an_interface_on_every_card() -> None:
    made = interfaces(Template(image_id="ami-1", user_data="", efa=3), node_class(associatePublicIPAddress=False))

    places = [(each["NetworkCardIndex"], each["DeviceIndex"], each["InterfaceType"]) for each in made]
    assert places == [(0, 0, "efa"), (1, 1, "efa"), (2, 1, "efa")]
    assert ["AssociatePublicIpAddress" in each for each in made] == [True, False, False]


def test_interfaces_for_efa_alone_have_no_addresses() -> None:
    spec = node_class(
        ipPrefixCount=1,
        connectionTracking={"udpTimeout": 40},
        networkInterfaces=[
            {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
            {"networkCardIndex": 1, "deviceIndex": 0, "interfaceType": "efa-only"},
        ],
    )
    first, second = interfaces(Template(image_id="ami-1", user_data="", efa=4, ipv6=True), spec)

    assert (first["PrimaryIpv6"], first["Ipv6AddressCount"], first["Ipv6PrefixCount"]) == (True, 1, 1)
    assert "ConnectionTrackingSpecification" in first
    assert second == {"NetworkCardIndex": 1, "DeviceIndex": 0, "InterfaceType": "efa-only", "Groups": []}


def test_requests_for_spot_machines_are_tagged_as_the_policy_demands(world: AwsWorld) -> None:
    world.put()
    for number, (kind, tagged) in enumerate(
        (("spot", {"network-interface", "spot-instances-request"}), ("on-demand", {"network-interface"}))
    ):
        buy(world, claim(f"uid-{number}"), options(world, kind, "m5.large"))
        given = template_data(world)["TagSpecifications"]
        assert {each["ResourceType"] for each in given} == tagged
        for each in given:
            assert {"Key": "eks:eks-cluster-name", "Value": "prod"} in each["Tags"]


# -- prices -----------------------------------------------------------------------------------------------------------


class Prices:
    """GetProducts with one machine of each tenancy."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []

    async def call(self, service: str, operation: str, /, **parameters: Any) -> Any:
        wanted = {each["Field"]: each["Value"] for each in parameters["Filters"]}
        self.asked.append(wanted)
        name, price = ("m5.metal", "4.608") if wanted["tenancy"] == "Dedicated" else ("m5.large", "0.111")
        terms = {"OnDemand": {"a": {"priceDimensions": {"b": {"pricePerUnit": {"USD": price}}}}}}
        return {"PriceList": [json.dumps({"product": {"attributes": {"instanceType": name}}, "terms": terms})]}


def test_prices_of_bare_metal_are_those_of_dedicated_hardware(world: AwsWorld) -> None:
    api = Prices()
    inventory = LiveInventory(api, world.clock, "eu-west-1")
    world.run(inventory.refresh_on_demand())

    assert (inventory._on_demand["m5.large"], inventory._on_demand["m5.metal"]) == (0.111, 4.608)
    assert {(each["tenancy"], each["productFamily"]) for each in api.asked} == {
        ("Dedicated", "Compute Instance (bare metal)"),
        ("Shared", "Compute Instance"),
    }
    assert {each["regionCode"] for each in api.asked} == {"eu-west-1"}


def test_where_there_is_no_price_list_it_is_not_asked_for(world: AwsWorld) -> None:
    api = Prices()
    world.run(LiveInventory(api, world.clock, "us-gov-west-1").refresh_on_demand())
    assert api.asked == []

    alone = AwsWorld(isolated_vpc=True)
    assert alone.asked("get_products") == []
    assert alone.asked("describe_spot_price_history")
    alone.close()
