"""Pods as workloads make them: cast from a template, owned, and with what admission adds on the way into the cluster."""

import zlib
from collections.abc import Iterable, Mapping
from typing import Final

from joiner.model import pod as pods
from joiner.model.meta import KubeObject, ObjectMeta, OwnerReference, replace
from joiner.model.pod import Container, Pod, PodSpec, PodTemplateSpec
from joiner.model.podpolicy import PriorityClass, RuntimeClass
from joiner.model.quantity import Quantity
from joiner.model.taints import Toleration
from joiner.model.workload import ReplicaSet
from joiner.sim.scheduler.clusterindex import signature

TEMPLATE_HASH: Final = "pod-template-hash"
REVISION: Final = "controller-revision-hash"

SYSTEM_PRIORITIES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
PATIENCE_S: Final = 300
"""How long a pod stays on a node that does not answer, if it does not say itself."""
_LOST: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def template_hash(template: PodTemplateSpec) -> str:
    """A short name for a template; another template has another one."""
    return f"{zlib.crc32(signature(template)):08x}"


def owned_by(owner: KubeObject) -> OwnerReference:
    """The reference that makes the owner responsible."""
    return OwnerReference(
        api_version=owner.api_version(),
        kind=owner.kind,
        name=owner.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def age(thing: Pod | ReplicaSet) -> tuple[float, str]:
    """Sorts the oldest first."""
    made = thing.metadata.creation_timestamp
    return (made.timestamp() if made is not None else 0.0, thing.name)


def cast(
    owner: KubeObject,
    template: PodTemplateSpec,
    *,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    spec: PodSpec | None = None,
) -> Pod:
    """A pod of the owner, named by the server unless it has a name."""
    metadata = ObjectMeta(
        name=name,
        generate_name="" if name else f"{owner.name}-",
        namespace=owner.metadata.namespace,
        labels={**template.metadata.labels, **(labels or {})},
        annotations=template.metadata.annotations,
        finalizers=template.metadata.finalizers,
        owner_references=(owned_by(owner),),
    )
    return Pod(metadata=metadata, spec=spec or template.spec)


# -- what admission adds ---------------------------------------------------------------------------------------------------


def admit(pod: Pod, runtimes: Iterable[RuntimeClass], priorities: Iterable[PriorityClass]) -> Pod:
    """The pod as the API server would store it: limits as requests, priority, runtime overhead, patience with lost nodes."""
    spec = _with_priority(_with_runtime(_with_requests(pod.spec), runtimes), priorities)
    return replace(pod, spec=_with_patience(spec))


def _with_requests(spec: PodSpec) -> PodSpec:
    spec = replace(
        spec,
        containers=tuple(map(_with_own_requests, spec.containers)),
        init_containers=tuple(map(_with_own_requests, spec.init_containers)),
    )
    requests = dict(spec.resources.requests)
    for name, limit in spec.resources.limits.items():
        if not any(name in each.resources.requests for each in (*spec.containers, *spec.init_containers)):
            requests.setdefault(name, limit)
    return replace(spec, resources=replace(spec.resources, requests=requests))


def _with_own_requests(container: Container) -> Container:
    given = container.resources
    if all(name in given.requests for name in given.limits):
        return container
    requests: dict[str, Quantity] = {**given.limits, **given.requests}
    return replace(container, resources=replace(given, requests=requests))


def _with_runtime(spec: PodSpec, classes: Iterable[RuntimeClass]) -> PodSpec:
    runtime = next((each for each in classes if each.name == spec.runtime_class_name), None)
    if runtime is None:
        return spec
    return replace(
        spec,
        overhead=runtime.overhead.pod_fixed,
        node_selector={**spec.node_selector, **runtime.scheduling.node_selector},
        tolerations=tuple(dict.fromkeys((*spec.tolerations, *runtime.scheduling.tolerations))),
    )


def _with_priority(spec: PodSpec, classes: Iterable[PriorityClass]) -> PodSpec:
    if spec.priority is not None:
        return spec
    known = {each.name: each for each in classes}
    if not spec.priority_class_name:
        usual = [each for each in known.values() if each.global_default]
        if not usual:
            return replace(spec, priority=0)
        spec = replace(spec, priority_class_name=min(usual, key=lambda each: (each.value, each.name)).name)
    meant = known.get(spec.priority_class_name)
    if meant is None:
        return replace(spec, priority=SYSTEM_PRIORITIES.get(spec.priority_class_name, 0))
    policy = spec.preemption_policy or meant.preemption_policy
    return replace(spec, priority=meant.value, preemption_policy=policy)


def _with_patience(spec: PodSpec) -> PodSpec:
    missing = tuple(
        Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=PATIENCE_S)
        for key in _LOST
        if not any(each.key in ("", key) and each.effect in ("", "NoExecute") for each in spec.tolerations)
    )
    return replace(spec, tolerations=(*spec.tolerations, *missing)) if missing else spec


# -- how a pod is ----------------------------------------------------------------------------------------------------------


def is_active(pod: Pod) -> bool:
    """Whether it counts: neither at its end nor on its way out."""
    return pod.status.phase not in ("Succeeded", "Failed") and pod.metadata.deletion_timestamp is None


def is_daemon(pod: Pod) -> bool:
    """Whether a DaemonSet made it."""
    return any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references)


def is_ready(pod: Pod) -> bool:
    """Whether it is active and ready."""
    return is_active(pod) and pods.is_ready(pod)
