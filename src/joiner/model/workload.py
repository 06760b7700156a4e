"""Workloads, the objects that make pods, and their templates."""

from collections.abc import Mapping
from typing import ClassVar

from joiner.model.meta import KubeObject, Value
from joiner.model.pod import PodTemplateSpec
from joiner.model.selector import LabelSelector
from joiner.model.storage import PersistentVolumeClaim


class WorkloadSpec(Value):
    """The part all workloads with a number of replicas share."""

    replicas: int = 1
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class WorkloadStatus(Value):
    """How many pods there are."""

    replicas: int = 0
    ready_replicas: int = 0
    observed_generation: int = 0


class Deployment(KubeObject):
    """Pods by way of ReplicaSets."""

    group: ClassVar[str] = "apps"
    kind: ClassVar[str] = "Deployment"
    plural: ClassVar[str] = "deployments"

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ReplicaSet(KubeObject):
    """A number of pods that are all alike."""

    group: ClassVar[str] = "apps"
    kind: ClassVar[str] = "ReplicaSet"
    plural: ClassVar[str] = "replicasets"

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class StatefulSetSpec(WorkloadSpec):
    """A number of pods, each with a volume of its own for every claim that is listed."""

    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()


class StatefulSet(KubeObject):
    """Pods with names and volumes of their own."""

    group: ClassVar[str] = "apps"
    kind: ClassVar[str] = "StatefulSet"
    plural: ClassVar[str] = "statefulsets"

    spec: StatefulSetSpec = StatefulSetSpec()
    status: WorkloadStatus = WorkloadStatus()


class DaemonSetSpec(Value):
    """One pod for each node that fits."""

    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class DaemonSetStatus(Value):
    """On how many nodes its pod should be, is, and is ready."""

    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0


class DaemonSet(KubeObject):
    """A pod on every node."""

    group: ClassVar[str] = "apps"
    kind: ClassVar[str] = "DaemonSet"
    plural: ClassVar[str] = "daemonsets"

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ReplicationControllerSpec(Value):
    """As a ReplicaSet, with labels for a selector."""

    replicas: int = 1
    selector: Mapping[str, str] = {}
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicationController(KubeObject):
    """The predecessor of the ReplicaSet."""

    kind: ClassVar[str] = "ReplicationController"
    plural: ClassVar[str] = "replicationcontrollers"

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: WorkloadStatus = WorkloadStatus()


class JobSpec(Value):
    """Pods that run to an end."""

    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    suspend: bool = False


class JobCondition(Value):
    """The state of the job: `Complete`, `Failed`, `Suspended` …"""

    type: str = ""
    status: str = ""


class JobStatus(Value):
    """How many pods of the job run, succeeded and failed."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[JobCondition, ...] = ()


class Job(KubeObject):
    """Pods that run to an end."""

    group: ClassVar[str] = "batch"
    kind: ClassVar[str] = "Job"
    plural: ClassVar[str] = "jobs"

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class PodTemplate(KubeObject):
    """A pod template as an object of its own."""

    kind: ClassVar[str] = "PodTemplate"
    plural: ClassVar[str] = "podtemplates"

    template: PodTemplateSpec = PodTemplateSpec()


class ScaleTarget(Value):
    """The workload that an autoscaler scales."""

    kind: str = ""
    name: str = ""


class AutoscalerSpec(Value):
    """Between which numbers of replicas."""

    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: int = 1
    max_replicas: int = 1


class HorizontalPodAutoscaler(KubeObject):
    """Sets the replicas of a workload by its load, between two numbers."""

    group: ClassVar[str] = "autoscaling"
    version: ClassVar[str] = "v2"
    kind: ClassVar[str] = "HorizontalPodAutoscaler"
    plural: ClassVar[str] = "horizontalpodautoscalers"

    spec: AutoscalerSpec = AutoscalerSpec()
