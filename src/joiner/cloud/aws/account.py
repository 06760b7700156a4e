"""How many machines each capacity reservation still takes: what EC2 said last, and what was launched and ended since.

It rather says too many than too few: a launch that finds a reservation full tries again elsewhere, but capacity that is not seen
is never used.
"""

from collections.abc import Iterable
from datetime import datetime

from joiner.cloud.aws.nodeclass.ec2nodeclass import CapacityReservation


class ReservationAccount:
    """Reservation id to what is left, and when EC2 told it."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[int, datetime]] = {}

    def synced(self, reservations: Iterable[CapacityReservation], now: datetime) -> None:
        """EC2 told what is left of these."""
        for each in reservations:
            self._left[each.id] = (each.available_instance_count or 0, now)

    def knows(self, identity: str) -> bool:
        """Whether EC2 ever told of it."""
        return identity in self._left

    def left(self, identity: str) -> int:
        """How many machines it still takes; none of one that was never told of."""
        return self._left[identity][0] if identity in self._left else 0

    def launched(self, identity: str, at: datetime) -> None:
        """A machine was launched into it. Where EC2 has told since, it counted the machine already."""
        if identity in self._left and self._left[identity][1] <= at:
            count, synced = self._left[identity]
            self._left[identity] = (max(0, count - 1), synced)

    def ended(self, identity: str) -> None:
        """A machine in it is gone."""
        if identity in self._left:
            count, synced = self._left[identity]
            self._left[identity] = (count + 1, synced)

    def exhausted(self, identity: str) -> None:
        """A launch found nothing left in it."""
        if identity in self._left:
            self._left[identity] = (0, self._left[identity][1])
