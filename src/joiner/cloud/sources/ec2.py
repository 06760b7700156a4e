"""EC2 instance types out of facts: labels, capacity, overhead and offerings as an AL2023 node has them.

Linux only. Equal parts are one object: the requirement of a label value, the requirements of offerings of one zone and
capacity type, the overhead of machines that keep back the same.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from joiner.catalog.market import InstanceType, Offering, Overhead
from joiner.cloud.sources import facts as source
from joiner.cloud.sources.catalogue import Catalogue, CatalogueError, DataDate, Origin, unpriced
from joiner.cloud.sources.facts import Facts, Region, Sold, TypeFacts
from joiner.cloud.sources.kubeletoverhead import kept_back
from joiner.cloud.sources.reservation import DEFAULT_LABELS, Reservation, ReservationLabels, absent, reserve
from joiner.model import labels
from joiner.model.kubelet import Kubelet, Threshold
from joiner.model.meta import Value
from joiner.model.quantity import MILLI
from joiner.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from joiner.requirements import Requirement, Requirements

NAME: Final = "EC2"
DEFAULT_REGION: Final = "us-east-1"

PREFIX: Final = "karpenter.k8s.aws/"
EKS_PREFIX: Final = "eks.amazonaws.com/"
ZONE_ID: Final = "topology.k8s.aws/zone-id"
TENANCY: Final = PREFIX + "instance-tenancy"
NITRO_SANDBOX: Final = PREFIX + "nitro-sandbox"
_OWN_LABELS: Final = (
    "instance-accelerator-count", "instance-accelerator-manufacturer", "instance-accelerator-name",
    "instance-capability-flex", "instance-category", "instance-cpu", "instance-cpu-manufacturer",
    "instance-cpu-sustained-clock-speed-mhz", "instance-ebs-bandwidth", "instance-encryption-in-transit-supported",
    "instance-family", "instance-generation", "instance-gpu-count", "instance-gpu-manufacturer", "instance-gpu-memory",
    "instance-gpu-name", "instance-hypervisor", "instance-local-nvme", "instance-memory", "instance-network-bandwidth",
    "instance-size", "instance-tenancy", "nitro-sandbox",
)  # fmt: skip
LABELS: Final = frozenset({ZONE_ID, *(PREFIX + name for name in _OWN_LABELS)})
"""The labels these types carry beyond the ones every provider knows and those of reservations."""
EKS_NAMES: Final[Mapping[str, str]] = {EKS_PREFIX + name: PREFIX + name for name in _OWN_LABELS}
"""What EKS Auto Mode calls the labels of EC2's machines, and what Karpenter's AWS provider calls them."""
EBS_ZONE: Final = "topology.ebs.csi.aws.com/zone"
"""What the driver of EBS volumes calls the zone."""
ALIASES: Final[Mapping[str, str]] = {EBS_ZONE: labels.ZONE, **EKS_NAMES}
"""Other names of the same labels: those of EKS Auto Mode, and of the driver of EBS volumes."""

NEURON: Final = "aws.amazon.com/neuron"
NEURON_CORE: Final = "aws.amazon.com/neuroncore"
EFA: Final = "vpc.amazonaws.com/efa"
GPU_RESOURCES: Final = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "habana": "habana.ai/gaudi"}

_MIB: Final = (1 << 20) * MILLI
_GIB: Final = (1 << 30) * MILLI
_ARM_FIRMWARE_MIB: Final = 64
"""Memory that arm64 machines never show to the operating system."""
_CATEGORY_AND_GENERATION: Final = re.compile(r"([a-z]+)(?:-[0-9]+tb)?([0-9]+).*\.")
_SPECIAL_CATEGORIES: Final = frozenset({"dl", "f", "g", "inf", "mac", "p", "trn", "vt"})
"""Instance categories of which every type has accelerators, or is bare metal."""
_TENANCY: Final = Requirement(TENANCY, ("dedicated", "default"))
_LINUX: Final = Requirement(labels.OS, ("linux",))
_EVICTION: Final = {MEMORY: Threshold(amount=100 * _MIB), EPHEMERAL_STORAGE: Threshold(millionths=100_000)}


class MachineSettings(Value):
    """The settings of the cluster and its nodes that change what a type amounts to."""

    kubelet: Kubelet = Kubelet()
    reserved_enis: int = 0
    """Network interfaces that pods do not get."""
    vm_memory_overhead_percent: float = 0.075
    """The share of the memory that the hypervisor is assumed to take."""
    volume: int = 20 * _GIB
    """The disk that pods write to, in thousandths of bytes."""
    raid0: bool = False
    """Whether local disks, where there are any, are what pods write to."""
    reserved_by_actual_pods: bool = False
    """Whether the memory the kubelet keeps back follows the pods it really takes, as on Bottlerocket."""
    efa_only_interfaces: int = 0
    """Interfaces of the NodeClass that are for EFA alone; without any, a machine has as many as its type."""
    efa_only_on_default_card: int = 0
    """How many of them take the place of an interface with addresses."""
    discovered_memory: Mapping[str, int] = {}
    """Instance type to the memory that a node of it was seen to report, in thousandths of bytes."""


DEFAULT_MACHINE: Final = MachineSettings()


def catalogue(
    region: str = DEFAULT_REGION,
    *,
    machine: MachineSettings = DEFAULT_MACHINE,
    zones: Iterable[str] | None = None,
    reservations: Iterable[Reservation] = (),
    keys: ReservationLabels = DEFAULT_LABELS,
) -> Catalogue:
    """The bundled catalogue of one region, with the dates of its data and the number of types without a price."""
    types = instance_types(source.load(), region, machine=machine, zones=zones, reservations=reservations, keys=keys)
    known = origin(region)
    return Catalogue(name=NAME, region=region, dates=known.dates, types=types, unpriced=unpriced(types))


def origin(region: str = DEFAULT_REGION) -> Origin:
    """The catalogue of a region without its types."""
    dates = (DataDate(source=f"{s.name} {s.version}", gives=s.gives, date=s.date) for s in source.load().sources)
    return Origin(name=NAME, region=region, dates=tuple(dates))


def with_eks_names(own: Mapping[str, str]) -> dict[str, str]:
    """The labels of a machine, those of EC2 under both names: kube-scheduler binds pods that ask for either."""
    twice = {written: own[key] for written, key in EKS_NAMES.items() if key in own}
    return {**own, **twice}


def regions() -> tuple[str, ...]:
    """The regions of the bundled catalogue."""
    return tuple(sorted(source.load().regions))


def instance_types(
    facts: Facts,
    region: str,
    *,
    machine: MachineSettings = DEFAULT_MACHINE,
    zones: Iterable[str] | None = None,
    reservations: Iterable[Reservation] = (),
    keys: ReservationLabels = DEFAULT_LABELS,
) -> tuple[InstanceType, ...]:
    """The types of a region in order of name; `zones` limits them to what is sold in those zones."""
    return reserve(deriving(facts, region, machine=machine, zones=zones, keys=keys), reservations, keys)


def deriving(
    facts: Facts,
    region: str,
    *,
    machine: MachineSettings = DEFAULT_MACHINE,
    zones: Iterable[str] | None = None,
    keys: ReservationLabels = DEFAULT_LABELS,
) -> Iterator[InstanceType]:
    """The same without reservations, one type at a time."""
    place = facts.regions.get(region)
    if place is None:
        known = ", ".join(sorted(facts.regions))
        raise CatalogueError(f"region {region!r} is not in the EC2 catalogue, which has {known}")
    chosen = _chosen(region, place, zones)
    deriver = _Deriver(region, place, chosen, machine, keys)
    sold = sorted((t for t in facts.types if t.name in place.types), key=lambda t: t.name)
    return (deriver.instance_type(t, place.types[t.name]) for t in sold if chosen & set(place.types[t.name].zones))


def _chosen(region: str, place: Region, zones: Iterable[str] | None) -> frozenset[str]:
    chosen = frozenset(place.zones if zones is None else zones)
    strange = sorted(chosen - set(place.zones))
    if strange:
        known = ", ".join(sorted(place.zones))
        raise CatalogueError(f"{', '.join(strange)}: not a zone of {region}, which has {known}")
    return chosen


class _Deriver:
    """Derives the types of one region, and keeps the parts that many of them share."""

    def __init__(
        self, region: str, place: Region, zones: frozenset[str], machine: MachineSettings, keys: ReservationLabels
    ) -> None:
        self._place = place
        self._zones = zones
        self._machine = machine
        self._region = Requirement(labels.REGION, (region,))
        self._absent = absent(keys)
        self._overheads: dict[tuple[int, int], Overhead] = {}
        self._offered: dict[tuple[str, str], Requirements] = {}

    def instance_type(self, facts: TypeFacts, sold: Sold) -> InstanceType:
        zones = tuple(sorted(self._zones & set(sold.zones)))
        taken = _taken(facts, self._machine)
        return InstanceType(
            name=facts.name,
            requirements=Requirements((*_type_labels(facts), *self._place_labels(facts, zones))),
            offerings=tuple(self._offerings(facts, sold, zones)),
            capacity=capacity(facts, self._machine),
            overhead=self._overhead(facts),
            vm_overhead={MEMORY: taken} if taken else {},
            pods_limit=self._machine.kubelet.pods_limit(facts.vcpus * MILLI),
            exotic=is_exotic(facts),
        )

    def _place_labels(self, facts: TypeFacts, zones: tuple[str, ...]) -> Iterator[Requirement]:
        yield self._region
        yield _in(labels.ZONE, *zones)
        yield _in(ZONE_ID, *(self._place.zones[zone] for zone in zones))
        yield _in(labels.CAPACITY_TYPE, *(_capacity_types(facts) or (labels.ON_DEMAND,)))
        yield from self._absent

    def _offerings(self, facts: TypeFacts, sold: Sold, zones: tuple[str, ...]) -> Iterator[Offering]:
        for zone in zones:
            for capacity_type in _capacity_types(facts):
                price = _spot(sold, zone) if capacity_type == labels.SPOT else sold.on_demand
                yield Offering(requirements=self._offering_requirements(capacity_type, zone), price=price)
            if not _capacity_types(
                facts
            ):  # sold in capacity blocks alone: a reservation is like an offering of its zone
                on_demand = self._offering_requirements(labels.ON_DEMAND, zone)
                yield Offering(requirements=on_demand, price=sold.on_demand, available=0)

    def _offering_requirements(self, capacity_type: str, zone: str) -> Requirements:
        known = self._offered.get((capacity_type, zone))
        if known is None:
            known = self._offered[capacity_type, zone] = Requirements(
                (
                    _in(labels.CAPACITY_TYPE, capacity_type),
                    _in(labels.ZONE, zone),
                    _in(ZONE_ID, self._place.zones[zone]),
                    *self._absent,
                )
            )
        return known

    def _overhead(self, facts: TypeFacts) -> Overhead:
        pods = _pods(facts, self._machine) if self._machine.reserved_by_actual_pods else eni_pods(facts)
        known = self._overheads.get((facts.vcpus, pods))
        if known is None:
            known = self._overheads[facts.vcpus, pods] = kept_back(
                _usual_overhead(facts.vcpus, pods), self._machine.kubelet
            )
        return known


# -- capacity and overhead -----------------------------------------------------------------------------------------------


def capacity(facts: TypeFacts, machine: MachineSettings = DEFAULT_MACHINE) -> dict[str, int]:
    """What a node of the type reports; resources it has none of are left out."""
    found = {
        CPU: facts.vcpus * MILLI,
        MEMORY: _visible_mib(facts) * _MIB - _taken(facts, machine),
        EPHEMERAL_STORAGE: _ephemeral_storage(facts, machine),
        PODS: _pods(facts, machine) * MILLI,
    }
    for gpu in facts.gpus:
        resource = GPU_RESOURCES.get(gpu.manufacturer.lower())
        if resource is not None and gpu.count:
            found[resource] = found.get(resource, 0) + gpu.count * MILLI
    if facts.neuron_devices:
        first = facts.neuron_devices[0]
        found[NEURON] = sum(device.count for device in facts.neuron_devices) * MILLI
        found[NEURON_CORE] = first.count * first.cores * MILLI
    efa = machine.efa_only_interfaces or facts.efa_interfaces
    if efa:
        found[EFA] = efa * MILLI
    return found


def _taken(facts: TypeFacts, machine: MachineSettings) -> int:
    """What the hypervisor takes of the memory: what a node showed, or the share that is assumed."""
    seen = machine.discovered_memory.get(facts.name)
    if seen is not None:
        return max(0, _visible_mib(facts) * _MIB - seen)
    return vm_overhead_mib(facts, machine.vm_memory_overhead_percent) * _MIB


def _spot(sold: Sold, zone: str) -> float | None:
    return sold.spot if sold.spot is not None else sold.spot_by_zone.get(zone)


def is_exotic(facts: TypeFacts) -> bool:
    """Whether the type is bare metal or has accelerators: GPUs, Neuron, Gaudi, FPGAs, video."""
    size = facts.name.partition(".")[2]
    category = _CATEGORY_AND_GENERATION.match(facts.name)
    special = category is not None and category[1] in _SPECIAL_CATEGORIES
    return special or size.startswith("metal") or bool(facts.gpus or facts.neuron_devices or facts.accelerators)


def _ephemeral_storage(facts: TypeFacts, machine: MachineSettings) -> int:
    if machine.raid0 and facts.storage_gb:
        return facts.storage_gb * 10**9 * MILLI
    return machine.volume


def _visible_mib(facts: TypeFacts) -> int:
    return facts.memory_mib - (_ARM_FIRMWARE_MIB if facts.architecture == "arm64" else 0)


def vm_overhead_mib(facts: TypeFacts, percent: float) -> int:
    """The memory that the hypervisor is assumed to take, in whole MiB, rounded up."""
    return math.ceil(_visible_mib(facts) * percent)


def eni_pods(facts: TypeFacts, reserved_enis: int = 0) -> int:
    """How many pods have an address: one of each interface is its own, and two pods use the host's."""
    usable = max(0, facts.interfaces - reserved_enis)
    return usable * (facts.ipv4_per_interface - 1) + 2 if usable else 0


