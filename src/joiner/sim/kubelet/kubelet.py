"""Kubelets: machines that have come up join the cluster as Nodes, and say what they have and when they are ready.

A Node says what its machine knows of itself. What plans were made with is not known here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from random import Random
from typing import Final

from joiner.clock import Clock
from joiner.cloud.sources.ec2 import EBS_ZONE
from joiner.kube.client import Client
from joiner.kube.errors import AlreadyExists, KubeError, NotFound
from joiner.kube.tasks import Tasks
from joiner.model import labels
from joiner.model.meta import ObjectMeta, OwnerReference, Value, replace
from joiner.model.node import Node, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo
from joiner.model.quantity import Quantity
from joiner.model.resources import Resources
from joiner.model.storage import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from joiner.model.taints import Taint
from joiner.sim.cloud.machines import CloudMachine, Machines, Span

NOT_READY: Final = (
    Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),
    Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"),
)
ALMOST_S: Final = 0.001
"""A moment that is nearer than this has come: the time of day is kept in whole microseconds."""
_RETRY_S: Final = 1.0
_FORMER: Final = {**labels.ALIASES, EBS_ZONE: labels.ZONE}
"""Labels that real nodes have beside today's: former spellings, and the zone as the driver of EBS volumes writes it."""


class NodeTiming(Value):
    """How kubelets and those who look after nodes behave."""

    joins_s: Span = (10.0, 30.0)
    """Between the start of a machine and its Node."""
    ready_s: Span = (3.0, 12.0)
    """Between the Node and its readiness."""
    pod_starts_s: Span = (1.0, 6.0)
    pod_stops_s: Span = (0.5, 8.0)
    """How long a pod needs to end, if its grace period allows."""
    heartbeat_s: float = 40.0
    """After so long a silence a node is no longer believed to be ready."""
    forgotten_s: float = 60.0
    """So long after its machine a Node is deleted."""
    drivers: Mapping[str, int] = {}
    """Volumes that a node can attach, by driver, over what the type says."""
    prepares_s: float = 15.0
    """After so long an agent has done what a startup taint of a claim waits for, and removes it."""
    prepares: Mapping[str, float] = {}
    """The same for taints with these keys, whatever client put them there."""
    waits_for_volumes: bool = True
    """Whether pods start only when their volumes are attached."""


