"""The node monitor of kube-controller-manager, and the cloud's node controller: the Node of a machine that is silent or gone."""

import asyncio

from joiner.clock import Clock
from joiner.kube.client import Client
from joiner.kube.tasks import Tasks
from joiner.model.meta import replace
from joiner.model.node import Node, NodeCondition
from joiner.sim.cloud.machines import CloudMachine, Machines
from joiner.sim.kubelet.kubelet import NodeTiming, persistently, with_condition


class NodeMonitor:
    """The node monitor and the cloud's own controller: what becomes of the Node of a machine that says nothing any more."""

    def __init__(self, *, client: Client, machines: Machines, clock: Clock, habits: NodeTiming, tasks: Tasks) -> None:
        self._client = client
        self._machines = machines
        self._clock = clock
        self._habits = habits
        self._tasks = tasks
        self._silent: dict[str, int] = {}
        machines.listen(self._hear)

    def _hear(self, machine: CloudMachine) -> None:
        if not machine.up and machine.boots and self._silent.get(machine.provider_id) != machine.boots:
            self._silent[machine.provider_id] = machine.boots
            self._tasks.start(f"silence of {machine.node_name}", self._notice(machine))
        if not machine.alive:
            self._silent.pop(machine.provider_id, None)
            self._tasks.start(f"end of {machine.node_name}", self._forget(machine))

    async def _notice(self, machine: CloudMachine) -> None:
        await asyncio.sleep(self._habits.heartbeat_s)
        now = self._machines.get(machine.provider_id)
        if now is not None and not now.up and now.boots == machine.boots:
            await persistently(lambda: self._doubt(machine))

    async def _doubt(self, machine: CloudMachine) -> None:
        node = await self._client.get(Node, machine.node_name)
        unknown = NodeCondition(
            type="Ready", status="Unknown", reason="NodeStatusUnknown", last_transition_time=self._clock.now()
        )
        status = replace(node.status, conditions=with_condition(node.status.conditions, unknown))
        await self._client.patch_status(node, replace(node, status=status), locked=True)

    async def _forget(self, machine: CloudMachine) -> None:
        await asyncio.sleep(self._habits.forgotten_s)
        await persistently(lambda: self._client.delete(Node, machine.node_name))
