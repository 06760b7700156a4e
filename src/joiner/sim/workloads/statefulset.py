"""StatefulSets: pods with a number each, made in order, replaced from the last, with volumes that outlive them."""

from joiner.kube.client import Client, Key
from joiner.kube.controller import DONE, Reconciler, Result, Watch
from joiner.kube.errors import AlreadyExists
from joiner.kube.informer import Informers
from joiner.model.meta import ObjectMeta, replace
from joiner.model.pod import ClaimVolumeSource, Pod, PodSpec, Volume
from joiner.model.storage import PersistentVolumeClaim
from joiner.model.workload import StatefulSet, WorkloadStatus
from joiner.sim.workloads.ownedpods import OWNER, Pods, keys_by_owner
from joiner.sim.workloads.podfactory import REVISION, cast, is_active, is_ready, template_hash


class StatefulSets(Reconciler):
    """One step at a time: a pod is made, or goes, only when all before it are ready."""

    name = "workloads.statefulset"
    watches = (Watch(StatefulSet), Watch(Pod, lambda change: keys_by_owner(StatefulSet.kind, change)))

    def __init__(self, *, client: Client, informers: Informers, pods: Pods) -> None:
        self._client = client
        self._informers = informers
        self._pods = pods
        informers.of(PersistentVolumeClaim)

    async def reconcile(self, key: Key) -> Result:
        """Do the next thing that is due."""
        found = self._informers.get(StatefulSet, key.name, key.namespace)
        if found is None or found.metadata.deletion_timestamp is not None:
            return DONE
        pods = {_number(pod): pod for pod in self._informers.by(Pod, OWNER, found.metadata.uid)}
        await self._step(found, pods)
        status = WorkloadStatus(
            replicas=sum(1 for pod in pods.values() if is_active(pod)),
            ready_replicas=sum(1 for pod in pods.values() if is_ready(pod)),
            observed_generation=found.metadata.generation,
        )
        await self._client.patch_status(found, replace(found, status=status))
        return DONE

    async def _step(self, found: StatefulSet, pods: dict[int, Pod]) -> None:
        for number in range(found.spec.replicas):
            pod = pods.get(number)
            if pod is None:
                await self._make(found, number)
                return
            if pod.status.phase in ("Succeeded", "Failed") and not _is_leaving(pod):
                await self._pods.remove(pod)
                return
            if not is_ready(pod):
                return
        revision = template_hash(found.spec.template)
        outdated = [each for each in pods if pods[each].metadata.labels.get(REVISION) != revision]
        surplus = [each for each in pods if each >= found.spec.replicas]
        last = max(surplus or outdated, default=None)
        if last is not None and not _is_leaving(pods[last]):
            await self._pods.remove(pods[last])

    async def _make(self, found: StatefulSet, number: int) -> None:
        name = f"{found.name}-{number}"
        template = found.spec.template
        for each in found.spec.volume_claim_templates:
            await self._claim(each, f"{each.name}-{name}", found.metadata.namespace)
        labels = {
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(number),
            REVISION: template_hash(template),
        }
        pod = cast(found, template, name=name, labels=labels, spec=_with_volumes(found, name))
        try:
            await self._pods.make(found.metadata.uid, pod)
        except AlreadyExists:
            return  # the cache will show it; or another owner has the name, and then it stays theirs

    async def _claim(self, template: PersistentVolumeClaim, name: str, namespace: str) -> None:
        if self._informers.get(PersistentVolumeClaim, name, namespace) is not None:
            return
        metadata = ObjectMeta(name=name, namespace=namespace, labels=template.metadata.labels)
        try:
            await self._client.create(PersistentVolumeClaim(metadata=metadata, spec=template.spec))
        except AlreadyExists:
            return


def _number(pod: Pod) -> int:
    return int(pod.name.rpartition("-")[2])


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _with_volumes(found: StatefulSet, pod: str) -> PodSpec:
    spec = found.spec.template.spec
    own = tuple(
        Volume(name=each.name, persistent_volume_claim=ClaimVolumeSource(claim_name=f"{each.name}-{pod}"))
        for each in found.spec.volume_claim_templates
    )
    names = {volume.name for volume in own}
    return replace(spec, volumes=(*(volume for volume in spec.volumes if volume.name not in names), *own))
