"""DaemonSets: one pod for every node that fits.

Only nodes that something happened to are looked at, so that the work grows with what happens and not with the cluster.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from joiner.kube.client import Client, Key, key_of
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.kube.informer import Informers
from joiner.model.affinity import NodeSelector, NodeSelectorTerm
from joiner.model.meta import replace
from joiner.model.node import Node
from joiner.model.pod import Pod
from joiner.model.requirement import SelectorRequirement
from joiner.model.taints import Toleration
from joiner.model.workload import DaemonSet, DaemonSetStatus
from joiner.sim.scheduler.nodefit import is_chosen, untolerated
from joiner.sim.workloads.ownedpods import PLACE, Pods, keys_by_owner, node_meant, place
from joiner.sim.workloads.podfactory import REVISION, age, cast, is_active, is_ready, template_hash

_TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
    ("network-unavailable", "NoSchedule"),
)
TOLERATIONS: Final = tuple(
    Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect) for name, effect in _TOLERATED
)
"""What every daemon's pod puts up with."""


class _Standing(NamedTuple):
    """How one node is doing for one set."""

    wanted: bool = False
    there: bool = False
    ready: bool = False
    outdated: bool = False


class DaemonSets(Reconciler):
    """Keeps one pod of each set on each node that fits."""

    name = "workloads.daemonset"

    def __init__(self, *, client: Client, informers: Informers, pods: Pods) -> None:
        self._client = client
        self._informers = informers
        self._pods = pods
        self._dirty: dict[Key, dict[str, None]] = {}
        self._standings: dict[Key, dict[str, _Standing]] = {}
        self.watches = (
            Watch(DaemonSet, self._set_changed),
            Watch(Node, self._node_changed),
            Watch(Pod, self._pod_changed),
        )

    # -- which nodes to look at

    def _set_changed(self, change: Change) -> Iterable[Key]:
        key = key_of(change.latest)
        if change.after is None:
            self._dirty.pop(key, None)
            self._standings.pop(key, None)
            return ()
        if change.before is None or change.before.spec != change.after.spec:
            self._dirty.setdefault(key, {}).update(dict.fromkeys(each.name for each in self._informers.all(Node)))
        return (key,)

    def _node_changed(self, change: Change) -> Iterable[Key]:
        if change.before is not None and change.after is not None and _looks_the_same(change.before, change.after):
            return ()
        keys = [key_of(each) for each in self._informers.all(DaemonSet)]
        for key in keys:
            self._dirty.setdefault(key, {})[change.latest.name] = None
        return keys

    def _pod_changed(self, change: Change) -> Iterable[Key]:
        keys = tuple(keys_by_owner(DaemonSet.kind, change))
        for key in keys:
            self._dirty.setdefault(key, {})[node_meant(change.latest)] = None
        return keys

    # -- one pass

    async def reconcile(self, key: Key) -> Result:
        """Bring the nodes in order that something happened to."""
        found = self._informers.get(DaemonSet, key.name, key.namespace)
        if found is None or found.metadata.deletion_timestamp is not None:
            return DONE
        dirty = self._dirty.pop(key, {})
        standings = self._standings.setdefault(key, {})
        try:
            while dirty:
                node = next(iter(dirty))
                standing = await self._look_at(found, node)
                if standing is None:
                    standings.pop(node, None)
                else:
                    standings[node] = standing
                del dirty[node]
            await self._replace_one(found, standings)
        finally:
            if dirty:
                self._dirty.setdefault(key, {}).update(dirty)
        status = DaemonSetStatus(
            desired_number_scheduled=sum(each.wanted for each in standings.values()),
            current_number_scheduled=sum(each.there for each in standings.values()),
            number_ready=sum(each.ready for each in standings.values()),
            observed_generation=found.metadata.generation,
        )
        await self._client.patch_status(found, replace(found, status=status))
        return DONE

    async def _look_at(self, found: DaemonSet, name: str) -> _Standing | None:
        entry = place(found.metadata.uid, name)
        node = self._informers.get(Node, name)
        pods = self._pods.of(entry, PLACE)
        if node is None:
            for pod in pods:
                await self._pods.remove(pod, at_once=True)
            return None
        model = template_pod(found)
        active = sorted((pod for pod in pods if is_active(pod)), key=age)
        keep = active[:1] if may_stay(model, node) else []
        for pod in pods:
            if pod not in keep and pod.metadata.deletion_timestamp is None:
                await self._pods.remove(pod)
        wanted = should_run(model, node)
        leaving = self._informers.by(Pod, PLACE, entry)
        if wanted and not keep and not leaving and not self._pods.unseen(entry):
            await self._pods.make(entry, daemon_pod(found, name))
        outdated = any(pod.metadata.labels.get(REVISION) != template_hash(found.spec.template) for pod in keep)
        return _Standing(wanted, bool(keep), any(map(is_ready, keep)), outdated)

    async def _replace_one(self, found: DaemonSet, standings: dict[str, _Standing]) -> None:
        """A pod of an earlier template goes when all others are ready."""
        outdated = [node for node, each in standings.items() if each.outdated]
        if not outdated or any(each.wanted and not each.ready and not each.outdated for each in standings.values()):
            return
        unready = [node for node in outdated if not standings[node].ready]
        for pod in self._pods.of(place(found.metadata.uid, min(unready or outdated)), PLACE):
            await self._pods.remove(pod)


def template_pod(found: DaemonSet) -> Pod:
    """A pod of the set that is for no node yet: which nodes it fits decides where there will be one."""
    spec = found.spec.template.spec
    missing = tuple(each for each in TOLERATIONS if each not in spec.tolerations)
    labels = {REVISION: template_hash(found.spec.template)}
    spec = replace(spec, tolerations=(*spec.tolerations, *missing))
    return cast(found, found.spec.template, labels=labels, spec=spec)


def daemon_pod(found: DaemonSet, node: str) -> Pod:
    """The pod of a set for one node: its name takes the place of whatever the affinity required."""
    pod = template_pod(found)
    name = SelectorRequirement(key="metadata.name", operator="In", values=(node,))
    term = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))
    affinity = pod.spec.affinity
    affinity = replace(affinity, node_affinity=replace(affinity.node_affinity, required=term))
    return replace(pod, spec=replace(pod.spec, affinity=affinity))


def should_run(pod: Pod, node: Node) -> bool:
    """Whether the node should get a pod of the set."""
    return is_chosen(pod, node) and not any(untolerated(pod, node, ("NoSchedule", "NoExecute")))


def may_stay(pod: Pod, node: Node) -> bool:
    """Whether a pod of the set that is there may stay."""
    return is_chosen(pod, node) and not any(untolerated(pod, node, ("NoExecute",)))


def _looks_the_same(before: Node, after: Node) -> bool:
    return (
        before.metadata.labels == after.metadata.labels
        and before.spec.taints == after.spec.taints
        and before.spec.unschedulable == after.spec.unschedulable
    )
