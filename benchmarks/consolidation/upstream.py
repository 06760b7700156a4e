"""Karpenter's rules of consolidation (v1.15): Emptiness, the search over several nodes, the one over single nodes, Balanced.

Where it takes time by its clock, the time of a simulation is taken from runs of Karpenter's own code (`simulation_s`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.consolidation.places import Places
from benchmarks.consolidation.shop import ON_DEMAND, RESERVED, SPOT, Floats
from benchmarks.consolidation.upstreamfit import Claim, Fit, Offers, UpstreamFit
from benchmarks.consolidation.world import Command, Launch, World

MULTI_S, SINGLE_S = 60.0, 180.0
TOGETHER = 100
SPOT_CHOICE = 15
LEAST_SCORE = 0.5
EMPTY, MULTI, SINGLE = "empty", "multi", "single"


def simulation_s(nodes: int) -> float:
    """What one simulation takes Karpenter: measured 0.02 s among 100 nodes, 0.09 among 300 with 20 pools, 0.11 among 600."""
    return 0.01 + 0.0002 * nodes


@dataclass(frozen=True)
class Choice:
    """A move: what goes, and what would be bought; the claim keeps every type that is cheaper."""

    method: str
    gone: tuple[int, ...]
    claim: Claim | None = None
    price: float = 0.0
    fit: Fit = field(default_factory=Fit)


class Upstream:
    """Decides as Karpenter does."""

    def __init__(self, world: World, *, balanced: bool = False, limits: bool = True, spot_to_spot: bool = True) -> None:
        self._world, self._balanced, self._limits, self._spot = world, balanced, limits, spot_to_spot
        self._quiet: dict[str, int] = {}
        self._unseen: set[int] = set()
        self.calls = 0
        self.spent = 0.0
        self.questions: list[int] = []

    @property
    def places(self) -> Places:
        return self._world.places

    # -- one pass -----------------------------------------------------------------------------------------------------

    def look(self) -> list[Choice]:
        """The first move that a method finds."""
        self.spent, before = 0.0, self.calls
        found = self._empty() or self._search(MULTI) or self._search(SINGLE)
        self.questions.append(self.calls - before)
        return [found] if found is not None else []

    def confirm(self, choice: Choice) -> Command | None:
        """The second look, fifteen seconds later."""
        if choice.method == EMPTY:
            still = [slot for slot in self._within(self._candidates(empty=True)) if slot in choice.gone]
            return Command(tuple(still), ()) if still else None
        known = set(self._candidates(empty=False))
        if any(slot not in known for slot in choice.gone) or len(self._within(choice.gone)) < len(choice.gone):
            return None
        fit = self._simulated(choice.gone)
        if fit.refused or fit.unready or len(fit.claims) != (choice.claim is not None):
            return None
        nominated = tuple(sorted({slot for _, slot, _ in fit.placed}))
        if choice.claim is None:
            return Command(choice.gone, (), nominated)
        if (choice.claim.types & ~fit.claims[0].types).any():
            return None
        return Command(choice.gone, (self._launch(choice.claim),), nominated)

    def _launch(self, claim: Claim) -> Launch:
        table = self._offers.table(claim)
        number, zone, way = np.unravel_index(int(table.argmin()), table.shape)
        return Launch(claim.pool, int(number), int(zone), int(way))

    @property
    def _offers(self) -> Offers:
        return Offers(self._world.shop, self._world.left())

    # -- candidates ---------------------------------------------------------------------------------------------------

    def _candidates(self, *, empty: bool) -> list[int]:
        """The nodes that may go, those first that save most for each pod."""
        places, end = self.places, self.places.count
        able = places.alive[:end] & places.ready[:end] & ~places.going[:end] & ((places.pods[:end] == 0) == empty)
        found = [slot for slot in np.flatnonzero(able).tolist() if not self._world.is_nominated(slot)]
        return sorted(found, key=lambda slot: (-self._price(slot) / self._weight(slot), slot))

    def _price(self, slot: int) -> float:
        places = self.places
        if places.way[slot] == RESERVED:
            return self._world.shop.on_demand(int(places.type[slot]), int(places.zone[slot])) / 10_000_000
        return float(places.price[slot])

    def _weight(self, slot: int) -> float:
        return 1.0 + float(self.places.pods[slot])

    def _budgets(self) -> dict[int, int]:
        places, end = self.places, self.places.count
        left = {}
        for pool in range(len(places.team_of_pool)):
            own = places.alive[:end] & places.ready[:end] & (places.pool[:end] == pool)
            left[pool] = max(0, math.ceil(0.1 * int(own.sum()) - 1e-9) - int((own & places.going[:end]).sum()))
        return left

    def _within(self, slots: Sequence[int]) -> list[int]:
        left, found = self._budgets(), []
        for slot in slots:
            pool = int(self.places.pool[slot])
            if left[pool] > 0:
                left[pool] -= 1
                found.append(slot)
        return found

    # -- the methods --------------------------------------------------------------------------------------------------

    def _empty(self) -> Choice | None:
        found = self._within(self._candidates(empty=True))
        return Choice(EMPTY, tuple(found)) if found else None

    def _search(self, method: str) -> Choice | None:
        if self._quiet.get(method) == self._world.version:
            return None
        candidates, budgets = self._candidates(empty=False), self._budgets()
        allowed = self._within(candidates)
        found = self._multi(allowed) if method == MULTI else self._single(candidates)
        # Where budgets left something out, nothing is concluded; a single node needs no more than one that is left.
        left_out = any(budgets[int(self.places.pool[slot])] <= 0 for slot in candidates)
        if found is None and not (left_out or (method == MULTI and len(allowed) < len(candidates))):
            self._quiet[method] = self._world.version
        return found

    def _multi(self, allowed: list[int]) -> Choice | None:
        """The longest beginning of the list that may go together, by bisection."""
        allowed = allowed[: TOGETHER + 1]
        began, best = self.spent, None
        low, high = 1, min(len(allowed) - 1, TOGETHER)
        while low <= high:
            if self._limits and self.spent - began > MULTI_S:
                break
            middle = (low + high) // 2
            found = self.judged(MULTI, tuple(allowed[: middle + 1]))
            if found is not None:
                best, low = found, middle + 1
            else:
                high = middle - 1
        return best

    def _single(self, candidates: list[int]) -> Choice | None:
        """One node after the other, the pools by turns; those that an earlier pass did not reach come first."""
        left, began = self._budgets(), self.spent
        by_pool: dict[int, list[int]] = {}
        for slot in candidates:
            by_pool.setdefault(int(self.places.pool[slot]), []).append(slot)
        order = sorted(by_pool, key=lambda pool: (pool not in self._unseen, pool))
        turns = [by_pool[pool][turn] for turn in range(max(map(len, by_pool.values()), default=0))
                 for pool in order if turn < len(by_pool[pool])]  # fmt: skip
        seen: set[int] = set()
        for slot in turns:
            if self._limits and self.spent - began > SINGLE_S:
                self._unseen = set(by_pool) - seen
                return None
            seen.add(int(self.places.pool[slot]))
            if left[int(self.places.pool[slot])] <= 0:
                continue
            if self._balanced and self._score((slot,), self._price(slot)) < LEAST_SCORE:
                continue
            found = self.judged(SINGLE, (slot,))
            if found is not None:
                return found
        self._unseen = set()
        return None

    # -- one question -------------------------------------------------------------------------------------------------

    def _simulated(self, gone: Sequence[int], offers: Offers | None = None) -> Fit:
        mask = np.zeros(self.places.size, np.bool_)
        mask[list(gone)] = True
        waiting: dict[int, int] = dict(self._world.counts(gone))
        moving = [slot for command in self._world.commands for slot in command.gone]
        for source in (self._world.counts(moving) if moving else {},):
            for kind, count in source.items():
                waiting[kind] = waiting.get(kind, 0) + count
        for record in self._world.pending.values():
            waiting[record.kind] = waiting.get(record.kind, 0) + 1
        self.calls += 1
        fit = UpstreamFit(self.places, offers or self._offers, mask, most=1).run(waiting)
        self.spent += simulation_s(int(self.places.alive.sum()))
        return fit

    def judged(self, method: str, gone: tuple[int, ...]) -> Choice | None:
        offers = self._offers
        fit = self._simulated(gone, offers)
        if fit.refused or fit.unready or len(fit.claims) > 1:
            return None
        limit = sum(self._price(slot) for slot in gone)
        if not fit.claims:
            return self._scored(Choice(method, gone, None, 0.0, fit), limit)
        claim = fit.claims[0]
        if all(self.places.way[slot] == SPOT for slot in gone) and claim.ways[SPOT]:
            found = self._spot_to_spot(claim, offers, limit, single=method == SINGLE)
        else:
            found = self._cheaper(claim, offers, limit)
        if found is None or (method == MULTI and not self._other_types(found, offers, gone)):
            return None
        price = float(offers.table(found).min())
        return self._scored(Choice(method, gone, found, price, fit), limit - price)

    def _cheaper(self, claim: Claim, offers: Offers, limit: float) -> Claim | None:
        claim.types = claim.types & (_worst(offers.table(claim)) < limit)
        if claim.ways[SPOT] and claim.ways[ON_DEMAND]:
            claim.ways = np.arange(len(claim.ways)) == SPOT
            claim.types = offers.possible(claim.types, claim.zones, claim.ways)
        return claim if claim.types.any() else None

    def _spot_to_spot(self, claim: Claim, offers: Offers, limit: float, *, single: bool) -> Claim | None:
        if not self._spot:
            return None
        claim.ways = np.arange(len(claim.ways)) == SPOT
        claim.types = offers.possible(claim.types, claim.zones, claim.ways) & (_worst(offers.table(claim)) < limit)
        count = int(claim.types.sum())
        if not count or (single and count < SPOT_CHOICE):
            return None
        if single:
            cheapest = offers.table(claim).min(axis=(1, 2))
            kept = np.argsort(cheapest, kind="stable")[:SPOT_CHOICE]
            claim.types = np.isin(np.arange(len(claim.types)), kept)
        return claim

    def _other_types(self, claim: Claim, offers: Offers, gone: Sequence[int]) -> bool:
        """Leave out what would only bring back a node that goes."""
        again = [self._price(slot) for slot in gone if claim.types[self.places.type[slot]]]
        if again:
            claim.types = claim.types & (_worst(offers.table(claim)) < min(again))
        return bool(claim.types.any())

    def _scored(self, choice: Choice, saved: float) -> Choice | None:
        return choice if not self._balanced or self._score(choice.gone, saved) >= LEAST_SCORE else None

    def _score(self, gone: Sequence[int], saved: float) -> float:
        """The lowest score of the pools that nodes go from."""
        places, end = self.places, self.places.count
        if saved <= 0:
            return 0.0
        whole, scores = sum(self._price(slot) for slot in gone), []
        for pool in {int(places.pool[slot]) for slot in gone}:
            every = np.flatnonzero(places.alive[:end] & (places.pool[:end] == pool)).tolist()
            cost, weight = sum(map(self._price, every)), sum(map(self._weight, every))
            own = [slot for slot in gone if places.pool[slot] == pool]
            share = saved * sum(map(self._price, own)) / whole if whole else 0.0
            if share <= 0 or not cost or not weight:
                return 0.0
            scores.append((share / cost) / (sum(map(self._weight, own)) / weight))
        return min(scores)


def _worst(table: Floats) -> Floats:
    """The dearest launch of each type: reserved where it can be, else spot, else on demand; infinite for what is not for sale."""
    found = np.full(len(table), np.inf)
    for way in (ON_DEMAND, SPOT, RESERVED):
        prices = np.where(np.isfinite(table[:, :, way]), table[:, :, way], -np.inf).max(axis=1)
        found = np.where(np.isfinite(prices), prices, found)
    return found
