"""The simulated cloud: it sells the machines that a KWOKNodeClass describes, and has as many of them as the story says.

The cloud outlives every restart of the process that buys from it. What that process keeps in memory, such as which offerings
have no capacity, is in its provider (`provider.PretendProvider`), and is lost with it.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Final, NamedTuple, Protocol

from joiner.catalog.market import InstanceType, Offering, Option
from joiner.clock import Clock
from joiner.cloud.kwok import supply
from joiner.cloud.kwok.nodeclass import CapacityReservation, KWOKNodeClass
from joiner.cloud.sources.reservation import Reservation, reserve
from joiner.model import labels
from joiner.model.kubelet import Kubelet
from joiner.model.meta import Value, replace
from joiner.model.nodeclaim import NodeClaim
from joiner.sim.cloud.billing import Ledger, PoolBill, ReservationUse
from joiner.sim.cloud.machines import GONE, SHUTTING_DOWN, CloudMachine, CloudTiming, MachineDefects, Machines
from joiner.sim.cloud.market import MarketSlice, Scarcity, SimulatedMarket
from joiner.sim.cloud.notices import SentNotices
from joiner.sim.trace import Trace

SCHEME: Final = "sim://"


class CloudInterceptor(Protocol):
    """An interceptor between the cloud and its provider. Its methods are asked at once and must not wait."""

    def before(self, call: str, about: str) -> float:
        """Seconds to add before the effect. What it raises is the answer, and there is no effect."""
        ...

    def after(self, call: str, about: str) -> float:
        """Seconds to add before the answer. What it raises is the answer, although the effect has taken place."""
        ...


class NoCloudInterceptor:
    """Everything goes as it should."""

    def before(self, call: str, about: str) -> float:
        """At once."""
        return 0.0

    def after(self, call: str, about: str) -> float:
        """At once."""
        return 0.0


class DefectRule(Value):
    """What becomes of the next machines of a lot."""

    birth: MachineDefects
    lot: MarketSlice = MarketSlice()
    pool: str = ""
    """Only machines of this pool; empty for all."""
    times: int | None = None
    """How many machines it strikes; nothing for all."""


class Device(NamedTuple):
    """Something that machines of a lot have and their type does not tell of."""

    lot: MarketSlice
    resource: str
    amount: int
    """In thousandths."""
    after_s: float = 0.0
    """How long after the node is ready it shows."""


class Hook(NamedTuple):
    """Something that is done with every machine before its node counts as registered."""

    name: str
    after_s: float
    """How long it takes from the purchase on."""
    labels: Mapping[str, str]
    """What is known of the machine once it is done."""


class Sale(NamedTuple):
    """How an attempt to buy went: the machine, if there was one, and what was found dry before."""

    machine: CloudMachine | None
    dry: tuple[tuple[str, Offering], ...]


class PretendCloud:
    """Machines, a market and books. Everything random comes from the generator it is given."""

    def __init__(
        self,
        *,
        clock: Clock,
        random: Random,
        trace: Trace,
        pace: CloudTiming | None = None,
        interceptor: CloudInterceptor | None = None,
    ) -> None:
        self.clock = clock
        self.random = random
        self.trace = trace
        self.pace = pace or CloudTiming()
        self.interceptor: CloudInterceptor = interceptor or NoCloudInterceptor()
        self.market = SimulatedMarket()
        self.ledger = Ledger()
        self.machines = Machines(clock=clock, random=random, trace=trace, pace=self.pace)
        self.machines.listen(self._keep_books)
        self.notices = SentNotices(clock)
        """What the cloud says about machines before it takes them back."""
        self.machines.noticed = lambda machine: self.notices.send("spot_interrupted", machine.provider_id)
        self.asked: list[Callable[[NodeClaim, tuple[Mapping[str, str], ...]], None]] = []
        """Told of every wish to buy, before it is granted or refused, with the labels of each machine that would do."""
        self.hooks: list[Hook] = []
        """What nodes wait for before they are registered."""
        self.unlisted_s = 0.0
        """How long the cloud does not tell of a machine that was bought: its lists are behind."""
        self._defect_rules: list[DefectRule] = []
        self._devices: list[Device] = []
        self._cancelled: dict[str, None] = {}
        self._past: dict[str, datetime] = {}
        self._types_sold: dict[str, tuple[tuple[int, str, Kubelet], dict[str, InstanceType]]] = {}

    # -- what a story does to it ----------------------------------------------------------------------------------

    def scale_price(self, share: float, *, instance_type: str = "", zone: str = "", capacity_type: str = "") -> None:
        """A lot of the market costs this share of what the catalogue says."""
        self.market.scale_price(MarketSlice(instance_type=instance_type, zone=zone, capacity_type=capacity_type), share)

    def withdraw(self, *, instance_type: str = "", zone: str = "", capacity_type: str = "") -> None:
        """A lot of the market is no longer sold; what runs of it runs on."""
        self.market.withdraw(MarketSlice(instance_type=instance_type, zone=zone, capacity_type=capacity_type))

    def restore(self, *, instance_type: str = "", zone: str = "", capacity_type: str = "") -> None:
        """A lot that was withdrawn is sold again."""
        self.market.restore(MarketSlice(instance_type=instance_type, zone=zone, capacity_type=capacity_type))

    def limit(
        self,
        count: int = 0,
        *,
        instance_type: str = "",
        zone: str = "",
        capacity_type: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> None:
        """There are only so many machines of a lot, for a time or always; with none it is a shortage."""
        lot = MarketSlice(instance_type=instance_type, zone=zone, capacity_type=capacity_type)
        self.market.limit(Scarcity(lot=lot, count=count, since=since, until=until))

    def add_defect_rule(self, rule: DefectRule) -> None:
        """Something will happen to the next machines. Of two rules the first one that fits strikes."""
        self._defect_rules.append(rule)

    def spare(self) -> None:
        """Whatever was to happen to the next machines will not."""
        self._defect_rules.clear()

    def equip(self, device: Device) -> None:
        """The machines of a lot have a device from now on."""
        self._devices.append(device)

    def cancel_reservation(self, reservation: str) -> None:
        """A reservation ends now; its machines run on, and are paid for on demand."""
        self._cancelled[reservation] = None
        self.ledger.cancelled(reservation, self.clock.now())
        self.market.version += 1

    # -- the books ------------------------------------------------------------------------------------------------

    def bill(self, until: datetime, since: datetime | None = None) -> tuple[PoolBill, ...]:
        """What every pool cost, by capacity type."""
        return self.ledger.bill(until, since)

    def reservation_use(self, until: datetime) -> tuple[ReservationUse, ...]:
        """How well every reservation was used."""
        return self.ledger.reservation_use(until)

    def _keep_books(self, machine: CloudMachine) -> None:
        if machine.state in (SHUTTING_DOWN, GONE):
            self.ledger.ended(machine.provider_id, self.clock.now())

    # -- what doors ask -------------------------------------------------------------------------------------------

    def types_sold(self, node_class: KWOKNodeClass) -> Mapping[str, InstanceType]:
        """The types of a class as the market has them, by name, without reservations.

        The same objects until something changes.
        """
        source = (self.market.version, node_class.spec.instance_types, node_class.spec.kubelet)
        known = self._types_sold.get(node_class.name)
        if known is not None and known[0] == source:
            return known[1]
        types = {each.name: each for each in reserve(self.market.apply(supply.catalogue(node_class).types), ())}
        self._types_sold[node_class.name] = (source, types)
        return types

    def reservations(self, node_class: KWOKNodeClass) -> tuple[Reservation, ...]:
        """The reservations of a class that have not ended, with what is left of each."""
        now = self.clock.now()
        for each in node_class.spec.capacity_reservations:
            if each.id not in self._cancelled:
                self.ledger.reserved(each.id, each.count, each.end_time, now)
        used = {each.id: self.machines.in_reservation(each.id) for each in node_class.spec.capacity_reservations}
        return tuple(each for each in supply.reservations(node_class, used) if not self.over(each.id))

    def ended(self, reservation: CapacityReservation) -> bool:
        """Whether a reservation of a class has ended, by the clock of the cloud."""
        return reservation.id in self._cancelled or self._is_past(reservation.id, reservation.end_time)

    def over(self, reservation: str) -> bool:
        """The same for one that is known only by its id."""
        return reservation in self._cancelled or self._is_past(reservation, self.ledger.reservation_end(reservation))

    def _is_past(self, reservation: str, end: datetime | None) -> bool:
        """What has ended stays ended, also when the clock is set back."""
        if end is not None and end <= self.clock.now():
            self._past[reservation] = end
        return end is not None and self._past.get(reservation) == end

    def tells_of(self, machine: CloudMachine) -> bool:
        """Whether a machine is in the cloud's lists by now."""
        return not self.unlisted_s or (self.clock.now() - machine.launched_at).total_seconds() >= self.unlisted_s

    def sell(self, claim: NodeClaim, node_class: KWOKNodeClass, options: Sequence[Option]) -> Sale:
        """The first of the options that can be had, once for each claim."""
        if self.asked:
            self._tell_wish(claim, node_class, options)
        known = self.machines.of_claim(claim.metadata.uid)
        if known is not None:
            return Sale(known, ())
        sold, reservations = self.types_sold(node_class), self.reservations(node_class)
        dry: list[tuple[str, Offering]] = []
        for option in options:
            instance_type = sold.get(option.name)
            types = reserve((instance_type,), reservations) if instance_type is not None else ()
            found = supply.offered({each.name: each for each in types}, option)
            if found is None:
                continue  # no longer sold; the next list of types will not have it
            if self._has(*found):
                return Sale(self._sold(claim, node_class, *found), tuple(dry))
            dry.append((found[0].name, found[1]))
        self.trace.record(
            self.clock.monotonic(),
            "cloud",
            "refuse",
            NodeClaim.kind,
            claim.name,
            f"nothing left of {len(options)} options",
        )
        return Sale(None, tuple(dry))

    def _tell_wish(self, claim: NodeClaim, node_class: KWOKNodeClass, options: Sequence[Option]) -> None:
        sold = self.types_sold(node_class)
        known = tuple(
            {**instance_type.requirements.labels(), **option.offering.requirements.labels()}
            for option in options
            if (instance_type := sold.get(option.name)) is not None
        )
        for watcher in self.asked:
            watcher(claim, known)

    def _has(self, instance_type: InstanceType, offering: Offering) -> bool:
        if offering.reserved and not offering.available:
            return False
        places, now = self.machines.places(), self.clock.now()
        return self.market.left(instance_type.name, offering.zone, offering.capacity_type, places, now)

    def _sold(
        self, claim: NodeClaim, node_class: KWOKNodeClass, instance_type: InstanceType, offering: Offering
    ) -> CloudMachine:
        number = self.machines.bought() + 1
        known = supply.settled_labels(instance_type, offering)
        delay = node_class.spec.node_registration_delay
        machine = CloudMachine(
            provider_id=f"{SCHEME}{offering.zone}/m-{number:05}",
            node_name=f"node-{number:05}",
            claim_name=claim.name,
            claim_uid=claim.metadata.uid,
            pool=claim.metadata.labels.get(labels.NODEPOOL, ""),
            instance_type=instance_type.name,
            zone=offering.zone,
            capacity_type=offering.capacity_type,
            reservation=supply.reservation_id(offering),
            region=known.get(labels.REGION, ""),
            architecture=known.get(labels.ARCH, ""),
            operating_system=known.get(labels.OS, "linux"),
            labels=known,
            capacity=instance_type.capacity,
            allocatable=allocatable(instance_type),
            volume_limits=instance_type.volume_limits,
            launched_at=self.clock.now(),
            registration_delay_s=delay.seconds if delay is not None else 0.0,
        )
        return self.start(machine, offering.price or 0.0)

    def start(self, machine: CloudMachine, price: float) -> CloudMachine:
        """Start a machine that was bought for a price, with its devices and whatever is to happen to it."""
        place = (machine.instance_type, machine.zone, machine.capacity_type)
        devices = [each for each in self._devices if each.lot.holds(*place)]
        extra = {each.resource: each.amount for each in devices}
        birth = self._birth(place, machine.pool)
        late = {**birth.late, **{each.resource: each.after_s for each in devices if each.after_s}}
        made = replace(
            machine,
            capacity={**machine.capacity, **extra},
            allocatable={**machine.allocatable, **extra},
            birth=replace(birth, late=late, never_joins=birth.never_joins or machine.birth.never_joins),
        )
        self.ledger.bought(made, price)
        self.machines.start(made)
        return made

    def _birth(self, way: tuple[str, str, str], pool: str) -> MachineDefects:
        for place, rule in enumerate(self._defect_rules):
            if rule.lot.holds(*way) and rule.pool in ("", pool):
                if rule.times is not None:
                    self._defect_rules[place : place + 1] = [_once_less(rule)] if rule.times > 1 else []
                return rule.birth
        return MachineDefects()


def _once_less(rule: DefectRule) -> DefectRule:
    return DefectRule(birth=rule.birth, lot=rule.lot, pool=rule.pool, times=(rule.times or 0) - 1)


def allocatable(instance_type: InstanceType) -> dict[str, int]:
    """What the kubelet of a machine of this type lets pods use: our own sum, not the one that plans are made with."""
    overhead, capacity = instance_type.overhead, instance_type.capacity
    left = dict(capacity)
    for name, amount in capacity.items():
        threshold = overhead.eviction_hard.get(name)
        kept = overhead.kube_reserved.get(name, 0) + overhead.system_reserved.get(name, 0)
        kept += threshold.amount_of(amount) if threshold is not None else 0
        left[name] = max(0, amount - kept)
    pages = sum(amount for name, amount in capacity.items() if name.startswith("hugepages-"))
    if "memory" in left:
        left["memory"] = max(0, left["memory"] - pages)
    return left