class Kubelets:
    """One for each machine. They are told by the cloud when their machine comes up."""

    def __init__(
        self, *, client: Client, machines: Machines, clock: Clock, random: Random, habits: NodeTiming, tasks: Tasks
    ) -> None:
        self._client = client
        self._machines = machines
        self._clock = clock
        self._random = random
        self._habits = habits
        self._tasks = tasks
        self._boots: dict[str, int] = {}
        machines.listen(self._hear)

    def _hear(self, machine: CloudMachine) -> None:
        if machine.up and self._boots.get(machine.provider_id) != machine.boots:
            self._boots[machine.provider_id] = machine.boots
            self._tasks.start(f"kubelet {machine.node_name}", self._live(machine))
        elif not machine.alive:
            self._boots.pop(machine.provider_id, None)

    async def _live(self, machine: CloudMachine) -> None:
        """From a boot of the machine until it has nothing more to say."""
        birth = machine.birth
        if birth.never_joins:
            return
        first = machine.boots == 1
        joins_s = self._random.uniform(*self._habits.joins_s) + machine.registration_delay_s + birth.late_s
        if not await self._waited(machine, joins_s if first else 0.0):
            return
        await persistently(lambda: self._join(machine))
        if birth.never_ready or not await self._waited(machine, self._random.uniform(*self._habits.ready_s)):
            return
        await persistently(lambda: self._say_ready(machine))
        passed = 0.0
        for after_s, name in sorted((after_s, name) for name, after_s in birth.late.items()):
            if not await self._waited(machine, after_s - passed):
                return
            passed = after_s
            await persistently(partial(self._register_device, machine, name))

    async def _waited(self, machine: CloudMachine, seconds: float) -> bool:
        """Wait; whether the machine is still in the same life afterwards."""
        await asyncio.sleep(seconds)
        now = self._machines.get(machine.provider_id)
        return now is not None and now.up and now.boots == machine.boots

    async def _join(self, machine: CloudMachine) -> None:
        """Write the Node; after a restart of the machine it is there and only hears that it is not ready."""
        node = self._node(machine)
        try:
            made = await self._client.create(node)
        except AlreadyExists:
            await self._rejoin(machine, node)
            made = await self._client.get(Node, node.name)
        await self._write_drivers(machine, made)

    async def _rejoin(self, machine: CloudMachine, fresh: Node) -> None:
        node = await self._client.get(Node, fresh.name)
        info = replace(node.status.node_info, boot_id=fresh.status.node_info.boot_id)
        kept = node.status.conditions if machine.birth.incurable else _ready_only(node.status.conditions)
        conditions = with_condition(kept, self._ready("False", "KubeletNotReady"))
        status = replace(node.status, node_info=info, conditions=conditions)
        await self._client.patch_status(node, replace(node, status=status), locked=True)

    async def _say_ready(self, machine: CloudMachine) -> None:
        node = await self._client.get(Node, machine.node_name)
        conditions = with_condition(node.status.conditions, self._ready("True", "KubeletReady"))
        await self._client.patch_status(
            node, replace(node, status=replace(node.status, conditions=conditions)), locked=True
        )

    async def _register_device(self, machine: CloudMachine, name: str) -> None:
        node = await self._client.get(Node, machine.node_name)
        capacity = {**node.status.capacity, name: Quantity(machine.capacity.get(name, 0))}
        allocatable = {**node.status.allocatable, name: Quantity(machine.allocatable.get(name, 0))}
        status = replace(node.status, capacity=capacity, allocatable=allocatable)
        await self._client.patch_status(node, replace(node, status=status), locked=True)

    async def _write_drivers(self, machine: CloudMachine, node: Node) -> None:
        limits = {**machine.volume_limits, **self._habits.drivers}
        drivers = tuple(
            CSINodeDriver(name=name, node_id=node.name, allocatable=VolumeNodeResources(count=limits[name]))
            for name in sorted(limits)
        )
        owner = OwnerReference(api_version=Node.api_version(), kind=Node.kind, name=node.name, uid=node.metadata.uid)
        thing = CSINode(
            metadata=ObjectMeta(name=node.name, owner_references=(owner,)), spec=CSINodeSpec(drivers=drivers)
        )
        with suppress(AlreadyExists):
            await self._client.create(thing)

    def _node(self, machine: CloudMachine) -> Node:
        known = {
            **machine.node_labels,
            labels.HOSTNAME: machine.node_name,
            labels.ARCH: machine.architecture,
            labels.OS: machine.operating_system,
            labels.INSTANCE_TYPE: machine.instance_type,
            labels.ZONE: machine.zone,
            labels.REGION: machine.region,
        }
        known.update({former: known[today] for former, today in _FORMER.items()})
        return Node(
            metadata=ObjectMeta(name=machine.node_name, labels={key: value for key, value in known.items() if value}),
            spec=NodeSpec(provider_id=machine.provider_id, taints=(*machine.node_taints, *NOT_READY)),
            status=NodeStatus(
                capacity=_at_first(machine, machine.capacity),
                allocatable=_at_first(machine, machine.allocatable),
                conditions=(self._ready("False", "KubeletNotReady"),),
                node_info=NodeSystemInfo(
                    boot_id=f"{machine.node_name}-{machine.boots}",
                    architecture=machine.architecture,
                    operating_system=machine.operating_system,
                ),
            ),
        )

    def _ready(self, status: str, reason: str) -> NodeCondition:
        return NodeCondition(type="Ready", status=status, reason=reason, last_transition_time=self._clock.now())


def _at_first(machine: CloudMachine, promised: Resources) -> Mapping[str, Quantity]:
    """What the node has before late devices come: what its type promises, less what this machine lacks."""
    birth = machine.birth
    return {
        name: Quantity(0 if name in birth.late else max(0, promised[name] - birth.missing.get(name, 0)))
        for name in sorted(promised)
    }


def _ready_only(conditions: tuple[NodeCondition, ...]) -> tuple[NodeCondition, ...]:
    """A restart cures whatever else was wrong."""
    return tuple(each for each in conditions if each.type == "Ready")


def with_condition(conditions: tuple[NodeCondition, ...], wanted: NodeCondition) -> tuple[NodeCondition, ...]:
    """The conditions with one in its place; its time of transition stays when its status does."""
    old = next((each for each in conditions if each.type == wanted.type), None)
    if old is not None and old.status == wanted.status:
        wanted = replace(wanted, last_transition_time=old.last_transition_time)
    return (*(each for each in conditions if each.type != wanted.type), wanted)


async def persistently(attempt: Callable[[], Awaitable[None]]) -> None:
    """Do it until it is done, or until there is nothing left to do it to."""
    while True:
        try:
            await attempt()
        except NotFound:
            return
        except KubeError:
            await asyncio.sleep(_RETRY_S)
        else:
            return
