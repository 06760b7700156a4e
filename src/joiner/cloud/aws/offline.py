"""An EC2NodeClass without an account: what its status would be as far as files and options tell, and what remains unknown.

Zones come from the status of the class as `kubectl` prints it, or from the region and zones that a user names; reservations from
the status, or from a file as `aws ec2 describe-capacity-reservations` prints it.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass, Subnet
from joiner.cloud.aws.nodeclass.families import ephemeral_volume, family_of
from joiner.cloud.aws.reservations import Described, described, selected
from joiner.cloud.errors import NodeClassNotReady
from joiner.cloud.sources import ec2, facts
from joiner.cloud.sources.catalogue import CatalogueError
from joiner.model.meta import replace

ASSUMED: Final = ""
"""The id of a subnet that was not found but assumed, one for each zone."""
_REGION: Final = re.compile(r"[a-z]+(-[a-z]+)+-[0-9]+")
"""What the names of zones begin with, also those of local zones like us-west-2-lax-1a."""
_DESCRIBE: Final = "aws ec2 describe-capacity-reservations --output json"


def region_of(node_class: EC2NodeClass) -> str:
    """The region of the subnets in the status; empty where there are none."""
    found = (_REGION.match(subnet.zone) for subnet in node_class.status.subnets)
    return next((match[0] for match in found if match is not None), "")


def resolved(node_class: EC2NodeClass, region: str, reservations: Iterable[Described] | None = None) -> EC2NodeClass:
    """The class with the status it would have in a region; where it says nothing itself, with a subnet in every zone."""
    status = node_class.status
    place = facts.load().regions.get(region)
    known = place.zones if place is not None else {}
    if region_of(node_class) != region:
        subnets = tuple(Subnet(id=ASSUMED, zone=zone, zone_id=known[zone]) for zone in sorted(known))
        status = replace(status, subnets=subnets)
    if reservations is not None:
        status = replace(status, capacity_reservations=selected(node_class.spec, reservations))
    return replace(node_class, status=status)


def read_reservations(path: Path) -> tuple[Described, ...]:
    """The reservations of a file as the AWS command line prints them. Raises `CatalogueError`."""
    try:
        raw = json.loads(path.read_bytes())
    except OSError as error:
        raise CatalogueError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CatalogueError(f"{path} is not JSON ({error}); make it with: {_DESCRIBE}") from None
    listed = raw.get("CapacityReservations") if isinstance(raw, dict) else raw
    if not isinstance(listed, list):
        raise CatalogueError(f"{path} has no list CapacityReservations; make it with: {_DESCRIBE}")
    return tuple(_read(path, number, each) for number, each in enumerate(listed))


def _read(path: Path, number: int, raw: Any) -> Described:
    try:
        return described(raw)
    except (KeyError, TypeError, AttributeError, ValueError, msgspec.ValidationError) as error:
        problem = f"has no {error.args[0]}" if isinstance(error, KeyError) else f"cannot be read: {error}"
        raise CatalogueError(f"{path}: CapacityReservations[{number}] {problem}; make it with: {_DESCRIBE}") from None


def region_or_refuse(node_class: EC2NodeClass, default: str) -> str:
    """The region to take types and prices from. Raises `NodeClassNotReady` where nothing tells."""
    region = region_of(node_class) or default
    known = ec2.regions()
    if not region:
        raise NodeClassNotReady(
            node_class.name,
            "only its status says which region it is in, and it has none; to plan with the prices of a region add"
            f" --instance-types {' or '.join(f'ec2/{each}' for each in known)}",
        )
    if region not in known:
        raise NodeClassNotReady(
            node_class.name,
            f"region {region} is not in the catalogue that comes with Joiner, which has {', '.join(known)};"
            f" to plan with the prices of another region add --instance-types ec2/{known[0]}",
        )
    return region


def unread(node_class: EC2NodeClass, region: str) -> Iterator[tuple[str, str]]:
    """Each field that was given, could change the answer, and is not used without an account; and what is done instead."""
    spec, status = node_class.spec, node_class.status
    if any(subnet.id == ASSUMED for subnet in status.subnets):
        yield "subnetSelectorTerms", f"a subnet is assumed in every zone of {region}; name yours with --zones"
    yield from _about_reservations(node_class)
    if not status.amis and not any(term.alias for term in spec.ami_selector_terms):
        yield "amiSelectorTerms", "images are not looked up; such for amd64 and arm64 are assumed"
    if ephemeral_volume(spec) is None:
        yield "blockDeviceMappings", "the size of the snapshot that pods write to is not known; 20Gi are assumed"
    elif family_of(spec).ephemeral_device == "" and not spec.block_device_mappings:
        yield "amiFamily", "the volumes of a Custom image are not known; 20Gi are assumed for what pods write to"
    if spec.user_data:
        yield "userData", "kubelet settings in it do not count"
    if spec.placement_group_selector is not None:
        yield "placementGroupSelector", "types that the group does not take are planned with"
    nested = spec.cpu_options is not None and spec.cpu_options.nested_virtualization == "enabled"
    if nested and any(each.nested_virtualization is None for each in facts.load().types):
        yield "cpuOptions", "the catalogue does not say which types have nested virtualization"


def _about_reservations(node_class: EC2NodeClass) -> Iterator[tuple[str, str]]:
    terms, found = node_class.spec.capacity_reservation_selector_terms, node_class.status.capacity_reservations
    field, how = "capacityReservationSelectorTerms", f"give --capacity-reservations FILE, made by: {_DESCRIBE}"
    if terms and not found:
        yield field, f"reservations are not known offline, so nothing is planned as reserved; {how}"
    uncounted = [each.id for each in found if each.available_instance_count is None]
    if uncounted:
        yield field, f"the status does not say how many are left of {_listed(uncounted)}, so none is counted; {how}"


def _listed(ids: list[str]) -> str:
    return ", ".join(ids) if len(ids) <= 3 else f"{', '.join(ids[:3])} and {len(ids) - 3} more"
