"""A small world on virtual time for the controllers of claims and nodes: a server, a cloud, and no kubelet but the test."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar

from tests.builders import node_pool
from tests.unit.controllers.sharedparts import shared

from joiner.catalog.build import NO_ADJUSTMENTS
from joiner.cloud.catalogcache import Catalogs
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.controllers.indexes import INDEXES
from joiner.controllers.node.eviction import EvictionQueue
from joiner.controllers.node.termination import Termination
from joiner.controllers.nodeclaim.consistency import Consistency
from joiner.controllers.nodeclaim.expiration import Expiration
from joiner.controllers.nodeclaim.garbagecollection import ClaimGarbageCollection
from joiner.controllers.nodeclaim.hydration import ClaimHydration, NodeHydration
from joiner.controllers.nodeclaim.interruption import Interruption
from joiner.controllers.nodeclaim.lifecycle import Lifecycle
from joiner.controllers.nodeclaim.podevents import PodEvents
from joiner.controllers.nodeclaim.reservationends import ReservationEnds
from joiner.kube.client import Key
from joiner.kube.informer import Informers
from joiner.kube.manager import Manager
from joiner.model import labels
from joiner.model.codec import decode
from joiner.model.conditions import Condition, find
from joiner.model.meta import KubeObject, OwnerReference, replace
from joiner.model.node import Node, NodeCondition
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.model.taints import UNREGISTERED, Taint
from joiner.observe.events import Recorder
from joiner.observe.metrics import Metrics
from joiner.options import Options
from joiner.sim.apiserver.client import Interceptor
from joiner.sim.apiserver.server import ApiServer
from joiner.sim.cloud.cloud import CloudInterceptor, Hook, PretendCloud
from joiner.sim.cloud.machines import CloudTiming
from joiner.sim.cloud.provider import PretendProvider
from joiner.sim.trace import Trace
from joiner.sim.virtualtime import VirtualClock, VirtualLoop, run

K = TypeVar("K", bound=KubeObject)
REFERENCE = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
PACE = CloudTiming(call_s=(0.1, 0.1), starts_s=(1.0, 1.0), stops_s=(12.0, 12.0))


class Health:
    """Remembers what it is told of pools."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def success(self, pool: str, pool_uid: str) -> None:
        self.told.append(("success", pool, pool_uid))

    def failure(self, pool: str, pool_uid: str, reason: str, message: str) -> None:
        self.told.append(("failure", pool, pool_uid, reason))