def _pods(facts: TypeFacts, machine: MachineSettings) -> int:
    kubelet = machine.kubelet
    not_for_pods = machine.reserved_enis + machine.efa_only_on_default_card
    pods = eni_pods(facts, not_for_pods) if kubelet.max_pods is None else kubelet.max_pods
    return min(pods, kubelet.pods_per_core * facts.vcpus) if kubelet.pods_per_core else pods


def _usual_overhead(vcpus: int, pods: int) -> Overhead:
    """What AL2023 keeps back. The memory follows the pods the interfaces allow, whatever the kubelet block says of pods."""
    return Overhead(
        kube_reserved={
            CPU: kube_reserved_millicores(vcpus),
            MEMORY: (11 * pods + 255) * _MIB,
            EPHEMERAL_STORAGE: _GIB,
        },
        eviction_hard=_EVICTION,
    )


def kube_reserved_millicores(vcpus: int) -> int:
    """6% of the first core, 1% of the second, 0.5% of the next two and 0.25% of the rest, each in whole millicores."""
    bands = ((1, 600), (1, 100), (2, 50), (vcpus, 25))  # cores, and hundred-thousandths of a core kept of each
    kept, left = 0, vcpus
    for cores, share in bands:
        kept += min(cores, left) * share // 10
        left = max(0, left - cores)
    return kept


