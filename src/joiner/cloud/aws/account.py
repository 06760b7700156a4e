"""How many machines each capacity reservation still takes: what EC2 said last, and what was launched and ended since.

Of a launch and a call to EC2 that crossed it is not known which came first. Then it says the smaller number, until EC2 is asked
again within a minute.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from joiner.cloud.aws.nodeclass.ec2nodeclass import CapacityReservation


class _Told(NamedTuple):
    """What EC2 said of a reservation, and what it must be by now."""

    left: int
    total: int | None
    asked_at: datetime
    told_at: datetime


class ReservationAccount:
    """Reservation id to what is left, and when EC2 told it."""

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}

    def synced(self, reservations: Iterable[CapacityReservation], asked_at: datetime, told_at: datetime) -> None:
        """EC2 told what is left of these."""
        for each in reservations:
            left = each.available_instance_count or 0
            self._told[each.id] = _Told(left, each.total_instance_count, asked_at, told_at)

    def knows(self, identity: str) -> bool:
        """Whether EC2 ever told of it."""
        return identity in self._told

    def left(self, identity: str) -> int:
        """How many machines it still takes; none of one that was never told of."""
        return self._told[identity].left if identity in self._told else 0

    def launched(self, identity: str, at: datetime) -> None:
        """A machine was launched into it. Where EC2 has told since, it counted the machine already."""
        known = self._told.get(identity)
        if known is not None and known.asked_at <= at:
            self._told[identity] = known._replace(left=max(0, known.left - 1))

    def ended(self, identity: str, seen_at: datetime) -> None:
        """A machine in it is gone that was there at a moment. Where EC2 has told since, it may have counted the place already."""
        known = self._told.get(identity)
        if known is not None and known.told_at <= seen_at:
            left = known.left + 1
            self._told[identity] = known._replace(left=left if known.total is None else min(left, known.total))

    def exhausted(self, identity: str) -> None:
        """A launch found nothing left in it."""
        known = self._told.get(identity)
        if known is not None:
            self._told[identity] = known._replace(left=0)
