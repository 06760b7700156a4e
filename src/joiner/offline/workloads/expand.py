"""The pods that Deployments, StatefulSets, ReplicaSets and Jobs would make: how many, under which names, with which volumes."""

from collections.abc import Iterable, Sequence
from typing import Final

from joiner.model.meta import ObjectMeta, OwnerReference, replace
from joiner.model.pod import ClaimVolumeSource, Pod, PodSpec, Volume
from joiner.model.storage import PersistentVolumeClaim
from joiner.model.workload import Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from joiner.state.virtualpods import WAITING

Workload = Deployment | ReplicaSet | StatefulSet | ReplicationController | Job
WORKLOADS: Final[tuple[type[Workload], ...]] = (Deployment, ReplicaSet, StatefulSet, ReplicationController, Job)

_OVER: Final = ("Complete", "Failed")
"""Conditions of a Job for which nothing is started any more."""


def wanted(workload: Workload) -> int:
    """How many pods should be there now."""
    if not isinstance(workload, Job):
        return max(0, workload.spec.replicas)
    spec = workload.spec
    over = any(each.type in _OVER and each.status == "True" for each in workload.status.conditions)
    if spec.suspend or over:
        return 0
    at_once = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None:
        return max(0, at_once)
    return max(0, min(at_once, spec.completions - workload.status.succeeded))


def expand(workload: Workload, living: Sequence[Pod] = ()) -> tuple[Pod, ...]:
    """The pods that are missing beside those that live. They are numbered from 0, like those of a StatefulSet."""
    taken = {pod.name for pod in living}
    missing = wanted(workload) - len(living)
    pods: list[Pod] = []
    number = 0
    while len(pods) < missing:
        if f"{workload.name}-{number}" not in taken:
            pods.append(_pod(workload, number))
        number += 1
    return tuple(pods)


def _pod(workload: Workload, number: int) -> Pod:
    template = workload.spec.template
    name = f"{workload.name}-{number}"
    owner = OwnerReference(
        api_version=workload.api_version(),
        kind=workload.kind,
        name=workload.name,
        uid=workload.metadata.uid,
        controller=True,
    )
    metadata = ObjectMeta(
        name=name,
        namespace=workload.metadata.namespace,
        uid=f"{workload.kind}/{workload.metadata.namespace}/{workload.name}/{number:06d}",
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=(owner,),
    )
    return Pod(metadata=metadata, spec=_with_volumes(template.spec, workload, name), status=WAITING)


def _with_volumes(spec: PodSpec, workload: Workload, pod: str) -> PodSpec:
    if not isinstance(workload, StatefulSet) or not workload.spec.volume_claim_templates:
        return spec
    own = tuple(
        Volume(name=each.name, persistent_volume_claim=ClaimVolumeSource(claim_name=f"{each.name}-{pod}"))
        for each in workload.spec.volume_claim_templates
    )
    names = {volume.name for volume in own}
    return replace(spec, volumes=(*(volume for volume in spec.volumes if volume.name not in names), *own))


def claims_of(workload: Workload, pods: Iterable[Pod]) -> tuple[PersistentVolumeClaim, ...]:
    """The PersistentVolumeClaims a StatefulSet makes for its pods."""
    if not isinstance(workload, StatefulSet):
        return ()
    return tuple(
        PersistentVolumeClaim(
            metadata=ObjectMeta(
                name=f"{each.name}-{pod.name}", namespace=pod.metadata.namespace, labels=each.metadata.labels
            ),
            spec=each.spec,
        )
        for pod in pods
        for each in workload.spec.volume_claim_templates
    )
