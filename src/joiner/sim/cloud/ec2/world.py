"""What there is in the pretend account: subnets, groups, images, reservations, templates, machines, and what can be bought."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from joiner.catalog.market import InstanceType
from joiner.clock import Clock
from joiner.cloud.sources import ec2
from joiner.cloud.sources.facts import Facts, TypeFacts
from joiner.cloud.sources.reservation import DEFAULT_LABELS
from joiner.model import labels
from joiner.sim.cloud.cloud import PretendCloud
from joiner.sim.cloud.ec2 import boot
from joiner.sim.cloud.machines import CloudMachine, MachineDefects

ACCOUNT: Final = "123456789012"
CLUSTER: Final = "prod"
NODECLAIM: Final = "karpenter.sh/nodeclaim"
NODECLAIM_UID: Final = "karpenter.sh/nodeclaim-uid"
_STATES: Final = {"pending": "pending", "running": "running", "shutting-down": "shutting-down", "gone": "terminated"}
"""What the pretend cloud calls a state, and what EC2 does."""

Wish = Callable[[Mapping[str, str], Sequence[Mapping[str, str]]], None]
"""Told of a fleet that is asked for: the tags of its machine, and the labels of each machine that would do."""


@dataclass
class Machine:
    """An instance."""

    id: str
    type: str
    zone: str
    subnet: str
    image: str
    market: str
    """`on-demand` or `spot`."""
    launched_at: datetime
    started: float
    tags: dict[str, str]
    groups: list[str]
    profile: str
    reservation: str = ""
    preference: str = ""
    placement_group: str = ""
    partition: int = 0
    """Of the placement group."""
    tenancy: str = "default"
    boots: int = 1
    """How often it was told to start."""

    @property
    def provider_id(self) -> str:
        """How Kubernetes calls it."""
        return f"aws:///{self.zone}/{self.id}"


@dataclass
class CapacityReservation:
    """A reservation, as its owner made it."""

    id: str
    type: str
    zone: str
    count: int
    end: datetime | None = None
    criteria: str = "targeted"
    kind: str = "default"
    owner: str = ACCOUNT
    tags: dict[str, str] = field(default_factory=dict)
    elsewhere: int = 0
    """Machines of other clusters in it."""
    cancelled: bool = False
    interruptible: bool = False


@dataclass
class Timing:
    """How long things take, in seconds; how long machines start and stop is decided by the pretend cloud."""

    call: float = 0.1
    shows: float = 0.0
    """How long a new machine is not seen in lists."""


@dataclass
class Account:
    """An account in one region. Tests change it as they like."""

    facts: Facts
    region: str
    cloud: PretendCloud
    """Where the machines are, and the market."""
    timing: Timing = field(default_factory=Timing)
    subnets: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    images: dict[str, dict[str, Any]] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    roles: set[str] = field(default_factory=set)
    profiles: dict[str, dict[str, Any]] = field(default_factory=dict)
    templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    placement_groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    reservations: dict[str, CapacityReservation] = field(default_factory=dict)
    machines: dict[str, Machine] = field(default_factory=dict)
    limits: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Market, type and zone to how many machines there are; without an entry there is no end."""
    answers: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    """Client token to the request it came with and the answer that was given."""
    cluster: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Instance id to what EC2 finds wrong with it, in EC2's own words."""
    queues: dict[str, Any] = field(default_factory=dict)
    """Name to queue of messages."""
    refused: dict[str, str] = field(default_factory=dict)
    """Operation to the code with which AWS refuses it whoever asks; `*` for every operation."""

    asked: list[Wish] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        """The clock of the cloud."""
        return self.cloud.clock

    @cached_property
    def types(self) -> Mapping[str, TypeFacts]:
        """What is known of each type."""
        return {each.name: each for each in self.facts.types}

    @cached_property
    def labelled(self) -> Mapping[str, InstanceType]:
        """Every type with its labels."""
        return {each.name: each for each in ec2.instance_types(self.facts, self.region)}

    def state(self, machine: Machine) -> str:
        """What a machine is doing, as EC2 calls it."""
        found = self.cloud.machines.get(machine.provider_id)
        return "terminated" if found is None else _STATES[found.state]

    def alive(self, machine: Machine) -> bool:
        """Whether it takes a place."""
        return self.state(machine) != "terminated"

    def tells_of(self, machine: Machine) -> bool:
        """Whether lists show it by now."""
        return self.clock.monotonic() - machine.started >= max(self.timing.shows, self.cloud.unlisted_s)

    def ended(self, reservation: CapacityReservation) -> bool:
        """Whether a reservation is over."""
        past = reservation.end is not None and reservation.end <= self.clock.now()
        return reservation.cancelled or past or self.cloud.over(reservation.id)

    def reserve(self, reservation: CapacityReservation) -> CapacityReservation:
        """Capacity that is paid for from now on."""
        self.reservations[reservation.id] = reservation
        self.cloud.ledger.reserved(reservation.id, reservation.count, reservation.end, self.clock.now())
        return reservation

    def left(self, reservation: CapacityReservation) -> int:
        """How many machines a reservation still takes."""
        used = self.cloud.machines.in_reservation(reservation.id)
        return max(0, reservation.count - used - reservation.elsewhere)

    def open_for(self, name: str, zone: str) -> CapacityReservation | None:
        """The open reservation that a machine falls into which says nothing of reservations."""
        fitting = (each for each in self.reservations.values() if (each.type, each.zone) == (name, zone))
        return next(
            (
                each
                for each in fitting
                if each.criteria == "open" and each.kind == "default" and not self.ended(each) and self.left(each)
            ),
            None,
        )

    def has(self, market: str, name: str, zone: str) -> bool:
        """Whether a machine can be bought."""
        places, way = self.cloud.machines.places(), (name, zone, market)
        if not self.cloud.market.sells(*way):
            return False
        limit = self.limits.get((market, name, zone))
        return (limit is None or places.get(way, 0) < limit) and self.cloud.market.left(*way, places, self.clock.now())

    def price(self, market: str, name: str, zone: str) -> float:
        """What a machine costs."""
        sold = self.facts.regions[self.region].types[name]
        usual = sold.on_demand if market != labels.SPOT else sold.spot_by_zone.get(zone) or sold.spot
        return self.cloud.market.price(name, zone, market, usual or 1e9)

    def publish(self, version: str, kubernetes: str, created: str) -> None:
        """New images of AL2023, to which the alias `al2023@latest` leads from now on."""
        for architecture, variants in (("x86_64", ("standard", "nvidia", "neuron")), ("arm64", ("standard", "nvidia"))):
            for variant in variants:
                image = f"ami-{len(self.images) + 1}"
                path = f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{architecture}/{variant}"
                self.parameters[f"{path}/recommended/image_id"] = image
                self.images[image] = {
                    "name": f"amazon-eks-node-al2023-{architecture}-{variant}-{kubernetes}-{version}",
                    "architecture": architecture,
                    "created": created,
                    "owner": "amazon",
                    "tags": {},
                }

    def labels_of(self, name: str, zone: str, market: str, reservation: str = "") -> dict[str, str]:
        """What is known of a machine of a type at a place."""
        found = self.labelled.get(name)
        known = dict(found.requirements.labels()) if found is not None else {}
        bought = {labels.ZONE: zone, labels.CAPACITY_TYPE: labels.RESERVED if reservation else market}
        return {**known, **bought, **({DEFAULT_LABELS.id: reservation} if reservation else {})}

    def launch(self, machine: Machine, data: Mapping[str, Any]) -> None:
        """Start a machine with what its launch template says."""
        self.machines[machine.id] = machine
        told = boot.told(data, CLUSTER)
        facts, own = self.types[machine.type], machine.tags
        capacity = boot.capacity(facts, told)
        targeted = machine.reservation if machine.preference == boot.ONLY else ""
        number = len(self.machines)
        self.cloud.start(
            CloudMachine(
                provider_id=machine.provider_id,
                node_name=f"ip-10-{number >> 16 & 255}-{number >> 8 & 255}-{number & 255}.{self.region}.compute.internal",
                claim_name=own.get(NODECLAIM, ""),
                claim_uid=own.get(NODECLAIM_UID, ""),
                pool=own.get(labels.NODEPOOL, ""),
                instance_type=machine.type,
                zone=machine.zone,
                capacity_type=labels.RESERVED if targeted else machine.market,
                reservation=machine.reservation,
                region=self.region,
                architecture=facts.architecture,
                operating_system="linux",
                labels=self.labels_of(machine.type, machine.zone, machine.market, targeted),
                node_labels=told.labels,
                node_taints=told.taints,
                capacity=capacity,
                allocatable=boot.allocatable(facts, told, capacity),
                launched_at=machine.launched_at,
                birth=MachineDefects(never_joins=not told.joins),
            ),
            self.price(machine.market, machine.type, machine.zone),
        )


def account(facts: Facts, region: str, cloud: PretendCloud, kubernetes: str = "1.33") -> Account:
    """An account with a subnet in every zone, a group, a role, and the images of AL2023."""
    made = Account(facts=facts, region=region, cloud=cloud)
    discovery = {"karpenter.sh/discovery": CLUSTER}
    for number, (zone, zone_id) in enumerate(sorted(facts.regions[region].zones.items()), start=1):
        made.subnets[f"subnet-{number}"] = {"zone": zone, "zone_id": zone_id, "free": 4000, "tags": dict(discovery)}
    made.groups["sg-1"] = {"name": "nodes", "tags": dict(discovery)}
    made.roles.add("nodes")
    made.cluster = {
        "name": CLUSTER,
        "version": kubernetes,
        "endpoint": "https://prod.example.com",
        "certificateAuthority": {"data": "Q0E="},
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16"},
    }
    made.publish("v1", kubernetes, "2026-01-01T00:00:00.000Z")
    return made
