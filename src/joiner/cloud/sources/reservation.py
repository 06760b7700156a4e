"""Capacity reservations, and the offerings they add to instance types.

One offering per reservation, carrying its id: pods and pools may choose one, and two with different ends stay apart.
Whether a reservation has ended is for the caller to say, who has a clock.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from joiner.catalog.market import RESERVED_DIVISOR, InstanceType, Offering
from joiner.model import labels
from joiner.model.meta import Value, replace
from joiner.requirements import Requirement, Requirements

KIND_DEFAULT: Final = "default"
"""The value of the type label for reservations that are not capacity blocks."""


class ReservationLabels(Value):
    """The labels that tell reserved offerings apart; an empty key is left out."""

    id: str = "karpenter.k8s.aws/capacity-reservation-id"
    type: str = "karpenter.k8s.aws/capacity-reservation-type"
    interruptible: str = "karpenter.k8s.aws/capacity-reservation-interruptible"

    def names(self) -> tuple[str, ...]:
        """The keys in use."""
        return tuple(key for key in (self.id, self.type, self.interruptible) if key)


DEFAULT_LABELS: Final = ReservationLabels()


class Reservation(Value):
    """Capacity that is paid for: so many instances of a type in a zone."""

    id: str
    instance_type: str
    zone: str
    count: int
    """How many instances can still be launched into it."""
    end_time: datetime | None = None
    """When it ends; nothing: it lasts until it is cancelled."""
    kind: Literal["open", "targeted"] = msgspec.field(default="open", name="type")
    """Written `type`. Whether matching instances fall into it by themselves. Joiner always names the reservation it means."""
    reservation_type: str = KIND_DEFAULT
    """What was bought: `default`, or `capacity-block`."""
    interruptible: bool = False
    """Whether its owner may take the capacity back."""

    def ended(self, now: datetime) -> bool:
        """Whether it is over."""
        return self.end_time is not None and self.end_time <= now


def absent(keys: ReservationLabels) -> tuple[Requirement, ...]:
    """What everything says that is not out of a reservation."""
    return tuple(Requirement(key) for key in keys.names())


def reserve(
    types: Iterable[InstanceType], reservations: Iterable[Reservation], keys: ReservationLabels = DEFAULT_LABELS
) -> tuple[InstanceType, ...]:
    """The types with an offering for each reservation of theirs.

    All other offerings say that they are of no reservation. A reservation in a zone where its type is not offered adds
    nothing; `misplaced` tells which those are.
    """
    return tuple(reserving(types, reservations, keys))


def reserving(
    types: Iterable[InstanceType], reservations: Iterable[Reservation], keys: ReservationLabels = DEFAULT_LABELS
) -> Iterator[InstanceType]:
    """The same, one type at a time."""
    by_type: dict[str, list[Reservation]] = {}
    for reservation in sorted(reservations, key=lambda r: r.id):
        by_type.setdefault(reservation.instance_type, []).append(reservation)
    silent = _Silent(keys)
    for each in types:
        yield _reserved(each, by_type.get(each.name, ()), keys, silent)


class ReservationStanding(Value):
    """A reservation, and what keeps claims from being launched into it."""

    reservation: Reservation
    problem: str = ""
    """Empty when it can be bought from."""
    misplaced: bool = False
    """Whether it fits nothing that is offered, which is a mistake to be told."""


def standings(
    types: Iterable[InstanceType], reservations: Iterable[Reservation], now: datetime
) -> tuple[ReservationStanding, ...]:
    """How each reservation stands, in order of id."""
    wrong = misplaced(types, reservations := sorted(reservations, key=lambda each: each.id))
    return tuple(_standing(each, wrong.get(each.id, ""), now) for each in reservations)


def _standing(reservation: Reservation, misplacement: str, now: datetime) -> ReservationStanding:
    if reservation.ended(now):
        return ReservationStanding(reservation=reservation, problem="it has ended")
    if misplacement:
        return ReservationStanding(reservation=reservation, problem=misplacement, misplaced=True)
    return ReservationStanding(
        reservation=reservation, problem="" if reservation.count > 0 else "nothing is left of it"
    )


def misplaced(types: Iterable[InstanceType], reservations: Iterable[Reservation]) -> Mapping[str, str]:
    """Reservation id to the reason why it adds no offering; without those that do."""
    zones = {t.name: sorted({offering.zone for offering in t.offerings}) for t in types}
    reasons: dict[str, str] = {}
    for reservation in reservations:
        offered = zones.get(reservation.instance_type)
        if offered is None:
            reasons[reservation.id] = f"instance type {reservation.instance_type} is not in the catalogue"
        elif reservation.zone not in offered:
            where = ", ".join(offered) or "no zone"
            reasons[reservation.id] = (
                f"{reservation.instance_type} is not offered in zone {reservation.zone}; it is offered in {where}"
            )
    return reasons


class _Silent:
    """Makes requirements say that they are of no reservation, once for each that occurs."""

    def __init__(self, keys: ReservationLabels) -> None:
        self._absent = absent(keys)
        self._made: dict[Requirements, Requirements] = {}

    def about(self, requirements: Requirements) -> Requirements:
        made = self._made.get(requirements)
        if made is None:
            missing = [requirement for requirement in self._absent if requirement.key not in requirements]
            made = Requirements((*requirements.values(), *missing)) if missing else requirements
            self._made[requirements] = made
        return made


def _reserved(
    instance_type: InstanceType, reservations: Sequence[Reservation], keys: ReservationLabels, silent: _Silent
) -> InstanceType:
    base = tuple(_with_requirements(o, silent.about(o.requirements)) for o in instance_type.offerings)
    made = tuple(o for r in reservations if (o := _offering(r, instance_type.offerings, keys)) is not None)
    if not made:
        requirements = silent.about(instance_type.requirements)
        unchanged = requirements is instance_type.requirements and all(
            new is old for new, old in zip(base, instance_type.offerings, strict=True)
        )
        return instance_type if unchanged else replace(instance_type, requirements=requirements, offerings=base)
    return replace(instance_type, requirements=_widened(instance_type.requirements, keys), offerings=base + made)


def _with_requirements(offering: Offering, requirements: Requirements) -> Offering:
    return offering if requirements is offering.requirements else replace(offering, requirements=requirements)


def _offering(reservation: Reservation, market: tuple[Offering, ...], keys: ReservationLabels) -> Offering | None:
    """The offering of a reservation: where it is, otherwise like the ones on the market in that zone."""
    here = next((o for o in market if o.zone == reservation.zone), None)
    if here is None:
        return None
    own = {labels.CAPACITY_TYPE: labels.RESERVED, **_values(reservation, keys)}
    kept = (requirement for key, requirement in here.requirements.items() if key not in own)
    return Offering(
        requirements=Requirements((*kept, *(Requirement(key, (value,)) for key, value in own.items()))),
        price=_on_demand_price(reservation.zone, market),
        available=max(0, reservation.count),
        divisor=RESERVED_DIVISOR,
    )


def _values(reservation: Reservation, keys: ReservationLabels) -> dict[str, str]:
    interruptible = "true" if reservation.interruptible else "false"
    values = {keys.id: reservation.id, keys.type: reservation.reservation_type, keys.interruptible: interruptible}
    return {key: value for key, value in values.items() if key}


def _on_demand_price(zone: str, market: tuple[Offering, ...]) -> float:
    """The price the reservation stands for. It is paid for in any case, so an unknown one does not make it useless."""
    prices = {o.zone: o.price for o in market if o.capacity_type == labels.ON_DEMAND and o.price is not None}
    return prices.get(zone, min(prices.values(), default=0.0))


def _widened(requirements: Requirements, keys: ReservationLabels) -> Requirements:
    """The type's own requirements, once some of its machines are reserved and others are not.

    Of the reservation labels it then says nothing: its offerings do. A list of ids would forbid the machines without one.
    """
    known = requirements.get(labels.CAPACITY_TYPE)
    wider = () if known is None or known.complement else (Requirement(known.key, known.values | {labels.RESERVED}),)
    silent = {*keys.names(), *(requirement.key for requirement in wider)}
    return Requirements((*(each for key, each in requirements.items() if key not in silent), *wider))
