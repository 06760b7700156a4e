"""CapacityBuffers turned into virtual pods: room is kept by planning for pods that are not there."""

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from joiner.model.capacitybuffer import ACTIVE_CAPACITY, CapacityBuffer
from joiner.model.meta import ObjectMeta, OwnerReference, replace
from joiner.model.pod import Pod, PodCondition, PodSpec, PodStatus, PodTemplateSpec
from joiner.model.podrequests import of_spec
from joiner.model.quantity import Quantity

LOWEST_PRIORITY: Final = -(2**31)
"""No real pod is refused a place in favour of a virtual one."""
FAKE_POD: Final = "karpenter.sh/capacity-buffer-fake-pod"
BUFFER_NAME: Final = "karpenter.sh/capacity-buffer-name"
BUFFER_NAMESPACE: Final = "karpenter.sh/capacity-buffer-namespace"

WAITING: Final = PodStatus(
    phase="Pending", conditions=(PodCondition(type="PodScheduled", status="False", reason="Unschedulable"),)
)
"""The status of a pod that the scheduler has found no node for."""


class Imitated(NamedTuple):
    """What a buffer imitates."""

    template: PodTemplateSpec
    replicas: int = 0
    """How many of them there are meant to be."""
    generation: int = 0


class Sources(Protocol):
    """The objects buffers may imitate."""

    def pod_template(self, namespace: str, name: str) -> Imitated | None:
        """The PodTemplate, if it is there."""
        ...

    def workload(self, namespace: str, kind: str, name: str) -> Imitated | None:
        """The workload, if it is there and of a kind that can be imitated."""
        ...


def imitated(buffer: CapacityBuffer, sources: Sources) -> Imitated | None:
    """What the buffer imitates, if that is there."""
    namespace, spec = buffer.metadata.namespace, buffer.spec
    if spec.pod_template_ref is not None:
        return sources.pod_template(namespace, spec.pod_template_ref.name)
    if spec.scalable_ref is not None:
        return sources.workload(namespace, spec.scalable_ref.kind, spec.scalable_ref.name)
    return None


def virtual_pods(buffer: CapacityBuffer, sources: Sources) -> tuple[Pod, ...] | None:
    """The pods that stand for the room; nothing when what the buffer imitates is not there."""
    if buffer.spec.provisioning_strategy != ACTIVE_CAPACITY:
        return ()
    found = imitated(buffer, sources)
    if found is None:
        return None
    spec, namespace = _portable(found.template.spec), buffer.metadata.namespace
    owner = OwnerReference(
        api_version=buffer.api_version(),
        kind=buffer.kind,
        name=buffer.name,
        uid=buffer.metadata.uid,
        controller=True,
    )
    annotations = {FAKE_POD: "true", BUFFER_NAME: buffer.name, BUFFER_NAMESPACE: namespace}
    return tuple(
        Pod(
            metadata=ObjectMeta(
                name=f"capacity-buffer-{buffer.name}-{number}",
                namespace=namespace,
                uid=f"{buffer.metadata.uid or buffer.name}-{number}",
                labels=found.template.metadata.labels,
                annotations=annotations,
                owner_references=(owner,),
            ),
            spec=spec,
            status=WAITING,
        )
        for number in range(replicas(buffer, found.replicas, of_spec(spec)))
    )


def is_virtual(pod: Pod) -> bool:
    """Whether the pod only stands for room that is kept."""
    return pod.metadata.annotations.get(FAKE_POD) == "true"


def replicas(buffer: CapacityBuffer, present: int, requests: Mapping[str, int]) -> int:
    """For how many pods room is kept: the larger of number and share, and never more than the limits hold."""
    spec = buffer.spec
    counts = [] if spec.replicas is None else [spec.replicas]
    if spec.percentage is not None and present > 0:
        counts.append(-(-present * spec.percentage // 100))
    held = _held(spec.limits, requests)
    if not counts:
        return held or 0
    return max(counts) if held is None else min(max(counts), held)


def _held(limits: Mapping[str, Quantity], requests: Mapping[str, int]) -> int | None:
    """How many such pods the limits hold; nothing where they limit nothing that the pods ask for."""
    return min(
        (max(0, limit) // requests[name] for name, limit in limits.items() if requests.get(name, 0) > 0), default=None
    )


def _portable(spec: PodSpec) -> PodSpec:
    """The spec without what belongs to one pod only: its node, its volumes."""
    kept = (volume for volume in spec.volumes if volume.persistent_volume_claim is None and volume.ephemeral is None)
    return replace(spec, node_name="", volumes=tuple(kept), priority=LOWEST_PRIORITY)
