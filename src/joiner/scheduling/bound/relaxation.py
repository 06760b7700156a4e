"""What remains of a problem when everything is forgotten that could only make plans dearer: demands, kinds of node, and rows.

A *demand* is a number of pods that ask for the same amounts of the same nodes. A *kind* is a node that can be had: a unit of a
pool at one offering, or a node that is there. A *row* is something of which a node has exactly one: each pod on it takes its
part, and the parts of all pods on a node sum to one at most. Whatever is dropped or rounded here is so in favour of the plan.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from joiner.bitset import ShapeSet, UnitSet
from joiner.catalog.units import flags
from joiner.model.labels import HOSTNAME
from joiner.model.taints import Taint, Toleration, kept_off
from joiner.requirements import DOES_NOT_EXIST, NOT_IN, Requirements
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.nodes.dominance import first_of_each, numbered, undominated
from joiner.scheduling.nodes.template import Template
from joiner.scheduling.pods.noderules import node_rules
from joiner.scheduling.pods.podclass import PodClass
from joiner.scheduling.problem import Problem
from joiner.scheduling.topology.group import ANTI_AFFINITY, SPREAD, Group

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

DEMANDS_MOST: Final = 1000
NODES_MOST: Final = 400
"""Beyond so many, amounts are rounded in favour of the plan until fewer different ones are left."""
_ROUNDINGS: Final = (0, 4096, 256, 64, 16, 4, 1)
_PARTS: Final = (1, 2, 3)
_HAIR: Final = 1e-9


@dataclass(frozen=True)
class RelaxedRow:
    """Which nodes a pod may be on, in its most modest form: preferences given up, any of its alternatives."""

    nodes: tuple[Requirements, ...]
    places: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]


class Demand:
    """Pods that ask for the same amounts of the same nodes."""

    def __init__(self, pod: str, amounts: tuple[int, ...], rule: RelaxedRow, groups: frozenset[Group]) -> None:
        self.pod = pod
        self.amounts = amounts
        self.rule = rule
        self.groups = groups
        self.count = 0


@dataclass(frozen=True)
class RelaxedKinds:
    """Nodes that can be had."""

    room: Floats
    """Kind by resource: what is left for pods."""
    prices: Floats
    rules: Mask
    """Kind by rule: who may be there."""
    limits: npt.NDArray[np.int64]
    """The limit that a kind counts against; -1 for a kind of which there are as many as one likes."""
    counts: Floats
    """How many nodes each limit allows."""


@dataclass(frozen=True)
class Relaxation:
    """The problem that the bound is a bound of."""

    pods: tuple[str, ...]
    """For each demand one pod that has it."""
    counts: Floats
    usable: Mask
    """Demand by kind."""
    parts: Floats
    """Kind by row by demand: which part of a row one pod takes."""
    cardinality: tuple[tuple[float, npt.NDArray[np.int64]], ...]
    """Cardinality constraints: demands of which, taken together, a node takes so many pods at most."""
    cuts: tuple[tuple[float, Mask], ...]
    """Covering constraints: so many nodes, at the least, must be of these kinds."""
    kinds: RelaxedKinds
    dropped: tuple[str, ...]
    """Rules of the problem that the bound knows nothing of."""

    @property
    def prices(self) -> Floats:
        """What each kind costs."""
        return self.kinds.prices

    @cached_property
    def cardinality_shares(self) -> Floats:
        """Cardinality constraint by demand: which part of it one pod takes."""
        found = np.zeros((len(self.cardinality), len(self.counts)))
        for number, (most, members) in enumerate(self.cardinality):
            found[number, members] = 1.0 / most
        return found


def relaxed(problem: Problem, covered: Collection[str] | None = None) -> Relaxation:
    """The relaxation of a problem, for the pods of these names; for all that could be placed at all if none are given."""
    run = FirstFit(problem, Unlimited())
    return of_demands(run, demands_of(run, problem, covered))


def of_demands(
    run: FirstFit, demands: Sequence[Demand], *, to_plan: bool = False, pools: Collection[str] | None = None
) -> Relaxation:
    """The relaxation for some demands, without those that fit nowhere.

    For planning (`to_plan`), nodes that are there and constraints that only raise a bound are left out. `pools`: the only ones
    that are asked, where it is known that no other serves these pods.
    """
    rules = list(dict.fromkeys(demand.rule for demand in demands))
    templates = [each for each in run.templates if pools is None or each.name in pools]
    kinds = _KindFinder(run, rules, templates).kinds(nodes=not to_plan)
    amounts = np.array([demand.amounts for demand in demands], dtype=np.float64).reshape(len(demands), len(run.names))
    column = {rule: number for number, rule in enumerate(rules)}
    usable = kinds.rules[:, [column[demand.rule] for demand in demands]].T
    for number in range(amounts.shape[1]):
        wanted = amounts[:, number, None]
        usable = usable & ((wanted <= kinds.room[None, :, number]) | (wanted == 0))
    possible: Mask = np.asarray(usable.any(axis=1), dtype=np.bool_)
    demands = [demand for demand, kept in zip(demands, possible, strict=True) if kept]
    in_use = np.flatnonzero(usable.any(axis=0))
    amounts, usable, kinds = amounts[possible], usable[possible][:, in_use], _chosen(kinds, in_use)
    cardinality = _cardinality(demands)
    counts = np.array([demand.count for demand in demands], dtype=np.float64)
    return Relaxation(
        pods=tuple(demand.pod for demand in demands),
        counts=counts,
        usable=usable,
        parts=_parts(kinds.room, amounts, usable),
        cardinality=cardinality,
        cuts=() if to_plan else tuple(_cuts(kinds.room, amounts, usable, counts, cardinality)),
        kinds=kinds,
        dropped=() if to_plan else _dropped(run),
    )


# -- demands -------------------------------------------------------------------------------------------------------------


def demands_of(run: FirstFit, problem: Problem, covered: Collection[str] | None) -> list[Demand]:
    """What the pods of these names ask for, or all that are not ignored."""
    wanted = None if covered is None else frozenset(covered)
    members: dict[int, list[str]] = {}
    for pod, each in zip(problem.pods, run.of_pod, strict=True):
        key = pod.key
        if each.number not in run.ignored and (wanted is None or key in wanted):
            members.setdefault(each.number, []).append(key)
    disliked = any(taint.effect == "PreferNoSchedule" for taint in _taints(run))
    facts = [
        (each, _rule(run, each), _host_groups(each, disliked), members[each.number])
        for each in run.classes
        if each.number in members
    ]
    largest = [max((each.amounts[n] for each, *_ in facts), default=0) for n in range(len(run.names))]
    found: dict[object, Demand] = {}
    for steps in _ROUNDINGS:
        found = {}
        for each, rule, groups, keys in facts:
            amounts = tuple(
                _down(a, most // steps if steps else 1) for a, most in zip(each.amounts, largest, strict=True)
            )
            demand = found.setdefault((amounts, rule, groups), Demand(keys[0], amounts, rule, groups))
            demand.count += len(keys)
        if len(found) <= DEMANDS_MOST:
            break
    return list(found.values())


def _down(amount: int, step: int) -> int:
    return amount - amount % step if step > 1 else amount


def _rule(run: FirstFit, pod_class: PodClass) -> RelaxedRow:
    return RelaxedRow(
        node_rules(pod_class.pod, run.vocabulary), pod_class.volumes.places, pod_class.pod.spec.tolerations
    )


def _taints(run: FirstFit) -> Iterator[Taint]:
    for template in run.templates:
        yield from template.taints
    for node in run.nodes:
        yield from node.node.taints


def _host_groups(pod_class: PodClass, disliked: bool) -> frozenset[Group]:
    """Groups that say how many pods like this one a node takes.

    Where a pod puts up with a taint it dislikes, it is not counted by a constraint that looks at taints; such are left out.
    """
    return frozenset(
        group
        for group, chosen in (
            pod_class.steps[-1].groups if pod_class.steps else ()
        )  # none: no node can take such a pod
        if chosen
        and group.key == HOSTNAME
        and group.kind in (SPREAD, ANTI_AFFINITY)
        and not (disliked and group.node_filter.tolerations is not None)
    )


def _most(group: Group) -> int:
    return max(1, group.max_skew) if group.kind == SPREAD else 1


def _cardinality(demands: Sequence[Demand]) -> tuple[tuple[float, npt.NDArray[np.int64]], ...]:
    members: dict[Group, list[int]] = {}
    for number, demand in enumerate(demands):
        for group in demand.groups:
            members.setdefault(group, []).append(number)
    found = {(float(_most(group)), tuple(numbers)) for group, numbers in members.items()}
    return tuple((most, np.array(numbers, dtype=np.int64)) for most, numbers in sorted(found))


class _Offers(NamedTuple):
    """What can be bought, a row each: out of which reservation if any, price, room, and by which rules pods may be there."""

    names: list[str | None]
    prices: Floats
    room: Floats
    takes: Mask


# -- kinds ---------------------------------------------------------------------------------------------------------------


class _KindFinder:
    """Finds the kinds of a problem: those of pools that no other makes needless, then the nodes that are there."""

    def __init__(self, run: FirstFit, rules: Sequence[RelaxedRow], templates: Sequence[Template]) -> None:
        self._run = run
        self._rules = rules
        self._templates = templates
        self._excused = _excused(run)
        self._defined = run.vocabulary.well_known | self._excused
        self._room: list[Floats] = []
        self._prices: list[float] = []
        self._takes: list[Mask] = []
        self._limits: list[int] = []
        self._counts: list[float] = []

    def kinds(self, *, nodes: bool) -> RelaxedKinds:
        """Every kind that some rule allows, with or without the nodes that are there."""
        self._pools()
        if nodes:
            self._nodes()
        width = len(self._run.names)
        return RelaxedKinds(
            room=np.array(self._room, dtype=np.float64).reshape(len(self._prices), width),
            prices=np.array(self._prices, dtype=np.float64),
            rules=np.array(self._takes, dtype=np.bool_).reshape(len(self._prices), len(self._rules)),
            limits=np.array(self._limits, dtype=np.int64),
            counts=np.array(self._counts, dtype=np.float64),
        )

    def _put(self, room: Floats, price: float, takes: Mask, limit: int = -1) -> None:
        self._room.append(room)
        self._prices.append(price)
        self._takes.append(takes)
        self._limits.append(limit)

    def _pools(self) -> None:
        offers = [self._offers(template) for template in self._templates]
        if not offers:
            return
        names = [name for each in offers for name in each.names]
        prices, room, takes = (np.concatenate(parts) for parts in zip(*(each[1:] for each in offers), strict=True))
        self._put_best(prices, room, takes, [n for n, name in enumerate(names) if name is None])
        counts: dict[str, int] = {}
        for template in self._templates:
            for name, count in template.stock.reservations().items():
                counts[name] = min(count, counts.get(name, count))
        counted = {name for template in self._templates for name in template.stock.counted_names}
        members: dict[str, list[int]] = {}
        for number, reservation in enumerate(names):
            if reservation is not None and (self._run.policy.reserved_capacity or reservation in counted):
                members.setdefault(reservation, []).append(number)
        for name in sorted(members):
            self._counts.append(float(counts[name]))
            self._put_best(prices, room, takes, members[name], len(self._counts) - 1)

    def _put_best(self, prices: Floats, room: Floats, takes: Mask, numbers: Sequence[int], limit: int = -1) -> None:
        """Some of the offers, without those that are no cheaper, no larger and open to no more pods than another."""
        some = np.array(numbers, dtype=np.int64)
        if len(some) == 1:
            self._put(room[some[0]], float(prices[some[0]]), takes[some[0]], limit)
            return
        # Of equal offers those that are open to more pods come first; then it matters to which, and never who was named first.
        pods = np.packbits(takes[some], axis=1).T[::-1]
        ordered = some[np.lexsort((*pods, -takes[some].sum(axis=1), *(-room[some].T[::-1]), prices[some]))]
        for number in ordered[undominated(room[ordered], takes[ordered])]:
            self._put(room[number], float(prices[number]), takes[number], limit)

    def _offers(self, template: Template) -> _Offers:
        """What a pool can buy that some rule allows."""
        stock, room = template.stock, self._run.kinds.room(template)
        allowed = [
            (column, flags(described, len(stock.units)), flags(fitting, len(stock.shapes)))
            for column, rule in enumerate(self._rules)
            for described, fitting in self._allowed(template, rule, stock.shapes)
        ]
        within = flags(template.usable, len(stock.units)) & ~(room < 0).any(axis=1)
        ways = np.flatnonzero(within[stock.ways.units])
        # Of units that are as large and described alike the cheapest will do, in each shape: ways come cheapest first.
        patterns = (
            np.packbits([described for _, described, _ in allowed], axis=0).T if allowed else np.zeros((len(room), 0))
        )
        alike = numbered(np.column_stack([self._run.kinds.as_large(template), patterns]))[stock.ways.units[ways]]
        ways = ways[first_of_each(alike * len(stock.shapes) + stock.ways.shapes[ways])]
        units, shapes = stock.ways.units[ways], stock.ways.shapes[ways]
        takes = np.zeros((len(ways), len(self._rules)), dtype=np.bool_)
        for column, described, fitting in allowed:
            takes[:, column] |= described[units] & fitting[shapes]
        some = np.flatnonzero(takes.any(axis=1))
        names = [stock.reservation_of[shape] for shape in shapes[some].tolist()]
        return _Offers(names, stock.ways.costs[ways[some]], room[units[some]], takes[some])

    def _allowed(
        self, template: Template, rule: RelaxedRow, shapes: Sequence[Requirements]
    ) -> list[tuple[UnitSet, ShapeSet]]:
        """For each alternative of a rule: the units that satisfy it, and the shapes of offerings that do."""
        if kept_off(template.taints, rule.tolerations):
            return []
        own = self._weak(template.requirements)
        found: list[tuple[UnitSet, ShapeSet]] = []
        for nodes in rule.nodes:
            for place in rule.places:
                pod, there = self._weak(nodes), self._weak(place)
                joined = own & pod
                if not own.compatible(pod, self._defined) or not joined.compatible(there, self._defined):
                    continue
                joined = joined & there
                fitting = ShapeSet(
                    sum(1 << n for n, each in enumerate(shapes) if joined.compatible(each, self._defined))
                )
                found.append((template.stock.described(joined), fitting))
        return found

    def _weak(self, requirements: Requirements) -> Requirements:
        """Without demands that a label be there, where company on the claim may make them void."""
        return requirements.without(
            *(
                key
                for key, requirement in requirements.items()
                if key in self._excused and requirement.complement and requirement.must_exist
            )
        )

    def _nodes(self) -> None:
        facts = [(tuple(self._stays(node.number, rule) for rule in self._rules), node.left) for node in self._run.nodes]
        facts = [fact for fact in facts if any(fact[0])]
        largest = [max((left[n] for _, left in facts), default=0) for n in range(len(self._run.names))]
        merged: dict[tuple[tuple[bool, ...], tuple[int, ...]], int] = {}
        for steps in _ROUNDINGS:
            merged = {}
            for takes, left in facts:
                rounded = tuple(
                    -_down(-amount, most // steps) if steps else amount
                    for amount, most in zip(left, largest, strict=True)
                )
                merged[takes, rounded] = merged.get((takes, rounded), 0) + 1
            if len(merged) <= NODES_MOST:
                break
        for (takes, left), count in sorted(merged.items()):
            self._counts.append(float(count))
            self._put(np.array(left, dtype=np.float64), 0.0, np.array(takes), len(self._counts) - 1)

    def _stays(self, number: int, rule: RelaxedRow) -> bool:
        node = self._run.nodes[number]
        if kept_off(node.node.taints, rule.tolerations):
            return False
        own = node.requirements
        return any(own.compatible(each) for each in rule.nodes) and any(own.compatible(each) for each in rule.places)


def _excused(run: FirstFit) -> frozenset[str]:
    """Labels that some pod is content not to find, or to find with some value: beside it a claim says something about them."""
    wanted: set[Requirements] = set()
    for each in run.classes:
        wanted.update(each.volumes.places)
        wanted.update(step.requirements for step in each.steps)
    return frozenset(
        key for each in wanted for key, requirement in each.items() if requirement.operator in (NOT_IN, DOES_NOT_EXIST)
    )


def _chosen(kinds: RelaxedKinds, numbers: npt.NDArray[np.int64]) -> RelaxedKinds:
    return RelaxedKinds(
        kinds.room[numbers], kinds.prices[numbers], kinds.rules[numbers], kinds.limits[numbers], kinds.counts
    )


def charging(relaxation: Relaxation, charge: float) -> Relaxation:
    """The same with every node so much dearer."""
    kinds = relaxation.kinds
    return replace(relaxation, kinds=replace(kinds, prices=kinds.prices + charge)) if charge else relaxation


def with_kinds(relaxation: Relaxation, numbers: npt.NDArray[np.int64]) -> Relaxation:
    """The same with some of the kinds only."""
    return replace(
        relaxation,
        usable=relaxation.usable[:, numbers],
        parts=relaxation.parts[numbers],
        cuts=tuple((need, where[numbers]) for need, where in relaxation.cuts),
        kinds=_chosen(relaxation.kinds, numbers),
    )


# -- rows ----------------------------------------------------------------------------------------------------------------


def _parts(room: Floats, amounts: Floats, usable: Mask) -> Floats:
    """Kind by row by demand. Beside the share of each resource come its images under dual feasible functions.

    A pod takes floor((n + 1) · share) / n of such a row, for n = 1, 2, 3: at n = 1 pods larger than half a node take all of it,
    smaller ones nothing. It sums to one at most in every integer packing (Fekete, Schepers: New classes of fast lower bounds for
    bin packing problems, 2001), which divided pods may violate; so these rows strengthen the relaxation.
    """
    rows: list[Floats] = []
    for number in range(amounts.shape[1]):
        there, wanted = np.maximum(room[:, number, None], 0.0), amounts[None, :, number]
        share = np.divide(wanted, there, out=np.zeros((len(room), len(amounts))), where=usable.T & (there > 0))
        np.minimum(share, 1.0, out=share)
        if not share.any():
            continue
        rows.append(share)
        for count in _PARTS:
            whole = (count + 1) * share
            whole -= _HAIR
            np.maximum(np.floor(whole, out=whole), 0.0, out=whole)
            whole /= count
            if (whole > share + _HAIR).any():
                rows.append(whole)
    return np.stack(rows, axis=1) if rows else np.zeros((len(room), 0, len(amounts)))


def _cuts(
    room: Floats,
    amounts: Floats,
    usable: Mask,
    counts: Floats,
    cardinality: Iterable[tuple[float, npt.NDArray[np.int64]]],
) -> Iterator[tuple[float, Mask]]:
    """Covering constraints: nodes are bought whole, so pods of one demand need at least so many of the nodes that take them."""
    fitting = np.repeat(counts[:, None], len(room), axis=1)
    for number in range(amounts.shape[1]):
        wanted = amounts[:, number, None]
        many = np.divide(room[None, :, number], wanted, out=np.full(fitting.shape, np.inf), where=wanted > 0)
        fitting = np.minimum(fitting, np.floor(many + _HAIR))
    most = np.where(usable, fitting, 1.0).max(axis=1, initial=1.0)
    groups: dict[bytes, tuple[float, Mask]] = {}
    needs = [
        (float(np.ceil(count / each - _HAIR)), usable[n])
        for n, (count, each) in enumerate(zip(counts, most, strict=True))
    ]
    needs += [(float(np.ceil(counts[who].sum() / each - _HAIR)), usable[who].any(axis=0)) for each, who in cardinality]
    for need, where in needs:
        known = groups.get(where.tobytes())
        if known is None or known[0] < need:
            groups[where.tobytes()] = (need, where)
    yield from groups.values()


def _dropped(run: FirstFit) -> tuple[str, ...]:
    """Rules that are in play and not in the bound, in order of name."""
    found: set[str] = set()
    classes = [each for each in run.classes if each.number not in run.ignored]
    for each in classes:
        found.update("preferences" for _ in each.steps[1:])
        found.update("host ports" for _ in each.ports)
        found.update("volume limits" for _ in each.volumes.attachments)
        for group, _ in each.steps[-1].groups:
            if group.key != HOSTNAME or group.kind not in (SPREAD, ANTI_AFFINITY):
                found.add(
                    {SPREAD: "topology spread", ANTI_AFFINITY: "pod anti-affinity"}.get(group.kind, "pod affinity")
                )
    for template in run.templates:
        found.update("limits" for _ in template.left)
        found.update("minValues" for _ in template.min_values)
    if len({template.pool.spec.weight for template in run.templates}) > 1:
        found.add("weights")
    return tuple(sorted(found))


def demands_by_class(run: FirstFit) -> list[Demand]:
    """For each class of pods in order of number what its pods ask for; the caller sets the counts."""
    disliked = any(taint.effect == "PreferNoSchedule" for taint in _taints(run))
    return [
        Demand(str(each.number), each.amounts, _rule(run, each), _host_groups(each, disliked)) for each in run.classes
    ]


def most_on_a_host(demand: Demand) -> int | None:
    """How many pods like this a node takes at most; None where no rule says so."""
    return min((_most(group) for group in demand.groups), default=None)