# -- labels --------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def _in(key: str, *values: str) -> Requirement:
    """One object for each requirement that occurs; without a value, the label is absent."""
    return Requirement(key, values)


def _own(name: str, value: str | int | bool | None) -> Requirement:
    """A label of EC2's own; nothing known means the label is absent."""
    if value is None:
        return _in(PREFIX + name)
    return _in(PREFIX + name, str(value).lower() if isinstance(value, bool) else str(value))


def _kebab(text: str) -> str:
    return text.lower().replace(" ", "-")


def _capacity_types(facts: TypeFacts) -> tuple[str, ...]:
    """On-demand and spot; blocks of capacity are bought in other ways."""
    return tuple(kind for kind in (labels.ON_DEMAND, labels.SPOT) if kind in facts.usage_classes)


def _type_labels(facts: TypeFacts) -> Iterator[Requirement]:
    family, _, size = facts.name.partition(".")
    parts = _CATEGORY_AND_GENERATION.match(facts.name)
    yield _in(labels.INSTANCE_TYPE, facts.name)
    yield _in(labels.ARCH, facts.architecture)
    yield _LINUX
    yield _TENANCY
    yield _own("instance-category", parts and parts[1])
    yield _own("instance-generation", parts and parts[2])
    yield _own("instance-family", family)
    yield _own("instance-size", size)
    yield _own("instance-capability-flex", "-flex" in family)
    yield _own("instance-cpu", facts.vcpus)
    yield _own("instance-cpu-manufacturer", _kebab(facts.cpu_manufacturer) or None)
    yield _own("instance-cpu-sustained-clock-speed-mhz", facts.clock_mhz)
    yield _own("instance-memory", facts.memory_mib)
    yield _own("instance-local-nvme", facts.storage_gb if facts.storage_nvme else None)
    yield _own("instance-ebs-bandwidth", facts.ebs_mbps)
    yield _own("instance-network-bandwidth", facts.network_mbps)
    yield _own("instance-hypervisor", facts.hypervisor)
    yield _own("instance-encryption-in-transit-supported", facts.encryption_in_transit)
    yield _own("nitro-sandbox", facts.nitro_enclaves)
    yield from _gpu_labels(facts)
    yield from _accelerator_labels(facts)


