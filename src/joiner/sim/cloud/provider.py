"""The provider door of the pretend cloud: what one process sees of it and remembers of it.

Types, reservations and words are those of the KWOK provider; what is sold, and for how much, is the pretend cloud's.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from joiner.admission.problem import FieldProblem
from joiner.catalog.market import InstanceType, Option
from joiner.clock import Clock
from joiner.cloud.errors import InstanceNotFound, InsufficientCapacity, RebootRefused
from joiner.cloud.interruption import NoticeQueue
from joiner.cloud.kwok import supply
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.kwok.provider import KwokProvider
from joiner.cloud.provider import Details, Instance, NodeClasses
from joiner.cloud.registration import Answer, RegistrationHook
from joiner.cloud.repair import RepairPolicy
from joiner.cloud.sources.reservation import reserve, standings
from joiner.model import labels
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.sim.cloud.cloud import Hook, PretendCloud
from joiner.sim.cloud.machines import SHUTTING_DOWN, CloudMachine
from joiner.sim.cloud.notices import SimulatedNoticeQueue

T = TypeVar("T")


class Generation(NamedTuple):
    """Everything the instance types of a pool depend on. Compared part by part, never mixed."""

    node_class: tuple[str, int]
    reservations_ended: int
    reservations_used: tuple[int, ...]
    unavailable: int
    market: int


class PretendProvider:
    """The pretend cloud as one process sees it."""

    def __init__(self, cloud: PretendCloud, *, node_classes: NodeClasses, clock: Clock) -> None:
        self._cloud = cloud
        self._kwok = KwokProvider(node_classes, clock)
        self._node_classes = node_classes
        self._listed: tuple[tuple[CloudMachine, ...], tuple[Instance, ...]] = ((), ())
        self.unavailable = self._kwok.unavailable
        """Where launches that found nothing are remembered."""

    @property
    def name(self) -> str:
        """`kwok`, whose words it speaks."""
        return self._kwok.name

    def node_classes(self) -> tuple[type[KubeObject], ...]:
        """Those of the KWOK provider."""
        return self._kwok.node_classes()

    def vocabulary(self) -> Vocabulary:
        """That of the KWOK provider."""
        return self._kwok.vocabulary()

    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """Those of the KWOK provider."""
        return self._kwok.repair_policies()

    def prices(self, pool: NodePool) -> str:
        """Whose prices these are, before the story changed them."""
        return self._kwok.prices(pool)

    def node_class_problems(self, node_class: KubeObject) -> tuple[FieldProblem, ...]:
        """What the KWOK provider finds."""
        return self._kwok.node_class_problems(node_class)

    def generation(self, pool: NodePool) -> Generation:
        """Moves with the class, the market, reservations that fill, empty and end, and shortages that come and go."""
        known = self._kwok.generation(pool)
        node_class = self._node_classes.get(KWOKNodeClass, pool.spec.template.spec.node_class_ref.name)
        held = node_class.spec.capacity_reservations if node_class is not None else ()
        return Generation(
            known.node_class,
            sum(map(self._cloud.ended, held)),
            tuple(self._cloud.machines.moves(each.id) for each in held),
            known.unavailable,
            self._cloud.market.version,
        )

    async def instance_types(self, pool: NodePool) -> tuple[InstanceType, ...]:
        """What the market has for the pool's class, less what was found dry."""
        node_class = self._ready(pool)
        return await self._call("types", node_class.name, lambda: self.unavailable.apply(self._types(node_class)))

    def _types(self, node_class: KWOKNodeClass) -> tuple[InstanceType, ...]:
        sold, reservations = self._cloud.types_sold(node_class), self._cloud.reservations(node_class)
        concerned = sorted({each.instance_type for each in reservations} & sold.keys())
        changed = {each.name: each for each in reserve((sold[name] for name in concerned), reservations)}
        return tuple(changed.get(name, each) for name, each in sold.items())

    def details(self, pool: NodePool) -> Details:
        """Where the catalogue comes from, and how every reservation stands."""
        node_class = self._ready(pool)
        room = self._cloud.machines
        used = {each.id: room.in_reservation(each.id) for each in node_class.spec.capacity_reservations}
        held = supply.reservations(node_class, used)
        known = standings(self._cloud.types_sold(node_class).values(), held, self._cloud.clock.now())
        return Details(sources=supply.origin(node_class).sources, reservations=known)

    def _ready(self, pool: NodePool) -> KWOKNodeClass:
        return self._kwok.ready(pool.spec.template.spec.node_class_ref, f"NodePool {pool.name}")

    async def create(self, claim: NodeClaim, options: Sequence[Option]) -> Instance:
        """Buy the first option that can be had; what was found dry is not offered again for a while."""
        node_class = self._kwok.ready(claim.spec.node_class_ref, f"NodeClaim {claim.name}")
        sale = await self._call("create", claim.name, lambda: self._cloud.sell(claim, node_class, options))
        for name, offering in sale.dry:
            # How full a reservation is shows in the types themselves; one that is said to have room and has none does not.
            if not offering.reserved or offering.available:
                self.unavailable.mark(name, offering)
        if sale.machine is None:
            tried = tuple((option.name, option.offering) for option in options)
            raise InsufficientCapacity(f"NodeClaim {claim.name}: the cloud has none of {len(tried)} options", tried)
        return self._instance(sale.machine)

    async def get(self, provider_id: str) -> Instance:
        """The machine as it is now."""
        return self._instance(await self._call("get", provider_id, lambda: self._found(provider_id)))

    async def list(self) -> tuple[Instance, ...]:
        """All machines that are not gone."""
        machines = tuple(filter(self._cloud.tells_of, await self._call("list", "", self._cloud.machines.alive)))
        if machines != self._listed[0] or any(each.reservation for each in machines):  # a reservation ends with time
            listing = tuple(sorted(map(self._instance, machines), key=lambda each: each.provider_id))
            self._listed = (machines, listing)
        return self._listed[1]

    async def delete(self, provider_id: str) -> None:
        """Shut the machine down."""
        await self._call("delete", provider_id, lambda: self._cloud.machines.stop(self._found(provider_id).provider_id))

    async def reboot(self, claim: NodeClaim, operation_id: str) -> None:
        """Restart the machine, if it lets itself be restarted."""
        provider_id = claim.status.provider_id
        await self._call("reboot", provider_id, lambda: self._restart(provider_id, operation_id))

    def _restart(self, provider_id: str, operation_id: str) -> None:
        if self._found(provider_id).birth.refuses_reboot:
            raise RebootRefused(f"machine {provider_id} cannot be restarted")
        self._cloud.machines.reboot(provider_id, operation_id)

    def registration_hooks(self) -> tuple[RegistrationHook, ...]:
        """What nodes wait for, as long as the cloud needs for it."""
        return tuple(PretendHook(self, each) for each in self._cloud.hooks)

    def interruptions(self) -> NoticeQueue:
        """The notices of the cloud about spot machines that it takes back."""
        return SimulatedNoticeQueue(self._cloud.notices, self._call, self._mark_unavailable)

    def _mark_unavailable(self, claim: NodeClaim) -> None:
        """Do not offer for a while what the machine of a claim was bought as."""
        node_class = self._node_classes.get(KWOKNodeClass, claim.spec.node_class_ref.name)
        own = claim.metadata.labels
        name, zone, kind = (own.get(key, "") for key in (labels.INSTANCE_TYPE, labels.ZONE, labels.CAPACITY_TYPE))
        found = None if node_class is None else self._cloud.types_sold(node_class).get(name)
        for offering in found.offerings if found is not None else ():
            if (offering.zone, offering.capacity_type) == (zone, kind):
                self.unavailable.mark(name, offering)

    async def done(self, hook: Hook, claim: NodeClaim) -> Answer:
        """How far the cloud is with what it does before a node is registered."""
        return await self._call("get", claim.name, lambda: self._done(hook, self._found(claim.status.provider_id)))

    def _done(self, hook: Hook, machine: CloudMachine) -> Answer:
        left = hook.after_s - (self._cloud.clock.now() - machine.launched_at).total_seconds()
        return Answer(again_s=left) if left > 0 else Answer(labels=hook.labels)

    async def drift_reason(self, claim: NodeClaim) -> str:
        """A machine in a reservation that its class no longer lists is not what the class asks for."""
        machine = self._cloud.machines.get(claim.status.provider_id)
        node_class = self._node_classes.get(KWOKNodeClass, claim.spec.node_class_ref.name)
        if machine is None or node_class is None or not machine.reservation or self._cloud.over(machine.reservation):
            return ""
        listed = (each.id for each in node_class.spec.capacity_reservations)
        return "" if machine.reservation in listed else "CapacityReservationDrift"

    def _found(self, provider_id: str) -> CloudMachine:
        machine = self._cloud.machines.get(provider_id)
        if machine is None or not machine.alive or not self._cloud.tells_of(machine):
            raise InstanceNotFound(f"there is no machine {provider_id}")
        return machine

    async def _call(self, call: str, about: str, effect: Callable[[], T]) -> T:
        """A request goes there, something is done, the answer comes back. Each way takes its time, and may fail."""
        cloud = self._cloud
        await asyncio.sleep(self._way() + cloud.interceptor.before(call, about))
        try:
            return effect()
        finally:
            cloud.trace.record(cloud.clock.monotonic(), "cloud", call, "call", about)
            await asyncio.sleep(self._way() + cloud.interceptor.after(call, about))

    def _way(self) -> float:
        return self._cloud.random.uniform(*self._cloud.pace.call_s) / 2

    def _instance(self, machine: CloudMachine) -> Instance:
        demoted = machine.reservation and self._cloud.over(machine.reservation)
        return Instance(
            provider_id=machine.provider_id,
            claim_name=machine.claim_name,
            claim_uid=machine.claim_uid,
            labels=supply.demoted(machine.labels) if demoted else machine.labels,
            capacity=machine.capacity,
            allocatable=machine.allocatable,
            launched_at=machine.launched_at,
            terminating=machine.state == SHUTTING_DOWN or not machine.alive,
        )


class PretendHook:
    """Something that nodes wait for before they are registered, as one process sees it."""

    def __init__(self, provider: PretendProvider, hook: Hook) -> None:
        self._provider, self._hook = provider, hook

    @property
    def name(self) -> str:
        """As the story calls it."""
        return self._hook.name

    async def registered(self, claim: NodeClaim) -> Answer:
        """Whether the cloud is done with the machine of a claim."""
        return await self._provider.done(self._hook, claim)
