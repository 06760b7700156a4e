"""Deployments and ReplicaSets: so many pods that are all alike, replaced a few at a time when their template changes."""

from collections.abc import Iterable
from typing import Final

from joiner.kube.client import Client, Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.kube.errors import AlreadyExists
from joiner.kube.informer import Informers
from joiner.model.meta import ObjectMeta, replace
from joiner.model.pod import Pod
from joiner.model.selector import LabelSelector
from joiner.model.workload import Deployment, ReplicaSet, WorkloadSpec, WorkloadStatus
from joiner.sim.workloads.ownedpods import BURST, OWNER, Pods, all_of, keys_by_owner
from joiner.sim.workloads.podfactory import TEMPLATE_HASH, age, cast, is_active, is_ready, owned_by, template_hash

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
SHARE: Final = 25
"""Percent that may be there too many, and percent that may be missing, while a template is replaced."""
TELL_S: Final = 1.0
"""How long it takes until numbers that changed are told."""
HISTORY: Final = 10
"""How many empty ReplicaSets of earlier templates are kept."""


def _owner_of(change: Change, *, moved: bool) -> Iterable[Key]:
    """The set whose number of pods has changed, or the one of which only a pod's state has."""
    before, after = change.before, change.after
    counted = before is not None and is_active(before), after is not None and is_active(after)
    return keys_by_owner(ReplicaSet.kind, change) if (counted != (True, True)) == moved else ()


class ReplicaSets(Reconciler):
    """Keeps the pods of every ReplicaSet at their number."""

    name = "workloads.replicaset"
    watches = (
        Watch(ReplicaSet),
        Watch(Pod, lambda change: _owner_of(change, moved=True)),
        Watch(Pod, lambda change: _owner_of(change, moved=False), TELL_S),
    )

    def __init__(self, *, client: Client, informers: Informers, pods: Pods) -> None:
        self._client = client
        self._informers = informers
        self._pods = pods

    async def reconcile(self, key: Key) -> Result:
        """Make what is missing, or let go of what is too much."""
        found = self._informers.get(ReplicaSet, key.name, key.namespace)
        if found is None or found.metadata.deletion_timestamp is not None:
            return DONE
        active, ready = self._pods.numbers(found.metadata.uid)
        missing = found.spec.replicas - active - len(self._pods.unseen(found.metadata.uid))
        if missing > 0:
            pod = cast(found, found.spec.template)
            await all_of(self._pods.make(found.metadata.uid, pod) for _ in range(min(missing, BURST)))
        elif missing < 0:
            present = [pod for pod in self._pods.of(found.metadata.uid) if is_active(pod)]
            await all_of(self._pods.remove(pod) for pod in first_to_go(present)[:-missing])
        status = WorkloadStatus(replicas=active, ready_replicas=ready, observed_generation=found.metadata.generation)
        await self._client.patch_status(found, replace(found, status=status))
        return DONE


def first_to_go(pods: list[Pod]) -> list[Pod]:
    """The pods in the order in which they go: without a node, not ready, cheap to lose, crowded, new."""
    crowd: dict[str, int] = {}
    for pod in pods:
        crowd[pod.spec.node_name] = crowd.get(pod.spec.node_name, 0) + 1

    def rank(pod: Pod) -> tuple[bool, bool, int, int, float, str]:
        made = pod.metadata.creation_timestamp
        return (
            bool(pod.spec.node_name),
            is_ready(pod),
            _cost(pod),
            -crowd[pod.spec.node_name],
            -made.timestamp() if made is not None else 0.0,
            pod.name,
        )

    return sorted(pods, key=rank)


def _cost(pod: Pod) -> int:
    try:
        return int(pod.metadata.annotations.get(DELETION_COST, "0"))
    except ValueError:
        return 0


