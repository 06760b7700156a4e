"""EC2 types out of the bundled facts: labels, capacity, overhead, offerings, reservations."""

import gzip
from datetime import UTC, datetime
from functools import lru_cache

import msgspec
import pytest
from tools import build_ec2_catalog

from joiner.catalog.index import Index
from joiner.catalog.market import RESERVED_DIVISOR, UNLIMITED, InstanceType
from joiner.cloud.sources import ec2, ec2describe, facts
from joiner.cloud.sources.catalogue import CatalogueError
from joiner.cloud.sources.ec2 import MachineSettings
from joiner.cloud.sources.reservation import Reservation, ReservationLabels, misplaced, standings
from joiner.model import labels, resources
from joiner.model.codec import decode
from joiner.model.kubelet import Kubelet
from joiner.model.meta import replace
from joiner.requirements import Requirement, Requirements

REGION = "us-east-1"


@lru_cache(maxsize=2)
def types(region: str = REGION) -> dict[str, InstanceType]:
    made = ec2.instance_types(facts.load(), region)
    return {instance_type.name: instance_type for instance_type in made}


def single(name: str, kubelet: object = None, **settings: object) -> InstanceType:
    machine = MachineSettings(kubelet=decode(kubelet or {}, Kubelet), **settings)  # type: ignore[arg-type]
    small = replace(facts.load(), types=tuple(t for t in facts.load().types if t.name == name))
    return ec2.instance_types(small, REGION, machine=machine)[0]


def own_labels(name: str, region: str = REGION) -> dict[str, str]:
    found = types(region)[name].requirements.labels()
    return {key.removeprefix(ec2.PREFIX): value for key, value in found.items()}


def test_m5_large_has_the_numbers_of_an_al2023_node() -> None:
    m5 = types()["m5.large"]

    assert resources.written(m5.capacity) == {"cpu": "2", "memory": "7577Mi", "pods": "29", "ephemeral-storage": "20Gi"}
    assert resources.written(m5.overhead.kube_reserved) == {"cpu": "70m", "memory": "574Mi", "ephemeral-storage": "1Gi"}
    assert resources.written(m5.overhead.eviction(m5.capacity)) == {"memory": "100Mi", "ephemeral-storage": "2Gi"}
    assert m5.overhead.system_reserved == {}
    assert resources.written(m5.vm_overhead) == {"memory": "615Mi"}
    allocatable = {"cpu": "1930m", "memory": "6903Mi", "pods": "29", "ephemeral-storage": "17Gi"}
    assert resources.written(m5.allocatable()) == allocatable


def test_arm_machines_hide_64_mib_before_the_hypervisor_takes_its_share() -> None:
    assert resources.written(types()["m6g.large"].capacity)["memory"] == "7518Mi"
    assert resources.written(types()["m6g.large"].vm_overhead) == {"memory": "610Mi"}


def test_reserved_interfaces_cost_pods_but_the_kubelet_reserves_as_before() -> None:
    m5 = single("m5.large", reserved_enis=1)

    assert resources.written(m5.capacity)["pods"] == "20"
    assert resources.written(m5.overhead.kube_reserved)["memory"] == "574Mi"
    assert single("m5.large", reserved_enis=3).capacity["pods"] == 0


@pytest.mark.parametrize(
    ("kubelet", "pods", "limit"),
    [
        pytest.param({}, 29, None, id="interfaces decide"),
        pytest.param({"podsPerCore": 4}, 8, 8, id="pods per core"),
        pytest.param({"maxPods": 110}, 110, 110, id="maxPods may go above the interfaces"),
        pytest.param({"maxPods": 10}, 10, 10, id="maxPods may go below"),
        pytest.param({"maxPods": 5, "podsPerCore": 4}, 5, 5, id="the smaller of both"),
        pytest.param({"podsPerCore": 0}, 29, None, id="zero pods per core means no limit"),
    ],
)
def test_the_kubelet_block_decides_about_pods(kubelet: object, pods: int, limit: int | None) -> None:
    m5 = single("m5.large", kubelet)

    assert m5.capacity["pods"] == pods * 1000
    assert m5.pods_limit == (None if limit is None else limit * 1000)
    assert resources.written(m5.overhead.kube_reserved)["memory"] == "574Mi"


@pytest.mark.parametrize(("vcpus", "millicores"), [(1, 60), (2, 70), (4, 80), (8, 90), (96, 310)])
def test_kube_reserved_cpu_falls_with_each_core(vcpus: int, millicores: int) -> None:
    assert ec2.kube_reserved_millicores(vcpus) == millicores


