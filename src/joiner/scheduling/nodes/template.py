"""A pool as a run sees it: what every claim of it starts from, and what its limits still leave."""

from collections.abc import Iterable, Sequence
from copy import copy

from joiner.bitset import NO_UNITS, UnitSet
from joiner.catalog.units import Stock
from joiner.model import labels, podrequests
from joiner.model.labels import Vocabulary
from joiner.model.pod import ContainerPort, Pod, host_ports
from joiner.model.quantity import MILLI
from joiner.model.resources import NODES
from joiner.model.taints import kept_off
from joiner.requirements import Requirements
from joiner.scheduling.nodes.resourcefit import FitIndex
from joiner.scheduling.pods.noderules import node_rules
from joiner.scheduling.problem import Amounts, PoolOption


class DaemonGroup:
    """Units on which the same daemons will run."""

    def __init__(self, units: UnitSet, amounts: Amounts, ports: tuple[ContainerPort, ...]) -> None:
        self.units = units
        self.amounts = amounts
        self.busy = any(amounts)
        self.ports = ports


class Template:
    """A pool, its stock, its daemons and its limits."""

    def __init__(
        self, option: PoolOption, stock: Stock, daemons: Sequence[Pod], names: Sequence[str], vocabulary: Vocabulary
    ) -> None:
        self.pool = option.pool
        self.stock = stock
        self.fits = FitIndex(stock, names)
        self.taints = option.pool.spec.template.spec.taints
        self.requirements = option.catalog.requirements
        self.min_values = {
            key: requirement.min_values
            for key, requirement in self.requirements.items()
            if requirement.min_values is not None
        }
        # Daemons may select on labels that only a node that has joined carries.
        joined = self.requirements & Requirements.of_labels({labels.REGISTERED: "true", labels.INITIALIZED: "true"})
        self.daemons = self._group(daemons, joined, names, vocabulary)
        self._alone = not any(group.busy or group.ports for group in self.daemons)
        """Whether no daemon takes anything of its nodes."""
        limits = option.pool.spec.limits
        self.left = {name: int(amount) - option.used.get(name, 0) for name, amount in limits.items()}
        self.units = stock.described(self.requirements)
        usable = stock.for_sale(self.requirements)
        for _, counted in (*stock.reserved(self.requirements), *stock.counted(self.requirements)):
            usable |= counted
        self.usable = self.units & usable
        """Units that a claim of the pool can be at all."""
        self.has_exotic = bool(self.usable & ~stock.generic) and not self.min_values
        """Whether it can buy machines for special work that are left out where others will do."""

    def without_exotic(self) -> None:
        """Leave out the machines for special work: nothing needs them."""
        self.usable &= self.stock.generic
        self.has_exotic = False

    def fresh(self) -> "Template":
        """The same pool for another run, with limits of its own to use up."""
        made = copy(self)
        made.left = dict(self.left)
        return made

    @property
    def name(self) -> str:
        """The pool's name."""
        return self.pool.name

    @property
    def weight(self) -> int:
        """The pool's weight: heavier ones come first."""
        return self.pool.spec.weight

    def _group(
        self, daemons: Sequence[Pod], joined: Requirements, names: Sequence[str], vocabulary: Vocabulary
    ) -> tuple[DaemonGroup, ...]:
        parts: list[tuple[UnitSet, tuple[int, ...]]] = [(self.stock.everyone, ())]
        for number, pod in enumerate(daemons):
            if kept_off(self.taints, pod.spec.tolerations):
                continue
            runs_on = NO_UNITS
            for rule in node_rules(pod, vocabulary):
                if joined.compatible(rule, vocabulary.well_known):
                    runs_on |= self.stock.described(rule)
            parts = [
                (units, who)
                for old, before in parts
                for units, who in ((old & runs_on, (*before, number)), (old & ~runs_on, before))
                if units
            ]
        return tuple(_summed(units, [daemons[number] for number in who], names) for units, who in parts)

    def large_enough(self, amounts: Amounts, ports: Iterable[ContainerPort] = ()) -> UnitSet:
        """Units that hold these amounts beside their daemons, where those do not want the same ports."""
        if self._alone:
            return self.fits.large_enough(amounts)
        found = NO_UNITS
        for group in self.daemons:
            if group.ports and any(port.conflicts(other) for port in ports for other in group.ports):
                continue
            wanted = tuple(map(int.__add__, amounts, group.amounts)) if group.busy else amounts
            found |= group.units & self.fits.large_enough(wanted)
        return found

    def room(self, units: UnitSet) -> tuple[int, ...]:
        """The most that any of the units leaves for pods of each resource."""
        if self._alone or not units:
            return self.fits.largest(units)
        rooms = [
            [largest - amount for largest, amount in zip(self.fits.largest(there), group.amounts, strict=True)]
            for group in self.daemons
            if (there := group.units & units)
        ]
        return tuple([max(column) for column in zip(*rooms, strict=True)])

    def how_many(self, units: UnitSet, own: Amounts, pod_amounts: Amounts, most: int, least: int = 1) -> int:
        """How often, up to some number, one of the units holds pods of one size beside its daemons and what is there.

        Of units without daemons, at least so many of them.
        """
        if self._alone:
            return self.fits.how_many(units, own, pod_amounts, most, least)
        found = 0
        for group in self.daemons:
            if there := group.units & units:
                beside = tuple(map(int.__add__, own, group.amounts)) if group.busy else own
                found = max(found, self.fits.how_many(there, beside, pod_amounts, most))
        return found

    def within_limits(self) -> UnitSet:
        """Units that the pool's limits still allow."""
        if self.left.get(NODES, 1) <= 0:
            return NO_UNITS
        found = self.stock.everyone
        for name, left in self.left.items():
            if name != NODES:
                found &= ~self.stock.capacity(name).more_than(left)
        return found

    def opened(self, units: UnitSet) -> None:
        """A claim was opened that may be any of these: the largest of each resource counts against the limits."""
        for name in self.left:
            self.left[name] -= self._counted(name, units)

    def closed(self, units: UnitSet) -> None:
        """A claim that could be any of these when it was opened will not be bought after all."""
        for name in self.left:
            self.left[name] += self._counted(name, units)

    def _counted(self, name: str, units: UnitSet) -> int:
        return MILLI if name == NODES else self.stock.capacity(name).largest(units)


def _summed(units: UnitSet, daemons: Iterable[Pod], names: Sequence[str]) -> DaemonGroup:
    totals = dict.fromkeys(names, 0)
    ports: list[ContainerPort] = []
    for pod in daemons:
        for name, amount in podrequests.of_pod(pod).items():
            totals[name] = totals.get(name, 0) + amount
        ports.extend(host_ports(pod.spec))
    return DaemonGroup(units, tuple(totals[name] for name in names), tuple(ports))
