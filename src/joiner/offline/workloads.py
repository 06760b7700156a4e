"""Workloads turned into the pods they would make, with everything the API server would add to them on the way."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from joiner.model.meta import KubeObject, ObjectMeta, OwnerReference, Value, replace
from joiner.model.pod import ClaimVolumeSource, Container, Pod, PodSpec, Volume, with_host_ports
from joiner.model.podpolicy import LimitRange, LimitRangeItem, PriorityClass, RuntimeClass
from joiner.model.resources import Resources
from joiner.model.selector import chooses
from joiner.model.storage import PersistentVolumeClaim
from joiner.model.workload import Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from joiner.state.pods import limits_as_requests
from joiner.state.virtualpods import WAITING

Workload = Deployment | ReplicaSet | StatefulSet | ReplicationController | Job
WORKLOADS: Final[tuple[type[Workload], ...]] = (Deployment, ReplicaSet, StatefulSet, ReplicationController, Job)

SYSTEM_PRIORITIES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""Priority classes that every cluster has."""


class Rules(Value):
    """What the API server goes by when a pod is made."""

    limit_ranges: tuple[LimitRange, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    runtime_classes: tuple[RuntimeClass, ...] = ()


_OVER: Final = ("Complete", "Failed")
"""Conditions of a Job for which nothing is started any more."""

# -- how many, and what they are called ------------------------------------------------------------------------------------


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


# -- whose pod it is -------------------------------------------------------------------------------------------------------


def controller(of: KubeObject) -> OwnerReference | None:
    """The owner that made the object and looks after it."""
    return next((owner for owner in of.metadata.owner_references if owner.controller), None)


class WorkloadFamilies:
    """Which workload a pod belongs to, also by way of a ReplicaSet, and also when that is not in the files."""

    def __init__(self, replica_sets: Iterable[ReplicaSet], deployments: Iterable[Deployment] = ()) -> None:
        self._between = {(each.metadata.namespace, each.name): controller(each) for each in replica_sets}
        self._deployments: dict[str, dict[str, Deployment]] = {}
        for each in deployments:
            self._deployments.setdefault(each.metadata.namespace, {})[each.name] = each

    def head(self, pod: Pod) -> tuple[str, str, str]:
        """Kind, namespace and name of the workload; of the pod itself when it has no owner."""
        owner = controller(pod)
        namespace = pod.metadata.namespace
        if owner is None:
            return (Pod.kind, namespace, pod.name)
        if owner.kind == ReplicaSet.kind:
            if (namespace, owner.name) not in self._between:
                found = self._by_name_or_labels(owner.name, pod)
                return (
                    (ReplicaSet.kind, namespace, owner.name) if found is None else (Deployment.kind, namespace, found)
                )
            owner = self._between[namespace, owner.name] or owner
        return (owner.kind, namespace, owner.name)

    def _by_name_or_labels(self, replica_set: str, pod: Pod) -> str | None:
        """The Deployment of a ReplicaSet that is not there: called like it but for the hash, else the only one that fits."""
        siblings = self._deployments.get(pod.metadata.namespace, {})
        named = siblings.get(replica_set.rpartition("-")[0])
        if named is not None and (named.spec.selector is None or named.spec.selector.matches(pod.metadata.labels)):
            return named.name
        fitting = [name for name, each in siblings.items() if chooses(each.spec.selector, pod.metadata.labels)]
        return fitting[0] if len(fitting) == 1 else None


# -- what the API server adds ----------------------------------------------------------------------------------------------


def admitted(spec: PodSpec, namespace: str, rules: Rules) -> PodSpec:
    """The spec as the API server would store it, as far as it matters for where a pod can run."""
    spec = with_host_ports(limits_as_requests(spec))
    spec = _with_runtime(spec, rules.runtime_classes)
    spec = _with_priority(spec, rules.priority_classes)
    for limit_range in rules.limit_ranges:
        if limit_range.metadata.namespace == namespace:
            for item in limit_range.spec.limits:
                if item.type == "Container":
                    spec = _within(spec, item)
    return spec


def _with_runtime(spec: PodSpec, classes: Iterable[RuntimeClass]) -> PodSpec:
    runtime = next((each for each in classes if each.name == spec.runtime_class_name), None)
    if runtime is None:
        return spec
    return replace(
        spec,
        overhead=spec.overhead or runtime.overhead.pod_fixed,
        node_selector={**runtime.scheduling.node_selector, **spec.node_selector},
        tolerations=(*spec.tolerations, *(t for t in runtime.scheduling.tolerations if t not in spec.tolerations)),
    )


def _with_priority(spec: PodSpec, classes: Sequence[PriorityClass]) -> PodSpec:
    if spec.priority is not None:
        return spec
    if not spec.priority_class_name:
        usual = max((each for each in classes if each.global_default), key=lambda each: each.name, default=None)
        return spec if usual is None else replace(spec, priority=usual.value, priority_class_name=usual.name)
    known = {**SYSTEM_PRIORITIES, **{each.name: each.value for each in classes}}
    value = known.get(spec.priority_class_name)
    return spec if value is None else replace(spec, priority=value)


def _within(spec: PodSpec, item: LimitRangeItem) -> PodSpec:
    # A range that gives only some of its numbers derives the others: the limit from the most, the request from the limit.
    limits = {**item.max, **item.default}
    requests = {**item.min, **limits, **item.default_request}
    return replace(
        spec,
        containers=tuple(_filled(each, limits, requests) for each in spec.containers),
        init_containers=tuple(_filled(each, limits, requests) for each in spec.init_containers),
    )


def _filled(container: Container, limits: Resources, requests: Resources) -> Container:
    given = container.resources
    return replace(
        container,
        resources=replace(given, requests={**requests, **given.requests}, limits={**limits, **given.limits}),
    )
