"""The facts of the bundled EC2 catalogue as typed values, and the reading of its file.

The file holds what EC2 says of each type and nothing that is derived from it, so that a change of a formula needs no new
file. It is written by `tools/build_ec2_catalog.py`.
"""

import gzip
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import resources
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from joiner.cloud.sources.catalogue import CatalogueError
from joiner.model.meta import Value

FORMAT: Final = 1
"""The number of the file's layout; another one was written by another version of the tool."""

REBUILD: Final = "build it anew with tools/build_ec2_catalog.py"

Name = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Price = Annotated[float, Meta(gt=0)]


class Source(Value):
    """Where a part of the file comes from."""

    name: Name
    version: Name
    licence: Name
    date: Name
    gives: Name


class Gpu(Value):
    """A GPU model in a machine."""

    name: Name
    manufacturer: Name
    count: Count
    """Whole GPUs, as EC2 counts them: none where the machine has a share of one."""
    memory_mib: Count = 0


class NeuronDevice(Value):
    """A Neuron device in a machine."""

    name: Name
    count: Count
    cores: Count
    """Cores of one device."""


class Accelerator(Value):
    """An inference accelerator in a machine."""

    name: Name
    manufacturer: Name
    count: Count


class TypeFacts(Value):
    """One instance type, the same in every region."""

    name: Name
    vcpus: Positive
    memory_mib: Positive
    architecture: Name
    """`amd64` or `arm64`."""
    interfaces: Count
    """Network interfaces of the default network card."""
    ipv4_per_interface: Count
    usage_classes: tuple[str, ...] = ()
    cpu_manufacturer: str = ""
    clock_mhz: Positive | None = None
    hypervisor: str = ""
    """Empty on bare metal."""
    network_mbps: Positive | None = None
    """Baseline bandwidth of all network cards together."""
    ebs_mbps: Positive | None = None
    """Highest EBS bandwidth, where optimisation is on by default."""
    storage_gb: Positive | None = None
    """Local disks together, whatever their interface."""
    storage_nvme: bool = False
    efa_interfaces: Count = 0
    encryption_in_transit: bool = False
    nitro_enclaves: bool = False
    gpus: tuple[Gpu, ...] = ()
    neuron_devices: tuple[NeuronDevice, ...] = ()
    accelerators: tuple[Accelerator, ...] = ()
    card_interfaces: tuple[int, ...] = ()
    """Network interfaces of each network card; empty where the data does not say."""
    ena: bool | None = None
    """Whether its network interfaces are of the kind of which one can be given by card and device; nothing: not known."""
    nested_virtualization: bool | None = None
    """Whether virtual machines can run on it; nothing where the data does not say."""
    placement_strategies: tuple[str, ...] | None = None
    """Placement groups it can be launched into; nothing where the data does not say."""


class Sold(Value):
    """How one region sells a type."""

    zones: Annotated[tuple[str, ...], Meta(min_length=1)]
    on_demand: Price | None = None
    """Dollars an hour for Linux; nothing if the price source does not know the type."""
    spot: Price | None = None
    """The mean over the zones, where the price source does not say which zone a price belongs to."""
    spot_by_zone: Mapping[str, Price] = {}
    """The price of each zone, where it does."""


class Region(Value):
    """The zones of a region and what is sold there."""

    zones: Mapping[str, str]
    """Zone name to zone id."""
    types: Mapping[str, Sold]


class Facts(Value):
    """The whole file."""

    format: int
    sources: tuple[Source, ...]
    types: tuple[TypeFacts, ...]
    regions: Mapping[str, Region]


def encode(facts: Facts) -> bytes:
    """The file's bytes: the same facts always give the same ones."""
    return gzip.compress(msgspec.json.encode(facts, order="deterministic"), compresslevel=9, mtime=0)


def decode(data: bytes, origin: str = "the EC2 catalogue") -> Facts:
    """Read the file's bytes; a malformed one is refused with the place and the reason."""
    try:
        text = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise CatalogueError(f"{origin} is not a whole gzip file ({error}); {REBUILD}") from None
    try:
        facts = msgspec.json.decode(text, type=Facts)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{origin} is malformed: {error}; {REBUILD}") from None
    problem = next(_contradictions(facts), None)
    if problem is not None:
        raise CatalogueError(f"{origin} is malformed: {problem}; {REBUILD}")
    return facts


def _contradictions(facts: Facts) -> Iterator[str]:
    if facts.format != FORMAT:
        yield f"its format is {facts.format} and this version reads format {FORMAT}"
    known = {facts_of_type.name for facts_of_type in facts.types}
    if len(known) != len(facts.types):
        yield "a type is listed twice"
    for name, region in facts.regions.items():
        for type_name, sold in region.types.items():
            if type_name not in known:
                yield f"region {name} sells {type_name}, of which there are no facts"
            strange = sorted(set(sold.zones) - set(region.zones))
            if strange:
                yield f"region {name} sells {type_name} in {', '.join(strange)}, which is not one of its zones"


@lru_cache(maxsize=1)
def load() -> Facts:
    """The facts that come with the package; read once."""
    file = resources.files("joiner.cloud.sources") / "data" / "ec2.json.gz"
    try:
        data = file.read_bytes()
    except OSError as error:
        raise CatalogueError(
            f"the EC2 catalogue that comes with Joiner cannot be read ({error}); install Joiner again"
        ) from None
    return decode(data)
