"""Those who look after nodes: silence is noticed, taints follow conditions, pods are driven off, what is orphaned is removed."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from joiner.clock import Clock
from joiner.kube.client import Client, Key, key_of
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.kube.errors import NotFound
from joiner.kube.informer import Informers
from joiner.kube.tasks import Tasks
from joiner.model.meta import replace
from joiner.model.node import Node, NodeCondition, condition
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.model.taints import Taint, Toleration, is_among, merged, without
from joiner.sim.cloud.machines import CloudMachine, MachineRoom
from joiner.sim.kubelet.kubelet import ALMOST_S, NOT_READY, NodeTiming, persistently, with_condition

UNREACHABLE: Final = (
    Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
    Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"),
)
UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_BY_CONDITION: Final = (*NOT_READY, *UNREACHABLE, UNSCHEDULABLE)
_ENDURED_S: Final = 300
"""How long pods endure a node that is not ready or not to be reached, if they say nothing about it."""
_ENDURED: Final = tuple(
    Toleration(key=taint.key, operator="Exists", effect=taint.effect, toleration_seconds=_ENDURED_S)
    for taint in (NOT_READY[1], UNREACHABLE[1])
)


class NodeMonitor:
    """The node monitor and the cloud's own controller: what becomes of the Node of a machine that says nothing any more."""

    def __init__(
        self, *, client: Client, machines: MachineRoom, clock: Clock, habits: NodeTiming, tasks: Tasks
    ) -> None:
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


class NodeTaints(Reconciler):
    """Taints follow the conditions of a node, and whether it is cordoned; startup taints go when what they wait for is done."""

    name = "node-lifecycle"
    watches = (Watch(Node),)

    def __init__(self, *, client: Client, informers: Informers, clock: Clock, habits: NodeTiming) -> None:
        self._client = client
        self._informers = informers
        self._clock = clock
        self._habits = habits
        informers.of(NodeClaim)
        self._seen: dict[str, dict[str, float]] = {}
        """Node to its startup taints by key, and when each was first seen."""

    async def reconcile(self, key: Key) -> Result:
        """Bring the taints in line."""
        node = self._informers.get(Node, key.name)
        if node is None:
            self._seen.pop(key.name, None)
            return DONE
        kept, result = self._unprepared(node)
        taints = merged(without(kept, _BY_CONDITION), _wanted(node))
        if not _same(taints, node.spec.taints):
            await self._client.patch(node, replace(node, spec=replace(node.spec, taints=taints)), locked=True)
        return result

    def _unprepared(self, node: Node) -> tuple[tuple[Taint, ...], Result]:
        """The taints without those whose time has come, and when the next one's comes."""
        now, waits, kept = self._clock.monotonic(), [], []
        for taint in node.spec.taints:
            after_s = self._prepared_after(node, taint)
            if after_s is None:
                kept.append(taint)
                continue
            first = self._seen.setdefault(node.name, {}).setdefault(taint.key, now)
            left = first + after_s - now
            if left > ALMOST_S:
                kept.append(taint)
                waits.append(left)
        return tuple(kept), Result(min(waits)) if waits else DONE

    def _prepared_after(self, node: Node, taint: Taint) -> float | None:
        if taint.key in self._habits.prepares:
            return self._habits.prepares[taint.key]
        owners = [each.name for each in node.metadata.owner_references if each.kind == NodeClaim.kind]
        claims = [self._informers.get(NodeClaim, name) for name in owners]
        startup = (each for claim in claims if claim is not None for each in claim.spec.startup_taints)
        return self._habits.prepares_s if is_among(taint, startup) else None


def _wanted(node: Node) -> tuple[Taint, ...]:
    ready = condition(node, "Ready")
    cordoned = (UNSCHEDULABLE,) if node.spec.unschedulable else ()
    if ready is None or ready.status == "True":
        return cordoned
    return (*(NOT_READY if ready.status == "False" else UNREACHABLE), *cordoned)


