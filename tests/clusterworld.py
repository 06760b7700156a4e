"""A cluster with its pretend people for one test: scheduler, workload controllers, volume people, and a kubelet for all nodes."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.apiworld import Served, served

from joiner.kube.client import Client, Key, key_of
from joiner.kube.controller import DONE, Reconciler, Result, Watch
from joiner.kube.informer import Informers
from joiner.kube.manager import Manager
from joiner.kube.tasks import Tasks
from joiner.model.codec import decode
from joiner.model.meta import KubeObject, replace
from joiner.model.node import Node
from joiner.model.pod import Pod, PodCondition
from joiner.sim import workloads as makers
from joiner.sim.apiserver.client import Interceptor
from joiner.sim.scheduler.scheduler import Binder
from joiner.sim.volumes import provisioner

K = TypeVar("K", bound=KubeObject)


def node(name: str = "node-a", zone: str = "a", cpu: str = "4", **more: Any) -> Node:
    """A ready node with 4 cpu and 16Gi, unless said otherwise."""
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, **more.pop("labels", {})}
    has = {"cpu": cpu, "memory": "16Gi", "pods": "20", **more.pop("has", {})}
    status = {"allocatable": has, "capacity": has, "conditions": [{"type": "Ready", "status": "True"}]}
    return decode({"metadata": {"name": name, "labels": labels}, "spec": more, "status": status}, Node)


class Kubelet(Reconciler):
    """Runs every pod that has a node a second after it got it, and ends every one that was deleted after its grace."""

    name = "kubelet"
    watches = (Watch(Pod),)

    def __init__(self, *, client: Client, informers: Informers) -> None:
        self._client = client
        self._informers = informers

    async def reconcile(self, key: Key) -> Result:
        pod = self._informers.get(Pod, key.name, key.namespace)
        if pod is None or not pod.spec.node_name:
            return DONE
        if pod.metadata.deletion_timestamp is not None:
            await asyncio.sleep(1)
            await self._client.delete(Pod, pod.name, key.namespace, uid=pod.metadata.uid, grace_period_s=0)
        elif pod.status.phase == "Pending" and not pod.metadata.annotations.get("test/stuck"):
            await asyncio.sleep(1)
            await self._client.patch_status(pod, running(pod))
        return DONE


def running(pod: Pod) -> Pod:
    """The pod, ready."""
    others = tuple(each for each in pod.status.conditions if each.type != "Ready")
    ready = PodCondition(type="Ready", status="True")
    return replace(pod, status=replace(pod.status, phase="Running", conditions=(*others, ready)))


class Town:
    """The world of a test, and short ways to ask about it."""

    def __init__(self, world: Served) -> None:
        self.client = world.client
        self.server = world.server
        self.clock = world.clock
        self.failures: list[str] = []

    def create(self, *things: KubeObject) -> None:
        """Let objects in, at once."""
        for thing in things:
            self.server.create("test", thing)

    def all(self, kind: type[K]) -> list[K]:
        """All objects of a kind, by key."""
        return sorted(self.server.objects(kind), key=key_of)

    def pods(self, app: str = "") -> list[Pod]:
        """The pods with that label that are not on their way out."""
        return [
            pod
            for pod in self.all(Pod)
            if pod.metadata.deletion_timestamp is None and (not app or pod.metadata.labels.get("app") == app)
        ]

    def where(self, app: str = "") -> dict[str, str]:
        """Pod to node."""
        return {pod.name: pod.spec.node_name for pod in self.pods(app)}

    async def run(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)


def in_town(
    test: Callable[[Town], Coroutine[Any, Any, None]],
    *,
    binder: Interceptor | None = None,
    workloads: Interceptor | None = None,
    absent: tuple[str, ...] = (),
    **options: Any,
) -> None:
    """Run a test with everybody at work; some of their calls may be intercepted. What controllers fail with is kept."""

    async def main(world: Served) -> None:
        town = Town(world)
        tasks = Tasks()

        def informers(client: Client, indexes: Any = None) -> dict[str, Any]:
            return {"client": client, "informers": Informers(client, indexes)}

        def start(name: str, *controllers: Any, among: dict[str, Any]) -> None:
            tell = lambda who, key, error: town.failures.append(f"{who} {key}: {error!r}")  # noqa: E731
            tasks.start(name, Manager(among["informers"], controllers, tell).run())

        for name, people, indexes, interceptor in (
            ("workloads", makers.controllers, makers.INDEXES, workloads),
            ("volumes", provisioner.controllers, provisioner.INDEXES, None),
        ):
            if name in absent:
                continue
            own = informers(world.server.client(name, interceptor=interceptor), indexes)
            start(name, *people(**own, clock=world.clock), among=own)
        own = informers(world.server.client("binder", interceptor=binder))
        start("binder", Binder(**own, clock=world.clock), among=own)
        own = informers(world.server.client("kubelet"))
        start("kubelet", Kubelet(**own), among=own)
        await asyncio.sleep(0.1)
        try:
            await test(town)
        finally:
            await tasks.close()

    served(main, **options)
