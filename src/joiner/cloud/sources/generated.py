"""The generated set: 144 types of plain shapes and prices by formula, the ones the KWOK provider is known by."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import Final

from joiner.catalog.market import InstanceType, Offering, Overhead
from joiner.cloud.sources.catalogue import NO_DATE, Catalogue, DataDate, Origin, unpriced
from joiner.cloud.sources.kubeletoverhead import DEFAULT_KUBELET, under
from joiner.cloud.sources.reservation import DEFAULT_LABELS, Reservation, ReservationLabels, reserve
from joiner.model import labels, resources
from joiner.model.kubelet import Kubelet
from joiner.model.resources import CPU, MEMORY, Resources
from joiner.requirements import Requirement, Requirements

NAME: Final = "generated types"

SIZE: Final = "karpenter.kwok.sh/instance-size"
FAMILY: Final = "karpenter.kwok.sh/instance-family"
CPU_LABEL: Final = "karpenter.kwok.sh/instance-cpu"
MEMORY_LABEL: Final = "karpenter.kwok.sh/instance-memory"
LABELS: Final = frozenset({SIZE, FAMILY, CPU_LABEL, MEMORY_LABEL})
"""The labels these types carry beyond the ones every provider knows and those of reservations."""

CPUS: Final = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
FAMILIES: Final = {"c": 2, "s": 4, "m": 8}
"""Family to GiB of memory for each cpu."""
SYSTEMS: Final = ("linux", "windows")
ARCHITECTURES: Final = ("amd64", "arm64")
ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
SPOT_SHARE: Final = 0.7

USUAL_OVERHEAD: Final = Overhead(kube_reserved=resources.of(cpu="100m", memory="10Mi"))
"""What a KWOK node keeps back: no more, and nothing is evicted early."""

_EC2_LIKE: Final = re.compile(r"\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)", re.ASCII)


def catalogue(
    *,
    kubelet: Kubelet = DEFAULT_KUBELET,
    reservations: Iterable[Reservation] = (),
    keys: ReservationLabels = DEFAULT_LABELS,
) -> Catalogue:
    """The generated set; its prices are a formula's, so they have no date."""
    types = instance_types(kubelet=kubelet, reservations=reservations, keys=keys)
    return Catalogue(name=NAME, region="", dates=origin().dates, types=types, unpriced=unpriced(types))


def origin() -> Origin:
    """The catalogue without its types."""
    date = DataDate(source="made by formula", gives="types and prices", date=NO_DATE)
    return Origin(name=NAME, region="", dates=(date,))


def instance_types(
    *,
    kubelet: Kubelet = DEFAULT_KUBELET,
    reservations: Iterable[Reservation] = (),
    keys: ReservationLabels = DEFAULT_LABELS,
) -> tuple[InstanceType, ...]:
    """The types on nodes with this kubelet, with the offerings of the given reservations."""
    return reserve(under(kubelet, _plain()), reservations, keys)


@lru_cache(maxsize=1)
def _plain() -> tuple[InstanceType, ...]:
    shapes = product(CPUS, FAMILIES.items(), SYSTEMS, ARCHITECTURES)
    return tuple(_plain_type(cpu, family, ratio, system, arch) for cpu, (family, ratio), system, arch in shapes)


def _plain_type(cpu: int, family: str, gib_per_cpu: int, system: str, architecture: str) -> InstanceType:
    name = f"{family}-{cpu}x-{architecture}-{system}"
    gib = cpu * gib_per_cpu
    capacity = resources.of(cpu=cpu, memory=f"{gib}Gi", pods=min(16 * cpu, 1024), ephemeral_storage="20Gi")
    offerings = tuple(_offerings(on_demand_price(cpu, gib << 30)))
    return InstanceType(
        name=name,
        requirements=Requirements(kwok_labels(name, architecture, (system,), capacity, offerings)),
        offerings=offerings,
        capacity=capacity,
        overhead=USUAL_OVERHEAD,
    )


def on_demand_price(cpu: int, memory_bytes: int) -> float:
    """Dollars an hour: so much for each cpu and for each billion bytes."""
    return 0.025 * cpu + 0.001 * memory_bytes / 1e9


def _offerings(price: float) -> Iterator[Offering]:
    for zone in ZONES:
        yield Offering(requirements=_offering_requirements(labels.SPOT, zone), price=SPOT_SHARE * price)
        yield Offering(requirements=_offering_requirements(labels.ON_DEMAND, zone), price=price)


@lru_cache(maxsize=64)
def _offering_requirements(capacity_type: str, zone: str) -> Requirements:
    return Requirements.of_labels({labels.CAPACITY_TYPE: capacity_type, labels.ZONE: zone})


def kwok_labels(
    name: str, architecture: str, systems: tuple[str, ...], capacity: Resources, offerings: tuple[Offering, ...]
) -> Iterator[Requirement]:
    """The requirements of a type that is known by its name, its capacity and its offerings only."""
    cpu = resources.text(CPU, capacity[CPU])
    yield Requirement(labels.INSTANCE_TYPE, (name,))
    yield Requirement(labels.ARCH, (architecture,))
    yield Requirement(labels.OS, systems)
    yield Requirement(labels.ZONE, {offering.zone for offering in offerings})
    yield Requirement(labels.CAPACITY_TYPE, {offering.capacity_type for offering in offerings})
    yield Requirement(SIZE, (size_of(name, cpu),))
    yield Requirement(FAMILY, (family_of(name),))
    yield Requirement(CPU_LABEL, (cpu,))
    yield Requirement(MEMORY_LABEL, (resources.text(MEMORY, capacity[MEMORY]),))


def size_of(name: str, cpu: str) -> str:
    """The part after the dot where the name looks like one of EC2's, otherwise the number of cpus."""
    match = _EC2_LIKE.fullmatch(name)
    return match[1] if match else cpu


def family_of(name: str) -> str:
    """The part before the first dot or hyphen; the first letter where there is neither."""
    before, separator, _ = name.replace("-", ".").partition(".")
    return before if separator else name[:1]
