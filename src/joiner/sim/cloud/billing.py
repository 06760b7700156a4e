"""The books of the pretend cloud: every purchase, what it cost, and how well reservations were used."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Final

from joiner.model import labels
from joiner.model.meta import Value, replace
from joiner.sim.cloud.machines import CloudMachine

_HOUR: Final = timedelta(hours=1)


class BilledMachine(Value):
    """One machine, from its launch to its end."""

    provider_id: str
    claim_name: str
    claim_uid: str
    pool: str
    instance_type: str
    zone: str
    capacity_type: str
    price: float
    """Dollars an hour on the market at the launch; of a reserved machine, what it would cost on demand."""
    launched: datetime
    reservation: str = ""
    ended: datetime | None = None
    """When it was shut down, or vanished; nothing while it runs."""

    def hours(self, since: datetime | None, until: datetime) -> float:
        """How long it was paid for in that time."""
        start = self.launched if since is None else max(self.launched, since)
        end = until if self.ended is None else min(self.ended, until)
        return max(0.0, (end - start) / _HOUR)


class PoolBill(Value):
    """What one pool had in one capacity type."""

    pool: str
    capacity_type: str
    machines: int
    """How many ran for some of the time."""
    hours: float
    dollars: float
    """At market prices. For reserved machines this is what the reservation saved: it is paid for whether they run or not."""


class ReservationUse(Value):
    """How well a reservation was used."""

    reservation: str
    count: int
    hours: float
    """Machine hours that were paid for."""
    hours_used: float
    most: int
    """The most machines that were in it at once."""


class Ledger:
    """Every purchase there ever was, in order."""

    def __init__(self) -> None:
        self._purchases: dict[str, BilledMachine] = {}
        self._reservations: dict[str, tuple[datetime, int, datetime | None]] = {}

    def bought(self, machine: CloudMachine, price: float) -> None:
        """Enter a purchase."""
        self._purchases[machine.provider_id] = BilledMachine(
            provider_id=machine.provider_id,
            claim_name=machine.claim_name,
            claim_uid=machine.claim_uid,
            pool=machine.pool,
            instance_type=machine.instance_type,
            zone=machine.zone,
            capacity_type=machine.capacity_type,
            reservation=machine.reservation,
            price=price,
            launched=machine.launched_at,
        )

    def ended(self, provider_id: str, now: datetime) -> None:
        """The machine is no longer paid for."""
        purchase = self._purchases[provider_id]
        if purchase.ended is None:
            self._purchases[provider_id] = replace(purchase, ended=now)

    def reserved(self, reservation: str, count: int, ends: datetime | None, now: datetime) -> None:
        """There is a reservation, as of now of this size and with this end."""
        since = self._reservations.get(reservation, (now, 0, None))[0]
        self._reservations[reservation] = (since, count, ends)

    def cancelled(self, reservation: str, now: datetime) -> None:
        """A reservation ends before its time."""
        since, count, _ = self._reservations.get(reservation, (now, 0, None))
        self._reservations[reservation] = (since, count, now)

    def reservation_end(self, reservation: str) -> datetime | None:
        """When a reservation ends, if it does."""
        known = self._reservations.get(reservation)
        return None if known is None else known[2]

    def purchases(self) -> tuple[BilledMachine, ...]:
        """Everything that was bought, in order."""
        return tuple(self._purchases.values())

    def bill(self, until: datetime, since: datetime | None = None) -> tuple[PoolBill, ...]:
        """What every pool cost, by capacity type. A machine whose reservation ended counts as on demand from then on."""
        totals: dict[tuple[str, str], tuple[int, float, float]] = {}
        for purchase in self._parts():
            hours = purchase.hours(since, until)
            if hours:
                key = (purchase.pool, purchase.capacity_type)
                machines, time, dollars = totals.get(key, (0, 0.0, 0.0))
                totals[key] = (machines + 1, time + hours, dollars + hours * purchase.price)
        return tuple(
            PoolBill(pool=pool, capacity_type=kind, machines=machines, hours=time, dollars=dollars)
            for (pool, kind), (machines, time, dollars) in sorted(totals.items())
        )

    def rate(self, now: datetime, claims: Collection[str] | None = None) -> float:
        """Dollars an hour for the machines that run now. Reserved ones are paid for whether they run or not.

        `claims`: only the machines of these, by UID.
        """
        return sum(
            each.price
            for each in self._parts()
            if each.capacity_type != labels.RESERVED
            and (claims is None or each.claim_uid in claims)
            and each.launched <= now
            and (each.ended is None or now < each.ended)
        )

    def _parts(self) -> Iterator[BilledMachine]:
        for purchase in self._purchases.values():
            end = self.reservation_end(purchase.reservation)
            if end is None or (purchase.ended is not None and purchase.ended <= end):
                yield purchase
            else:
                yield replace(purchase, ended=end)
                yield replace(purchase, launched=end, capacity_type=labels.ON_DEMAND, reservation="")

    def reservation_use(self, until: datetime) -> tuple[ReservationUse, ...]:
        """How well every reservation was used, by id."""
        return tuple(self._use(each, until) for each in sorted(self._reservations))

    def _use(self, reservation: str, until: datetime) -> ReservationUse:
        since, count, ends = self._reservations[reservation]
        end = until if ends is None else min(ends, until)
        parts = [each for each in self._parts() if each.reservation == reservation]
        comings = [(each.launched, 1) for each in parts]
        goings = [(each.ended, -1) for each in parts if each.ended is not None]
        present = most = 0
        for _, change in sorted([*comings, *goings]):  # at one moment, goings come first
            present += change
            most = max(most, present)
        return ReservationUse(
            reservation=reservation,
            count=count,
            hours=count * max(0.0, (end - since) / _HOUR),
            hours_used=sum(each.hours(None, until) for each in parts),
            most=most,
        )
