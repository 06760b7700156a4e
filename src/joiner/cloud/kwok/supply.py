"""What a KWOKNodeClass can buy: the catalogue it names, its reservations, and the offering that an option means."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from joiner.catalog.market import InstanceType, Offering, Option
from joiner.cloud.errors import NodeClassNotReady
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.sources import ec2, file, generated, testcatalog
from joiner.cloud.sources.catalogue import Catalogue, CatalogueError, Origin
from joiner.cloud.sources.reservation import DEFAULT_LABELS, Reservation
from joiner.model import labels

FileStamp = tuple[int, int, int]
"""When a file was written, its size, and which file it is."""
TYPES_PATH: Final = "spec.instanceTypes"


def catalogue(node_class: KWOKNodeClass, reservations: Iterable[Reservation] = ()) -> Catalogue:
    """The types that the class names, with the offerings of these reservations."""
    spec = node_class.spec
    try:
        if spec.ec2_region is not None:
            machine = ec2.MachineSettings(kubelet=spec.kubelet)
            return ec2.catalogue(spec.ec2_region, machine=machine, reservations=reservations)
        if spec.instance_types == testcatalog.NAME:
            return testcatalog.catalogue(kubelet=spec.kubelet, reservations=reservations)
        if spec.file is not None:
            return file.catalogue(Path(spec.file), kubelet=spec.kubelet, reservations=reservations)
        return generated.catalogue(kubelet=spec.kubelet, reservations=reservations)
    except CatalogueError as error:
        raise NodeClassNotReady(node_class.name, f"{TYPES_PATH}: {error}") from error


def file_stamp(node_class: KWOKNodeClass) -> FileStamp | None:
    """What differs when the file of the class' catalogue was written again; nothing where there is no file."""
    if node_class.spec.file is None:
        return None
    try:
        found = Path(node_class.spec.file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def origin(node_class: KWOKNodeClass) -> Origin:
    """The catalogue without its types."""
    spec = node_class.spec
    if spec.ec2_region is not None:
        return ec2.origin(spec.ec2_region)
    if spec.instance_types == testcatalog.NAME:
        return testcatalog.origin()
    return generated.origin() if spec.file is None else file.origin(Path(spec.file))


def reservations(node_class: KWOKNodeClass, used: Mapping[str, int] | None = None) -> tuple[Reservation, ...]:
    """The reservations of a class, ended ones too, each with what is left beside the machines that run in it."""
    running = used or {}
    return tuple(
        Reservation(
            id=each.id,
            instance_type=each.instance_type,
            zone=each.zone,
            count=max(0, each.count - running.get(each.id, 0)),
            end_time=each.end_time,
            kind=each.type,
        )
        for each in node_class.spec.capacity_reservations
    )


def reservation_id(offering: Offering) -> str:
    """The reservation behind an offering; empty for one of the market."""
    return offering.requirements.at(DEFAULT_LABELS.id).any() or "" if offering.reserved else ""


def offered(types: Mapping[str, InstanceType], option: Option) -> tuple[InstanceType, Offering] | None:
    """The type and offering an option stands for, as the cloud itself knows them; nothing if they are no longer sold.

    Settings and overlays may have changed the offering of the option in everything but its place and its way of payment.
    """
    instance_type = types.get(option.name)
    if instance_type is None:
        return None
    wanted = _way(option.offering)
    found = next((each for each in instance_type.offerings if _way(each) == wanted), None)
    return None if found is None else (instance_type, found)


def _way(offering: Offering) -> tuple[str, str, str]:
    return offering.zone, offering.capacity_type, reservation_id(offering)


def settled_labels(instance_type: InstanceType, offering: Offering) -> dict[str, str]:
    """The labels of a machine bought this way: everything that has one value."""
    return ec2.with_eks_names({**instance_type.requirements.labels(), **offering.requirements.labels()})


def demoted(own: Mapping[str, str]) -> dict[str, str]:
    """The labels of a machine whose reservation is over: it runs on, and is paid for on demand."""
    kept = {key: value for key, value in own.items() if key not in DEFAULT_LABELS.names()}
    return {**kept, labels.CAPACITY_TYPE: labels.ON_DEMAND}
