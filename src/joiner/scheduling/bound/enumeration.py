"""The cheapest way to serve a few pods, found by going through all of them.

A linear programme buys parts of nodes, which for a few pods gives most of the truth away. But then everything that can be left
to serve is a short list: so many of the first demand, so many of the second, and so on. What each entry costs at the least
follows from smaller ones: some node is bought, at the price of the cheapest kind that takes what is put on it, and less is left.
"""

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from joiner.scheduling.bound.relaxation import Floats, Mask, Relaxation

Numbers = npt.NDArray[np.int64]

_WORK_MAX: Final = 30_000_000
"""How many numbers may be looked at: a second or two."""
_HAIR: Final = 1e-9
"""A node counts as full only above this, relatively: who rounds must not find less room than there is."""


def cheapest(relaxation: Relaxation) -> float | None:
    """What the cheapest plan of a relaxation costs; nothing if there are too many ways to go through."""
    counts = relaxation.counts.astype(np.int64)
    entries = math.prod((counts + 1).tolist())
    if not len(counts) or entries * relaxation.parts.shape[0] * max(1, relaxation.parts.shape[1]) > _WORK_MAX:
        return None
    table = _Table(counts)
    kinds = relaxation.kinds
    free = kinds.limits < 0
    bought = table.loads(_prices(relaxation, table.left, free))
    if len(bought.costs) * entries * len(counts) > _WORK_MAX:
        return None
    least = table.bought(bought)
    for limit, instances in enumerate(kinds.counts.tolist()):
        there = table.loads(_prices(relaxation, table.left, kinds.limits == limit))
        times = min(int(instances), int(counts.sum()))
        if len(there.costs) * entries * len(counts) * times > _WORK_MAX:
            return None
        for _ in range(times):
            least = table.with_one_more(least, there)
    return float(least[-1])


def _prices(relaxation: Relaxation, loads: Numbers, kinds: Mask) -> Floats:
    """For each load the price of the cheapest of some kinds that takes it as a whole; infinite if none does."""
    found = np.full(len(loads), np.inf)
    allowed = np.ones(len(loads), dtype=np.bool_)
    for most, members in relaxation.cardinality:
        allowed &= loads[:, members].sum(axis=1) <= most
    for kind in np.flatnonzero(kinds):
        full = loads @ relaxation.parts[kind].T
        takes = allowed & (full <= 1.0 + _HAIR).all(axis=1) & ~loads[:, ~relaxation.usable[:, kind]].any(axis=1)
        found[takes] = np.minimum(found[takes], relaxation.prices[kind])
    return found


class _Loads:
    """What can be put on one node, and what that costs."""

    def __init__(self, pods: Numbers, costs: Floats) -> None:
        self.pods = pods
        self.costs = costs


class _Table:
    """Everything that can be left to serve, smaller entries first; the last one is all of it."""

    def __init__(self, counts: Numbers) -> None:
        sizes = counts + 1
        self._strides = np.concatenate([np.cumprod(sizes[::-1])[::-1][1:], [1]]).astype(np.int64)
        self.left: Numbers = np.arange(int(np.prod(sizes)))[:, None] // self._strides % sizes
        self._counts = counts

    def loads(self, prices: Floats) -> _Loads:
        """The loads worth buying a node for: those that one more pod would make dearer."""
        worth = np.isfinite(prices) & self.left.any(axis=1)
        for demand, stride in enumerate(self._strides.tolist()):
            more = np.flatnonzero(worth & (self.left[:, demand] < self._counts[demand]))
            worth[more[prices[more + stride] <= prices[more]]] = False
        return _Loads(self.left[worth], prices[worth])

    def bought(self, loads: _Loads) -> Floats:
        """What each entry costs when as many nodes can be bought as one likes."""
        least = np.full(len(self.left), np.inf)
        least[0] = 0.0
        if not len(loads.costs):
            return least
        for entry in range(1, len(least)):
            rest = np.maximum(self.left[entry] - loads.pods, 0) @ self._strides
            # A load that takes nothing of what is left leads nowhere: its rest is the entry itself, which costs no less.
            least[entry] = (loads.costs + least[rest]).min()
        return least

    def with_one_more(self, least: Floats, loads: _Loads) -> Floats:
        """What each entry costs when one more node can be had that takes one of these loads."""
        found = least.copy()
        for pods, cost in zip(loads.pods, loads.costs.tolist(), strict=True):
            rest = np.maximum(self.left - pods, 0) @ self._strides
            np.minimum(found, least[rest] + cost, out=found)
        return found