def test_the_kubelet_block_replaces_what_it_names_and_nothing_else() -> None:
    kubelet = {
        "kubeReserved": {"memory": "1Gi", "pid": "100"},
        "systemReserved": {"cpu": "200m"},
        "evictionHard": {"memory.available": "5%"},
        "evictionSoft": {"nodefs.available": "50%"},
    }
    m5 = single("m5.large", kubelet)

    assert resources.written(m5.overhead.kube_reserved) == {"cpu": "70m", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    assert resources.written(m5.overhead.system_reserved) == {"cpu": "200m"}
    assert m5.overhead.eviction(m5.capacity)["memory"] == -(-m5.capacity["memory"] // 20_000) * 1000
    assert resources.written(m5.overhead.eviction(m5.capacity))["ephemeral-storage"] == "2Gi"


def test_p4d_has_gpus_efa_and_local_disks() -> None:
    p4d = types()["p4d.24xlarge"]

    assert p4d.capacity["nvidia.com/gpu"] == 8000
    assert p4d.capacity["vpc.amazonaws.com/efa"] == 4000
    found = own_labels("p4d.24xlarge")
    assert (found["instance-gpu-name"], found["instance-gpu-manufacturer"]) == ("a100", "nvidia")
    assert (found["instance-gpu-memory"], found["instance-gpu-count"]) == ("40960", "8")
    assert found["instance-local-nvme"] == "8000"
    assert single("p4d.24xlarge", raid0=True).capacity["ephemeral-storage"] == 8000 * 10**9 * 1000


def test_trn1_has_neuron_devices_and_cores() -> None:
    trn1 = types()["trn1.32xlarge"]

    assert (trn1.capacity["aws.amazon.com/neuron"], trn1.capacity["aws.amazon.com/neuroncore"]) == (16_000, 32_000)
    found = own_labels("trn1.32xlarge")
    assert (found["instance-accelerator-name"], found["instance-accelerator-manufacturer"]) == ("trainium", "aws")
    assert found["instance-accelerator-count"] == "16"


def test_an_inference_accelerator_is_named_where_there_is_no_neuron_device() -> None:
    found = own_labels("dl2q.24xlarge", "us-west-2")

    assert found["instance-accelerator-name"] == "qualcomm-ai100"
    assert (found["instance-accelerator-manufacturer"], found["instance-accelerator-count"]) == ("qualcomm", "8")


@pytest.mark.parametrize(
    ("name", "category", "generation", "family", "size"),
    [
        ("u7in-32tb.224xlarge", "u", "7", "u7in-32tb", "224xlarge"),
        ("u-6tb1.56xlarge", "u", "1", "u-6tb1", "56xlarge"),
        ("m5.large", "m", "5", "m5", "large"),
        ("p6-b200.48xlarge", "p", "6", "p6-b200", "48xlarge"),
        ("c7i-flex.large", "c", "7", "c7i-flex", "large"),
    ],
)
def test_names_are_taken_apart(name: str, category: str, generation: str, family: str, size: str) -> None:
    found = own_labels(name)

    assert (found["instance-category"], found["instance-generation"]) == (category, generation)
    assert (found["instance-family"], found["instance-size"]) == (family, size)
    assert found["instance-capability-flex"] == ("true" if name.startswith("c7i-flex") else "false")


def test_m5_large_has_the_labels_of_its_kind() -> None:
    found = types()["m5.large"].requirements

    assert found.labels()[labels.REGION] == REGION
    assert (found.labels()[labels.ARCH], found.labels()[labels.OS]) == ("amd64", "linux")
    assert found[ec2.PREFIX + "instance-tenancy"].values == {"default", "dedicated"}
    assert found[labels.CAPACITY_TYPE].values == {"on-demand", "spot"}
    assert found[ec2.ZONE_ID].values == {facts.load().regions[REGION].zones[zone] for zone in found[labels.ZONE].values}
    expected = {
        "instance-cpu": "2",
        "instance-memory": "8192",
        "instance-network-bandwidth": "750",
        "nitro-sandbox": "false",
    }
    assert expected.items() <= own_labels("m5.large").items()
    expected = {"instance-hypervisor": "nitro", "instance-cpu-manufacturer": "intel", "instance-ebs-bandwidth": "4750"}
    assert expected.items() <= own_labels("m5.large").items()
    assert own_labels("m5.large")["instance-cpu-sustained-clock-speed-mhz"] == "3100"
    assert own_labels("m5.metal")["instance-hypervisor"] == ""


def test_every_type_says_something_about_every_label() -> None:
    silent = {(t.name, key) for t in types().values() for key in ec2.LABELS if key not in t.requirements}

    assert silent == set()
    for key in ("instance-gpu-count", "instance-accelerator-name", "instance-local-nvme"):
        assert types()["m5.large"].requirements[ec2.PREFIX + key] == Requirement(ec2.PREFIX + key)


def test_a_type_is_offered_once_per_zone_and_capacity_type_where_it_is_sold() -> None:
    sold = facts.load().regions[REGION].types["m5.large"]
    offerings = types()["m5.large"].offerings

    expected = [(zone, kind) for zone in sold.zones for kind in ("on-demand", "spot")]
    assert [(o.zone, o.capacity_type) for o in offerings] == expected
    assert {o.price for o in offerings if o.capacity_type == "on-demand"} == {0.096}
    assert {o.price for o in offerings if o.capacity_type == "spot"} == {sold.spot}
    assert {o.available for o in offerings} == {UNLIMITED}
    assert all(
        o.requirements["karpenter.k8s.aws/capacity-reservation-id"].operator == "DoesNotExist" for o in offerings
    )


def test_a_type_without_a_price_is_there_and_cannot_be_bought() -> None:
    catalogue = ec2.catalogue(REGION)
    unpriced = [t for t in catalogue.types if not any(o.launchable for o in t.offerings)]

    assert len(catalogue.types) > 1300
    assert 0 < catalogue.unpriced == len(unpriced) < len(catalogue.types) / 2
    assert all(o.price is None for t in unpriced for o in t.offerings)
    assert [part.gives for part in catalogue.dates] == ["types and zones", "prices"]
    assert catalogue.price_date == "2025-05-28"
    assert catalogue.prices == f"EC2 {REGION}, prices of 2025-05-28"
    assert any("moto" in source for source in catalogue.sources)


def test_chosen_zones_limit_offerings_and_types() -> None:
    chosen = ec2.instance_types(facts.load(), REGION, zones=["us-east-1e"])

    assert 0 < len(chosen) < len(types())
    assert {o.zone for t in chosen for o in t.offerings} == {"us-east-1e"}
    assert {t.requirements.labels()[ec2.ZONE_ID] for t in chosen} == {"use1-az3"}


def test_equal_parts_are_one_object() -> None:
    offerings = [o for t in types().values() for o in t.offerings]

    assert len({id(o.requirements) for o in offerings}) == len({o.requirements for o in offerings}) <= 12
    assert types()["m5.large"].overhead is types()["m6g.large"].overhead
    assert types()["m5.large"].requirements[labels.ARCH] is types()["c5.large"].requirements[labels.ARCH]


def reservation(**changes: object) -> Reservation:
    plain = {"id": "cr-1", "instance_type": "m5.large", "zone": "us-east-1a", "count": 3}
    return Reservation(**{**plain, **changes})  # type: ignore[arg-type]


def reserved(*reservations: Reservation, keys: ReservationLabels | None = None) -> dict[str, InstanceType]:
    made = ec2.instance_types(facts.load(), REGION, reservations=reservations, keys=keys or ReservationLabels())
    return {t.name: t for t in made}


def test_each_reservation_is_an_offering_of_its_own() -> None:
    m5 = reserved(reservation(), reservation(id="cr-2", count=0))["m5.large"]
    first, second = (o for o in m5.offerings if o.reserved)

    assert (first.price, first.divisor, first.available) == (0.096, RESERVED_DIVISOR, 3)
    assert (second.available, second.launchable) == (0, False)
    prefix = "karpenter.k8s.aws/capacity-reservation-"
    expected = {prefix + "id": "cr-1", prefix + "type": "default", prefix + "interruptible": "false"}
    expected |= {labels.ZONE: "us-east-1a", ec2.ZONE_ID: "use1-az6", labels.CAPACITY_TYPE: "reserved"}
    assert first.requirements.labels() == expected
    assert prefix + "id" not in m5.requirements, "only some of its machines have one"
    assert m5.requirements[labels.CAPACITY_TYPE].values == {"on-demand", "reserved", "spot"}


def test_the_labels_of_reservations_are_the_callers() -> None:
    keys = ReservationLabels(id="example.com/reservation", type="", interruptible="")
    made = reserved(reservation(), keys=keys)

    assert [o.requirements["example.com/reservation"].values for o in made["m5.large"].offerings if o.reserved] == [
        {"cr-1"}
    ]
    assert made["c5.large"].requirements["example.com/reservation"].operator == "DoesNotExist"
    assert not any("capacity-reservation" in key for key in made["m5.large"].requirements)


def test_a_reservation_of_an_unpriced_type_is_still_offered() -> None:
    name = next(t.name for t in types().values() if all(o.price is None for o in t.offerings))
    made = reserved(reservation(instance_type=name, zone=types()[name].offerings[0].zone))

    assert [(o.cost, o.launchable) for o in made[name].offerings if o.reserved] == [(0.0, True)]
    assert (
        ec2.catalogue(REGION).unpriced == ec2.catalogue(REGION, reservations=[reservation(instance_type=name)]).unpriced
    )


def test_a_reservation_out_of_place_is_named_with_its_reason() -> None:
    strange = [
        reservation(id="cr-a", instance_type="m5.tiny"),
        reservation(id="cr-b", zone="us-east-1e"),
        reservation(),
    ]

    reasons = misplaced(types().values(), strange)

    assert set(reasons) == {"cr-a", "cr-b"}
    assert reasons["cr-a"] == "instance type m5.tiny is not in the catalogue"
    assert reasons["cr-b"].startswith("m5.large is not offered in zone us-east-1e; it is offered in us-east-1a, ")
    assert [o for o in reserved(*strange[:2])["m5.large"].offerings if o.reserved] == []


def test_how_a_reservation_stands_is_told_with_the_reason() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    known = [
        reservation(id="cr-a"), reservation(id="cr-b", count=0), reservation(id="cr-d", zone="us-east-1e"),
        reservation(id="cr-c", end_time=noon),
    ]  # fmt: skip

    found = standings(types().values(), known, noon)

    assert [(each.reservation.id, each.problem[:14], each.misplaced) for each in found] == [
        ("cr-a", "", False), ("cr-b", "nothing is lef", False), ("cr-c", "it has ended", False),
        ("cr-d", "m5.large is no", True),
    ]  # fmt: skip


def test_a_reservation_is_written_as_in_a_node_class() -> None:
    written = {"id": "cr-1", "instanceType": "m5.large", "zone": "us-east-1a", "count": 3, "type": "targeted"}

    assert decode(written, Reservation) == reservation(kind="targeted")


def test_a_reservation_is_over_when_its_end_has_come() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)

    assert reservation(end_time=noon).ended(noon)
    assert not reservation().ended(noon)


def test_an_unknown_place_is_answered_with_the_known_ones() -> None:
    with pytest.raises(
        CatalogueError, match=r"region 'eu-moon-1' is not in the EC2 catalogue, which has us-east-1, us-west-2"
    ):
        ec2.catalogue("eu-moon-1")
    with pytest.raises(CatalogueError, match=r"us-west-2a: not a zone of us-east-1, which has us-east-1a, us-east-1b"):
        ec2.catalogue(REGION, zones=["us-west-2a"])


MACHINE = {"name": "a1.x", "vcpus": 1, "memoryMib": 1, "architecture": "amd64", "interfaces": 1, "ipv4PerInterface": 2}


def packed(**changes: object) -> bytes:
    plain = {"format": 1, "sources": [], "types": [MACHINE], "regions": {}}
    return gzip.compress(msgspec.json.encode({**plain, **changes}))


def sold(name: str, zone: str) -> dict[str, object]:
    return {"r": {"zones": {"ra": "id-1"}, "types": {name: {"zones": [zone]}}}}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"plain text", "is not a whole gzip file", id="not gzip"),
        pytest.param(packed()[:-9], "is not a whole gzip file", id="cut short"),
        pytest.param(gzip.compress(b"{"), "is malformed: Input data was truncated", id="not JSON"),
        pytest.param(
            packed(types=[{**MACHINE, "vcpus": "1"}]), r"got `str` - at `\$.types\[0\].vcpus`", id="wrong kind"
        ),
        pytest.param(packed(types=[{**MACHINE, "vcpus": 0}]), r">= 1 - at `\$.types\[0\].vcpus`", id="no cpu"),
        pytest.param(packed(types=[MACHINE, MACHINE]), "a type is listed twice", id="type twice"),
        pytest.param(packed(format=9), "its format is 9 and this version reads format 1", id="another format"),
        pytest.param(
            packed(regions=sold("b1.x", "ra")), "region r sells b1.x, of which there are no facts", id="unknown type"
        ),
        pytest.param(
            packed(regions=sold("a1.x", "rb")),
            "region r sells a1.x in rb, which is not one of its zones",
            id="unknown zone",
        ),
    ],
)
def test_malformed_facts_are_refused_with_the_place(data: bytes, message: str) -> None:
    with pytest.raises(CatalogueError, match=message):
        facts.decode(data)


