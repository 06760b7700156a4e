"""The answer: placements, claims to open, and a refusal for every pod left over."""

from collections.abc import Mapping

from joiner.catalog.market import Option
from joiner.model.meta import Value
from joiner.model.resources import Resources
from joiner.model.taints import Taint
from joiner.requirements import Requirements


class PlannedClaim(Value):
    """A node to buy."""

    nodepool: str
    pods: tuple[str, ...]
    """`namespace/name` of each pod it is bought for, in order."""
    requirements: Requirements
    """What the node must be; the instance type is told by `options`."""
    options: tuple[Option, ...]
    """The types it may be, cheapest first."""
    requests: Resources
    """What its pods and daemons ask for."""
    taints: tuple[Taint, ...] = ()
    reservations: tuple[str, ...] = ()
    """The reservation it is launched into, if any."""
    min_values_relaxed: bool = False

    @property
    def price(self) -> float:
        """What it costs by the hour, launched as the first option."""
        return self.options[0].offering.cost


class Reason(Value):
    """Why one thing would not take a pod."""

    rule: str
    """Which rule said no: `taints`, `requirements`, `resources`, `topology` …"""
    object: str
    """Who was asked: `NodePool default`, `Node a`."""
    message: str


class Refusal(Value):
    """A pod that found no place, and why."""

    pod: str
    reasons: tuple[Reason, ...]
    ignored: bool = False
    """Whether the pod was never tried: it is not for us, or cannot be understood."""

    def __str__(self) -> str:
        return "; ".join(f"{reason.object}: {reason.message}" for reason in self.reasons)


class Plan(Value):
    """Where every pod goes."""

    claims: tuple[PlannedClaim, ...] = ()
    placements: Mapping[str, tuple[str, ...]] = {}
    """Existing node to the pods that go there."""
    refusals: tuple[Refusal, ...] = ()
    not_attempted: tuple[str, ...] = ()
    """Pods that were not tried before the effort was spent."""
    dropped: int = 0
    """How many pods lost their place because the types a claim may name do not leave the values it must."""
    planner: str = ""
    """Which way of planning won."""

    @property
    def price(self) -> float:
        """What the claims cost by the hour."""
        return sum(claim.price for claim in self.claims)
