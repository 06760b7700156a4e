"""What kubelets do with the pods that are bound to their nodes: start them, let them run to their end, end them."""

from collections.abc import Iterable
from datetime import datetime
from random import Random
from typing import Final

from joiner.clock import Clock
from joiner.kube.client import Client, Key, key_of
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.kube.informer import Informers
from joiner.model import pod as pods
from joiner.model.duration import Duration
from joiner.model.meta import replace
from joiner.model.node import Node, is_ready
from joiner.model.pod import Pod, PodCondition
from joiner.model.storage import PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from joiner.sim.cloud.machines import Machines
from joiner.sim.kubelet.kubelet import ALMOST_S, NodeTiming

RUNS_FOR: Final = "sim.joiner.dev/runs-for"
"""How long a pod runs before it is done; without it, for ever."""
STOPS_AFTER: Final = "sim.joiner.dev/stops-after"
"""How long a pod needs to end, if its grace period allows."""
_UNHEARD_S: Final = 1.0
"""A pod is bound when its volumes are known; a cache that has not heard of them soon will."""
_ENDED: Final = ("Succeeded", "Failed")


class _Life:
    """What a kubelet remembers of a pod. Its own times are monotonic: the time of day may be set."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.accepted: datetime | None = None
        self.starts_at = 0.0
        self.began: float | None = None
        self.asked_to_end: float | None = None
        self.stops_s = 0.0


class PodLifecycle(Reconciler):
    """Every pod that has a node. A pod on a machine that is not up has no kubelet to do anything for it."""

    name = "kubelet"
    workers = 50

    def __init__(
        self,
        *,
        client: Client,
        informers: Informers,
        machines: Machines,
        clock: Clock,
        random: Random,
        habits: NodeTiming,
    ) -> None:
        self._client = client
        self._informers = informers
        self._machines = machines
        self._clock = clock
        self._random = random
        self._habits = habits
        self._lives: dict[Key, _Life] = {}
        attached = (Watch(VolumeAttachment, self._on_node_of),) if habits.waits_for_volumes else ()
        self.watches = (Watch(Pod, self._own), Watch(Node, self._on_node), *attached)
        if habits.waits_for_volumes:
            for kind in (PersistentVolumeClaim, PersistentVolume):
                informers.of(kind)

    def _own(self, change: Change) -> Iterable[Key]:
        pod = change.after
        if pod is None:
            self._lives.pop(key_of(change.before), None)
            return ()
        return (key_of(pod),) if pod.spec.node_name and not self._is_settled(pod) else ()

    def _is_settled(self, pod: Pod) -> bool:
        """Whether nothing is to be done until something else happens; this spares most of the work."""
        if pod.metadata.deletion_timestamp is not None:
            return False
        if pod.status.phase in _ENDED:
            return True
        node = self._informers.get(Node, pod.spec.node_name)
        return node is not None and is_ready(node) and _is_ready(pod) and RUNS_FOR not in pod.metadata.annotations

    def _on_node(self, change: Change) -> Iterable[Key]:
        before, after = change.before, change.after
        if before is not None and after is not None and is_ready(before) == is_ready(after):
            return ()
        return [key_of(pod) for pod in self._informers.by(Pod, "node", change.latest.name)]

    def _on_node_of(self, change: Change) -> Iterable[Key]:
        return [key_of(pod) for pod in self._informers.by(Pod, "node", change.latest.spec.node_name)]

    async def reconcile(self, key: Key) -> Result:
        """One step in the life of a pod."""
        pod = self._informers.get(Pod, key.name, key.namespace)
        if pod is None or not pod.spec.node_name:
            self._lives.pop(key, None)
            return DONE
        machine = self._machines.on_node(pod.spec.node_name)
        up = machine is None or machine.up
        if pod.metadata.deletion_timestamp is not None:
            return await self._end(pod) if up else DONE
        if pod.status.phase in _ENDED:
            return DONE
        node = self._informers.get(Node, pod.spec.node_name)
        if node is None or not is_ready(node) or not up:
            await self._unready(pod)
            return DONE
        if pod.status.phase != "Running":
            return await self._start(pod)
        return await self._run(pod)

    def _life(self, pod: Pod) -> _Life:
        key = key_of(pod)
        life = self._lives.get(key)
        if life is None or life.uid != pod.metadata.uid:
            life = self._lives[key] = _Life(pod.metadata.uid)
        return life

    async def _start(self, pod: Pod) -> Result:
        life, now = self._life(pod), self._clock.now()
        if self._habits.waits_for_volumes and (missing := self._missing(pod)) is not None:
            return missing
        if life.accepted is None:
            life.accepted = now
            life.starts_at = self._clock.monotonic() + self._random.uniform(*self._habits.pod_starts_s)
        left = life.starts_at - self._clock.monotonic()
        if left > ALMOST_S:
            return Result(left)
        status = replace(
            pod.status,
            phase="Running",
            start_time=life.accepted,
            conditions=_with(pod.status.conditions, now, Initialized="True", ContainersReady="True", Ready="True"),
            nominated_node_name="",
        )
        await self._client.patch_status(pod, replace(pod, status=status))
        life.began = self._clock.monotonic()
        return DONE

    async def _run(self, pod: Pod) -> Result:
        """Running: it becomes ready again when its node did, and it ends if it has an end."""
        life, now, status = self._life(pod), self._clock.now(), pod.status
        if life.began is None:
            life.began = self._clock.monotonic()
        runs_for = _annotated(pod, RUNS_FOR)
        left = None if runs_for is None else life.began + runs_for - self._clock.monotonic()
        if left is not None and left <= ALMOST_S:
            ended = _with(status.conditions, now, "PodCompleted", ContainersReady="False", Ready="False")
            status, left = replace(status, phase="Succeeded", conditions=ended), None
        else:
            status = replace(status, conditions=_with(status.conditions, now, ContainersReady="True", Ready="True"))
        await self._client.patch_status(pod, replace(pod, status=status))
        return Result(left)

    async def _unready(self, pod: Pod) -> None:
        """Its node is not ready, or its machine is silent: the pod is not to be counted on."""
        if _is_ready(pod):
            node = self._informers.get(Node, pod.spec.node_name)
            if node is not None and not is_ready(node):
                conditions = _with(pod.status.conditions, self._clock.now(), "NodeNotReady", Ready="False")
                await self._client.patch_status(pod, replace(pod, status=replace(pod.status, conditions=conditions)))

    async def _end(self, pod: Pod) -> Result:
        life, metadata = self._life(pod), pod.metadata
        if life.asked_to_end is None:
            said = _annotated(pod, STOPS_AFTER)
            life.asked_to_end = self._clock.monotonic()
            life.stops_s = self._random.uniform(*self._habits.pod_stops_s) if said is None else said
        grace_s = metadata.deletion_grace_period_seconds or 0
        left = life.asked_to_end + min(grace_s, life.stops_s) - self._clock.monotonic()
        if left > ALMOST_S and pod.status.phase not in _ENDED:
            return Result(left)
        await self._client.delete(Pod, pod.name, metadata.namespace, uid=metadata.uid, grace_period_s=0)
        return DONE

    def _missing(self, pod: Pod) -> Result | None:
        """When to look again for a volume of the pod that is not there yet; nothing when all are."""
        for volume in pod.spec.volumes:
            claimed = volume.claim_name(pod.name)
            if claimed is None:
                continue
            claim = self._informers.get(PersistentVolumeClaim, claimed, pod.metadata.namespace)
            found = self._informers.get(PersistentVolume, claim.spec.volume_name) if claim is not None else None
            if found is None:
                return Result(_UNHEARD_S)
            if found.spec.csi is not None and not self._has(pod.spec.node_name, found.name):
                return DONE  # the attachment will wake us
        return None

    def _has(self, node: str, volume: str) -> bool:
        return any(
            each.status.attached and each.spec.source.persistent_volume_name == volume
            for each in self._informers.by(VolumeAttachment, "node", node)
        )


def _is_ready(pod: Pod) -> bool:
    return pod.status.phase == "Running" and pods.is_ready(pod)


def _annotated(pod: Pod, key: str) -> float | None:
    text = pod.metadata.annotations.get(key)
    return None if text is None else Duration.parse(text).seconds


def _with(
    conditions: tuple[PodCondition, ...], now: datetime, reason: str = "", **wanted: str
) -> tuple[PodCondition, ...]:
    """The conditions with some set; one whose status stays is left as it is."""
    known = {each.type: each for each in conditions}
    for kind, status in wanted.items():
        if kind not in known or known[kind].status != status:
            known[kind] = PodCondition(type=kind, status=status, reason=reason, last_transition_time=now)
    return tuple(known.values())
