"""Which of a claim's options are asked of EC2: those of one kind of capacity, as many types as a call may have, minValues kept.

Options come in their order, the best first. Types are derived a block at a time, because a claim seldom needs to know more than
the first hundred of the thousand types that EC2 sells.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from joiner.catalog.market import InstanceType, Offering, Option
from joiner.cloud.aws.account import ReservationAccount
from joiner.cloud.sources.ec2 import ALIASES
from joiner.cloud.sources.reservation import DEFAULT_LABELS
from joiner.model import labels
from joiner.model.meta import Value
from joiner.model.nodeclaim import NodeClaim
from joiner.requirements import Requirement, Requirements

MOST_TYPES: Final = 60
"""How many types one call has at most; more help EC2 little."""
BLOCK: Final = "capacity-block"
_NAMES: Final = labels.Vocabulary(aliases=ALIASES)


class Way(Value):
    """One way to launch: an option, with the type and offering as EC2 sells them."""

    option: Option
    type: InstanceType
    offering: Offering
    image_id: str = ""
    """The image that machines of the type boot."""

    @property
    def place(self) -> tuple[str, str]:
        """Type and zone, by which EC2 tells errors."""
        return self.type.name, self.offering.zone

    def reservation(self, key: str) -> str:
        """The value of one of the labels of reservations; empty for a way of the market."""
        return self.offering.requirements.at(key).any() or "" if self.offering.reserved else ""

    def values(self, key: str) -> frozenset[str]:
        """The values of a label that a machine launched this way may have."""
        found = self.offering.requirements.get(key) or self.type.requirements.at(key)
        return frozenset() if found.complement else frozenset(found.values)


Derive = Callable[[Collection[str]], Mapping[str, InstanceType]]
"""Gives types by name, as they are sold now."""
Usable = Callable[[InstanceType, Offering], str | None]
"""The image that a machine bought this way boots; nothing where none does, or where there is no subnet."""


def asked_of(claim: NodeClaim) -> Requirements:
    """The requirements of a claim, every label by its own name."""
    return Requirements.read(claim.spec.requirements, _NAMES)


def chosen(
    claim: NodeClaim, options: Sequence[Option], derive: Derive, usable: Usable, account: ReservationAccount
) -> list[Way]:
    """The ways that are asked of EC2, the best first; none where nothing can be had, or too little for minValues."""
    wanted = [each for each in asked_of(claim).values() if each.min_values]
    numbered: dict[str, list[tuple[int, Option]]] = {}
    for number, option in enumerate(options):
        numbered.setdefault(option.name, []).append((number, option))
    limit = math.inf if wanted else _dearest_spot(options)
    names = list(numbered)
    found: list[tuple[int, Way]] = []
    ways: list[Way] = []
    for start in range(0, len(names), MOST_TYPES):
        types = derive(names[start : start + MOST_TYPES])
        for name, kind in types.items():
            found += [(number, way) for number, option in numbered[name] for way in _way(option, kind, usable)]
        ways = _of_one_kind([way for _, way in sorted(found, key=lambda each: each[0])], account, limit)
        if len({way.type.name for way in ways}) >= MOST_TYPES and not _short(ways, wanted):
            break
    cut = _cut(ways, wanted)
    relaxed = claim.metadata.annotations.get(labels.MIN_VALUES_RELAXED) == "true"
    # A reservation is paid for whatever the choice, so it needs no flexibility.
    return [] if cut and not cut[0].offering.reserved and not relaxed and _short(cut, wanted) else cut


def _way(option: Option, kind: InstanceType, usable: Usable) -> Iterable[Way]:
    own = next((each for each in kind.offerings if _same(each, option.offering)), None)
    if own is None or own.available <= 0:
        return ()
    image = usable(kind, own)
    return () if image is None else (Way(option=option, type=kind, offering=own, image_id=image),)


def _same(one: Offering, other: Offering) -> bool:
    """Whether two offerings are the same way to buy, whatever users said of their prices and labels."""
    return _bought_as(one) == _bought_as(other)


def _bought_as(offering: Offering) -> tuple[str, str, str]:
    identity = offering.requirements.at(DEFAULT_LABELS.id).any() or "" if offering.reserved else ""
    return offering.zone, offering.capacity_type, identity


def _dearest_spot(options: Iterable[Option]) -> float:
    """A spot machine may cost as much as the cheapest one on demand: a dearer one, which can be taken back, is of no use."""
    on_demand = (each.offering.cost for each in options if each.offering.capacity_type == labels.ON_DEMAND)
    return min(on_demand, default=math.inf)


def _of_one_kind(ways: Sequence[Way], account: ReservationAccount, dearest_spot: float) -> list[Way]:
    """The ways of one kind of capacity, that of the first."""
    if not ways:
        return []
    kind = _kind(ways[0])
    found = [way for way in ways if _kind(way) == kind]
    if kind[0] == labels.SPOT:
        return [way for way in found if way.option.offering.cost <= dearest_spot]
    if kind[0] != labels.RESERVED:
        return found
    return found[:1] if kind[1] == BLOCK else _fullest(found, account)


def _kind(way: Way) -> tuple[str, str, str]:
    return (
        way.offering.capacity_type,
        way.reservation(DEFAULT_LABELS.type),
        way.reservation(DEFAULT_LABELS.interruptible),
    )


def _fullest(ways: Sequence[Way], account: ReservationAccount) -> list[Way]:
    """For each type and zone the reservation with the most left."""
    best: dict[tuple[str, str], Way] = {}
    for way in ways:
        known = best.get(way.place)
        identity = way.reservation(DEFAULT_LABELS.id)
        if known is None or account.left(identity) > account.left(known.reservation(DEFAULT_LABELS.id)):
            best[way.place] = way
    return [way for way in ways if best[way.place] is way]


def _short(ways: Iterable[Way], wanted: Iterable[Requirement]) -> bool:
    """Whether the ways leave fewer values of a label than minValues asks for."""
    listed = list(ways)
    return any(
        len({value for way in listed for value in way.values(each.key) if each.has(value)}) < (each.min_values or 0)
        for each in wanted
    )


def _cut(ways: Sequence[Way], wanted: Iterable[Requirement]) -> list[Way]:
    """The first types of the order, and those that minValues need besides."""
    by_type: dict[str, list[Way]] = {}
    for way in ways:
        by_type.setdefault(way.type.name, []).append(way)
    if len(by_type) <= MOST_TYPES:
        return list(ways)
    needed: dict[str, None] = {}
    for requirement in wanted:
        seen: set[str] = set()
        for name in dict.fromkeys((*needed, *by_type)):
            values = {value for way in by_type[name] for value in way.values(requirement.key) if requirement.has(value)}
            if len(seen) < (requirement.min_values or 0) and values - seen:
                needed[name] = None
            if name in needed:
                seen |= values
    rest = [name for name in by_type if name not in needed]
    kept = {*needed, *rest[: max(0, MOST_TYPES - len(needed))]}
    return [way for way in ways if way.type.name in kept] if len(kept) <= MOST_TYPES else []
