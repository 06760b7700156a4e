"""A world: the pretend outside and the real controllers in it, on one virtual clock, all of it decided by one seed."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from joiner.assembly import Joiner, Spread
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.provider import CloudProvider, NodeClasses
from joiner.kube.client import Client, Key
from joiner.kube.informer import Index, Informers
from joiner.kube.manager import Manager
from joiner.kube.tasks import Tasks
from joiner.model.capacitybuffer import CapacityBuffer
from joiner.model.clusterobjects import Event, Namespace
from joiner.model.meta import KubeObject, ObjectMeta
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.podpolicy import LimitRange, PodDisruptionBudget, PriorityClass, RuntimeClass
from joiner.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from joiner.model.typesettings import InstanceTypeSettings
from joiner.model.workload import DaemonSet, Deployment, Job, PodTemplate, ReplicaSet, StatefulSet
from joiner.options import Options
from joiner.sim import workloads
from joiner.sim.apiserver.client import Interceptor
from joiner.sim.apiserver.server import ApiServer
from joiner.sim.cloud.cloud import CloudInterceptor, PretendCloud
from joiner.sim.cloud.ec2 import door
from joiner.sim.cloud.ec2.events import Events
from joiner.sim.cloud.ec2.world import NODECLAIM, NODECLAIM_UID, Account
from joiner.sim.cloud.machines import CloudTiming
from joiner.sim.cloud.provider import PretendProvider
from joiner.sim.kubelet import assembly
from joiner.sim.kubelet.kubelet import NodeTiming
from joiner.sim.scheduler.scheduler import Binder
from joiner.sim.trace import Trace
from joiner.sim.virtualtime import VirtualClock, VirtualLoop
from joiner.sim.volumes.provisioner import INDEXES as VOLUME_INDEXES
from joiner.sim.volumes.provisioner import controllers as volume_people

JOINER: Final = "joiner"
KINDS: Final[tuple[type[KubeObject], ...]] = (
    NodePool, NodeClaim, NodeOverlay, InstanceTypeSettings, CapacityBuffer, KWOKNodeClass, EC2NodeClass,
    Pod, Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, PodTemplate,
    Node, CSINode, Namespace, Event,
    PersistentVolumeClaim, PersistentVolume, StorageClass, VolumeAttachment,
    PriorityClass, RuntimeClass, LimitRange, PodDisruptionBudget,
)  # fmt: skip
"""What the pretend server knows."""

Failure = Callable[[str, Key, Exception], None]


def _indexes(*tables: Mapping[type[KubeObject], Mapping[str, Index]]) -> dict[type[KubeObject], dict[str, Index]]:
    merged: dict[type[KubeObject], dict[str, Index]] = {}
    for table in tables:
        for kind, indexes in table.items():
            merged.setdefault(kind, {}).update(indexes)
    return merged


class World:
    """The parts, and who starts and stops them. Make one inside a running virtual loop."""

    def __init__(
        self,
        loop: VirtualLoop,
        *,
        seed: int,
        options: Options | None = None,
        spread: Spread | None = None,
        trace: Trace | None = None,
        pace: CloudTiming | None = None,
        habits: NodeTiming | None = None,
        interceptor: Interceptor | None = None,
        cloud_interceptor: CloudInterceptor | None = None,
        history: int = 2_000,
        failed: Failure = lambda controller, key, error: None,
        open_account: Callable[[PretendCloud], Account] | None = None,
    ) -> None:
        """With `open_account` the cloud is EC2 as an account sees it, and the provider is `aws`; else it is `kwok`."""
        self.seed = seed
        self.options = options or Options()
        self.trace = trace if trace is not None else Trace()
        self.clock = VirtualClock(loop)
        self.kinds: Mapping[str, type[KubeObject]] = {kind.kind.lower(): kind for kind in KINDS}
        self.server = ApiServer(self.clock, self.random("server"), self.trace, history=history)
        self.cloud = PretendCloud(
            clock=self.clock, random=self.random("cloud"), trace=self.trace, pace=pace, interceptor=cloud_interceptor
        )
        self.account: Account | None = None
        self.events: Events | None = None
        if open_account is not None:
            self.account = open_account(self.cloud)
            self.events = Events(self.account, door.QUEUE)
            self.account.asked.append(self._asked)
        self.user = self.server.client("user")
        self.restarts = 0
        self.removals: Counter[str] = Counter()
        """Why our controllers decided that claims must go, over all their lives."""
        self.joiner: Joiner | None = None
        self._habits, self._interceptor, self._failed, self._spread = habits, interceptor, failed, spread
        self._tasks = Tasks(failed=self._broke)
        self._outside = self._people()
        self._running: asyncio.Task[None] | None = None
        self._broken: BaseException | None = None

    def random(self, name: str) -> Random:
        """Chance for one user of it: a new draw in one place does not shift all others."""
        return Random(f"{self.seed}/{name}")

    def _people(self) -> Manager:
        """Kubelets, scheduler, workload and volume controllers: all but the server, the cloud and our controllers."""
        client = self.server.client("people")
        informers = Informers(client, _indexes(workloads.INDEXES, assembly.INDEXES, VOLUME_INDEXES))
        return Manager(
            informers,
            (
                *workloads.controllers(client=client, informers=informers, clock=self.clock),
                Binder(client=client, informers=informers, clock=self.clock),
                *volume_people(client=client, informers=informers, clock=self.clock),
                *assembly.node_people(
                    client=client,
                    informers=informers,
                    machines=self.cloud.machines,
                    clock=self.clock,
                    random=self.random("people"),
                    tasks=self._tasks,
                    habits=self._habits,
                ),
            ),
            lambda controller, key, error: None,
        )

    def _broke(self, name: str, error: BaseException) -> None:
        self._broken = error

    # -- its life -------------------------------------------------------------------------------------------------

    def load(self, things: Iterable[KubeObject]) -> None:
        """Objects that are there from the beginning. Namespaces that they need are made."""
        if self.server.find(Namespace, "default") is None:
            self.server.load([Namespace(metadata=ObjectMeta(name="default"))])
        self.server.load(things)

    async def start(self) -> None:
        """Start all of them."""
        self._tasks.start("people", self._outside.run())
        self._begin()

    def _begin(self) -> None:
        client = self.server.client(JOINER, interceptor=self._interceptor)
        self.joiner = Joiner(
            options=self.options,
            client=client,
            connect=self._connect,
            clock=self.clock,
            random=self.random(f"joiner {self.restarts}"),
            spread=self._spread,
            failed=self._failed,
        )
        self._running = asyncio.get_running_loop().create_task(self.joiner.run(), name=f"joiner {self.restarts}")

    def _connect(self, node_classes: NodeClasses, client: Client, tasks: Tasks) -> CloudProvider:
        if self.account is not None:
            return door.connect(self.account, node_classes=node_classes, clock=self.clock, client=client, tasks=tasks)
        return PretendProvider(self.cloud, node_classes=node_classes, clock=self.clock)

    def _asked(self, tags: Mapping[str, str], machines: Sequence[Mapping[str, str]]) -> None:
        """Tell the watchers of purchases of the claim that a fleet is asked for."""
        claim = self.server.find(NodeClaim, tags.get(NODECLAIM, ""))
        if claim is not None and claim.metadata.uid == tags.get(NODECLAIM_UID):
            for watcher in self.cloud.asked:
                watcher(claim, tuple(machines))

    async def restart(self) -> None:
        """Throw away the controllers at whatever they wait for, with all they remember, and build them anew."""
        await self._end()
        self.restarts += 1
        self._begin()

    async def leave(self) -> None:
        """End the controllers until they come back or are restarted."""
        await self._end()

    async def come_back(self) -> None:
        """Build the controllers anew, if there are none."""
        if self._running is None:
            self.restarts += 1
            self._begin()

    async def _end(self) -> None:
        if self._running is None:
            return
        assert self.joiner is not None
        for family in self.joiner.metrics.nodeclaims_disrupted_total.collect():
            for sample in family.samples:
                if sample.name.endswith("_total"):
                    self.removals[sample.labels["reason"]] += int(sample.value)
        if self._running.done():
            self._running.result()
        self._running.cancel()
        with suppress(asyncio.CancelledError):
            await self._running
        self._running = None

    async def stop(self) -> None:
        """End all of them, our controllers first."""
        await self._end()
        await self._tasks.close()
        self.healthy()

    def healthy(self) -> None:
        """Raise the error of a background task, if there was one."""
        if self._broken is not None:
            raise self._broken
        if self._running is not None and self._running.done():
            self._running.result()
