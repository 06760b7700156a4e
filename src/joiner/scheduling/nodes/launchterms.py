"""What a claim is written as: requirements under which every way to launch it is a way it was planned with.

A claim holds types and requirements, and a launch may take any offering of these types that the requirements allow. Two things
make offerings of one type differ in more than price. NodeOverlays give the offerings that they match another room, so that only
some of them hold the pods. InstanceType settings put labels on offerings (a team, an operating system) that a node has because
its claim says so: which of these offerings is bought is decided when the claim is written. In both cases the claim is narrowed
to a product of values (capacity types, zones, …), types that would still be the wrong node are left out, and minValues are
counted on what remains.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, combinations, product
from math import prod
from typing import Final, NamedTuple

from joiner.bitset import NO_UNITS, UnitSet
from joiner.catalog.units import Stock
from joiner.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.nodes.minvalues import Flexibility

_PRODUCTS_MOST: Final = 2048
"""How many products of values are looked at; beyond that, only single values and all that never lead to a wrong node."""

_PLACE: Final = (CAPACITY_TYPE, ZONE)

Offered = tuple[Requirements, UnitSet]
"""The labels that some offerings share, and the units that can be bought with them."""


class LaunchTerms(NamedTuple):
    """What a claim is written as."""

    requirements: Requirements
    units: UnitSet
    """The units it can be launched as; no type of them can be launched as any other unit."""
    short: Mapping[str, int]
    """Labels of which there are fewer values than minValues asks for, with the number that is left."""
    price: float


class LaunchTermsTable:
    """The terms of one market; what was worked out before is remembered."""

    def __init__(self, stock: Stock, flexible: Flexibility, well_known: frozenset[str]) -> None:
        self._stock = stock
        self._flexible = flexible
        self._well_known = well_known
        self._known: dict[tuple[Requirements, UnitSet, tuple[tuple[str, int], ...], bool], LaunchTerms | None] = {}

    def of(
        self, requirements: Requirements, units: UnitSet, min_values: Mapping[str, int], *, reserved: bool = False
    ) -> LaunchTerms | None:
        """The terms that miss fewest values of minValues, then the cheapest, then those with most types and offerings,
        then those that narrow the fewest labels, capacity type and zone rather than others.

        None where none of the units can be bought.
        """
        question = (requirements, units, tuple(min_values.items()), reserved)
        if question not in self._known:
            self._known[question] = self._best(requirements, units, min_values, reserved)
        return self._known[question]

    def _best(
        self, requirements: Requirements, units: UnitSet, min_values: Mapping[str, int], reserved: bool
    ) -> LaunchTerms | None:
        best: tuple[tuple[object, ...], LaunchTerms] | None = None
        for decided in self._decisions(requirements, units, reserved):
            for asked, left in self._products(decided, units, reserved):
                priced = self._stock.prices(asked, reserved=reserved).first(left)
                if priced is None:
                    continue
                short = self._flexible.missing(min_values, left, asked)
                missing = sum(min_values[key] - count for key, count in short.items())
                types = len({self._stock.units[number].name for number in _numbers(left)})
                ways = sum((having & left).bit_count() for _, having in self._offered(asked, left, reserved))
                narrowed = [key not in _PLACE for key in asked if asked.get(key) != decided.get(key)]
                rank = (missing, priced.offering.cost, -types, -ways, len(narrowed), sum(narrowed), str(asked))
                if best is None or rank < best[0]:
                    best = rank, LaunchTerms(asked, left, short, priced.offering.cost)
        return None if best is None else best[1]

    def _offered(self, requirements: Requirements, units: UnitSet, reserved: bool) -> list[Offered]:
        """The offerings of some units that the requirements allow."""
        found = ((shape, having & units) for shape, having in self._stock.offered(reserved=reserved))
        return [
            (shape, having) for shape, having in found if having and requirements.compatible(shape, self._well_known)
        ]

    # -- labels that the claim decides ------------------------------------------------------------------------------------

    def _decisions(self, requirements: Requirements, units: UnitSet, reserved: bool) -> Iterator[Requirements]:
        """The requirements with one value for each label that settings put on offerings, in every way there is."""
        choices: list[list[Requirement]] = []
        offered = self._offered(requirements, self._of_same_types(units), reserved) if self._stock.decided else []
        for key in sorted(self._stock.decided):
            named = {value for shape, _ in offered if key in shape for value in shape[key].values}
            if named and (key in requirements or key in self._well_known):
                choices.append(list(_single(requirements.at(key), named)))
        if prod(map(len, choices)) > _PRODUCTS_MOST:
            choices = [some[:2] for some in choices]
        for chosen in product(*choices):
            yield requirements & Requirements(chosen) if chosen else requirements

    # -- offerings that are another kind of node --------------------------------------------------------------------------

    def _of_same_types(self, units: UnitSet) -> UnitSet:
        """The units of the types that some units are of."""
        found = units
        if self._stock.has_twins:
            for number in _numbers(units):
                found |= self._stock.twins(number)
        return found

    def _products(
        self, requirements: Requirements, units: UnitSet, reserved: bool
    ) -> Iterator[tuple[Requirements, UnitSet]]:
        """Narrower requirements, each with the units that can be bought under them and are never launched as another one."""
        described = self._stock.described(requirements)
        units &= described
        others = self._of_same_types(units) & described & ~units
        wrong = self._wrong(requirements, units, others, reserved)
        if not wrong:
            yield requirements, _all(self._offered(requirements, units, reserved))
            return
        offered = [*self._offered(requirements, units | others, reserved), *wrong]
        keys = sorted({key for shape, _ in wrong for key in shape} - self._stock.decided - {INSTANCE_TYPE})
        choices = [self._values(key, offered, wrong) for key in keys]
        several = prod(2 ** len(classes) - 1 for classes in choices) > _PRODUCTS_MOST
        ways = [_some(classes) if several else _subsets(classes) for classes in choices]
        for picked in product(*ways):
            pins = [_pin(key, some) for key, some in zip(keys, picked, strict=True)]
            allowed = [pin for pin, some, every in zip(pins, picked, choices, strict=True) if len(some) < len(every)]
            if any(pin is None for pin in allowed):
                continue
            asked = requirements & Requirements(pin for pin in allowed if pin is not None)
            there = _all(self._offered(asked, units, reserved))
            left = there & ~self._of_same_types(_all(self._wrong(asked, units, others, reserved)))
            if left:
                yield asked, left

    def _wrong(self, requirements: Requirements, units: UnitSet, others: UnitSet, reserved: bool) -> list[Offered]:
        """Offerings that the claim must not be launched as: other kinds of node, and machines that are counted one by one."""
        found = self._offered(requirements, others, reserved) if others else []
        if not reserved:
            counted = ((shape, having & (units | others)) for shape, having in self._stock.counted_offerings())
            found += [each for each in counted if each[1] and requirements.compatible(each[0], self._well_known)]
        return found

    def _values(self, key: str, offered: Iterable[Offered], wrong: Iterable[Offered]) -> "list[_Class]":
        """The values of a label that offerings have, those together that lead to the same wrong nodes."""
        values = {shape[key]: set[tuple[Requirements, UnitSet]]() for shape, _ in offered if key in shape}
        for shape, having in wrong:
            if key in shape:
                values[shape[key]].add((shape.without(key), having))
        classes: dict[frozenset[tuple[Requirements, UnitSet]], list[Requirement]] = {}
        for value in sorted(values, key=str):
            classes.setdefault(frozenset(values[value]), []).append(value)
        return [_Class(tuple(alike), not leads_to) for leads_to, alike in classes.items()]


class _Class(NamedTuple):
    """Values of a label that are as good as each other."""

    values: tuple[Requirement, ...]
    harmless: bool
    """Whether no wrong node can be bought with them."""


def _subsets(classes: "list[_Class]") -> "Iterator[tuple[_Class, ...]]":
    return chain.from_iterable(combinations(classes, count) for count in range(1, len(classes) + 1))


def _some(classes: "list[_Class]") -> "Iterator[tuple[_Class, ...]]":
    """One by one, all, and all that are harmless."""
    yield from ((each,) for each in classes)
    yield tuple(classes)
    harmless = tuple(each for each in classes if each.harmless)
    if 1 < len(harmless) < len(classes):
        yield harmless


def _pin(key: str, classes: "Iterable[_Class]") -> Requirement | None:
    """The requirement that allows the values of some classes and no others; None where there is no such requirement."""
    values = [value for each in classes for value in each.values]
    if len(values) == 1:
        return values[0]
    if any(value.complement or not value.values for value in values):
        return None
    return Requirement(key, {one for value in values for one in value.values})


def _single(wanted: Requirement, named: set[str]) -> Iterator[Requirement]:
    """Each of some values that is allowed, and what is allowed beside them, which no offering can tell apart."""
    for value in sorted(named):
        if wanted.has(value):
            yield Requirement(wanted.key, (value,))
    rest = wanted & Requirement(wanted.key, named, complement=True)
    if rest.complement or rest.values:
        yield rest


def _all(offered: Iterable[Offered]) -> UnitSet:
    found = NO_UNITS
    for _, having in offered:
        found |= having
    return found


def _numbers(units: UnitSet) -> Iterator[int]:
    """The numbers of a set of units, in order."""
    while units:
        bit = units & -units
        yield bit.bit_length() - 1
        units ^= bit