def test_the_same_facts_give_the_same_bytes() -> None:
    again = facts.decode(facts.encode(facts.load()))

    assert again == facts.load()
    assert facts.encode(again) == facts.encode(facts.load())


DESCRIBED = {
    "InstanceType": "x9.large",
    "SupportedVirtualizationTypes": ["hvm", "paravirtual"],
    "SupportedUsageClasses": ["spot", "on-demand"],
    "ProcessorInfo": {"SupportedArchitectures": ["i386", "x86_64"], "SustainedClockSpeedInGhz": 2.3},
    "VCpuInfo": {"DefaultVCpus": 2},
    "MemoryInfo": {"SizeInMiB": 4096},
    "EbsInfo": {"EbsOptimizedSupport": "unsupported"},
    "InstanceStorageInfo": {"TotalSizeInGB": 80, "NvmeSupport": "unsupported"},
    "NetworkInfo": {
        "Ipv4AddressesPerInterface": 6,
        "NetworkCards": [
            {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 3, "BaselineBandwidthInGbps": 0.75},
            {"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 5, "BaselineBandwidthInGbps": 0.5},
        ],
    },
}


def test_the_builder_keeps_the_facts_of_a_description() -> None:
    found = ec2describe.described(DESCRIBED)

    assert (found.architecture, found.interfaces, found.network_mbps, found.clock_mhz) == ("amd64", 3, 1250, 2300)
    assert (found.usage_classes, found.ebs_mbps, found.hypervisor) == (("on-demand", "spot"), None, "")
    assert (found.storage_gb, found.storage_nvme) == (80, False)


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        pytest.param({}, True, id="both architectures"),
        pytest.param({"SupportedVirtualizationTypes": ["paravirtual"]}, False, id="not hvm"),
        pytest.param({"ProcessorInfo": {"SupportedArchitectures": ["arm64_mac"]}}, False, id="a mac"),
    ],
)
def test_the_builder_keeps_what_linux_nodes_run_on(changes: dict[str, object], wanted: bool) -> None:
    assert ec2describe.is_for_kubernetes({**DESCRIBED, **changes}) is wanted


