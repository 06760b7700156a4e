"""The answer: placements, claims to open, and a refusal for every pod left over."""

from collections.abc import Mapping
from typing import Final

from joiner.catalog.market import Option
from joiner.model.meta import Value
from joiner.model.resources import Resources
from joiner.model.taints import Taint
from joiner.requirements import Requirements

_SHOWN_NAMES: Final = 5

AT_HOME: Final = "existing nodes take every pod that could have a place"
FIRST_FIT_ONLY: Final = "only first fit was asked for"
AGREED: Final = "first fit and planning by price come to the same node"
NEAR_BOUND: Final = "no plan can be more than 2 % cheaper"
OUT_OF_EFFORT: Final = "the effort was spent"
ALL_TRIED: Final = "every planner that suits the problem was tried"
TWO_TRIED: Final = "the two quickest planners were tried"
"""What ends the search for a better plan."""


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

    @property
    def runner_up(self) -> Option | None:
        """What would be bought if the first option were not to be had."""
        return self.options[1] if len(self.options) > 1 else None


class FunnelStage(Value):
    """How many types of a pool are left after one more rule."""

    rule: str
    after: str
    """What was held against them: `kubernetes.io/arch In [arm64]`, `cpu 2`."""
    left: int


ITSELF: Final = "the pod itself"
"""Reasons that stand without asking further."""


class RefusalReason(Value):
    """Why one thing would not take a pod."""

    rule: str
    """Which rule said no: `taints`, `requirements`, `resources`, `topology` …"""
    object: str
    """Who was asked: `NodePool default`, `Node a`."""
    message: str
    wanted: str = ""
    """What the pod needs there."""
    had: str = ""
    """What there was instead."""
    hint: str = ""
    """What was probably meant, or what would have to change."""
    funnel: tuple[FunnelStage, ...] = ()
    """The types of a pool through one rule after the other, down to none."""

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class Refusal(Value):
    """A pod that found no place, and why."""

    pod: str
    reasons: tuple[RefusalReason, ...]
    ignored: bool = False
    """Whether the pod was never tried: it is not for us, or cannot be understood."""

    def told(self) -> list[str]:
        """The reasons in words; those who give the same one are named together."""
        who: dict[str, dict[str, None]] = {}
        for reason in self.reasons:
            who.setdefault(str(reason), {})[reason.object] = None
        return [f"{_named(list(objects))}: {said}" for said, objects in who.items()]

    def __str__(self) -> str:
        return "; ".join(self.told())


def _named(objects: list[str]) -> str:
    """`NodePool a`, or `NodePools a, b, c and 4 more`."""
    if len(objects) == 1:
        return objects[0]
    kind, _, first = objects[0].partition(" ")
    names = [first, *(each.partition(" ")[2] for each in objects[1:])]
    shown = ", ".join(names[:_SHOWN_NAMES])
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return f"{kind}s {shown}{more}"


class DroppedPreferences(Value):
    """Pods that have a place, and what they would have liked and were placed without."""

    pods: tuple[str, ...]
    wishes: tuple[str, ...]
    """Each in words."""


class Plan(Value):
    """Where every pod goes."""

    claims: tuple[PlannedClaim, ...] = ()
    placements: Mapping[str, tuple[str, ...]] = {}
    """Existing node to the pods that go there."""
    refusals: tuple[Refusal, ...] = ()
    given_up: tuple[DroppedPreferences, ...] = ()
    """Wishes that could not be kept."""
    not_attempted: tuple[str, ...] = ()
    """Pods that were not tried before the effort was spent."""
    dropped: int = 0
    """How many pods lost their place because the types a claim may name do not leave the values it must."""
    planner: str = ""
    """Which way of planning won."""
    ended: str = ""
    """What ended the search for a better one."""

    @property
    def price(self) -> float:
        """What the claims cost by the hour."""
        return sum(claim.price for claim in self.claims)
