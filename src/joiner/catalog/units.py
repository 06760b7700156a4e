"""The market as bit masks that answer in microseconds: which units match, which are for sale at which price, which are large.

A *unit* is an instance type with those of its offerings that give the same kind of node; overlays may split one type into
several. A set of units is an integer with one bit each.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate, chain
from operator import or_
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from joiner.bitset import NO_UNITS, ShapeSet, UnitSet
from joiner.catalog.index import TypeLabels
from joiner.catalog.market import UNLIMITED, InstanceType, Offering, Option
from joiner.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, RESERVED, Vocabulary
from joiner.model.meta import replace
from joiner.model.resources import CPU, MEMORY, Resources
from joiner.requirements import Requirement, Requirements


class Priced(NamedTuple):
    """The best way to buy one unit under some requirements."""

    unit: int
    option: Option

    @property
    def offering(self) -> Offering:
        """What would be bought."""
        return self.option.offering


class Ways(NamedTuple):
    """All ways to buy something, best first, as columns."""

    priced: tuple[Priced, ...]
    units: npt.NDArray[np.intp]
    shapes: npt.NDArray[np.intp]
    """The requirements of each offering, by number."""
    costs: npt.NDArray[np.float64]


class Terms(NamedTuple):
    """The units that are available under some requirements."""

    described: UnitSet
    """Units whose own labels agree."""
    for_sale: UnitSet
    """Units that can be bought without a reservation, as many as are wanted."""
    reserved: tuple[tuple[str, UnitSet], ...]
    """Reservations that can be used, each with the units it has machines of."""
    machines: UnitSet
    """The units of all of these."""
    counted: tuple[tuple[str, UnitSet], ...]
    """The same for offerings without a reservation of which the provider has so many and no more."""


def units_of(types: Iterable[InstanceType]) -> tuple[InstanceType, ...]:
    """The types, split where their offerings give different kinds of node; plain nodes first."""
    units: list[InstanceType] = []
    for instance_type in types:
        kinds: dict[tuple[object, ...], list[Offering]] = {}
        for offering in instance_type.offerings:
            key = (tuple(sorted(offering.capacity.items())), tuple(sorted(offering.overhead.items())))
            kinds.setdefault(key, []).append(offering)
        if len(kinds) <= 1:
            units.append(instance_type)
        else:
            units.extend(replace(instance_type, offerings=tuple(kinds[key])) for key in sorted(kinds, key=repr))
    return tuple(units)


def _capacity(unit: InstanceType) -> Resources:
    """What a node of the unit has, with what overlays add."""
    return {**unit.capacity, **unit.offerings[0].capacity} if unit.offerings else unit.capacity


class Stock:
    """The units of one market, indexed for planners. Immutable but for memoised answers."""

    def __init__(
        self,
        types: Sequence[InstanceType],
        labels: TypeLabels,
        vocabulary: Vocabulary,
        decided: frozenset[str] = frozenset(),
    ) -> None:
        self.units = units_of(types)
        self.decided = decided
        """Labels that InstanceType settings put on offerings: a node has them because its claim says so, whatever is bought."""
        self.everyone = UnitSet((1 << len(self.units)) - 1)
        self._labels = labels if len(self.units) == len(types) else TypeLabels(self.units)
        self._described: dict[Requirements, UnitSet] = {}
        self._twins: dict[str, UnitSet] = {}
        if len(self.units) > len(types):
            for number, unit in enumerate(self.units):
                self._twins[unit.name] = self._twins.get(unit.name, NO_UNITS) | UnitSet(1 << number)
        self._well_known = vocabulary.well_known
        self._reservation_id = vocabulary.reservation_id
        self.allocatable = [unit.allocatable(unit.offerings[0] if unit.offerings else None) for unit in self.units]
        names = sorted({name for allocatable in self.allocatable for name in allocatable})
        amounts = {name: [allocatable.get(name, 0) for allocatable in self.allocatable] for name in names}
        self._large = {name: Ladder(column) for name, column in amounts.items()}
        self._room = {name: np.array(column, np.float64) for name, column in amounts.items()}
        # What limits are mostly about; other resources are indexed on demand.
        self._capacity = {name: self._capacities(name) for name in (CPU, MEMORY)}
        self._open: dict[Requirements, UnitSet] = {}
        self._reserved: dict[Requirements, tuple[str, UnitSet]] = {}
        self._counts: dict[str, int] = {}
        self.generic = UnitSet(sum(1 << number for number, unit in enumerate(self.units) if not unit.exotic))
        """The units that are no machines for special work."""
        self._counted: dict[tuple[str, Requirements], Requirements] = {}
        """Type and labels of offerings without a reservation that have a count, to the labels that tell them from others."""
        self.counted_names: set[str] = set()
        """The names under which these are counted, as reservations are under theirs."""
        self.reservation_ids: set[str] = set()
        """Names of reservations that are ids; one without an id is known by its labels."""
        for number, unit in enumerate(self.units):
            self._take(unit, UnitSet(1 << number))
        shapes = (*self._open, *self._reserved)
        self._keys = tuple(sorted({key for shape in shapes for key in shape}))
        self.offering_keys = frozenset(self._keys) - ({INSTANCE_TYPE} if self._counted else set())
        """Labels that tell offerings apart."""
        self._numbers: dict[tuple[Requirement | None, ...], int] = {}
        self._asked_before: dict[Requirements, int] = {}
        self._for_sale: dict[int, UnitSet] = {}
        self._to_reserve: dict[int, tuple[tuple[str, UnitSet], ...]] = {}
        self._in_reserve: dict[int, UnitSet] = {}
        self._to_count: dict[int, tuple[tuple[str, UnitSet], ...]] = {}
        self._terms: dict[Requirements, Terms] = {}
        self._ways_in: dict[str, tuple[tuple[Requirements, int, float], ...]] | None = None
        self._prices: dict[tuple[bool, int], Prices] = {}
        self.shapes: tuple[Requirements, ...] = tuple(sorted((*self._open, *self._reserved), key=str))
        """The different requirements that offerings have."""
        self.reservation_of = [self._reserved[shape][0] if shape in self._reserved else None for shape in self.shapes]
        """For each shape the reservation that such offerings are out of."""
        self.ways = self._all_ways()
        self._open_shapes = [number for number, shape in enumerate(self.shapes) if shape in self._open]
        self._shapes_of: dict[str, list[int]] = {}
        """Reservation to the shapes of its offerings; those of reservations without an id are under no name."""
        for number, shape in enumerate(self.shapes):
            if shape in self._reserved:
                name = self._reserved[shape][0]
                self._shapes_of.setdefault(name if name in self.reservation_ids else "", []).append(number)
        self._kinds_of_capacity: dict[int, tuple[tuple[str, UnitSet], ...]] = {}

    def _all_ways(self) -> Ways:
        rank = {id(shape): number for number, shape in enumerate(self.shapes)}
        same = {shape: number for number, shape in enumerate(self.shapes)}
        ways = sorted(
            (o.order, unit.name, number, rank.get(id(shape := self._shape(unit, o)), same[shape]), n)
            for number, unit in enumerate(self.units)
            for n, o in enumerate(unit.offerings)
            if o.launchable
        )
        return Ways(
            tuple(
                Priced(number, Option(name=name, offering=self.units[number].offerings[n]))
                for _, name, number, _, n in ways
            ),
            np.array([number for _, _, number, _, _ in ways], np.intp),
            np.array([shape for _, _, _, shape, _ in ways], np.intp),
            np.array([self.units[number].offerings[n].cost for _, _, number, _, n in ways], np.float64),
        )

    def _shape(self, unit: InstanceType, offering: Offering) -> Requirements:
        """The labels of an offering, with the type where the provider counts how many there are."""
        return self._counted.get((unit.name, offering.requirements), offering.requirements)

    def _take(self, unit: InstanceType, bit: UnitSet) -> None:
        for offering in unit.offerings:
            shape = offering.requirements
            name = (shape.at(self._reservation_id).any() or "") if offering.reserved else ""
            if name:  # an offering with nothing left says so of the whole reservation
                self._counts[name] = min(offering.available, self._counts.get(name, offering.available))
            if not offering.launchable:
                continue
            if not offering.reserved and offering.available < UNLIMITED:
                pinned = shape & Requirements([Requirement(INSTANCE_TYPE, (unit.name,))])
                name = str(pinned.without(*self.decided))  # settings split an offering; the machines stay the same
                self._counted[unit.name, shape] = pinned
                self.counted_names.add(name)
                self._counts[name] = min(offering.available, self._counts.get(name, offering.available))
                self._reserved[pinned] = (name, self._reserved.get(pinned, ("", NO_UNITS))[1] | bit)
                continue
            if not offering.reserved:
                self._open[shape] = self._open.get(shape, NO_UNITS) | bit
                continue
            if name:
                self.reservation_ids.add(name)
            else:
                name = str(shape)
                self._counts[name] = min(offering.available, self._counts.get(name, offering.available))
            self._reserved[shape] = (name, self._reserved.get(shape, ("", NO_UNITS))[1] | bit)

    @property
    def varies(self) -> bool:
        """Whether offerings of one type may differ in more than price, so that a claim must say which of them are meant."""
        return bool(self._twins or self.decided or self._counted)

    def preferred(self, units: UnitSet, available: UnitSet) -> UnitSet:
        """Some units without machines for special work, as far as others of them are available.

        The one place for the rule that bare metal and accelerators are bought only when asked for, or when nothing else will do.
        Callers leave it out where minValues ask for a choice, as the launch of Karpenter's AWS provider does.
        """
        return units & self.generic if units & self.generic & available else units

    def pins(self, name: str) -> Requirements:
        """What a node must be that is launched into a reservation, or as one of so many machines, of this name."""
        if name in self.reservation_ids:
            return Requirements([Requirement(CAPACITY_TYPE, (RESERVED,)), Requirement(self._reservation_id, (name,))])
        return next(shape for shape, (of, _) in self._reserved.items() if of == name).without(*self.decided)

    def counted_offerings(self) -> Iterable[tuple[Requirements, UnitSet]]:
        """The labels of offerings without a reservation that have a count, each with the units that can be bought with them."""
        return ((shape, self._reserved[shape][1]) for shape in self._counted.values())

    def offered(self, *, reserved: bool) -> Iterable[tuple[Requirements, UnitSet]]:
        """The labels that offerings have, on the market or out of reservations, with the units that can be bought with them."""
        if reserved:
            return ((shape, units) for shape, (_, units) in self._reserved.items())
        return self._open.items()

    @property
    def has_twins(self) -> bool:
        """Whether some type is several kinds of node."""
        return bool(self._twins)

    def twins(self, unit: int) -> UnitSet:
        """All units of the same type, the unit itself among them; 0 when the type has only one."""
        return self._twins.get(self.units[unit].name, NO_UNITS)

    def described(self, requirements: Requirements) -> UnitSet:
        """Units whose own labels agree with the requirements, whether or not they can be bought."""
        found = self._described.get(requirements)
        if found is None:
            found = self._described[requirements] = UnitSet(self._labels.described(requirements))
        return found

    def _asked(self, requirements: Requirements) -> int:
        """A number for what is asked of offerings: the same for all requirements that no offering can tell apart."""
        found = self._asked_before.get(requirements)
        if found is None:
            relevant = tuple(requirements.get(key) for key in self._keys)
            found = self._asked_before[requirements] = self._numbers.setdefault(relevant, len(self._numbers))
        return found

    def reservations(self) -> dict[str, int]:
        """Reservation to how many instances are left in it: where its offerings say different numbers, the smallest."""
        return dict(self._counts)

    def for_sale(self, requirements: Requirements) -> UnitSet:
        """Units that can be bought under the requirements without a reservation."""
        asked = self._asked(requirements)
        found = self._for_sale.get(asked)
        if found is None:
            found = NO_UNITS
            for shape, units in self._open.items():
                if requirements.compatible(shape, self._well_known):
                    found |= units
            self._for_sale[asked] = found
        return found

    def reserved(self, requirements: Requirements) -> tuple[tuple[str, UnitSet], ...]:
        """Reservations that can be used under the requirements, each with the units it has machines of."""
        if not self._reserved:
            return ()
        asked = self._asked(requirements)
        found = self._to_reserve.get(asked)
        if found is None:
            usable: dict[str, UnitSet] = {}
            for shape, (name, units) in self._reserved.items():
                if requirements.compatible(shape, self._well_known):
                    usable[name] = usable.get(name, NO_UNITS) | units
            some = sorted(usable.items())
            found = self._to_reserve[asked] = tuple(each for each in some if each[0] not in self.counted_names)
            self._to_count[asked] = tuple(each for each in some if each[0] in self.counted_names)
        return found

    def counted(self, requirements: Requirements) -> tuple[tuple[str, UnitSet], ...]:
        """Offerings with a count that can be bought under the requirements without a reservation, by name, with their units."""
        if not self._counted:
            return ()
        self.reserved(requirements)
        return self._to_count[self._asked(requirements)]

    def reserved_ways(self, name: str) -> tuple[tuple[Requirements, int, float], ...]:
        """How machines of a reservation with an id can be had: what the node would be, which unit, and what it costs."""
        if self._ways_in is None:
            ways: dict[str, list[tuple[Requirements, int, float]]] = {}
            columns = zip(self.ways.shapes.tolist(), self.ways.units.tolist(), self.ways.costs.tolist(), strict=True)
            for shape, unit, cost in columns:
                if (reservation := self.reservation_of[shape]) is not None:
                    ways.setdefault(reservation, []).append((self.shapes[shape], unit, cost))
            self._ways_in = {reservation: tuple(found) for reservation, found in ways.items()}
        return self._ways_in.get(name, ())

    def reserved_units(self, requirements: Requirements) -> UnitSet:
        """Units that some reservation that can be used under the requirements has machines of."""
        if not self._reserved:
            return NO_UNITS
        asked = self._asked(requirements)
        found = self._in_reserve.get(asked)
        if found is None:
            found = NO_UNITS
            for _, units in self.reserved(requirements):
                found |= units
            self._in_reserve[asked] = found
        return found

    def terms(self, requirements: Requirements) -> Terms:
        """What there is under the requirements."""
        found = self._terms.get(requirements)
        if found is None:
            found = self._terms[requirements] = Terms(
                self.described(requirements),
                self.for_sale(requirements),
                self.reserved(requirements),
                self.reserved_units(requirements),
                self.counted(requirements),
            )
        return found

    def available(self, requirements: Requirements) -> UnitSet:
        """Units that can be bought under the requirements in any way."""
        terms = self.terms(requirements)
        found = terms.for_sale | terms.machines
        for _, counted in terms.counted:
            found |= counted
        return found

    def ladders(self, names: Iterable[str]) -> tuple["Ladder", ...]:
        """The units by what pods can use of some resources, in the order of the names."""
        return tuple(self._large.get(name) or Ladder([0] * len(self.units)) for name in names)

    def room(self, names: Iterable[str]) -> npt.NDArray[np.float64]:
        """What pods can use of some resources, a row for each unit."""
        nothing = np.zeros(len(self.units))
        return np.column_stack([self._room.get(name, nothing) for name in names])

    def capacity(self, name: str) -> "Ladder":
        """The units by their capacity of a resource."""
        ladder = self._capacity.get(name)
        if ladder is None:
            ladder = self._capacity[name] = self._capacities(name)
        return ladder

    def _capacities(self, name: str) -> "Ladder":
        return Ladder([_capacity(unit).get(name, 0) for unit in self.units])

    def capacity_types(self, requirements: Requirements, names: Iterable[str]) -> tuple[str, ...]:
        """The capacity types in which some of these types can be bought on the market."""
        wanted = frozenset(names)
        units = UnitSet(sum(1 << number for number, unit in enumerate(self.units) if unit.name in wanted))
        asked = self._asked(requirements)
        found = self._kinds_of_capacity.get(asked)
        if found is None:
            by_type: dict[str, UnitSet] = {}
            for shape, having in (*self._open.items(), *self.counted_offerings()):
                if requirements.compatible(shape, self._well_known):
                    name = shape.at(CAPACITY_TYPE).any() or ""
                    by_type[name] = by_type.get(name, NO_UNITS) | having
            found = self._kinds_of_capacity[asked] = tuple(sorted(by_type.items()))
        return tuple(name for name, having in found if having & units)

    def prices(self, requirements: Requirements, *, reserved: bool = False) -> "Prices":
        """What the units cost under the requirements: on the market, or out of reservations."""
        key = (reserved, self._asked(requirements))
        found = self._prices.get(key)
        if found is None:
            allowed = np.zeros(len(self.shapes), np.bool_)
            for number in self._reserved_shapes(requirements) if reserved else self._open_shapes:
                allowed[number] = requirements.compatible(self.shapes[number], self._well_known)
            possible = np.flatnonzero(allowed[self.ways.shapes])
            best = np.full(len(self.units), len(self.ways.units), np.intp)
            np.minimum.at(best, self.ways.units[possible], possible)  # ways come cheapest first
            best = np.sort(best[best < len(self.ways.units)])
            found = self._prices[key] = Prices(self.ways, best, len(self.units))
        return found

    def _reserved_shapes(self, requirements: Requirements) -> Iterable[int]:
        """The shapes that can be out of reservations that the requirements name; all where they name none."""
        asked = requirements.get(self._reservation_id)
        if asked is None or asked.complement:
            return chain.from_iterable(self._shapes_of.values())
        return chain.from_iterable(self._shapes_of.get(name, ()) for name in ("", *asked.values))


class Prices:
    """Units that can be bought, each at its best offering, cheapest first."""

    def __init__(self, ways: Ways, best: npt.NDArray[np.intp], units: int) -> None:
        self._priced = ways.priced
        self._best = best
        self._numbers = ways.units[best]
        self._costs = ways.costs[best]
        self._unit_count = units
        self._rising = self._costs.tolist()
        self.options: dict[UnitSet, tuple[Option, ...]] = {}
        """Set of units to its options: a cache of the caller's."""

    @cached_property
    def _units(self) -> list[UnitSet]:
        """No unit, then the cheapest, the two cheapest, and so on."""
        return list(accumulate(map(UnitSet, map((1).__lshift__, self._numbers.tolist())), or_, initial=NO_UNITS))

    def at_most(self, cost: float) -> UnitSet:
        """Units that cost no more."""
        return self._units[bisect_right(self._rising, cost)]

    def first(self, units: UnitSet) -> Priced | None:
        """The cheapest of some units; None if none of them can be bought."""
        if not self.has(units):
            return None
        return self._priced[int(self._best[bisect_left(self._units, True, key=lambda some: bool(some & units)) - 1])]

    def has(self, units: UnitSet) -> bool:
        """Whether some of the units can be bought."""
        return bool(self._units[-1] & units)

    def among(self, units: UnitSet) -> list[Priced]:
        """Those of some units, cheapest first."""
        return [self._priced[way] for way in self._best[self._chosen(units)].tolist()]

    def columns(self, units: UnitSet) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        """The same as numbers of units and what they cost."""
        chosen = self._chosen(units)
        return self._numbers[chosen], self._costs[chosen]

    def _chosen(self, units: UnitSet) -> npt.NDArray[np.bool_]:
        return flags(units, self._unit_count)[self._numbers]