def _same(left: Iterable[Taint], right: Iterable[Taint]) -> bool:
    return sorted((t.key, t.effect, t.value) for t in left) == sorted((t.key, t.effect, t.value) for t in right)


class TaintEviction(Reconciler):
    """Pods that do not tolerate a NoExecute taint of their node are deleted, at once or when their patience ends."""

    name = "taint-eviction"

    def __init__(self, *, client: Client, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._informers = informers
        self._clock = clock
        self._since: dict[str, dict[Taint, float]] = {}
        """Node to its taints, and when each was first seen."""
        self.watches = (Watch(Pod, self._on_tainted), Watch(Node, self._concerned))

    def _on_tainted(self, change: Change) -> Iterable[Key]:
        pod = change.after
        node = self._informers.get(Node, pod.spec.node_name) if pod is not None and pod.spec.node_name else None
        return (key_of(pod),) if node is not None and _driving(node) else ()

    def _concerned(self, change: Change) -> Iterable[Key]:
        before = _driving(change.before) if change.before is not None else ()
        after = _driving(change.after) if change.after is not None else ()
        if before == after:
            return ()
        if not after:
            self._since.pop(change.latest.name, None)
        return [key_of(pod) for pod in self._informers.by(Pod, "node", change.latest.name)]

    async def reconcile(self, key: Key) -> Result:
        """Delete the pod if it must go."""
        pod = self._informers.get(Pod, key.name, key.namespace)
        node = self._informers.get(Node, pod.spec.node_name) if pod is not None else None
        if pod is None or node is None or pod.metadata.deletion_timestamp is not None:
            return DONE
        now = self._clock.monotonic()
        left = self._patience(pod, self._taints(node, now), now)
        if left is None or left > ALMOST_S:
            return Result(left)
        await self._client.delete(Pod, key.name, key.namespace, uid=pod.metadata.uid)
        return DONE

    def _taints(self, node: Node, now: float) -> Mapping[Taint, float]:
        known = self._since.get(node.name, {})
        found = {taint: known.get(taint, now) for taint in _driving(node)}
        if found:
            self._since[node.name] = found
        return found

    def _patience(self, pod: Pod, taints: Mapping[Taint, float], now: float) -> float | None:
        """Seconds until the pod must go; nothing if it may stay."""
        waits: list[float] = []
        for taint, since in taints.items():
            endures = [each for each in pod.spec.tolerations if each.tolerates(taint)]
            endures = endures or [each for each in _ENDURED if each.tolerates(taint)]
            if not endures:
                return 0.0
            bounded = [each.toleration_seconds for each in endures if each.toleration_seconds is not None]
            if bounded:
                waits.append(since + min(bounded) - now)
        return min(waits) if waits else None


def _driving(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.spec.taints if taint.effect == "NoExecute")


class PodGarbage(Reconciler):
    """Pods whose node is gone are removed by force: nobody is there to end them."""

    name = "pod-garbage"

    def __init__(self, *, client: Client, informers: Informers) -> None:
        self._client = client
        self._informers = informers
        self.watches = (Watch(Pod, self._bound), Watch(Node, self._left_behind))

    def _bound(self, change: Change) -> Iterable[Key]:
        pod = change.after
        if pod is None or not pod.spec.node_name or self._informers.get(Node, pod.spec.node_name) is not None:
            return ()
        return (key_of(pod),)

    def _left_behind(self, change: Change) -> Iterable[Key]:
        if change.after is not None:
            return ()
        return [key_of(pod) for pod in self._informers.by(Pod, "node", change.before.name)]

    async def reconcile(self, key: Key) -> Result:
        """Remove the pod, if its node is really gone: a cache may not have heard of a new one."""
        pod = self._informers.get(Pod, key.name, key.namespace)
        if pod is None or not pod.spec.node_name:
            return DONE
        try:
            await self._client.get(Node, pod.spec.node_name)
        except NotFound:
            await self._client.delete(Pod, key.name, key.namespace, uid=pod.metadata.uid, grace_period_s=0)
        return DONE
