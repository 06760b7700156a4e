"""What consolidation remembers from one decision to the next: goes in, comes out, and is forgotten with a restart.

Where pods did not land as planned, the next move of that part has to save more: the price of an eviction is raised there, as
far as it takes to refuse the same move, and at the highest price nothing moves. Once other pods come or go, it falls with time.
While they are the same it stays raised for an hour and falls then, but only so often: a part in which plans do not come true
comes to rest, and one that was unlucky once does not stay dear for ever.
"""

import math
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

from joiner.model.meta import Value, replace

RAISE: Final = 2.0
STEEPEST: Final = 8.0
"""A broken promise makes evictions at least twice, and at most so many times as dear as they were."""
HIGHEST: Final = 64.0
"""At so many times the usual price nothing moves."""
HALF_LIFE: Final = timedelta(minutes=10)
"""After so long a raised price is half as far above the usual one."""
STANDS: Final = timedelta(hours=1)
"""So long a price stays raised where the pods of the part are the same."""
FORGIVEN: Final = 3
"""So often it falls there."""
KEPT: Final = 0.5
"""Which part of what was promised must have been saved."""
PATIENCE: Final = timedelta(minutes=20)
"""How long it is waited for a move to come to its end and for its pods to run, before nothing is concluded from it."""

PartName = tuple[str, ...]
Owner = tuple[str, str]
"""Namespace and name of what a pod belongs to."""


class Promise(Value):
    """What a move should come to."""

    price: float
    """What the part cost before."""
    saved: float
    bearable: float
    """How many times as dear as usual evictions could have been for the move to pay just the same."""
    gone: frozenset[str]
    """The claims that go."""
    pods: object
    """The pods of the part, by owner and number: if others have come or gone, nothing can be concluded."""
    at: datetime


class PartMemory(Value):
    """What is remembered of a part."""

    quiet: object = None
    """What a search that found nothing depended on."""
    promises: tuple[Promise, ...] = ()
    factor: float = 1.0
    """How many times as dear as usual evictions counted when that was last settled."""
    pods: object = None
    """The pods of the part when the price was raised last."""
    broken: datetime | None = None
    """When that was."""
    forgiven: int = 0
    """How often it has fallen while the pods were the same."""
    since: datetime | None = None
    """Since when it falls."""
    turn: int = 0
    """When it was searched last, counted in searches."""
    asked: object = None
    """What the search depended on that found the last move."""
    refused: frozenset[frozenset[str]] = frozenset()
    """Claims of moves that did not hold at the second look; they are not proposed again while nothing has changed."""

    @property
    def matters(self) -> bool:
        """Whether it is kept although the part is not there at the moment."""
        return bool(self.promises) or self.factor > 1.0 or self.forgiven > 0

    def raised(self, now: datetime) -> float:
        """How many times as dear as usual evictions count now."""
        if self.since is None:
            return self.factor
        return 1.0 + (self.factor - 1.0) * math.pow(0.5, abs(now - self.since) / HALF_LIFE)


class Workload(Value):
    """Since when there have been so many pods of a workload."""

    count: int
    since: datetime


class Memory(Value):
    """What is remembered of all parts."""

    parts: Mapping[PartName, PartMemory] = {}
    turns: int = 0
    workloads: Mapping[Owner, Workload] = {}

    @property
    def things(self) -> tuple[object, ...]:
        """Everything that the next memory may name of this one."""
        return (*self.parts.values(), *self.workloads.values())

    def of(self, part: PartName) -> PartMemory:
        """What is remembered of one."""
        return self.parts.get(part, PartMemory())

    def sharing(self, part: PartName) -> tuple[PartMemory, ...]:
        """What is remembered of all that have a pool in common with one: which pools belong together changes with the pods."""
        return tuple(known for name, known in self.parts.items() if not set(name).isdisjoint(part))

    def raised(self, part: PartName, now: datetime) -> float:
        """How many times as dear as usual evictions count in a part now."""
        return max((known.raised(now) for known in self.sharing(part)), default=1.0)

    def given_up(self, there: Collection[str], going: Collection[str]) -> frozenset[str]:
        """The claims of moves that are not carried out any more: some of them are there, and none of these goes."""
        promises = (promise for known in self.parts.values() for promise in known.promises)
        over = (
            each.gone for each in promises if any(name in there for name in each.gone) and each.gone.isdisjoint(going)
        )
        return frozenset().union(*over)

    def withdrawn(self, claims: Collection[str]) -> "Memory":
        """The same where a move that is about these claims was not made after all."""
        return replace(self, parts={name: _without(known, claims) for name, known in self.parts.items()})


def _without(known: PartMemory, claims: Collection[str]) -> PartMemory:
    kept = tuple(each for each in known.promises if each.gone.isdisjoint(claims))
    refused = frozenset(each.gone for each in known.promises if not each.gone.isdisjoint(claims))
    return replace(known, promises=kept, refused=known.refused | refused) if refused else known


def settled(known: PartMemory, *, claims: frozenset[str], price: float, pods: object, now: datetime) -> PartMemory:
    """The memory once moves have come to their ends: where one did not save what it promised, evictions become dearer."""
    waiting: list[Promise] = []
    bearable: list[float] = []
    for promise in known.promises:
        if promise.gone & claims or promise.pods != pods:
            if abs(now - promise.at) < PATIENCE:  # clocks may be set back
                waiting.append(promise)
        elif promise.price - price < KEPT * promise.saved:
            bearable.append(1.01 * promise.bearable)
    known = replace(known, promises=tuple(waiting))
    if bearable:
        raised = known.raised(now)
        factor = max(raised * RAISE, min(raised * STEEPEST, max(bearable)))
        forgiven = known.forgiven if known.pods == pods else 0
        factor = min(HIGHEST, factor)
        return replace(known, factor=factor, pods=pods, broken=now, forgiven=forgiven, since=None)
    if known.since is None and known.factor > 1.0:
        if known.pods != pods:
            return replace(known, since=now)
        if known.forgiven < FORGIVEN and known.broken is not None and abs(now - known.broken) >= STANDS:
            return replace(known, since=now, forgiven=known.forgiven + 1)
    if known.raised(now) <= 1.05:
        return replace(known, factor=1.0, since=None)
    return known