class LifeWorld:
    """Everything there is, and the test as the kubelet."""

    def __init__(
        self,
        loop: VirtualLoop,
        *,
        seed: int = 1,
        options: Options | None = None,
        interceptor: Interceptor | None = None,
        cloud_interceptor: CloudInterceptor | None = None,
        hooks: Iterable[Hook] = (),
    ) -> None:
        self.clock = VirtualClock(loop)
        self.trace = Trace()
        self.server = ApiServer(self.clock, Random(seed), self.trace)
        self.cloud = PretendCloud(
            clock=self.clock, random=Random(seed), trace=self.trace, pace=PACE, interceptor=cloud_interceptor
        )
        self.cloud.hooks += hooks
        self.options = options or Options()
        self.health = Health()
        self.planned: dict[str, tuple[Pod, ...]] = {}
        self.interceptor = interceptor
        self.errors: list[Exception] = []
        self.server.load([KWOKNodeClass(metadata=replace(KWOKNodeClass().metadata, name="default"))])

    # -- Joiner -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Build everything that a process would have in memory."""
        client = self.server.client("joiner", interceptor=self.interceptor)
        informers = Informers(client, INDEXES)
        for kind in (NodePool, NodeClaim, Node, Pod, KWOKNodeClass):
            informers.of(kind)
        self.provider = PretendProvider(self.cloud, node_classes=informers, clock=self.clock)
        catalogs = Catalogs(self.provider, lambda: NO_ADJUSTMENTS, self.clock)
        self.metrics = Metrics()
        self.recorder = Recorder(client, self.clock)
        common = shared(
            client,
            informers,
            self.clock,
            self.provider,
            catalogs=catalogs,
            recorder=self.recorder,
            metrics=self.metrics,
            options=self.options,
        )
        self.evictions = EvictionQueue(common)
        controllers = (
            Lifecycle(common, health=self.health, planned_pods=lambda claim: self.planned.get(claim, ())),
            Termination(common, evictions=self.evictions),
            self.evictions,
            Expiration(common),
            ClaimGarbageCollection(common),
            Consistency(common),
            PodEvents(common),
            ClaimHydration(common),
            NodeHydration(common),
            ReservationEnds(common),
            Interruption(common, notices=self.provider.interruptions()),
        )
        self.manager = Manager(informers, controllers, self._failed)
        self._task = asyncio.get_running_loop().create_task(self.manager.run(), name="joiner")

    def _failed(self, controller: str, key: Key, error: Exception) -> None:
        self.errors.append(error)

    async def stop(self) -> None:
        """End it at whatever await it stands."""
        self._task.cancel()
        try:
            await self._task
        except asyncio.CancelledError:
            return

    async def restart(self) -> None:
        """Throw all memory away and begin again."""
        await self.stop()
        self.start()

    # -- looking ------------------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        return self.clock.now()

    def claim(self, name: str = "c") -> NodeClaim:
        return self.server.get(NodeClaim, name)

    def node(self, name: str) -> Node:
        return self.server.get(Node, name)

    def there(self, kind: type[KubeObject], name: str, namespace: str = "") -> bool:
        return self.server.find(kind, name, namespace) is not None

    def condition(self, kind: str, name: str = "c") -> Condition:
        found = find(self.claim(name).status.conditions, kind)
        assert found is not None, f"there is no condition {kind}"
        return found

    def events(self, reason: str) -> list[str]:
        """Whom an event of that reason was about."""
        return [told.thing for told in self.recorder.recent if told.reason == reason]

    def disrupted(self) -> dict[str, float]:
        """Reason to how many claims were removed for it."""
        samples = next(iter(self.metrics.nodeclaims_disrupted_total.collect())).samples
        return {each.labels["reason"]: each.value for each in samples if each.name.endswith("_total")}

    # -- acting -------------------------------------------------------------------------------------------------------

    def put(self, *things: KubeObject) -> None:
        """Let objects in as they are; claims belong to the pool that is there by the name they say."""
        self.server.load(self._owned(each) if isinstance(each, NodeClaim) else each for each in things)

    def _owned(self, claim: NodeClaim) -> NodeClaim:
        pool = self.server.find(NodePool, claim.metadata.labels.get(labels.NODEPOOL, ""))
        if pool is None:
            return claim
        owner = OwnerReference(api_version="karpenter.sh/v1", kind="NodePool", name=pool.name, uid=pool.metadata.uid)
        return replace(claim, metadata=replace(claim.metadata, owner_references=(owner,)))

    def change(self, thing: K, **changes: Any) -> K:
        """Change metadata, spec or status of an object as somebody else would."""
        status = {k: v for k, v in changes.items() if k == "status"}
        stored = self.server.patch(
            "test", thing, replace(thing, **{**changes, "status": getattr(thing, "status", None)})
        )
        return self.server.patch_status("test", stored, replace(stored, **status)) if status else stored

    def annotate(self, thing: KubeObject, **annotations: str) -> None:
        metadata = replace(thing.metadata, annotations={**thing.metadata.annotations, **annotations})
        self.server.patch("test", thing, replace(thing, metadata=metadata))

    def delete(self, thing: KubeObject) -> None:
        self.server.delete("test", type(thing), thing.name, thing.metadata.namespace)

    def join(self, name: str = "c", *, ready: bool = True, more: Iterable[Taint] = (), **status: Any) -> Node:
        """The machine of a claim comes up and reports as a node."""
        machine = self.cloud.machines.of_claim(self.claim(name).metadata.uid)
        assert machine is not None, f"claim {name} has no machine"
        node = node_of(machine.provider_id, f"node-{name}", machine.capacity, ready=ready, more=more, **status)
        self.put(node)
        return self.node(node.name)

    def set_ready(self, node: str, ready: bool) -> None:
        known = self.node(node)
        self.change(known, status=replace(known.status, conditions=(_ready(ready),)))

    async def settled(self, name: str = "c") -> Node:
        """A claim whose node has joined and is initialised."""
        await asyncio.sleep(5)
        node = self.join(name)
        await asyncio.sleep(5)
        return self.node(node.name)


def _ready(ready: bool) -> NodeCondition:
    return NodeCondition(type="Ready", status="True" if ready else "False")


def node_of(
    provider_id: str,
    name: str,
    capacity: Mapping[str, int],
    *,
    ready: bool = True,
    more: Iterable[Taint] = (),
    **status: Any,
) -> Node:
    document = {"metadata": {"name": name}, "spec": {"providerID": provider_id}}
    node = decode(document, Node)
    said = {"capacity": capacity, "allocatable": capacity, "conditions": (_ready(ready),), **status}
    return replace(node, spec=replace(node.spec, taints=(UNREGISTERED, *more)), status=replace(node.status, **said))


def claim(name: str = "c", pool: str = "default", **spec: Any) -> NodeClaim:
    """A claim for a small machine, as provisioning writes it."""
    spec = {
        "requirements": [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": [labels.ON_DEMAND]}],
        "nodeClassRef": REFERENCE,
        "resources": {"requests": {"cpu": "1"}},
        **spec,
    }
    named = {labels.NODEPOOL: pool, "karpenter.kwok.sh/kwoknodeclass": "default"} if pool else {}
    return decode({"metadata": {"name": name, "labels": named}, "spec": spec}, NodeClaim)


def bound(pod: Pod, node: str, clock: VirtualClock, **metadata: Any) -> Pod:
    """The pod, running on a node."""
    status = replace(pod.status, phase="Running", start_time=clock.now())
    spec = replace(pod.spec, node_name=node)
    return replace(pod, metadata=replace(pod.metadata, **metadata), spec=spec, status=status)


def live(story: Callable[[LifeWorld], Awaitable[None]], *things: KubeObject, **world: Any) -> LifeWorld:
    """Run a story from its beginning, with a pool and these objects there, to its end."""

    async def main(loop: VirtualLoop) -> LifeWorld:
        made = LifeWorld(loop, **world)
        made.put(node_pool())
        made.put(*(things or (claim(),)))
        made.start()
        await story(made)
        await made.stop()
        return made

    return run(main)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)