@pytest.mark.parametrize(
    ("linux", "on_demand", "spot"),
    [
        pytest.param(
            {"ondemand": "0.096", "spot": ["0.03", "0.05"], "spot_avg": "0.01"}, 0.096, 0.04, id="mean of zones"
        ),
        pytest.param({"ondemand": "N/A", "spot": ["0.03"]}, None, 0.03, id="no on-demand price"),
        pytest.param({"ondemand": "0", "spot": []}, None, None, id="zero is no price"),
        pytest.param({}, None, None, id="nothing"),
    ],
)
def test_the_builder_reads_prices(linux: dict[str, object], on_demand: float | None, spot: float | None) -> None:
    assert (build_ec2_catalog.on_demand_price(linux), build_ec2_catalog.spot_price(linux)) == (on_demand, spot)


def test_the_builder_finds_the_day_of_the_prices_in_the_version() -> None:
    assert build_ec2_catalog.module_date("v0.0.0-20250528091325-32acf84f42eb") == "2025-05-28"
    with pytest.raises(build_ec2_catalog.BuildError, match=r"v1\.2\.3 does not carry a date"):
        build_ec2_catalog.module_date("v1.2.3")


def test_a_type_with_a_reservation_can_still_be_bought_without_one() -> None:
    made = tuple(reserved(reservation()).values())
    none = Requirements([Requirement.of("karpenter.k8s.aws/capacity-reservation-id", "DoesNotExist")])
    index = Index(made, frozenset(key for each in made for key in (*each.requirements, *none)))

    assert "m5.large" in [each.name for each in index.members(index.select(none))]


def test_every_label_of_a_machine_has_a_name_of_eks_auto_mode_too() -> None:
    own = {ec2.PREFIX + "instance-cpu": "4", "team": "web"}

    assert ec2.with_eks_names(own) == {**own, "eks.amazonaws.com/instance-cpu": "4"}
    assert {
        ec2.ALIASES[ec2.EKS_PREFIX + name.removeprefix(ec2.PREFIX)] for name in ec2.LABELS if name != ec2.ZONE_ID
    } == (ec2.LABELS - {ec2.ZONE_ID})
