"""A cluster on virtual time, small and quick: nodes, pods, kube-scheduler, provisioning, and commands that are carried out.

A node is ready two minutes after its launch. Evicted pods are made anew at once, and kube-scheduler puts each on the emptiest
node that takes it, not where it was planned. A machine is gone a minute after its drain began. What finds no place is planned
for by our planner, whoever decides about consolidation.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import numpy as np

from benchmarks.consolidation.places import Places, PodKind
from benchmarks.consolidation.shop import RESERVED, VOCABULARY, WAYS, ZONES, Shop
from joiner.disruption.situation import Rules, Situation
from joiner.model import labels
from joiner.model.conditions import Condition
from joiner.model.meta import ObjectMeta, replace
from joiner.model.node import Node, NodeCondition, NodeSpec, NodeStatus
from joiner.model.nodeclaim import NodeClaim, NodeClaimStatus
from joiner.model.pod import Pod, PodCondition, PodStatus
from joiner.model.quantity import Quantity
from joiner.scheduling.plan import PlannedClaim
from joiner.scheduling.schedule import schedule
from joiner.state.cluster import Cluster
from joiner.state.problem import problem

START = datetime(2030, 1, 7, tzinfo=UTC)
READY_S, GONE_S, BATCH_S, NOMINATED_S = 120.0, 60.0, 2.0, 20.0
_WAITS = PodStatus(
    phase="Pending", conditions=(PodCondition(type="PodScheduled", status="False", reason="Unschedulable"),)
)
_RUNS = PodStatus(phase="Running", conditions=(PodCondition(type="Ready", status="True"),))


@dataclass
class PodRecord:
    name: str
    kind: int
    slot: int | None
    evicted: int = 0
    command: "Command | None" = None
    """The command that evicted it last."""


@dataclass(frozen=True)
class Launch:
    pool: int
    type: int
    zone: int
    way: int


@dataclass(eq=False)
class Command:
    """Nodes that go when what is bought for them is ready."""

    gone: tuple[int, ...]
    launches: tuple[Launch, ...]
    nominated: tuple[int, ...] = ()
    before: float = 0.0
    after: float = 0.0
    waiting: set[int] = field(default_factory=set)


@dataclass
class Tally:
    evictions: int = 0
    again: int = 0
    launched: int = 0
    surprises: int = 0
    commands: int = 0
    rejected: int = 0
    dollars: float = 0.0
    last: float = 0.0
    """When the last command came to its end."""


class World:
    """All of it."""

    def __init__(self, shop: Shop, kinds: list[PodKind], seed: int, *, ordered: bool, policy: str = "") -> None:
        """`ordered`: whether the pods of a drained node leave largest first. `policy`: of all pools."""
        self.shop, self.kinds, self.ordered = shop, kinds, ordered
        self.places = Places(shop, kinds)
        self.policy = policy or "WhenEmptyOrUnderutilized"
        self.dice = Random(seed)
        self.now = 0.0
        self.tally = Tally()
        self.commands: list[Command] = []
        self.pods: dict[str, PodRecord] = {}
        self.pods_on: list[dict[str, PodRecord]] = []
        self.pending: dict[str, PodRecord] = {}
        self.finished: list[Command] = []
        self.cluster = Cluster(VOCABULARY)
        self._templates = [each.template(shop.teams) for each in kinds]
        self._objects: dict[str, Pod] = {}
        self._nodes: dict[int, tuple[Node, NodeClaim]] = {}
        self._numbers = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._planned = False
        self._nominated: dict[int, float] = {}
        self.born: dict[int, float] = {}
        self.touched: dict[int, float] = {}
        """When pods came to a node or left it last."""
        self.version = 0
        self.age = timedelta()
        """How long ago pods that are made now were made: a cluster may be old when it is seen first."""

    # -- time ---------------------------------------------------------------------------------------------------------

    def at(self, delay: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + delay, next(self._numbers), what))

    @property
    def next_event(self) -> float | None:
        return self._events[0][0] if self._events else None

    def advance(self, to: float) -> None:
        """Everything up to that moment."""
        while self._events and self._events[0][0] <= to:
            moment, _, what = heapq.heappop(self._events)
            self._pass(moment)
            what()
            self._retry()
        self._pass(to)

    def _pass(self, moment: float) -> None:
        self.tally.dollars += self.places.bill * (moment - self.now) / 3600.0
        self.now = moment

    @property
    def moment(self) -> datetime:
        return START + timedelta(seconds=self.now)

    # -- pods ---------------------------------------------------------------------------------------------------------

    def create(self, kind: int, evicted: int = 0, command: Command | None = None, slot: int | None = None) -> PodRecord:
        """A new pod; placed at once if there is a place, or where it is told to be."""
        name = f"{self.kinds[kind].name}-{next(self._numbers):07}"
        record = PodRecord(name, kind, None, evicted, command)
        self.pods[name] = record
        found = self.places.best(kind, self.dice) if slot is None else slot
        if found is None:
            self.pending[name] = record
            self._show(record)
            self._plan_soon()
        else:
            self._bind(record, found)
        return record

    def remove(self, record: PodRecord) -> None:
        del self.pods[record.name]
        self.pending.pop(record.name, None)
        if record.slot is not None:
            del self.pods_on[record.slot][record.name]
            self.places.take(record.kind, record.slot)
            self.touched[record.slot] = self.now
        self.cluster.apply(Pod, self._objects.pop(record.name), None)
        self.version += 1

    def _bind(self, record: PodRecord, slot: int) -> None:
        record.slot = slot
        self.places.put(record.kind, slot)
        self.pods_on[slot][record.name] = record
        self.touched[slot] = self.now
        self.pending.pop(record.name, None)
        self._show(record)

    def _show(self, record: PodRecord) -> None:
        template = self._templates[record.kind]
        before = self._objects.get(record.name)
        born = before.metadata.creation_timestamp if before is not None else self.moment - self.age
        there = self.places.name(record.slot) if record.slot is not None else ""
        made = replace(
            template,
            metadata=replace(template.metadata, name=record.name, uid=record.name, creation_timestamp=born),
            spec=replace(template.spec, node_name=there),
            status=_RUNS if there else _WAITS,
        )
        self._objects[record.name] = made
        self.cluster.apply(Pod, before, made)
        self.version += 1

    def _retry(self) -> None:
        for record in list(self.pending.values()):
            slot = self.places.best(record.kind, self.dice)
            if slot is not None:
                self._bind(record, slot)

    # -- nodes --------------------------------------------------------------------------------------------------------

    def node(self, launch: Launch, *, ready: bool) -> int:
        """A machine, ready or on its way."""
        slot = self.places.add(launch.pool, launch.type, launch.zone, launch.way, ready=ready)
        self.pods_on.append({})
        self.born[slot] = self.touched[slot] = self.now
        self._nodes[slot] = self._made(slot)
        self.cluster.apply(NodeClaim, None, self._nodes[slot][1])
        if ready:
            self.cluster.apply(Node, None, self._nodes[slot][0])
        self.version += 1
        return slot

    def _made(self, slot: int) -> tuple[Node, NodeClaim]:
        name, amounts = (
            self.places.name(slot),
            dict(zip(("cpu", "memory", "pods"), self.places.room[slot], strict=True)),
        )
        room = {key: Quantity(int(amount)) for key, amount in amounts.items()}
        own = self.places.labels(slot)
        told = tuple(
            Condition(type=kind, status="True", last_transition_time=self.moment)
            for kind in ("Launched", "Registered", "Initialized", "Consolidatable")
        )
        claim = NodeClaim(
            metadata=ObjectMeta(name=name, uid=name, labels=own, creation_timestamp=self.moment),
            status=NodeClaimStatus(
                node_name=name, provider_id=f"made://{name}", capacity=room, allocatable=room, conditions=told
            ),
        )
        node = Node(
            metadata=ObjectMeta(
                name=name,
                uid=name,
                labels={**own, labels.REGISTERED: "true", labels.INITIALIZED: "true"},
                creation_timestamp=self.moment,
            ),
            spec=NodeSpec(provider_id=f"made://{name}"),
            status=NodeStatus(
                capacity=room, allocatable=room, conditions=(NodeCondition(type="Ready", status="True"),)
            ),
        )
        return node, claim

    def _launch(self, launch: Launch) -> int:
        slot = self.node(launch, ready=False)
        self.tally.launched += 1
        self.at(READY_S, lambda: self._ready(slot))
        return slot

    def _ready(self, slot: int) -> None:
        self.places.ready[slot] = True
        self.cluster.apply(Node, None, self._nodes[slot][0])
        self.version += 1
        self._retry()
        for command in list(self.commands):
            if slot in command.waiting:
                command.waiting.discard(slot)
                self._drain_if_ready(command)

    def left(self) -> dict[tuple[int, int], int]:
        """Reservation to the places that are left."""
        places, end = self.places, self.places.count
        found = {}
        for (number, zone), count in self.shop.reserved.items():
            held = places.alive[:end] & (places.way[:end] == RESERVED)
            held &= (places.type[:end] == number) & (places.zone[:end] == zone)
            found[number, zone] = max(0, count - int(held.sum()))
        return found

    # -- provisioning -------------------------------------------------------------------------------------------------

    def _plan_soon(self) -> None:
        if not self._planned:
            self._planned = True
            self.at(BATCH_S, self._plan)

    def _plan(self) -> None:
        self._planned = False
        self._retry()
        if not self.pending:
            return
        options = self.options()
        plan = schedule(
            problem(self.cluster.snapshot(self.moment), options, policy=Rules().policy, vocabulary=VOCABULARY)
        )
        for claim in plan.claims:
            launch = self.launch_of(claim)
            slot = self._launch(launch)
            self.tally.surprises += 1
            price = float(self.places.price[slot])
            blamed = [self.pods[key.partition("/")[2]].command for key in claim.pods]
            for command in dict.fromkeys(each for each in blamed if each is not None):
                command.after += price / len(dict.fromkeys(blamed))

    def launch_of(self, claim: PlannedClaim) -> Launch:
        """What a planned claim is launched as."""
        option = claim.options[0]
        pool = next(n for n, (name, _) in enumerate(self.shop.pools) if name == claim.nodepool)
        return Launch(
            pool,
            self.shop.number[option.name],
            ZONES.index(option.offering.zone),
            WAYS.index(option.offering.capacity_type),
        )

    # -- commands -----------------------------------------------------------------------------------------------------

    def start(self, command: Command) -> None:
        """Buy what is needed; the nodes go when it is ready."""
        places = self.places
        self.tally.commands += 1
        command.before = float(places.price[list(command.gone)].sum())
        for slot in command.gone:
            places.going[slot] = True
        self.cluster.mark_for_deletion(*(places.name(slot) for slot in command.gone))
        self.commands.append(command)
        for launch in command.launches:
            slot = self._launch(launch)
            command.waiting.add(slot)
            command.after += float(places.price[slot])
        for slot in (*command.nominated, *command.waiting):
            self._nominated[slot] = self.now + (NOMINATED_S if slot in command.nominated else READY_S + NOMINATED_S)
        self.version += 1
        self._drain_if_ready(command)

    def _drain_if_ready(self, command: Command) -> None:
        if command.waiting:
            return
        records = [record for slot in command.gone for record in self.pods_on[slot].values()]
        if self.ordered:
            records.sort(key=lambda each: (-self.kinds[each.kind].cpu, -self.kinds[each.kind].memory, each.name))
        else:
            self.dice.shuffle(records)
        for record in records:
            self.tally.evictions += 1
            self.tally.again += record.evicted > 0
            self.remove(record)
            self.create(record.kind, record.evicted + 1, command)
        self.at(GONE_S, lambda: self._gone(command))

    def _gone(self, command: Command) -> None:
        for slot in command.gone:
            self.places.alive[slot] = False
            node, claim = self._nodes.pop(slot)
            self.cluster.apply(Node, node, None)
            self.cluster.apply(NodeClaim, claim, None)
            self.cluster.unmark_for_deletion(claim.name)
        self.commands.remove(command)
        self.finished.append(command)
        self.tally.last = self.now
        self.version += 1

    # -- for those who decide -----------------------------------------------------------------------------------------

    def options(self) -> Any:
        return self.shop.options(self.left(), self.policy)

    def situation(self, rules: Rules) -> Situation:
        options = self.options()
        soon = {slot for slot, until in self._nominated.items() if until > self.now}
        gone = frozenset(self.places.name(slot) for command in self.commands for slot in command.gone)
        return Situation(
            snapshot=self.cluster.snapshot(self.moment),
            now=self.moment,
            pools={each.pool.name: each.pool for each in options},
            options=options,
            catalogs={each.pool.name: each.catalog for each in options},
            nominated=frozenset(self.places.name(slot) for slot in soon),
            queued=gone,
            rules=rules,
        )

    def is_nominated(self, slot: int) -> bool:
        return self._nominated.get(slot, 0.0) > self.now

    def slot_of(self, name: str) -> int:
        return int(name.rpartition("-")[2])

    def taint(self, names: Iterable[str]) -> None:
        """Exactly these nodes get the soft taint."""
        self.places.soft[:] = False
        for name in names:
            self.places.soft[self.slot_of(name)] = True

    def counts(self, slots: Sequence[int]) -> dict[int, int]:
        """Kind to its pods on some nodes."""
        total = self.places.hosts[:, list(slots)].sum(axis=1)
        return {int(kind): int(total[kind]) for kind in np.flatnonzero(total)}