def _gpu_labels(facts: TypeFacts) -> Iterator[Requirement]:
    """Labels describe a GPU only where the machine has one model of it."""
    name = manufacturer = count = memory = None
    if len(facts.gpus) == 1:
        gpu = facts.gpus[0]
        name, manufacturer, count, memory = _kebab(gpu.name), _kebab(gpu.manufacturer), gpu.count, gpu.memory_mib
    yield _own("instance-gpu-name", name)
    yield _own("instance-gpu-manufacturer", manufacturer)
    yield _own("instance-gpu-count", count)
    yield _own("instance-gpu-memory", memory)


def _accelerator_labels(facts: TypeFacts) -> Iterator[Requirement]:
    """The Neuron device comes first; an inference accelerator is described where there is none."""
    name = manufacturer = count = None
    if len(facts.neuron_devices) == 1:
        device = facts.neuron_devices[0]
        name, manufacturer, count = _kebab(device.name), "aws", device.count
    elif len(facts.accelerators) == 1:
        accelerator = facts.accelerators[0]
        name, manufacturer, count = _kebab(accelerator.name), _kebab(accelerator.manufacturer), accelerator.count
    yield _own("instance-accelerator-name", name)
    yield _own("instance-accelerator-manufacturer", manufacturer)
    yield _own("instance-accelerator-count", count)
