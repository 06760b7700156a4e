"""CapacityBuffers turned into virtual pods: room is kept by planning for pods that are not there."""

from collections.abc import Iterable, Mapping
from typing import Final

from joiner.cli.workloads import WAITING, Workload, wanted
from joiner.model.capacitybuffer import ACTIVE_CAPACITY, CapacityBuffer
from joiner.model.meta import ObjectMeta, OwnerReference, replace
from joiner.model.pod import Pod, PodSpec, PodTemplateSpec
from joiner.model.podrequests import of_spec
from joiner.model.quantity import Quantity
from joiner.model.workload import PodTemplate

LOWEST_PRIORITY: Final = -(2**31)
"""Nobody is refused a place in favour of a virtual pod."""


class Sources:
    """The objects buffers may imitate, by namespace, kind and name."""

    def __init__(self, templates: Iterable[PodTemplate], workloads: Iterable[Workload]) -> None:
        self._templates = {(each.metadata.namespace, each.name): each.template for each in templates}
        self._workloads = {(each.metadata.namespace, each.kind, each.name): each for each in workloads}

    def imitated(self, buffer: CapacityBuffer) -> tuple[PodTemplateSpec | None, int]:
        """The template of the pods to keep room for, and how many of them there are meant to be."""
        namespace, spec = buffer.metadata.namespace, buffer.spec
        if spec.pod_template_ref is not None:
            return self._templates.get((namespace, spec.pod_template_ref.name)), 0
        if spec.scalable_ref is not None:
            workload = self._workloads.get((namespace, spec.scalable_ref.kind, spec.scalable_ref.name))
            if workload is not None:
                return workload.spec.template, wanted(workload)
        return None, 0


def virtual_pods(buffer: CapacityBuffer, sources: Sources) -> tuple[Pod, ...] | None:
    """The pods that stand for the room; nothing when what the buffer imitates is not there."""
    if buffer.spec.provisioning_strategy != ACTIVE_CAPACITY:
        return ()
    template, present = sources.imitated(buffer)
    if template is None:
        return None
    spec = _portable(template.spec)
    owner = OwnerReference(api_version=buffer.api_version(), kind=buffer.kind, name=buffer.name, controller=True)
    return tuple(
        Pod(
            metadata=ObjectMeta(
                name=f"capacity-buffer-{buffer.name}-{number}",
                namespace=buffer.metadata.namespace,
                uid=f"{buffer.metadata.uid or buffer.name}-{number}",
                labels=template.metadata.labels,
                owner_references=(owner,),
            ),
            spec=spec,
            status=WAITING,
        )
        for number in range(replicas(buffer, present, of_spec(spec)))
    )


def replicas(buffer: CapacityBuffer, present: int, requests: Mapping[str, int]) -> int:
    """For how many pods room is kept: the larger of number and share, and never more than the limits hold."""
    spec = buffer.spec
    counts = [] if spec.replicas is None else [spec.replicas]
    if spec.percentage is not None:
        counts.append(max(1, -(-present * spec.percentage // 100)))
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