def flags(units: UnitSet | ShapeSet, count: int) -> npt.NDArray[np.bool_]:
    """A bit mask as a boolean array."""
    packed = np.frombuffer(units.to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=count, bitorder="little").astype(np.bool_)


class Ladder:
    """Units by how much they have of one resource."""

    def __init__(self, amounts: Sequence[int]) -> None:
        by_amount: dict[int, UnitSet] = {}
        for number, amount in enumerate(amounts):
            by_amount[amount] = by_amount.get(amount, NO_UNITS) | UnitSet(1 << number)
        self.steps = sorted(by_amount)
        """The different amounts, the smallest first."""
        self.units = [NO_UNITS] * (len(self.steps) + 1)
        """For each of them the units that have as much or more; at last the empty set."""
        for position in range(len(self.steps) - 1, -1, -1):
            self.units[position] = self.units[position + 1] | by_amount[self.steps[position]]

    def at_least(self, amount: int) -> UnitSet:
        """Units with this much or more."""
        return self.units[bisect_left(self.steps, amount)]

    def more_than(self, amount: int) -> UnitSet:
        """Units with more than this."""
        return self.units[bisect_right(self.steps, amount)]

    def smallest(self, units: UnitSet) -> int:
        """The least that any of the units has."""
        for position, step in enumerate(self.steps):
            if self.units[position] & ~self.units[position + 1] & units:
                return step
        return 0

    def largest(self, units: UnitSet) -> int:
        """The most that any of the units has."""
        if not units & self.units[0]:
            return 0
        return self.steps[bisect_left(self.units, True, key=lambda having: not having & units) - 1]
