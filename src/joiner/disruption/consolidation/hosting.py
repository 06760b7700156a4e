"""An estimate by counting: how many pods of some nodes the others could take, and what the rest would cost to buy.

It knows resources, labels, taints and "so many on a host", and nothing of zones, ports or volumes: the planner decides, this only
tells which questions are worth asking.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from joiner.disruption.consolidation.fleet import Fleet, Mask
from joiner.scheduling.bound.relaxation import Relaxation

ENOUGH: Final = 1.0 - 1e-9
WASTE: Final = 1.03
"""How much more than its share of the best node a pod costs in practice."""


class Hosting:
    """Counts for one part of a fleet."""

    def __init__(self, fleet: Fleet, kinds: Relaxation) -> None:
        self._fleet, self._kinds = fleet, kinds
        self._row_of = {int(name): number for number, name in enumerate(kinds.pods)}
        self._order = sorted(range(len(fleet.demands)), key=lambda kind: (-fleet.worth[kind], kind))
        self._prices = prices = fleet.kind_prices(kinds)
        self._least = {
            int(name): float(prices[kinds.usable[number]].min(initial=np.inf)) for number, name in enumerate(kinds.pods)
        }
        """Class to the cheapest node that takes one of its pods."""
        shares, reserved = prices[:, None] * kinds.parts.max(axis=1, initial=0.0), kinds.kinds.limits >= 0
        self._reserved = {
            int(name): float(shares[kinds.usable[number] & reserved, number].min(initial=np.inf))
            for number, name in enumerate(kinds.pods)
        }
        """Class to the price of its part of the cheapest node in a reservation, as if there were enough of them."""

    def bought(self, gone: Sequence[int], avoid: Mask) -> float:
        """What would have to be bought, in dollars an hour, if some candidates went; `avoid` marks places not to use."""
        fleet = self._fleet
        counts = fleet.pods[:, list(gone)].sum(axis=1)
        free = np.where(avoid[:, None], 0.0, fleet.free)
        value, dearest, rest = 0.0, 0.0, dict[int, int]()
        for kind in self._order:
            left = int(counts[kind])
            if not left:
                continue
            left -= self._placed(kind, left, free, fleet.allowed[kind] & ~avoid)
            if left > 0:
                rest[kind] = left
                value += left * min(fleet.worth[kind], self._reserved.get(kind, np.inf))
                dearest = max(dearest, self._least.get(kind, np.inf))
        return max(dearest, WASTE * value, self._whole(rest)) if rest else 0.0

    def _whole(self, pods: Mapping[int, int]) -> float:
        """The price of the cheapest one or two nodes that have room for all pods; of three cheap ones if none have.

        Nodes are bought whole: what is left over on a node that a few pods need is paid for, too.
        """
        rows = [self._row_of[kind] for kind in pods if kind in self._row_of]
        able = self._kinds.usable[rows].any(axis=0)
        if len(rows) < len(pods) or not able.any():
            return 0.0
        shares = self._kinds.parts[able][:, :, rows] @ np.array(list(pods.values()), np.float64)
        prices = self._prices[able]
        with np.errstate(divide="ignore"):
            room = 1.0 / shares  # of each row, in times what all pods ask for
        order = np.argsort(prices, kind="stable")
        prices, room = prices[order], room[order]
        best = 3.0 * float(prices[0])
        for number, price in enumerate(prices):
            if price >= best:
                break
            if (room[number] >= ENOUGH).all():
                return float(price)
            both = (room[number] + room[: number + 1] >= ENOUGH).all(axis=1)
            if both.any():
                best = min(best, float(price + prices[both.argmax()]))
        return best

    def _placed(self, kind: int, wanted: int, free: np.ndarray, allowed: Mask) -> int:
        asked = self._fleet.amounts[kind]
        needed = asked > 0
        places = np.flatnonzero(allowed)
        if not len(places):
            return 0
        fits = np.floor((free[places][:, needed] / asked[needed]).min(axis=1, initial=np.inf) + 1e-9)
        most = self._fleet.hosts[kind]
        if most is not None:
            fits = np.minimum(fits, most)
        fits = np.minimum(fits, wanted)
        filled = np.minimum(np.cumsum(fits), wanted)
        taken = np.diff(filled, prepend=0.0)
        free[places] -= taken[:, None] * asked[None, :]
        return int(filled[-1])
