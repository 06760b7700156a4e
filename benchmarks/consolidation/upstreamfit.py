"""Karpenter's first fit, as far as its consolidation needs it: the nodes that are there in order of name, then new claims.

A claim keeps every type that still holds its pods; the one with the fewest pods is asked first.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.consolidation.places import HAIR, Places, PodKind
from benchmarks.consolidation.shop import ON_DEMAND, RESERVED, WAYS, ZONES, Floats, Mask, Shop
from joiner.catalog.market import RESERVED_DIVISOR


@dataclass
class Claim:
    """A node that would be bought: what it may still be."""

    pool: int
    team: int
    types: Mask
    zones: Mask
    ways: Mask
    used: Floats
    count: int = 0
    pods: dict[int, int] = field(default_factory=dict)


@dataclass
class Fit:
    """What came of it."""

    placed: list[tuple[int, int, int]] = field(default_factory=list)
    """Kind, slot, how many."""
    claims: list[Claim] = field(default_factory=list)
    refused: int = 0
    unready: bool = False
    """Whether a pod would go to a node that is not complete yet."""
    tried: int = 0
    """Pods that were looked at."""


class Offers:
    """Prices with what reservations have left; the least for a claim."""

    def __init__(self, shop: Shop, left: dict[tuple[int, int], int]) -> None:
        self.shop = shop
        self.prices = shop.prices
        if shop.reserved:
            self.prices = shop.prices.copy()
            for (number, zone), count in left.items():
                if count > 0:
                    self.prices[number, zone, RESERVED] = shop.on_demand(number, zone) / RESERVED_DIVISOR
        self.finite = np.isfinite(self.prices)

    def table(self, claim: Claim) -> Floats:
        """Type by zone by way: the price, infinite where the claim may not be that."""
        mask = claim.types[:, None, None] & claim.zones[None, :, None] & claim.ways[None, None, :]
        return np.where(mask, self.prices, np.inf)

    def possible(self, types: Mask, zones: Mask, ways: Mask) -> Mask:
        found: Mask = types & (self.finite & zones[None, :, None] & ways[None, None, :]).any(axis=(1, 2))
        return found


def pool_ways(shop: Shop) -> Mask:
    """The capacity types that pools may buy."""
    return np.array([bool(np.isfinite(shop.prices[:, :, way]).any()) or (way == RESERVED and bool(shop.reserved))
                     for way in range(len(WAYS))], np.bool_)  # fmt: skip


class UpstreamFit:
    """One simulation."""

    def __init__(self, places: Places, offers: Offers, gone: Mask, *, most: int | None = None) -> None:
        """`gone`: nodes that are no places; with more than `most` claims it is over."""
        self._places, self._offers, self._gone, self._most = places, offers, gone, most
        end = places.count
        self._free = places.free[:end].copy()
        self._hosts: dict[int, Floats] = {}
        self._zones: dict[int, Floats] = {}
        self._apart_claims: set[tuple[int, int]] = set()
        self.fit = Fit()

    def run(self, wanted: dict[int, int]) -> Fit:
        """Place so many pods of each kind: the largest first."""
        kinds = self._places.kinds
        for number in sorted(wanted, key=lambda n: (-kinds[n].cpu, -kinds[n].memory, n)):
            left = wanted[number] - self._on_nodes(kinds[number], wanted[number])
            self.fit.tried += wanted[number]
            for _ in range(left):
                if not self._on_claims(kinds[number]):
                    self.fit.refused += 1
                if self._most is not None and (len(self.fit.claims) > self._most or self.fit.refused):
                    return self.fit
        return self.fit

    def _counts(self, kind: PodKind) -> Floats:
        found = self._zones.get(kind.number)
        if found is None:
            found = self._zones[kind.number] = self._places.zone_counts(kind.number, self._gone)
        return found

    def _on_nodes(self, kind: PodKind, wanted: int) -> int:
        places, end, asked = self._places, self._places.count, self._places.requests[kind.number]
        open_ = places.allowed(kind) & ~places.going[:end] & ~self._gone[:end]
        where = np.flatnonzero(open_ & (self._free + HAIR >= asked).all(axis=1))
        if not len(where):
            return 0
        # Complete nodes come first, then by name.
        where = where[np.lexsort((where, ~places.ready[where]))]
        fits = np.floor((self._free[where] + HAIR) / asked).min(axis=1)
        if kind.apart:
            fits = np.minimum(fits, places.hosts[kind.number, where] == 0)
        if kind.zonal:
            return self._zonal(kind, wanted, where, fits)
        filled = np.minimum(np.cumsum(fits), wanted)
        taken = np.diff(filled, prepend=0.0)
        for slot, count in zip(where.tolist(), taken.tolist(), strict=True):
            if count:
                self._put(kind, slot, int(count))
        return int(filled[-1])

    def _zonal(self, kind: PodKind, wanted: int, where: Any, fits: Floats) -> int:
        counts, zones = self._counts(kind), self._places.zone[where]
        done = 0
        while done < wanted:
            able = np.flatnonzero((fits > 0) & (counts - counts.min() < 1)[zones])
            if not len(able):
                break
            first = able[0]
            fits[first] -= 1
            self._put(kind, int(where[first]), 1)
            done += 1
        return done

    def _put(self, kind: PodKind, slot: int, count: int) -> None:
        self._free[slot] -= count * self._places.requests[kind.number]
        if kind.zonal:
            self._counts(kind)[self._places.zone[slot]] += count
        self.fit.placed.append((kind.number, slot, count))
        if not self._places.ready[slot]:
            self.fit.unready = True

    def _on_claims(self, kind: PodKind) -> bool:
        for claim in sorted(self.fit.claims, key=lambda each: each.count):
            if claim.team == kind.team and not (kind.apart and kind.number in claim.pods) and self._joined(claim, kind):
                return True
        shop = self._places.shop
        for pool, team in enumerate(self._places.team_of_pool):
            if team == kind.team:
                every = np.ones(len(shop.names), np.bool_)
                claim = Claim(pool, team, every, np.ones(len(ZONES), np.bool_), pool_ways(shop), np.zeros(3))
                if self._joined(claim, kind):
                    self.fit.claims.append(claim)
                    return True
        return False

    def _joined(self, claim: Claim, kind: PodKind) -> bool:
        used = claim.used + self._places.requests[kind.number]
        types = claim.types & (self._places.shop.room + HAIR >= used).all(axis=1)
        zones, ways = claim.zones, claim.ways
        if kind.on_demand:
            ways = ways & (np.arange(len(WAYS)) == ON_DEMAND)
        if kind.zonal:
            counts = self._counts(kind)
            able = np.flatnonzero(zones & (counts - counts.min() < 1))
            if not len(able):
                return False
            zones = np.arange(len(ZONES)) == able[np.argmin(counts[able])]
        types = self._offers.possible(types, zones, ways)
        if not types.any():
            return False
        claim.types, claim.zones, claim.ways, claim.used = types, zones, ways, used
        claim.count += 1
        claim.pods[kind.number] = claim.pods.get(kind.number, 0) + 1
        if kind.zonal:
            self._counts(kind)[int(np.flatnonzero(zones)[0])] += 1
        return True
