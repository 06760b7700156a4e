"""The machines of the simulated cloud: what runs, what starts, what stops, on virtual time.

    pending ──► running ──► shutting-down ──► gone
       └───────────┴─────────────────────────► gone   (vanished)

Kubelets learn of machines here. It is the one thing in the pretend outside that is not an API: hardware boots.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from random import Random
from typing import Final, Literal

from joiner.clock import Clock
from joiner.model.meta import Value, replace
from joiner.model.resources import Resources
from joiner.model.taints import UNREGISTERED, Taint
from joiner.sim.trace import Trace

State = Literal["pending", "running", "shutting-down", "gone"]
PENDING: Final = "pending"
RUNNING: Final = "running"
SHUTTING_DOWN: Final = "shutting-down"
GONE: Final = "gone"

Span = tuple[float, float]
"""A shortest and a longest time in seconds; chance decides between them."""


class CloudTiming(Value):
    """How long things take in the cloud."""

    call_s: Span = (0.05, 0.4)
    """There and back again."""
    starts_s: Span = (4.0, 15.0)
    stops_s: Span = (5.0, 40.0)
    reboots_s: Span = (20.0, 60.0)
    notice_s: float = 120.0
    """Between the notice that a spot machine is wanted back and its end."""


class MachineDefects(Value):
    """What is odd about a machine; by default nothing."""

    never_joins: bool = False
    late_s: float = 0.0
    """How much later than others it joins."""
    never_ready: bool = False
    missing: Resources = {}
    """What it has less than its type promises."""
    late: Mapping[str, float] = {}
    """Resource to the seconds after Ready at which its device plugin registers it; nothing is there of it before."""
    refuses_reboot: bool = False
    incurable: bool = False
    """Whether what is wrong with its node outlasts a restart."""


class CloudMachine(Value):
    """A machine as the cloud knows it, and as it knows itself."""

    provider_id: str
    node_name: str
    claim_name: str
    claim_uid: str
    pool: str
    instance_type: str
    zone: str
    capacity_type: str
    """What it was bought as; a machine whose reservation has ended is paid for on demand."""
    launched_at: datetime
    reservation: str = ""
    region: str = ""
    architecture: str = ""
    operating_system: str = ""
    labels: Mapping[str, str] = {}
    """Everything the cloud says about it."""
    node_labels: Mapping[str, str] = {}
    """What its kubelet was told to call its node beside what it knows itself."""
    node_taints: tuple[Taint, ...] = (UNREGISTERED,)
    """What its kubelet was told to taint its node with when it joins."""
    capacity: Resources = {}
    """What its type promises."""
    allocatable: Resources = {}
    volume_limits: Mapping[str, int] = {}
    registration_delay_s: float = 0.0
    birth: MachineDefects = MachineDefects()
    state: State = "pending"
    boots: int = 0
    """How often it has come up."""
    up: bool = False
    """Whether its system runs: not while it restarts."""
    notice_at: datetime | None = None
    """When the cloud said that it wants the machine back."""
    last_reboot: str = ""
    """The operation that restarted it last."""

    @property
    def alive(self) -> bool:
        """Whether it still takes a place in the cloud."""
        return self.state != GONE


Listener = Callable[[CloudMachine], None]


class Machines:
    """All machines there ever were."""

    def __init__(self, *, clock: Clock, random: Random, trace: Trace, pace: CloudTiming) -> None:
        self._clock = clock
        self._random = random
        self._trace = trace
        self.pace = pace
        self._machines: dict[str, CloudMachine] = {}
        self._by_claim: dict[str, str] = {}
        self._by_node: dict[str, str] = {}
        self._alive: dict[str, None] = {}
        self._listeners: list[Listener] = []
        self.noticed: Listener = lambda machine: None
        """Told of every machine that the cloud wants back, once."""
        self._places: Counter[tuple[str, str, str]] = Counter()
        self._reserved: Counter[str] = Counter()
        self._moves: Counter[str] = Counter()

    def listen(self, listener: Listener) -> None:
        """Be told of every machine that was bought, or whose state has changed."""
        self._listeners.append(listener)

    def get(self, provider_id: str) -> CloudMachine | None:
        """The machine, also when it is gone."""
        return self._machines.get(provider_id)

    def of_claim(self, uid: str) -> CloudMachine | None:
        """The machine that was bought for a claim, also when it is gone."""
        return self._machines.get(self._by_claim.get(uid, ""))

    def on_node(self, node_name: str) -> CloudMachine | None:
        """The machine behind a node, also when it is gone."""
        return self._machines.get(self._by_node.get(node_name, ""))

    def alive(self) -> tuple[CloudMachine, ...]:
        """The machines that are not gone, in the order in which they were bought."""
        return tuple(self._machines[each] for each in self._alive)

    def bought(self) -> int:
        """How many machines there ever were."""
        return len(self._machines)

    def places(self) -> Mapping[tuple[str, str, str], int]:
        """How many machines are in each (type, zone, capacity type) of the market."""
        return self._places

    def in_reservation(self, reservation: str) -> int:
        """How many machines have a place in a reservation."""
        return self._reserved[reservation]

    def moves(self, reservation: str) -> int:
        """How often machines came into a reservation or left it: a number that never comes back."""
        return self._moves[reservation]

    def start(self, machine: CloudMachine) -> None:
        """A machine was bought; it runs after a while."""
        self._by_claim[machine.claim_uid] = machine.provider_id
        self._by_node[machine.node_name] = machine.provider_id
        self._alive[machine.provider_id] = None
        self._take_place(machine, 1)
        self._put(machine, "launch", f"for {machine.claim_name}: {_described(machine)}")
        self._later(self.pace.starts_s, self._run, machine.provider_id)

    def stop(self, provider_id: str) -> None:
        """Shut a machine down; it is gone after a while."""
        machine = self._machines[provider_id]
        if machine.state in (PENDING, RUNNING):
            self._put(replace(machine, state=SHUTTING_DOWN, up=False), "stop")
            self._later(self.pace.stops_s, self.vanish, provider_id)

    def vanish(self, provider_id: str) -> None:
        """A machine is gone, whatever it was doing."""
        machine = self._machines[provider_id]
        if machine.alive:
            del self._alive[provider_id]
            self._take_place(machine, -1)
            self._put(replace(machine, state=GONE, up=False), "gone")

    def reclaim(self, provider_id: str) -> None:
        """The cloud wants a machine back: it is told now, and gone after the time of notice."""
        machine = self._machines[provider_id]
        if machine.state in (PENDING, RUNNING) and machine.notice_at is None:
            self._put(replace(machine, notice_at=self._clock.now()), "notice")
            self.noticed(machine)
            asyncio.get_running_loop().call_later(self.pace.notice_s, self.vanish, provider_id)

    def reboot(self, provider_id: str, operation_id: str) -> None:
        """Restart a running machine, once for each operation."""
        machine = self._machines[provider_id]
        if machine.state == RUNNING and machine.last_reboot != operation_id:
            self._put(replace(machine, up=False, last_reboot=operation_id), "reboot")
            self._later(self.pace.reboots_s, self._come_up, provider_id)

    def alter(self, provider_id: str, birth: MachineDefects) -> None:
        """Another thing is odd about a machine than was. It is not noticed until it shows."""
        self._machines[provider_id] = replace(self._machines[provider_id], birth=birth)

    def reboots(self) -> int:
        """How often machines have come up again."""
        return sum(max(0, machine.boots - 1) for machine in self._machines.values())

    def break_down(self, provider_id: str) -> None:
        """The system of a machine hangs; the cloud thinks that it runs. A reboot helps."""
        machine = self._machines[provider_id]
        if machine.up:
            self._put(replace(machine, up=False), "hang")

    def _run(self, provider_id: str) -> None:
        if self._machines[provider_id].state == PENDING:
            self._put(replace(self._machines[provider_id], state=RUNNING), "run")
            self._come_up(provider_id)

    def _come_up(self, provider_id: str) -> None:
        machine = self._machines[provider_id]
        if machine.state == RUNNING and not machine.up:
            self._put(replace(machine, up=True, boots=machine.boots + 1), "boot")

    def _put(self, machine: CloudMachine, verb: str, detail: str = "") -> None:
        self._machines[machine.provider_id] = machine
        self._trace.record(self._clock.monotonic(), "cloud", verb, "Machine", machine.node_name, detail)
        for listener in self._listeners:
            listener(machine)

    def _take_place(self, machine: CloudMachine, number: int) -> None:
        if machine.reservation:
            self._reserved[machine.reservation] += number
            self._moves[machine.reservation] += 1
        self._places[machine.instance_type, machine.zone, machine.capacity_type] += number

    def _later(self, span: Span, then: Callable[[str], None], provider_id: str) -> None:
        asyncio.get_running_loop().call_later(self._random.uniform(*span), then, provider_id)


def _described(machine: CloudMachine) -> str:
    out_of = f" {machine.reservation}" if machine.reservation else ""
    return f"{machine.instance_type} {machine.zone} {machine.capacity_type}{out_of}"
