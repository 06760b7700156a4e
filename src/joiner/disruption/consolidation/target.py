"""The target of a part: which of its nodes a cheapest cluster would keep, by a linear programme over all of them at once.

    min  Σ (price − evict/H)·keep + Σ price·(1 + start/H)·buy + Σ evict/H      over nodes that may go, and what can be bought
         each class:             pods kept + pods on other nodes + pods on new nodes = all pods
         each group of places, resource:   what pods ask for ≤ room of the nodes that are kept
         each kind, row:         shares of pods ≤ number bought;      each reservation: number bought ≤ places left

Nodes are cut in pieces there, so it is a guide and not an answer. Its value is a bound, too: `most` says what a plan that removes
a node can save at the very most, and with that why a node is still there. Where no solver is installed, nodes are ranked by what
they cost beyond what their pods are worth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from joiner.disruption.consolidation.fleet import Fleet, Floats, Ints, Mask
from joiner.disruption.consolidation.payback import START_H
from joiner.scheduling.bound.relaxation import Relaxation

_DIGITS: Final = 6
"""To so many digits answers of the solver count: what differs only further behind is the same."""


@dataclass(frozen=True)
class Target:
    """What to make of the candidates of a part, in their order."""

    removed: Mask
    """Whether a cheapest cluster is without it."""
    gain: Floats
    """What is saved each hour without it, as prices are in the balance of all."""
    most: Floats
    """No plan that removes it saves more, by the hour; infinite where nothing is proven."""


def target(fleet: Fleet, members: Sequence[int], kinds: Relaxation, raised: float) -> Target:
    """The target of a part. `raised`: how many times as dear as usual evictions count there."""
    some = np.array(members, np.int64)
    evict = fleet.evictions[some] * raised / fleet.horizons_h[some]
    programme = _programme()
    if programme is not None:
        found = _Programme(fleet, some, kinds, evict, START_H / fleet.horizon_of(members)).solved(programme)
        if found is not None:
            return found
    gain = np.round(fleet.prices[some] - fleet.values[some] - evict, _DIGITS)
    return Target(gain > 0, gain, np.full(len(some), np.inf))


def _programme() -> Any | None:
    try:
        import highspy
    except ImportError:
        return None
    return highspy


class _Programme:
    """The columns are: keep a candidate; pods of a class on a group of places; pods of a class on a kind; buy a kind."""

    def __init__(self, fleet: Fleet, members: Ints, kinds: Relaxation, evict: Floats, start: float) -> None:
        self._fleet, self._members, self._kinds, self._evict = fleet, members, kinds, evict
        self._pods = fleet.pods[:, members]
        self._classes = np.flatnonzero(self._pods.sum(axis=1))
        self._counts = self._pods[self._classes].sum(axis=1)
        self._prices = fleet.kind_prices(kinds) * (1.0 + start)
        self._groups, self._group_of = self._grouped()
        self._rows: list[Ints] = []
        self._columns: list[Ints] = []
        self._values: list[Floats] = []

    def _grouped(self) -> tuple[list[Ints], dict[int, int]]:
        """The places that the same classes of this part may use."""
        allowed = self._fleet.allowed[self._classes]
        found: dict[bytes, list[int]] = {}
        for place in np.flatnonzero(allowed.any(axis=0)):
            found.setdefault(np.packbits(allowed[:, place]).tobytes(), []).append(int(place))
        groups = [np.array(found[key], np.int64) for key in sorted(found)]
        return groups, {int(place): number for number, group in enumerate(groups) for place in group}

    def _put(self, rows: Any, columns: Any, values: Any) -> None:
        rows, columns, values = np.broadcast_arrays(rows, columns, values)
        self._rows.append(rows.ravel().astype(np.int64))
        self._columns.append(columns.ravel().astype(np.int64))
        self._values.append(values.ravel().astype(np.float64))

    def solved(self, highspy: Any) -> Target | None:
        fleet, members = self._fleet, self._members
        nodes, classes, groups = len(members), len(self._classes), len(self._groups)
        known = {int(name): number for number, name in enumerate(self._kinds.pods)}
        pairs = [
            (number, known[int(kind)], each)
            for number, kind in enumerate(self._classes)
            if int(kind) in known
            for each in np.flatnonzero(self._kinds.usable[known[int(kind)]])
        ]
        bought = np.array(pairs, np.int64).reshape(-1, 3)
        spots = [
            (number, group)
            for number, kind in enumerate(self._classes)
            for group, places in enumerate(self._groups)
            if fleet.allowed[kind, places[0]]
        ]
        placed = np.array(spots, np.int64).reshape(-1, 2)
        used, kind_of = np.unique(bought[:, 2], return_inverse=True) if len(bought) else (np.zeros(0, np.int64),) * 2
        at_placed, at_bought = nodes, nodes + len(placed)
        at_kinds = at_bought + len(bought)
        columns = at_kinds + len(used)
        width, share_rows = fleet.amounts.shape[1], self._kinds.parts.shape[1]
        at_groups, at_shares = classes, classes + groups * width
        at_limits = at_shares + len(used) * share_rows
        rows = at_limits + len(self._kinds.kinds.counts)

        where, node = np.nonzero(self._pods[self._classes])
        self._put(where, node, self._pods[self._classes][where, node])
        self._put(placed[:, 0], at_placed + np.arange(len(placed)), 1.0)
        self._put(bought[:, 0], at_bought + np.arange(len(bought)), 1.0)
        amounts = fleet.amounts[self._classes]
        scale = np.maximum(amounts.max(axis=0, initial=0.0), 1.0)
        for resource in range(width):
            line = at_groups + placed[:, 1] * width + resource
            self._put(line, at_placed + np.arange(len(placed)), amounts[placed[:, 0], resource] / scale[resource])
        upper = np.zeros(rows)
        member_at = {fleet.place_of.get(fleet.candidates[n].name, -1): number for number, n in enumerate(members)}
        for place, group in self._group_of.items():
            lines = at_groups + group * width + np.arange(width)
            room = fleet.free[place] / scale
            if place in member_at:
                self._put(lines, member_at[place], -room)
            else:
                upper[lines] += room
        for row in range(share_rows):
            shares = self._kinds.parts[bought[:, 2], row, bought[:, 1]]
            self._put(at_shares + kind_of * share_rows + row, at_bought + np.arange(len(bought)), shares)
            self._put(at_shares + np.arange(len(used)) * share_rows + row, at_kinds + np.arange(len(used)), -1.0)
        limits = self._kinds.kinds.limits[used] if len(used) else np.zeros(0, np.int64)
        limited = np.flatnonzero(limits >= 0)
        self._put(at_limits + limits[limited], at_kinds + limited, 1.0)
        upper[at_limits:] = self._kinds.kinds.counts
        upper[:classes] = self._counts
        lower = np.full(rows, -highspy.kHighsInf)
        lower[:classes] = self._counts
        cost = np.zeros(columns)
        cost[:nodes] = fleet.prices[members] - self._evict
        cost[at_kinds:] = self._prices[used]
        most = np.full(columns, highspy.kHighsInf)
        most[:nodes] = 1.0
        return self._answer(highspy, cost, most, lower, upper, (rows, columns))

    def _answer(
        self, highspy: Any, cost: Floats, most: Floats, lower: Floats, upper: Floats, shape: tuple[int, int]
    ) -> Target | None:
        rows, columns, values = (np.concatenate(each) for each in (self._rows, self._columns, self._values))
        kept = np.flatnonzero(values)
        rows, columns, values = rows[kept], columns[kept], values[kept]
        order = np.lexsort((columns, rows))
        unit = max(float(np.abs(cost).max(initial=0.0)), 1e-9)
        programme = highspy.HighsLp()
        programme.num_row_, programme.num_col_ = shape
        programme.col_cost_, programme.col_lower_, programme.col_upper_ = cost / unit, np.zeros(len(cost)), most
        programme.row_lower_, programme.row_upper_ = lower, upper
        matrix = programme.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.start_ = np.searchsorted(rows[order], np.arange(shape[0] + 1))
        matrix.index_, matrix.value_ = columns[order], values[order]
        solver = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("solver", "simplex")):
            solver.setOptionValue(option, value)
        solver.passModel(programme)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        nodes = len(self._members)
        found = solver.getSolution()
        keep = np.round(np.array(found.col_value)[:nodes], _DIGITS)
        gain = np.round(np.array(found.col_dual)[:nodes] * unit, _DIGITS)
        best = float(solver.getInfo().objective_function_value) * unit + float(self._evict.sum())
        saving = float(self._fleet.prices[self._members].sum()) - best
        return Target(keep < 0.5, gain, np.round(saving + np.minimum(0.0, gain), _DIGITS))
