"""Capacity reservations as EC2 describes them, which of them a class selects, and how many machines each still takes.

EC2's own count is minutes old when it is read; a launch and a termination of ours change it at once.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from joiner.cloud.aws.nodeclass.ec2nodeclass import CapacityReservation, EC2NodeClassSpec
from joiner.cloud.aws.nodeclass.selectors import CUSTOM, CapacityReservationSelectorTerm, tags_match
from joiner.cloud.sources.reservation import Reservation
from joiner.model import codec
from joiner.model.meta import Value, replace

BLOCK_ENDS_EARLY: Final = timedelta(minutes=40)
"""So long before its end a capacity block takes no machines any more; EC2 takes them away half an hour before it."""
_LINUX: Final = "Linux"
_PLAIN: Final = ("Linux", "Linux/UNIX")
_STATES: Final = ("active", "")


class Described(Value):
    """A reservation with its tags, by which classes select it."""

    reservation: CapacityReservation
    platform: str = _LINUX
    """What its machines are billed as."""
    tags: Mapping[str, str] = {}


def described(raw: Mapping[str, Any]) -> Described:
    """A reservation out of EC2's description of it. Raises `KeyError` where something is missing."""
    kind = raw.get("ReservationType") or "default"
    criteria = raw.get("InstanceMatchCriteria") or "targeted"
    end = raw.get("EndDate")
    made = CapacityReservation(
        id=raw["CapacityReservationId"],
        instance_type=raw["InstanceType"],
        availability_zone=raw["AvailabilityZone"],
        owner_id=raw.get("OwnerId", ""),
        instance_match_criteria="open" if criteria == "open" else "targeted",
        end_time=codec.decode(end, datetime) if isinstance(end, str) else end,
        reservation_type="capacity-block" if kind == "capacity-block" else "default",
        interruptible=bool(raw.get("Interruptible", False)),
        available_instance_count=int(raw["AvailableInstanceCount"]),
        total_instance_count=int(raw.get("TotalInstanceCount", raw["AvailableInstanceCount"])),
        problem=_problem(raw, kind, criteria),
    )
    tags = {each["Key"]: each["Value"] for each in raw.get("Tags") or ()}
    return Described(reservation=made, platform=raw.get("InstancePlatform") or _LINUX, tags=tags)


def _problem(raw: Mapping[str, Any], kind: str, criteria: str) -> str:
    platform, tenancy = raw.get("InstancePlatform") or _LINUX, raw.get("Tenancy") or "default"
    if _LINUX not in platform or "SQL" in platform:
        return f"it is for {platform}, and the machines of the class run Linux"
    if tenancy != "default":
        return f"it is for {tenancy} tenancy"
    if raw.get("State", "") not in _STATES:
        return f"it is {raw['State']}"
    if kind not in ("default", "capacity-block"):
        return f"reservations of type {kind} are not known"
    return "" if criteria in ("open", "targeted") else f"reservations that match by {criteria} are not known"


def matches(term: CapacityReservationSelectorTerm, described: Described) -> bool:
    """Whether a term means a reservation."""
    found = described.reservation
    return (
        term.id in ("", found.id)
        and term.instance_type in ("", found.instance_type)
        and term.owner_id in ("", found.owner_id)
        and term.criteria in ("", found.instance_match_criteria)
        and tags_match(term.tags, described.tags)
    )


def selected(spec: EC2NodeClassSpec, known: Iterable[Described]) -> tuple[CapacityReservation, ...]:
    """What the terms of a class mean, once each, in order of id, with the reason where its machines do not fit."""
    terms = spec.capacity_reservation_selector_terms
    found = {each.reservation.id: each for each in known if any(matches(term, each) for term in terms)}
    return tuple(_as_seen_by(spec.family, found[identity]) for identity in sorted(found))


def _as_seen_by(family: str, known: Described) -> CapacityReservation:
    if family == CUSTOM or known.platform in _PLAIN or known.reservation.problem:
        return known.reservation
    reason = f"it is for {known.platform}, and images of {family} are billed as plain Linux"
    return replace(known.reservation, problem=reason)


def is_expiring(reservation: CapacityReservation, now: datetime) -> bool:
    """Whether it takes no machines any more, because it is a capacity block that soon ends."""
    end = reservation.end_time
    return reservation.reservation_type == "capacity-block" and end is not None and end - now <= BLOCK_ENDS_EARLY


def offered(reservation: CapacityReservation, left: int, now: datetime) -> Reservation:
    """The reservation as offerings are made of it, with what is left of it."""
    return Reservation(
        id=reservation.id,
        instance_type=reservation.instance_type,
        zone=reservation.availability_zone,
        count=0 if is_expiring(reservation, now) or reservation.problem else max(0, left),
        end_time=reservation.end_time,
        kind=reservation.type or reservation.instance_match_criteria,
        reservation_type=reservation.reservation_type,
        interruptible=reservation.interruptible,
    )


def with_state(reservation: CapacityReservation, now: datetime) -> CapacityReservation:
    """The reservation with what its end makes of it."""
    return replace(reservation, state="expiring" if is_expiring(reservation, now) else "active")
