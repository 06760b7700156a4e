"""A lower bound by LP duality: dual prices for the rows of each kind of node, made feasible wherever they come from.

The primal problem is the linear relaxation of variable-sized vector bin packing (`relaxation.py`). Its dual gives every row of
every kind a price, so that the prices of a kind sum to its price at most. The dual value of a pod is the least, over the kinds
it may be on, that it pays there for its parts of the rows. By weak duality the values of all pods together bound every plan from
below. *Any* dual prices give a true bound, good ones give a high one, so it does not matter where they come from: the solver,
with its tolerances (`solved`), or multiplicative weights (`ascended`; Arora, Hazan, Kale: The multiplicative weights update
method, 2012; Plotkin, Shmoys, Tardos: Fractional packing and covering, 1995). `proven` makes them feasible.

Two more terms: nodes that are there or reserved cost less than they are worth, so their surplus times their number is taken off;
and where so many nodes must be bought at least, part of their price may be charged for the number instead of for the rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from joiner.scheduling.bound.relaxation import Floats, Mask, Relaxation, with_kinds

SAFETY: Final = 1e-9
"""What is taken off a bound for the rounding of floats, relatively: a hundred thousand times more than it can be."""
_CLOSE: Final = 1e-5
"""A bound so near to the best one, relatively, counts as the best."""
_ROUNDS: Final = 20
_MORE: Final = 8
_NEAR: Final = 1.05
_ALL_AT_ONCE: Final = 2_000
STEPS: Final = 200
_SHARP: Final = 40.0
"""How fast pods turn away from kinds where they pay more: one in e is left where it is a fortieth more."""
_NO_WEIGHT: Final = -300.0
"""The logarithm of the smallest part of a pod that is assigned: as good as none, and no denormal float, which is slow."""
_SLOWER: Final = 20
"""After so many steps they are half as long, and pods twice as choosy."""
_EARLY: Final = 10
"""After so many steps it shows which kinds matter."""
_IDLE: Final = 1e-3
"""A kind with a smaller share of all nodes does not."""
_DEAREST: Final = 1e5
"""Kinds so many times dearer than all that is needed are shown to the solver as cheaper than they are: true enough, and tame."""


@dataclass(frozen=True)
class DualPrices:
    """What is charged for each row of each kind."""

    rows: Floats
    """Kind by row."""
    cardinality: Floats
    """Kind by cardinality constraint: for a set of pods of which a node takes only so many."""
    cuts: Floats
    """For each node that must be bought at the least."""


@dataclass(frozen=True)
class Certificate:
    """Feasible dual prices, and what follows from them."""

    price: float
    worth: Floats
    """The dual value of one pod of each demand."""
    surplus: float
    """What nodes that are there or reserved are worth beyond their price."""
    nodes: float
    """What is charged for the number of nodes."""


def proven(relaxation: Relaxation, duals: DualPrices) -> Certificate:
    """The bound that follows from dual prices of any origin; where those of a kind exceed its price they are scaled down."""
    kinds = relaxation.kinds
    free = kinds.limits < 0
    rows, cardinality, cuts = (np.maximum(each, 0.0) for each in (duals.rows, duals.cardinality, duals.cuts))
    charged = _charged(relaxation, cuts)
    over = free & (charged > kinds.prices)
    if over.any():
        cuts = cuts * (kinds.prices[over] / charged[over]).min()
        charged = np.minimum(_charged(relaxation, cuts), np.where(free, kinds.prices, np.inf))
    asked = rows.sum(axis=1) + cardinality.sum(axis=1)
    left = np.where(free, kinds.prices - charged, np.inf)
    scale = np.divide(left, asked, out=np.ones(len(asked)), where=asked > left)
    rows, cardinality = rows * scale[:, None], cardinality * scale[:, None]
    beyond = np.maximum(rows.sum(axis=1) + cardinality.sum(axis=1) + charged - kinds.prices, 0.0)
    surplus = np.zeros(len(kinds.counts))
    np.maximum.at(surplus, kinds.limits[~free], beyond[~free])
    worth = np.where(relaxation.usable, paid(relaxation, rows, cardinality), np.inf).min(axis=1, initial=np.inf)
    needs = np.array([need for need, _ in relaxation.cuts])
    for_pods, for_nodes = float(relaxation.counts @ worth), float(needs @ cuts) if len(cuts) else 0.0
    for_surplus = float(kinds.counts @ surplus)
    price = (for_pods + for_nodes) * (1 - SAFETY) - for_surplus * (1 + SAFETY)
    return Certificate(max(0.0, price), worth, for_surplus, for_nodes)


def paid(relaxation: Relaxation, rows: Floats, cardinality: Floats) -> Floats:
    """Demand by kind: what one pod pays there at these dual prices."""
    return _paid(relaxation, rows, cardinality).T


def _paid(relaxation: Relaxation, rows: Floats, cardinality: Floats) -> Floats:
    """The same, kind by demand."""
    found: Floats = np.matmul(rows[:, None, :], relaxation.parts)[:, 0, :]
    if relaxation.cardinality:
        found += cardinality @ relaxation.cardinality_shares
    return found


def _charged(relaxation: Relaxation, cuts: Floats) -> Floats:
    charged = np.zeros(len(relaxation.prices))
    for dual, (_, where) in zip(cuts, relaxation.cuts, strict=True):
        charged[where] += dual
    return charged


# -- without a solver ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FractionalPlan:
    """A primal solution: what would be bought if pods and nodes could be divided."""

    nodes: Floats
    """How many nodes of each kind have room for the pods there; a cardinality constraint may ask for more."""
    pods: Floats
    """Demand by kind: how many pods go there."""
    worth: Floats
    """The dual value of one pod of each demand; infinite for those that can only go where room is limited."""


def ascended(relaxation: Relaxation, steps: int = STEPS) -> DualPrices:
    """The best dual prices among the iterates of the multiplicative weights method."""
    width, free = relaxation.parts.shape[1], relaxation.kinds.limits < 0
    best = _for_one_node(relaxation)
    best_price = proven(relaxation, best).price
    for duals, worth, _, _ in _multiplicative_weights(relaxation, 0, steps, _even(relaxation)):
        tried = DualPrices(duals[:, :width], duals[:, width:], np.zeros(len(relaxation.cuts)))
        if not free.all():
            tried = _with_limited(relaxation, tried, np.where(np.isfinite(worth), worth, 0.0))
        price = proven(relaxation, tried).price
        if price > best_price:
            best, best_price = tried, price
    return best


def fractional_plan(relaxation: Relaxation, steps: int) -> FractionalPlan:
    """The average of the later half of the assignments: close to an optimal solution of the linear relaxation.

    Kinds that are assigned next to no pods in the first steps hardly ever are later, and are left out.
    """
    early, shares = min(_EARLY, steps // 4), _even(relaxation)
    worth, pods = np.full(len(relaxation.counts), np.inf), np.zeros(relaxation.usable.T.shape)
    for _, _, assigned, next_shares in _multiplicative_weights(relaxation, 0, early, shares):
        pods, shares = assigned, next_shares
    kept = np.arange(relaxation.usable.shape[1])
    if early:
        taken = _taken(relaxation, pods).max(axis=1, initial=0.0)
        kept = np.flatnonzero((taken > _IDLE * taken.sum()) | _only_choice(relaxation.usable, taken))
    few = with_kinds(relaxation, kept)
    found = np.zeros(few.usable.T.shape)
    for step, (_, paid_least, assigned, _) in enumerate(
        _multiplicative_weights(few, early, steps, shares[kept]), early
    ):
        worth = paid_least
        if 2 * step >= steps:
            found += assigned
    pods = np.zeros(relaxation.usable.T.shape)
    pods[kept] = found / max(1, steps - (steps + 1) // 2)
    rows = _taken(relaxation, pods)[:, : relaxation.parts.shape[1]]
    return FractionalPlan(rows.max(axis=1, initial=0.0), pods.T, worth)


def _only_choice(usable: Mask, taken: Floats) -> Mask:
    """For each demand the kind that is assigned most among those it can use, so that every demand keeps one."""
    best = np.where(usable, taken, -1.0).argmax(axis=1) if usable.size else np.zeros(0, dtype=np.int64)
    return np.isin(np.arange(len(taken)), best)


def _even(relaxation: Relaxation) -> Floats:
    """Every row charges the same share of the price."""
    count, width, _ = relaxation.parts.shape
    rows = width + len(relaxation.cardinality)
    return np.full((count, rows), 1.0 / max(1, rows))


def _multiplicative_weights(
    relaxation: Relaxation, begin: int, end: int, shares: Floats
) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
    """Multiplicative weights: in each step the dual prices of a kind's most loaded rows rise, and pods are assigned anew.

    Gives the dual prices (kind by row, cardinality constraints last), the least that pods of each demand pay, how many pods are
    assigned to each kind (kind by demand), and the share of its price that each row will charge in the next step.
    """
    kinds, width = relaxation.kinds, relaxation.parts.shape[1]
    free = kinds.limits < 0
    prices, open_to = np.where(free, kinds.prices, 0.0)[:, None], np.ascontiguousarray((relaxation.usable & free).T)
    closed = np.where(open_to, 0.0, np.inf)
    for step in range(begin, end if shares.shape[1] and free.any() else begin):
        duals = shares * prices
        paying = _paid(relaxation, duals[:, :width], duals[:, width:]) + closed
        worth = paying.min(axis=0)
        pods = _assigned(paying, worth, _SHARP * (1 + step / _SLOWER)) * relaxation.counts
        wanted = _taken(relaxation, pods)
        wanted = wanted / np.maximum(wanted.max(axis=1, keepdims=True), 1e-30)
        shares = shares * np.exp(0.5 / (1 + step / _SLOWER) * wanted) + 1e-9
        shares /= shares.sum(axis=1, keepdims=True)
        yield duals, worth, pods, shares


def _assigned(paying: Floats, worth: Floats, sharp: float) -> Floats:
    """Soft assignment: which part of each pod goes to which kind, most of it to those where it pays least or nearly so."""
    known = np.isfinite(worth) & (worth > 0)
    dearer = paying / np.where(known, worth, 1.0)
    if not known.all():  # nothing is any dearer than what costs nothing
        dearer[:, ~known] = np.where(np.isfinite(paying[:, ~known]), 1.0, np.inf)
    near: Floats = np.exp(np.maximum(sharp * (1.0 - dearer), _NO_WEIGHT))
    near /= np.maximum(near.sum(axis=0), 1e-30)  # a pod that can go nowhere is assigned to nothing
    return near


def _taken(relaxation: Relaxation, pods: Floats) -> Floats:
    """Kind by row, cardinality constraints last: how often the pods fill it."""
    rows = np.matmul(relaxation.parts, pods[:, :, None])[:, :, 0]
    return np.concatenate([rows, pods @ relaxation.cardinality_shares.T], axis=1) if relaxation.cardinality else rows


def _with_limited(relaxation: Relaxation, duals: DualPrices, worth: Floats) -> DualPrices:
    """Let each kind of limited number charge, on its one best row, as much as the pods it may have are worth."""
    rows = duals.rows.copy()
    for kind in np.flatnonzero(relaxation.kinds.limits >= 0):
        there = relaxation.usable[:, kind] & (worth > 0)
        part = relaxation.parts[kind][:, there]
        if not part.size:
            continue
        needed = np.divide(worth[there], part, out=np.full(part.shape, np.inf), where=part > 0).max(axis=1)
        row = int(np.argmin(needed))
        if np.isfinite(needed[row]):
            rows[kind, row] = needed[row]
    return DualPrices(rows, duals.cardinality, duals.cuts)


def _for_one_node(relaxation: Relaxation) -> DualPrices:
    """The whole price charged for the number of nodes, of the demand that alone costs most that way."""
    kinds, cuts = relaxation.kinds, np.zeros(len(relaxation.cuts))
    least = [
        0.0 if (kinds.limits[where] >= 0).any() else need * kinds.prices[where].min() for need, where in relaxation.cuts
    ]
    if least:
        best = int(np.argmax(least))
        cuts[best] = least[best] / relaxation.cuts[best][0]
    shape = relaxation.parts.shape
    return DualPrices(np.zeros(shape[:2]), np.zeros((shape[0], len(relaxation.cardinality))), cuts)


# -- with a solver -------------------------------------------------------------------------------------------------------


def solved(relaxation: Relaxation) -> tuple[DualPrices, bool] | None:
    """Optimal dual prices, and whether the solver got to the end; None where no solver is installed."""
    try:
        import highspy
    except ImportError:
        return None
    return _DualProgramme(relaxation, highspy).solved()


class _DualProgramme:
    """The dual linear programme: the value of a pod is no more than what it pays on any kind.

    It has a constraint for each demand on each kind, of which few are tight. Those that are nearly tight at prices found by
    multiplicative weights come first; others are added as they are found violated (row generation).
    """

    def __init__(self, relaxation: Relaxation, highspy: Any) -> None:
        self._relaxation = relaxation
        self._highspy = highspy
        self._demands = len(relaxation.counts)
        self._kinds, self._width, _ = relaxation.parts.shape
        everywhere = np.broadcast_to(relaxation.cardinality_shares, (self._kinds, *relaxation.cardinality_shares.shape))
        self._parts = np.concatenate([relaxation.parts, everywhere], axis=1)
        self._rows = self._parts.shape[1]
        self._cuts_at = self._demands + self._kinds * self._rows
        self._limits_at = self._cuts_at + len(relaxation.cuts)
        self._columns = self._limits_at + len(relaxation.kinds.counts)
        self._unit = max(float(relaxation.prices.max(initial=0.0)), 1e-9)
        """What counts as one to the solver, so that next to nothing for reserved nodes is not lost in its tolerances."""

    def solved(self) -> tuple[DualPrices, bool]:
        """Solve, look for broken lines, add them, until none matters."""
        relaxation = self._relaxation
        best = first = ascended(relaxation, STEPS // 5)
        best_price = proven(relaxation, first).price
        self._unit = best_price or self._unit
        lines = self._first(first)
        for _ in range(_ROUNDS):
            answer = self._run(lines)
            if answer is None:
                break
            found, limit = answer
            duals = self._filled(self._duals(found), first)
            price = proven(relaxation, duals).price
            if price > best_price:
                best, best_price = duals, price
            if best_price >= limit * (1 - _CLOSE):
                return best, True
            excess = found[: self._demands, None] - paid(relaxation, duals.rows, duals.cardinality)
            broken = relaxation.usable & ~lines & (excess > _CLOSE * found[: self._demands, None])
            if not broken.any():
                break
            lines = lines | _smallest(-excess.T, broken.T, _MORE).T
        return best, False

    def _first(self, duals: DualPrices) -> Mask:
        usable = self._relaxation.usable
        if usable.sum() <= _ALL_AT_ONCE:
            return usable
        paying = np.where(usable, paid(self._relaxation, duals.rows, duals.cardinality), np.inf)
        near = paying <= paying.min(axis=1, keepdims=True) * _NEAR
        limited = self._relaxation.kinds.limits >= 0
        result: Mask = usable & (near | limited | _smallest(paying, usable, _MORE))
        return result

    def _filled(self, duals: DualPrices, first: DualPrices) -> DualPrices:
        """What kinds have not charged yet of their price, charged as it was before: no line held them back."""
        kinds = self._relaxation.kinds
        charged = duals.rows.sum(axis=1) + duals.cardinality.sum(axis=1) + _charged(self._relaxation, duals.cuts)
        left = np.where(kinds.limits < 0, np.maximum(kinds.prices - charged, 0.0), 0.0)
        before = first.rows.sum(axis=1) + first.cardinality.sum(axis=1)
        more = np.divide(left, before, out=np.zeros(len(left)), where=before > 0)[:, None]
        return DualPrices(duals.rows + more * first.rows, duals.cardinality + more * first.cardinality, duals.cuts)

    def _duals(self, found: Floats) -> DualPrices:
        rows = found[self._demands : self._cuts_at].reshape(self._kinds, self._rows)
        return DualPrices(rows[:, : self._width], rows[:, self._width :], found[self._cuts_at : self._limits_at])

    def _run(self, lines: Mask) -> tuple[Floats, float] | None:
        """Values for all columns and the sum they reach; nothing if the solver gave up."""
        highspy, (rows, columns, values) = self._highspy, self._entries(lines)
        used = np.zeros(self._columns, dtype=np.bool_)
        used[columns] = True
        used[: self._demands] = True
        count = int(lines.sum()) + self._kinds
        order = np.lexsort((columns, rows))
        programme = highspy.HighsLp()
        programme.num_col_, programme.num_row_ = int(used.sum()), count
        programme.col_cost_ = -self._gains()[used]
        programme.col_lower_ = np.zeros(int(used.sum()))
        programme.col_upper_ = self._most(highspy.kHighsInf)[used]
        programme.row_lower_ = np.full(count, -highspy.kHighsInf)
        programme.row_upper_ = np.concatenate([self._prices(), np.zeros(count - self._kinds)])
        matrix = programme.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.start_ = np.searchsorted(rows[order], np.arange(count + 1))
        matrix.index_, matrix.value_ = (np.cumsum(used) - 1)[columns[order]], values[order]
        solver = highspy.Highs()
        # Any point near the best will do, as it is proven afterwards; a corner is not needed.
        for option, value in (("output_flag", False), ("threads", 1), ("solver", "ipm"), ("run_crossover", "off")):
            solver.setOptionValue(option, value)
        solver.passModel(programme)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        found = np.zeros(self._columns)
        found[used] = solver.getSolution().col_value
        return found * self._unit, -float(solver.getInfo().objective_function_value) * self._unit

    def _prices(self) -> Floats:
        prices: Floats = np.minimum(self._relaxation.prices / self._unit, _DEAREST)
        return prices

    def _gains(self) -> Floats:
        """What one unit of each column adds to the bound."""
        relaxation = self._relaxation
        gains = np.zeros(self._columns)
        gains[: self._demands] = relaxation.counts
        gains[self._cuts_at : self._limits_at] = [need for need, _ in relaxation.cuts]
        gains[self._limits_at :] = -relaxation.kinds.counts
        return gains

    def _most(self, infinity: float) -> Floats:
        # No pod need be worth more than the dearest node, and the programme stays finite whatever cannot be placed.
        most = np.full(self._columns, infinity)
        most[: self._demands] = max(float(self._prices().max(initial=0.0)), 1e-9)
        return most

    def _entries(self, lines: Mask) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
        """Line, column and value of whatever is not zero: first a line for each kind's price, then those of the demands."""
        relaxation = self._relaxation
        demands, kinds = np.nonzero(lines)
        parts = self._parts[kinds, :, demands]
        where, row = np.nonzero(parts)
        each_kind, number = np.arange(self._kinds), np.arange(len(demands))
        limited = np.flatnonzero(relaxation.kinds.limits >= 0)
        pieces = [
            (self._kinds + number, demands, np.ones(len(demands))),
            (self._kinds + where, self._demands + kinds[where] * self._rows + row, -parts[where, row]),
            (
                np.repeat(each_kind, self._rows),
                self._demands + np.arange(self._kinds * self._rows),
                np.ones(self._kinds * self._rows),
            ),
            (limited, self._limits_at + relaxation.kinds.limits[limited], -np.ones(len(limited))),
        ]
        for cut, (_, kind) in enumerate(relaxation.cuts):
            there = np.flatnonzero(kind)
            pieces.append((there, np.full(len(there), self._cuts_at + cut), np.ones(len(there))))
        rows, columns, values = (np.concatenate(each) for each in zip(*pieces, strict=True))
        return rows, columns, values


def _smallest(score: Floats, among: Mask, count: int) -> Mask:
    """For each demand the kinds with the smallest score, among some; the first ones where several are equal."""
    order = np.argsort(np.where(among, score, np.inf), axis=1, kind="stable")[:, :count]
    chosen = np.zeros(among.shape, dtype=np.bool_)
    np.put_along_axis(chosen, order, True, axis=1)
    return chosen & among
