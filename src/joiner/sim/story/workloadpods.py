"""The pods of each workload of a story, kept up to date by the writes of the API server.

A pod belongs to the workload that its label `app` names; one without the label to the object that owns it: its Deployment,
StatefulSet, DaemonSet or Job. Pods that are being deleted do not count.
"""

from collections.abc import Iterable

from joiner.model.pod import Pod, is_ready
from joiner.model.workload import Deployment, ReplicaSet, StatefulSet
from joiner.sim.apiserver.server import ApiServer, Write
from joiner.sim.story.objects import APP


class WorkloadPods:
    """Which pods a workload has, and how many of them are ready."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._pods: dict[str, dict[str, Pod]] = {}
        """Workload to its pods by uid."""
        self._ready: dict[str, dict[str, None]] = {}
        self._scaled: dict[str, tuple[type[Deployment] | type[StatefulSet], str]] = {}
        """Workload with replicas to its kind and namespace."""
        self._owners: dict[str, str] = {}
        """UID of a ReplicaSet to the name of its Deployment: pods may outlive both."""
        server.observers.append(self._written)

    def of(self, workload: str) -> Iterable[Pod]:
        """The pods of a workload."""
        return self._pods.get(workload, {}).values()

    def ready(self, workload: str) -> int:
        """How many pods of a workload are ready."""
        return len(self._ready.get(workload, ()))

    def wanted(self, workload: str) -> int:
        """How many pods a Deployment or StatefulSet should have; 0 for other workloads."""
        kind, namespace = self._scaled.get(workload, (Deployment, ""))
        found = self._server.find(kind, workload, namespace)
        return found.spec.replicas if found is not None else 0

    def named(self, pod: Pod) -> str:
        """The workload of a pod; its own name if it has none."""
        if (app := pod.metadata.labels.get(APP)) is not None:
            return app
        owner = next(iter(pod.metadata.owner_references), None)
        if owner is None:
            return pod.name
        if owner.kind != ReplicaSet.kind:
            return owner.name
        known = self._owners.get(owner.uid)
        if known is None:
            replica_set = self._server.find(ReplicaSet, owner.name, pod.metadata.namespace)
            above = replica_set.metadata.owner_references if replica_set is not None else ()
            known = self._owners[owner.uid] = above[0].name if above else owner.name
        return known

    def _written(self, write: Write) -> None:
        thing = write.after if write.after is not None else write.before
        if isinstance(thing, Deployment | StatefulSet):
            self._scaled[thing.name] = (type(thing), thing.metadata.namespace)
        if not isinstance(thing, Pod):
            return
        name, uid = self.named(thing), thing.metadata.uid
        pods, ready = self._pods.setdefault(name, {}), self._ready.setdefault(name, {})
        is_there = write.after is not None and thing.metadata.deletion_timestamp is None
        if is_there:
            pods[uid] = thing
        else:
            pods.pop(uid, None)
        if is_there and is_ready(thing):
            ready[uid] = None
        else:
            ready.pop(uid, None)
