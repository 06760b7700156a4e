"""Back-off for offerings whose launches failed: plans do without them, then one NodeClaim at a time tries them, later each time.

A *choice* is one way to launch a claim: a type, and an offering of it. All those of a claim that is gone without a machine have
failed. Until one of them is tried again, or long enough ago, they are left out of the catalogue. When they have rested, one
claim tries them for a pod that found no other place. If it gets a machine, all that it could have been is good again.
Why: docs/design/launch-back-off.md.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from joiner.catalog.build import Catalog
from joiner.catalog.market import InstanceType
from joiner.clock import Clock
from joiner.kube.controller import Backoff
from joiner.model import labels
from joiner.model.meta import replace
from joiner.requirements import Requirements
from joiner.scheduling.plan import PlannedClaim
from joiner.state.bookkeeping import SettledClaim

PAUSE: Final = Backoff(1.0, 240.0)
"""How long a choice that failed rests; it grows fourfold. In the end it is longer than providers remember what they have none of:
all that is dry is then tried together, and not one part after the other."""
TOGETHER: Final = 8
"""What rests nearly as long as something else of its pool, by this part of the pause, is tried together with it."""
REMEMBERED_S: Final = 180.0
"""How long a failure is remembered at least: as long as providers do."""
SPARE_S: Final = 60.0
"""How much time there is then to try again with one claim, before all claims may."""
NOW: Final = 0.0
UNDECIDED: Final = math.inf
"""When a claim may be written that waits for what becomes of another one."""

Choice = tuple[str, Requirements]
Choices = frozenset[Choice]
ANYTHING: Final[Choices] = frozenset({("", Requirements())})
"""What a claim of a pool that keeps a number of nodes may be, as one choice."""


class LaunchRequest(NamedTuple):
    """A claim that is to be written, or is written: as what it may be launched."""

    pool: str
    planned: PlannedClaim | None = None
    catalog: Catalog | None = None

    def choices(self) -> Choices:
        """Every way to launch it. Asked only where something has failed: there may be thousands."""
        if self.planned is None or self.catalog is None:
            return ANYTHING
        market, names = self.catalog.market, {each.name for each in self.planned.options}
        asked, reserved = self.planned.requirements.without(labels.HOSTNAME), bool(self.planned.reservations)
        well_known = market.vocabulary.well_known
        allowed = {shape for shape in self.catalog.index.shapes if asked.compatible(shape, well_known)}
        return frozenset(
            (unit.name, offering.requirements)
            for unit in market.stock.units
            if unit.name in names
            for offering in unit.offerings
            if offering.launchable and offering.reserved == reserved and offering.requirements in allowed
        )


class _Rest:
    """A choice that failed."""

    __slots__ = ("failed_at", "failures", "until")

    def __init__(self) -> None:
        self.failures = 0
        self.failed_at = -math.inf
        self.until = 0.0

    @property
    def forgotten_at(self) -> float:
        """When it is as if nothing had been."""
        return max(self.until, self.failed_at + REMEMBERED_S) + SPARE_S


class _Try(NamedTuple):
    """A claim that was written and has no machine yet."""

    launch: LaunchRequest
    at: float
    probes: Choices
    """What only this claim tries for as long as it has no machine."""


class _Reduced(NamedTuple):
    """A catalogue without what failed."""

    source: Catalog
    failed: Choices
    made: Catalog


class LaunchRetries:
    """Remembers what failed, for each pool. The provisioner plans by it, and the claim writer writes by it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._settled: list[SettledClaim] = []
        self._rests: dict[str, dict[Choice, _Rest]] = {}
        self._tries: dict[str, _Try] = {}
        self._rounds = 0
        self._reduced: dict[tuple[str, bool], _Reduced] = {}

    def reduced(self, catalog: Catalog, *, rested: bool = False) -> Catalog:
        """What a pool can buy, without what failed; or only without that part of it that rests or is being tried now.

        The same object is given for as long as it says the same.
        """
        self._learn()
        pool, now = catalog.nodepool, self._clock.monotonic()
        rests = self._rests.get(pool, {})
        failed = {key for key, rest in rests.items() if not rested or now < rest.until} - ANYTHING
        if rested:
            failed.update(self._probed(pool))
        known = self._reduced.pop((pool, rested), None)
        if not failed:
            return catalog
        if known is None or known.source is not catalog or known.failed != failed:
            made = _without(catalog, failed)
            same = known is not None and known.made.types == made.types and known.made.requirements == made.requirements
            known = _Reduced(catalog, frozenset(failed), known.made if known is not None and same else made)
        self._reduced[pool, rested] = known
        return known.made

    def due(self, pool: str) -> bool:
        """Whether something of a pool failed, has rested since, and is not being tried."""
        self._learn()
        now, probed = self._clock.monotonic(), set(self._probed(pool))
        return any(rest.until <= now and key not in probed for key, rest in self._rests.get(pool, {}).items())

    def allowed(self, requests: Sequence[LaunchRequest]) -> tuple[float, ...]:
        """For each claim when it may be written: now, at a later time, or undecided."""
        self._learn()
        times, waiting = [NOW] * len(requests), list[tuple[int, Choices]]()
        for number, each in enumerate(requests):
            rests = self._rests.get(each.pool)
            choices = each.choices() if rests else frozenset()
            if rests and choices and all(choice in rests for choice in choices):
                waiting.append((number, choices))
        if waiting:  # another one begins each time, so that one which can never be launched does not stop the others
            start = self._rounds % len(waiting)
            self._rounds += 1
            tried = {pool: set(self._probed(pool)) for pool in self._rests}
            for number, choices in (*waiting[start:], *waiting[:start]):
                pool = requests[number].pool
                times[number] = self._allowed_at(self._rests[pool], choices, tried[pool])
        return tuple(times)

    def _allowed_at(self, rests: Mapping[Choice, _Rest], choices: Choices, tried: set[Choice]) -> float:
        if not tried.isdisjoint(choices):
            return UNDECIDED
        until = min(rests[each].until for each in choices)
        if self._clock.monotonic() < until:
            return until
        tried |= choices
        return NOW

    def _probed(self, pool: str) -> Iterable[Choice]:
        return (choice for each in self._tries.values() if each.launch.pool == pool for choice in each.probes)

    def wrote(self, claim: str, launch: LaunchRequest) -> None:
        """An allowed claim is written."""
        rests = self._rests.get(launch.pool)
        choices = launch.choices() if rests else frozenset()
        probes = choices if rests and all(choice in rests for choice in choices) else frozenset()
        self._tries[claim] = _Try(launch, self._clock.monotonic(), probes)

    def learn(self, settled: SettledClaim) -> None:
        """A claim got its machine, or is gone without one. It counts when next asked: claims that fail together count once."""
        self._settled.append(settled)

    def _learn(self) -> None:
        """Count what became of the claims that were written, and forget what is too long ago."""
        learned, self._settled = self._settled, []
        for settled in learned:
            found = self._tries.pop(settled.claim, None)
            if found is None or settled.launched is None:
                continue
            if not settled.launched:
                self._failed(found)
            elif rests := self._rests.get(found.launch.pool):
                for choice in found.launch.choices():
                    rests.pop(choice, None)
        now = self._clock.monotonic()
        for pool in tuple(self._rests):
            probed = set(self._probed(pool))
            kept = {key: each for key, each in self._rests[pool].items() if key in probed or now < each.forgotten_at}
            self._rests[pool] = kept
            if not kept:
                del self._rests[pool]

    def _failed(self, found: _Try) -> None:
        now, rests = self._clock.monotonic(), self._rests.setdefault(found.launch.pool, {})
        latest = (0.0, 0.0)
        for choice in found.launch.choices():
            rest = rests.setdefault(choice, _Rest())
            if found.at > rest.failed_at:  # of many that were written together only the first one counts
                rest.failures += 1
                pause = PAUSE.after(2 * rest.failures - 1)
                rest.failed_at, rest.until = now, found.at + pause
                latest = max(latest, (rest.until, pause))
        until, pause = latest
        for rest in rests.values():
            if until - pause / TOGETHER <= rest.until <= until:
                rest.until = until


def _without(catalog: Catalog, choices: Collection[Choice]) -> Catalog:
    """The catalogue if some choices were not for sale."""
    market, names = catalog.market, {name for name, _ in choices}
    types = tuple(_dry(each, choices) if each.name in names else each for each in market.types)
    return catalog.on(market.selling(types))


def _dry(instance_type: InstanceType, choices: Collection[Choice]) -> InstanceType:
    offerings = tuple(
        replace(each, available=0) if (instance_type.name, each.requirements) in choices else each
        for each in instance_type.offerings
    )
    return replace(instance_type, offerings=offerings)
