"""Instance types, their offerings and their overhead as values."""

import math
from collections.abc import Mapping
from typing import Final

from joiner.model import labels, resources
from joiner.model.kubelet import Threshold
from joiner.model.meta import EMPTY, Value, freeze
from joiner.model.resources import MEMORY, Resources
from joiner.requirements import Requirements

UNLIMITED: Final = 2**32 - 1
"""How many instances an offering without a count can launch."""

ALLOWED_PRICE: Final = "allowed is a number of dollars an hour, 0 or more"
"""Part of every message about a bad price."""

RESERVED_DIVISOR: Final = 10_000_000
"""A reserved offering is shown at its on-demand price divided by this, so that it is below every other one, in order."""


class Overhead(Value):
    """What pods cannot use of a machine, by the reason."""

    kube_reserved: Resources = EMPTY
    system_reserved: Resources = EMPTY
    eviction_hard: Mapping[str, Threshold] = EMPTY
    """Resource name to the free amount below which the kubelet evicts; a share is a share of the capacity."""

    def __post_init__(self) -> None:
        freeze(self, "kube_reserved", "system_reserved", "eviction_hard")

    def eviction(self, capacity: Resources) -> dict[str, int]:
        """The eviction thresholds as amounts of a given capacity."""
        return {name: threshold.amount_of(capacity.get(name, 0)) for name, threshold in self.eviction_hard.items()}

    def total(self, capacity: Resources) -> dict[str, int]:
        """Everything pods cannot use."""
        return resources.add(self.kube_reserved, self.system_reserved, self.eviction(capacity))


class Offering(Value):
    """One way to buy an instance type: a capacity type in a zone, at a price, possibly out of a reservation."""

    requirements: Requirements
    price: float | None
    """Dollars an hour; for a reserved offering the on-demand price it stands for. None: the price is not known."""
    available: int = UNLIMITED
    """How many can be launched now; `UNLIMITED` where the provider gives no count."""
    divisor: int = 1
    """What the price is divided by where it is shown or written; see `RESERVED_DIVISOR`."""
    capacity: Resources = EMPTY
    """Resources that a NodeOverlay adds to nodes bought this way."""
    overhead: Resources = EMPTY
    """Overhead that a NodeOverlay adds to nodes bought this way."""
    price_overlaid: bool = False
    """Whether a NodeOverlay changed the price."""

    def __post_init__(self) -> None:
        freeze(self, "capacity", "overhead")

    @property
    def capacity_type(self) -> str:
        """`spot`, `on-demand` or `reserved`."""
        return self.requirements.at(labels.CAPACITY_TYPE).any() or ""

    @property
    def zone(self) -> str:
        """The zone of nodes bought this way."""
        return self.requirements.at(labels.ZONE).any() or ""

    @property
    def reserved(self) -> bool:
        """Whether this is paid-for capacity out of a reservation."""
        return self.capacity_type == labels.RESERVED

    @property
    def launchable(self) -> bool:
        """Whether a node can be bought this way now: the price is known and something is left."""
        return self.available > 0 and self.price is not None

    @property
    def cost(self) -> float:
        """The hourly price as it is shown and compared; infinite when unknown."""
        return math.inf if self.price is None else self.price / self.divisor

    @property
    def prepaid(self) -> bool:
        """Whether it is paid for already: its price only serves to compare reservations with each other."""
        return self.divisor != 1

    @property
    def bill(self) -> float:
        """What is paid by the hour once it is bought: nothing more where it is paid for already."""
        return 0.0 if self.prepaid else self.cost

    @property
    def order(self) -> tuple[int, float]:
        """Reserved capacity first, whatever its price; then by price."""
        return (0 if self.reserved else 1, self.cost)


class InstanceType(Value):
    """A kind of machine: its labels, capacity, overhead, and the ways to buy it."""

    name: str
    requirements: Requirements
    offerings: tuple[Offering, ...] = ()
    capacity: Resources = EMPTY
    """What a node of this type reports, without what overlays add for single offerings."""
    overhead: Overhead = Overhead()
    vm_overhead: Resources = EMPTY
    """What the hypervisor was assumed to take: already missing from `capacity`."""
    pods_limit: int | None = None
    """A cap on pods that the NodeClass sets (maxPods, podsPerCore), in thousandths; settings cannot go above it."""
    volume_limits: Mapping[str, int] = EMPTY
    """CSI driver to the number of volumes a node can attach; a driver that is not listed has no limit."""
    exotic: bool = False
    """Whether it is a machine for special work (bare metal, accelerators): bought only where no other type will do."""

    def __post_init__(self) -> None:
        freeze(self, "capacity", "vm_overhead", "volume_limits")

    def allocatable(self, offering: Offering | None = None) -> dict[str, int]:
        """What pods can use on a node of this type, bought through the given offering."""
        capacity = self.capacity
        taken = self.overhead.total(capacity)
        if offering is not None:
            capacity = {**capacity, **offering.capacity}
            taken = resources.add(taken, offering.overhead)
        left = resources.at_least_zero(resources.subtract(capacity, taken))
        pages = sum(amount for name, amount in capacity.items() if resources.is_hugepages(name))
        if pages and MEMORY in left:
            left[MEMORY] = max(0, left[MEMORY] - pages)
        return left


class Option(Value):
    """An instance type a node may be launched as, with the offering it would get."""

    name: str
    offering: Offering
    """The first launchable one in order of rank and price, under the node's requirements."""
