"""The kinds of node that pods can be bought as, and who may join whom without making a node dearer."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from joiner.catalog.units import flags
from joiner.requirements import Requirements
from joiner.scheduling.nodes.dominance import first_of_each, numbered, undominated
from joiner.scheduling.nodes.openclaim import RequirementCache
from joiner.scheduling.nodes.template import Template

Vector = npt.NDArray[np.float64]
PLENTY: Final = 1e18
"""How many pods a node takes of which nothing limits the number."""


class NodeKinds:
    """Kinds of node that pods can be bought as, cheapest first."""

    def __init__(self, units: npt.NDArray[np.int64], costs: Vector, room: npt.NDArray[np.float64]) -> None:
        self.units = units
        self.costs = costs
        self.room = room
        """What is left for pods on each, by resource."""


class KindTable:
    """Kinds of node by pool and requirements, and who may join whom without making a claim dearer.

    No run changes what it says: all attempts at one problem share one.
    """

    def __init__(self, joined: RequirementCache, names: Sequence[str]) -> None:
        self._joined = joined
        self._names = names
        self._rooms: dict[str, npt.NDArray[np.float64]] = {}
        self._as_large: dict[str, npt.NDArray[np.int64]] = {}
        self._kinds: dict[tuple[str, Requirements], NodeKinds] = {}
        self._welcome: dict[tuple[int, int], tuple[Vector | None, Requirements]] = {}
        """By identity: the requirements are kept with the answer, so that no others get theirs."""
        self._cost_tables: dict[tuple[str, Requirements], Vector] = {}

    def room(self, template: Template) -> npt.NDArray[np.float64]:
        """What units of the pool have left beside their daemons."""
        found = self._rooms.get(template.name)
        if found is None:
            found = template.stock.room(self._names)
            for group in template.daemons:
                if any(group.amounts):
                    found[flags(group.units, len(found))] -= np.array(group.amounts, dtype=np.float64)
            self._rooms[template.name] = found
        return found

    def as_large(self, template: Template) -> npt.NDArray[np.int64]:
        """A number for each unit of the pool, the same for those that have as much left: few are of a size of their own."""
        found = self._as_large.get(template.name)
        if found is None:
            found = self._as_large[template.name] = numbered(self.room(template))
        return found

    def of(self, template: Template, requirements: Requirements) -> NodeKinds:
        """The undominated kinds under some requirements, cheapest first."""
        key = (template.name, requirements)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = self._undominated(template, self.all(template, requirements))
        return found

    def all(self, template: Template, requirements: Requirements) -> NodeKinds:
        """All kinds under some requirements, also dominated ones: for callers that look only once."""
        stock = template.stock
        units, costs = stock.prices(requirements).columns(template.usable & stock.described(requirements))
        return NodeKinds(units, costs, self.room(template)[units])

    def _undominated(self, template: Template, every: NodeKinds) -> NodeKinds:
        kept = first_of_each(self.as_large(template)[every.units])
        kept = kept[undominated(every.room[kept])]
        return NodeKinds(every.units[kept], every.costs[kept], every.room[kept])

    def welcome(self, template: Template, own: Requirements, other: Requirements, kinds: NodeKinds) -> Vector | None:
        """One for each node kind that pods with other requirements may join without raising its price; None if there is none."""
        key = (id(kinds), id(other))
        known = self._welcome.get(key)
        if known is None:
            known = self._welcome[key] = (self._judge(template, own, other, kinds), other)
        return known[0]

    def _judge(self, template: Template, own: Requirements, other: Requirements, kinds: NodeKinds) -> Vector | None:
        if other == own:
            return np.ones(len(kinds.units))
        joined = self._joined.of(own, other)
        if joined is None:
            return None
        joint = self._costs(template, joined)[kinds.units]
        same = joint <= kinds.costs * (1 + 1e-9)
        return same.astype(np.float64) if same.any() else None

    def _costs(self, template: Template, requirements: Requirements) -> Vector:
        """What each unit costs under the requirements; infinite where it cannot be bought."""
        key = (template.name, requirements)
        found = self._cost_tables.get(key)
        if found is None:
            stock = template.stock
            units, costs = stock.prices(requirements).columns(stock.described(requirements))
            found = self._cost_tables[key] = np.full(len(stock.units), np.inf, dtype=np.float64)
            found[units] = costs
        return found


def how_many(room: npt.NDArray[np.float64], amounts: Vector) -> Vector:
    """How often amounts go into each row of room; for several amounts, a row each, amounts by room."""
    often = np.full((*amounts.shape[:-1], len(room)), PLENTY)
    for number in range(amounts.shape[-1]):
        wanted = amounts[..., number, None]
        there = room[:, number]
        np.minimum(often, np.divide(there, wanted, out=np.full(often.shape, PLENTY), where=wanted > 0), out=often)
    return np.floor(often, out=often)
