"""The nodes that may go, the places that are left and what can be bought, as arrays: what a search through many moves works on.

Identical pods are one class. Two pools belong to one *part* if some class may go to nodes of both: parts never exchange pods, so
each is searched by itself.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from joiner.catalog.market import RESERVED_DIVISOR
from joiner.disruption.consolidation.evidence import horizon_h
from joiner.disruption.consolidation.memory import Owner, Workload
from joiner.disruption.cost import eviction_cost
from joiner.disruption.eligibility import Candidate
from joiner.disruption.nodeprice import RESERVED_SHARE
from joiner.disruption.simulate import movers
from joiner.disruption.situation import Situation
from joiner.model import labels
from joiner.model.node import is_ready
from joiner.model.taints import kept_off
from joiner.requirements import Requirements
from joiner.scheduling.bound.relaxation import (
    Demand,
    Relaxation,
    RelaxedRow,
    demands_by_class,
    most_on_a_host,
    of_demands,
)
from joiner.scheduling.effort import Unlimited
from joiner.scheduling.engine.firstfit import FirstFit
from joiner.scheduling.nodes.existingnode import OpenNode
from joiner.scheduling.problem import Problem
from joiner.state.statenode import StateNode

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Fleet:
    """All of it, worked out once for a situation."""

    def __init__(
        self,
        situation: Situation,
        candidates: Sequence[Candidate],
        pools: Collection[str] = (),
        workloads: Mapping[Owner, Workload] | None = None,
    ) -> None:
        """`pools`: the only ones to look at, where they are known to be a part; otherwise all."""
        self.situation, self.candidates, self._pools = situation, tuple(candidates), pools
        question = self._question()
        self._run = FirstFit(question, Unlimited())
        self._kinds: dict[int, Relaxation] = {}
        self.names = self._run.names
        self.demands: list[Demand] = demands_by_class(self._run)
        self.amounts: Floats = np.array([each.amounts for each in self.demands], np.float64).reshape(
            -1, len(self.names)
        )
        self.places: list[OpenNode] = self._run.nodes
        self.place_of = {node.node.name: number for number, node in enumerate(self.places)}
        self.free: Floats = np.array([node.left for node in self.places], np.float64).reshape(-1, len(self.names))
        np.maximum(self.free, 0.0, out=self.free)
        self.pods: Ints = np.zeros((len(self.demands), len(self.candidates)), np.int64)
        """Class by candidate: how many pods of the class are there."""
        self.weights: Floats = np.zeros((len(self.demands), len(self.candidates)))
        """The same, each pod counted by what its eviction costs."""
        self._count(question)
        self.allowed: Mask = self._allowed()
        """Class by place: labels and taints let pods of the class be there."""
        self.hosts: list[int | None] = [most_on_a_host(each) for each in self.demands]
        self.horizons_h: Floats = np.array(
            [horizon_h(each.pods, situation, workloads or {}) for each in self.candidates], np.float64
        )
        """Within how many hours the removal of each candidate has to be paid back."""
        self.prices: Floats = np.array([each.price.ranked for each in self.candidates])

    def _question(self) -> Problem:
        seen = self.situation
        vocabulary = seen.rules.vocabulary
        for option in seen.options:
            vocabulary = vocabulary.extended(well_known=option.catalog.market.vocabulary.well_known)
        return seen.spread(
            Problem(
                pods=movers([each.state for each in self.candidates]),
                pools=tuple(each for each in seen.options if not self._pools or each.pool.name in self._pools),
                nodes=tuple(each.existing for each in seen.snapshot.nodes if self._is_place(each)),
                daemons=seen.snapshot.daemons,
                namespaces=seen.snapshot.namespaces,
                storage=seen.storage,
                policy=seen.rules.policy,
                vocabulary=vocabulary,
            )
        )

    def _is_place(self, state_node: StateNode) -> bool:
        if self._pools and state_node.nodepool not in self._pools:
            return False
        if (
            state_node.deleting
            or not state_node.initialized
            or state_node.node is None
            or not is_ready(state_node.node)
        ):
            return False
        return not self.situation.is_settling(state_node)

    def _count(self, question: Problem) -> None:
        ours = self.situation.rules.deletion_cost_is_ours
        position = 0
        for number, each in enumerate(self.candidates):
            for pod in each.pods:
                kind = self._run.of_pod[position].number
                self.pods[kind, number] += 1
                self.weights[kind, number] += max(0.0, eviction_cost(pod, deletion_cost_is_ours=ours))
                position += 1
        assert position == len(question.pods)

    def _allowed(self) -> Mask:
        """Nodes differ in few labels that rules look at, so each rule is put to each different node once."""
        rules = list(dict.fromkeys(each.rule for each in self.demands))
        looked_at = {key for rule in rules for each in (*rule.nodes, *rule.places) for key in each}
        found: dict[object, int] = {}
        examples: list[OpenNode] = []
        numbers: list[int] = []
        for node in self.places:
            seen = tuple(sorted((key, node.node.labels.get(key)) for key in looked_at))
            key = (seen, node.node.taints)
            if key not in found:
                found[key] = len(examples)
                examples.append(node)
            numbers.append(found[key])
        table = np.array([[_stays(node, rule) for node in examples] for rule in rules], np.bool_)
        table = table.reshape(len(rules), len(examples))
        row = {rule: number for number, rule in enumerate(rules)}
        return (
            table[[row[each.rule] for each in self.demands]][:, numbers]
            if numbers and rules
            else np.zeros((len(self.demands), len(self.places)), np.bool_)
        )

    # -- what can be bought -------------------------------------------------------------------------------------------

    @cached_property
    def worth(self) -> Floats:
        """What one pod of each class costs where it is cheapest, by its share of a node that can be had without limit."""
        worth = np.zeros(len(self.demands))
        for number in range(len(self.parts)):
            known = self.kinds(number)
            free = known.kinds.limits < 0
            for row, name in enumerate(known.pods):
                able = known.usable[row] & free
                if able.any():
                    shares = known.parts[able, :, row].max(axis=1, initial=0.0)
                    worth[int(name)] = float((known.prices[able] * shares).min())
        return worth

    def kinds(self, part: int) -> Relaxation:
        """What can be bought for the pods of a part; its `pods` are their classes. Those that no pool serves are left out."""
        found = self._kinds.get(part)
        if found is None:
            pools, members = self.parts[part]
            some = [self.demands[number] for number in np.flatnonzero(self.pods[:, members].sum(axis=1))]
            for demand in some:
                demand.count = int(self.pods[int(demand.pod)].sum())
            found = self._kinds[part] = of_demands(self._run, some, to_plan=True, pools=pools)
        return found

    def kind_prices(self, known: Relaxation) -> Floats:
        """What each kind costs: reserved ones a part of what they stand for, so that a smaller one is better."""
        reserved = known.kinds.limits >= 0
        return np.where(reserved, known.prices * RESERVED_DIVISOR * RESERVED_SHARE, known.prices)

    # -- what moving costs --------------------------------------------------------------------------------------------

    @cached_property
    def values(self) -> Floats:
        """What the pods of each candidate are worth, in dollars an hour."""
        return self.worth @ self.pods

    @cached_property
    def evictions(self) -> Floats:
        """What evicting the pods of each candidate counts as, in dollars."""
        hours = [self.situation.eviction_cost(each.pool.name).seconds / 3600.0 for each in self.candidates]
        found: Floats = (self.worth @ self.weights) * np.array(hours)
        return found

    def horizon_of(self, gone: Sequence[int]) -> float:
        """The horizon of a move, in hours: of the horizons of its nodes the mean, as what they cost to evict weighs."""
        numbers = np.array(gone, np.int64)
        costs, hours = self.evictions[numbers], self.horizons_h[numbers]
        total = float(costs.sum())
        return total / float((costs / hours).sum()) if total > 0 else float(hours.min())

    # -- parts --------------------------------------------------------------------------------------------------------

    @cached_property
    def parts(self) -> list[tuple[tuple[str, ...], list[int]]]:
        """The parts: the names of their pools, and the candidates in them; by name."""
        joined = _Joined()
        for kind in range(len(self.demands)):
            pools = {self.candidates[n].pool.name for n in np.flatnonzero(self.pods[kind])}
            pools |= {self.places[n].node.labels.get(labels.NODEPOOL, "") for n in np.flatnonzero(self.allowed[kind])}
            pools |= {template.name for template in self._run.templates if self._serves(template, kind)}
            joined.join(sorted(pools))
        found: dict[str, list[int]] = {}
        for number, each in enumerate(self.candidates):
            found.setdefault(joined.root(each.pool.name), []).append(number)
        members = joined.members()
        return sorted((members.get(root, (root,)), numbers) for root, numbers in found.items())

    @cached_property
    def _serving(self) -> dict[tuple[str, RelaxedRow], bool]:
        return {}

    def _serves(self, template: object, kind: int) -> bool:
        rule, name = self.demands[kind].rule, template.name  # type: ignore[attr-defined]
        found = self._serving.get((name, rule))
        if found is None:
            well_known = self._run.vocabulary.well_known
            own: Requirements = template.requirements  # type: ignore[attr-defined]
            taints = template.taints  # type: ignore[attr-defined]
            found = not kept_off(taints, rule.tolerations) and any(
                own.compatible(each, well_known) for each in rule.nodes
            )
            self._serving[name, rule] = found
        return found


class _Joined:
    """Names that belong together, joined as that is found out."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def root(self, name: str) -> str:
        while self._parent.setdefault(name, name) != name:
            name = self._parent[name]
        return name

    def join(self, names: Sequence[str]) -> None:
        for name in names[1:]:
            one, other = sorted((self.root(names[0]), self.root(name)))
            self._parent[other] = one
        for name in names:
            self.root(name)

    def members(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for name in sorted(self._parent):
            found.setdefault(self.root(name), []).append(name)
        return {root: tuple(names) for root, names in found.items()}


def _stays(node: OpenNode, rule: RelaxedRow) -> bool:
    if kept_off(node.node.taints, rule.tolerations):
        return False
    own = node.requirements
    return any(own.compatible(each) for each in rule.nodes) and any(own.compatible(each) for each in rule.places)
