"""Instance types as an EC2NodeClass makes them: its kubelet, volumes and interfaces, its zones, images and reservations.

A pure function of EC2's facts and the class with its status. The bundled catalogue and the answers of EC2 take the same way
through `joiner.cloud.sources.ec2`, so that `joiner plan` says offline what the provider would say.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from joiner.catalog.market import InstanceType
from joiner.cloud.aws.nodeclass.ec2nodeclass import AMI, RAID0, EC2NodeClass, EC2NodeClassSpec
from joiner.cloud.aws.nodeclass.families import GIB, ephemeral_volume, family_of
from joiner.cloud.aws.nodeclass.placement import GROUP_ID, PlacementGroup
from joiner.cloud.aws.settings import AwsSettings
from joiner.cloud.sources import ec2
from joiner.cloud.sources.facts import Facts, TypeFacts
from joiner.cloud.sources.reservation import Reservation, reserving
from joiner.model.meta import replace
from joiner.requirements import Requirement, Requirements

EFA_ONLY: Final = "efa-only"
NO_GROUP: Final = PlacementGroup()
_NO_AL2023: Final = "a1"
"""The family whose processors AL2023 does not run on."""


def machine_settings(
    spec: EC2NodeClassSpec, settings: AwsSettings, discovered_memory: Mapping[str, int] | None = None
) -> ec2.MachineSettings:
    """What the class and the settings of the cluster make of a type."""
    family = family_of(spec)
    kubelet = spec.kubelet_settings
    efa = [each for each in spec.network_interfaces if each.interface_type == EFA_ONLY]
    volume = ephemeral_volume(spec)
    return ec2.MachineSettings(
        kubelet=kubelet if family.pods_per_core else replace(kubelet, pods_per_core=None),
        reserved_enis=settings.reserved_enis,
        vm_memory_overhead_percent=settings.vm_memory_overhead_percent,
        volume=20 * GIB if volume is None else volume,
        raid0=spec.instance_store_policy == RAID0,
        reserved_by_actual_pods=family.reserved_by_actual_pods,
        efa_only_interfaces=len(efa),
        efa_only_on_default_card=sum(each.network_card_index == 0 for each in efa),
        discovered_memory=discovered_memory or {},
    )


def instance_types(
    facts: Facts, region: str, node_class: EC2NodeClass, settings: AwsSettings, **more: Any
) -> tuple[InstanceType, ...]:
    """All types of the region in the zones of the class, as `deriving` gives them one by one."""
    return tuple(deriving(facts, region, node_class, settings, **more))


def deriving(
    facts: Facts,
    region: str,
    node_class: EC2NodeClass,
    settings: AwsSettings,
    *,
    reservations: Iterable[Reservation] = (),
    group: PlacementGroup = NO_GROUP,
    discovered_memory: Mapping[str, int] | None = None,
) -> Iterator[InstanceType]:
    """The types of the region in the zones of the class; what the class cannot launch is there, and not available.

    One at a time: a thousand of them take the better part of a second, in which others want to go on, too.
    """
    zones = {subnet.zone: subnet.zone_id for subnet in node_class.status.subnets}
    place = facts.regions.get(region)
    if place is not None:
        known = {**place.zones, **{zone: zone_id for zone, zone_id in zones.items() if zone_id}}
        facts = replace(facts, regions={region: replace(place, zones=known)})
    machine = machine_settings(node_class.spec, settings, discovered_memory)
    types = ec2.deriving(facts, region, machine=machine, zones=zones)
    known_types = {each.name: each for each in facts.types}
    images, placed = _Images(node_class.status.amis), _Placed(group)
    for each in reserving(types, reservations):
        made = placed.into_group(each)
        fit = images.boot(made) and not why_not(known_types[made.name], node_class.spec, group.strategy)
        yield made if fit else _without(made)


class _Placed:
    """Says of types and offerings which placement group their machines are in."""

    def __init__(self, group: PlacementGroup) -> None:
        self._labels = tuple(group.requirements())
        self._own = tuple(each for each in self._labels if each.key == GROUP_ID) if group.id else ()
        self._made: dict[Requirements, Requirements] = {}

    def into_group(self, kind: InstanceType) -> InstanceType:
        """The type with the labels of its group. Offerings say the group, too: a shortage in it is one of the group alone."""
        requirements = Requirements((*kind.requirements.values(), *self._labels))
        if not self._own:
            return replace(kind, requirements=requirements)
        offerings = tuple(replace(each, requirements=self._of(each.requirements)) for each in kind.offerings)
        return replace(kind, requirements=requirements, offerings=offerings)

    def _of(self, requirements: Requirements) -> Requirements:
        known = self._made.get(requirements)
        if known is None:
            known = self._made[requirements] = Requirements((*requirements.values(), *self._own))
        return known


def _without(instance_type: InstanceType) -> InstanceType:
    return replace(instance_type, offerings=tuple(replace(each, available=0) for each in instance_type.offerings))


class _Images:
    """Which types the images of a class boot on."""

    def __init__(self, amis: Iterable[AMI]) -> None:
        self._wanted = [requirements_of(each) for each in amis]

    def boot(self, instance_type: InstanceType) -> bool:
        """Whether any does; where no image is known, all types are taken for fit."""
        return not self._wanted or any(fits(instance_type, each) for each in self._wanted)


def requirements_of(ami: AMI) -> Requirements:
    """What an image asks of an instance type."""
    return Requirements(Requirement.of(each.key, each.operator, *each.values) for each in ami.requirements)


def fits(instance_type: InstanceType, wanted: Requirements) -> bool:
    """Whether an instance type has the labels that an image asks for."""
    return instance_type.requirements.intersects(wanted)


def why_not(facts: TypeFacts, spec: EC2NodeClassSpec, placement_strategy: str = "") -> str:
    """Why machines of the class cannot be of a type; empty when they can. What the data does not say is no reason."""
    if spec.family == "AL2023" and facts.name.startswith(f"{_NO_AL2023}."):
        return "AL2023 does not run on a1 machines"
    if spec.connection_tracking is not None and facts.hypervisor != "nitro":
        return "connectionTracking needs a machine on Nitro"
    wanted = spec.cpu_options.nested_virtualization if spec.cpu_options is not None else None
    if wanted == "enabled" and facts.nested_virtualization is False:
        return "it has no nested virtualization"
    strategies = facts.placement_strategies
    if placement_strategy and strategies is not None and placement_strategy not in strategies:
        return f"it cannot be launched into a placement group of strategy {placement_strategy}"
    return _too_few_interfaces(facts, spec)


def _too_few_interfaces(facts: TypeFacts, spec: EC2NodeClassSpec) -> str:
    if spec.network_interfaces and facts.ena is False:
        return "networkInterfaces need a machine with ENA"
    cards = facts.card_interfaces
    efa = sum(each.interface_type == EFA_ONLY for each in spec.network_interfaces)
    if efa > facts.efa_interfaces:
        return f"it has {facts.efa_interfaces} interfaces for EFA, and the class asks for {efa}"
    for each in spec.network_interfaces if cards else ():
        if each.network_card_index >= len(cards):
            return f"it has {len(cards)} network cards, and the class uses card {each.network_card_index}"
        if each.device_index >= cards[each.network_card_index]:
            return f"its network card {each.network_card_index} has no device {each.device_index}"
    return ""