class Deployments(Reconciler):
    """Keeps one ReplicaSet per template, and moves the pods from the old ones to the newest."""

    name = "workloads.deployment"
    watches = (Watch(Deployment), Watch(ReplicaSet, lambda change: keys_by_owner(Deployment.kind, change), TELL_S))

    def __init__(self, *, client: Client, informers: Informers) -> None:
        self._client = client
        self._informers = informers

    async def reconcile(self, key: Key) -> Result:
        """One step towards all pods being of the newest template."""
        found = self._informers.get(Deployment, key.name, key.namespace)
        if found is None or found.metadata.deletion_timestamp is not None:
            return DONE
        name = f"{found.name}-{template_hash(found.spec.template)}"
        sets = [
            each
            for each in self._informers.by(ReplicaSet, OWNER, found.metadata.uid)
            if each.metadata.deletion_timestamp is None
        ]
        newest = next((each for each in sets if each.name == name), None)
        old = [each for each in sets if each.name != name]
        if newest is None:
            await self._begin(found, name, old)
        else:
            await self._step(found, newest, old)
        status = WorkloadStatus(
            replicas=sum(each.status.replicas for each in sets),
            ready_replicas=sum(each.status.ready_replicas for each in sets),
            observed_generation=found.metadata.generation,
        )
        await self._client.patch_status(found, replace(found, status=status))
        return DONE

    async def _begin(self, deployment: Deployment, name: str, old: list[ReplicaSet]) -> None:
        mark = {TEMPLATE_HASH: name.rpartition("-")[2]}
        template = deployment.spec.template
        labels = {**template.metadata.labels, **mark}
        selector = deployment.spec.selector or LabelSelector(match_labels=template.metadata.labels)
        spec = WorkloadSpec(
            replicas=grown(deployment.spec.replicas, 0, sum(each.spec.replicas for each in old)),
            selector=replace(selector, match_labels={**selector.match_labels, **mark}),
            template=replace(template, metadata=replace(template.metadata, labels=labels)),
        )
        metadata = ObjectMeta(
            name=name,
            namespace=deployment.metadata.namespace,
            labels=labels,
            owner_references=(owned_by(deployment),),
        )
        try:
            await self._client.create(ReplicaSet(metadata=metadata, spec=spec))
        except AlreadyExists:
            return  # the cache will show it

    async def _step(self, deployment: Deployment, newest: ReplicaSet, old: list[ReplicaSet]) -> None:
        wanted = deployment.spec.replicas
        filled = [each for each in old if each.spec.replicas]
        await self._scale(newest, grown(wanted, newest.spec.replicas, sum(each.spec.replicas for each in filled)))
        for each, replicas in shrunk(wanted, newest, filled):
            await self._scale(each, replicas)
        empty = sorted((each for each in old if not each.spec.replicas and not each.status.replicas), key=age)
        for each in empty[: max(0, len(empty) - HISTORY)]:
            await self._client.delete(ReplicaSet, each.name, each.metadata.namespace, uid=each.metadata.uid)

    async def _scale(self, found: ReplicaSet, replicas: int) -> None:
        await self._client.patch(found, replace(found, spec=replace(found.spec, replicas=replicas)))


def grown(wanted: int, newest: int, others: int) -> int:
    """How many pods of the newest template there should be, beside so many others."""
    if not others or newest >= wanted:
        return wanted
    surge = -(-wanted * SHARE // 100)
    return min(wanted, newest + max(0, wanted + surge - newest - others))


def shrunk(wanted: int, newest: ReplicaSet, old: list[ReplicaSet]) -> list[tuple[ReplicaSet, int]]:
    """How many pods of each older template may stay: those that are not ready go first, then the eldest."""
    old = sorted(old, key=age)
    least = wanted - wanted * SHARE // 100
    total = newest.spec.replicas + sum(each.spec.replicas for each in old)
    spare = total - least - max(0, newest.spec.replicas - newest.status.ready_replicas)
    left = {each.name: each.spec.replicas for each in old}
    for each in old:
        cut = max(0, min(spare, each.spec.replicas - each.status.ready_replicas))
        left[each.name] -= cut
        spare -= cut
    for each in old:
        cut = max(0, min(spare, left[each.name]))
        left[each.name] -= cut
        spare -= cut
    return [(each, left[each.name]) for each in old]
