"""Pods: the fields that decide where one can run, what it needs there, and whether it may be moved."""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Final

from msgspec import field

from joiner.model.affinity import Affinity, TopologySpreadConstraint
from joiner.model.meta import KubeObject, ObjectMeta, Value, replace
from joiner.model.quantity import Quantity
from joiner.model.storage import PersistentVolumeClaimSpec
from joiner.model.taints import Toleration

ALWAYS: Final = "Always"
ANY_ADDRESSES: Final = frozenset({"", "0.0.0.0", "::"})


class ResourceRequirements(Value):
    """What a container, or the pod as a whole, asks for and may use at most."""

    requests: Mapping[str, Quantity] = {}
    limits: Mapping[str, Quantity] = {}


class ContainerPort(Value):
    """A port of a container; only one with a host port matters to scheduling."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"

    def conflicts(self, other: "ContainerPort") -> bool:
        """Whether both cannot be on one node."""
        if not self.host_port or (self.host_port, self.protocol) != (other.host_port, other.protocol):
            return False
        return self.host_ip == other.host_ip or self.host_ip in ANY_ADDRESSES or other.host_ip in ANY_ADDRESSES


class Container(Value):
    """A container, an init container, or with `restartPolicy: Always` among the init containers a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None


class ClaimVolumeSource(Value):
    """The PersistentVolumeClaim behind a volume."""

    claim_name: str
    read_only: bool = False


class VolumeClaimTemplate(Value):
    """The claim that is made together with the pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Value):
    """A volume whose claim is created and deleted with the pod."""

    volume_claim_template: VolumeClaimTemplate | None = None


class Volume(Value):
    """A volume; only those backed by a claim constrain where the pod can run."""

    name: str = ""
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None

    def claim_name(self, pod: str) -> str | None:
        """The claim behind the volume of that pod, if there is one. Ephemeral ones are named after pod and volume."""
        if self.persistent_volume_claim is not None:
            return self.persistent_volume_claim.claim_name
        return f"{pod}-{self.name}" if self.ephemeral is not None else None


class SchedulingGate(Value):
    """A gate: the scheduler waits until it is removed."""

    name: str


class PodResourceClaim(Value):
    """A device claim for dynamic resource allocation."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Value):
    """What the pod needs and where it may run."""

    host_network: bool = False
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    """For the pod as a whole; takes the place of the containers' sum for the resources it names."""
    overhead: Mapping[str, Quantity] = {}
    node_name: str = ""
    node_selector: Mapping[str, str] = {}
    affinity: Affinity = Affinity()
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    runtime_class_name: str | None = None
    scheduler_name: str = "default-scheduler"
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    termination_grace_period_seconds: int | None = None


class PodCondition(Value):
    """A condition as the kubelet and the scheduler write it."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class ContainerStatus(Value):
    """What a running container was given, which differs from its spec while it is resized in place."""

    name: str = ""
    ready: bool = False
    allocated_resources: Mapping[str, Quantity] = {}
    resources: ResourceRequirements | None = None


class PodStatus(Value):
    """Phase and conditions of the pod."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: str = ""
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(KubeObject):
    """A pod."""

    kind: ClassVar[str] = "Pod"
    plural: ClassVar[str] = "pods"

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """`namespace/name`: the pod's name in plans and messages."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class PodTemplateSpec(Value):
    """The template of a workload's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


def with_host_ports(spec: PodSpec) -> PodSpec:
    """The spec as the API server stores it: a pod in the node's network takes its containers' ports of the node."""
    if not spec.host_network:
        return spec

    def taken(container: Container) -> Container:
        ports = (replace(port, host_port=port.host_port or port.container_port) for port in container.ports)
        return replace(container, ports=tuple(ports))

    return replace(
        spec,
        containers=tuple(map(taken, spec.containers)),
        init_containers=tuple(map(taken, spec.init_containers)),
    )


def host_ports(spec: PodSpec) -> tuple[ContainerPort, ...]:
    """The ports of the node that the pod takes. Init containers do not count: they have ended before containers start."""
    return tuple(port for container in spec.containers for port in container.ports if port.host_port)


def condition(pod: Pod, kind: str) -> PodCondition | None:
    """The condition of that type, if there is one."""
    return next((found for found in pod.status.conditions if found.type == kind), None)


def is_true(pod: Pod, kind: str) -> bool:
    """Whether the pod has the condition, and it is True."""
    found = condition(pod, kind)
    return found is not None and found.status == "True"


def is_ready(pod: Pod) -> bool:
    """Whether the pod has the condition Ready."""
    return is_true(pod, "Ready")
