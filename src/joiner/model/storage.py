"""Volumes and what restricts them to nodes: claims, volumes, classes, drivers, attachments."""

from typing import ClassVar, Final

from msgspec import field

from joiner.model.affinity import NodeSelector
from joiner.model.meta import KubeObject, Value

IMMEDIATE: Final = "Immediate"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
BOUND: Final = "Bound"
"""The phase of claims and volumes that are bound to each other."""
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""Annotation on claims whose binding is final."""
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


class PersistentVolumeClaimSpec(Value):
    """Which volume is requested, or already bound."""

    storage_class_name: str | None = None
    """Absent: the default class. Empty: no class, only volumes that exist."""
    volume_name: str = ""
    access_modes: tuple[str, ...] = ()


class PersistentVolumeClaimStatus(Value):
    """Whether the claim is bound."""

    phase: str = ""


class PersistentVolumeClaim(KubeObject):
    """A claim on a volume."""

    kind: ClassVar[str] = "PersistentVolumeClaim"
    plural: ClassVar[str] = "persistentvolumeclaims"

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class CSIVolumeSource(Value):
    """The driver behind a volume."""

    driver: str = ""
    volume_handle: str = ""


class ElasticBlockStoreSource(Value):
    """The old in-tree spelling of an EBS volume."""

    volume_id: str = field(default="", name="volumeID")


class PathSource(Value):
    """A directory of one node."""

    path: str = ""


class VolumeNodeAffinity(Value):
    """From which nodes the volume can be reached."""

    required: NodeSelector | None = None


class ClaimReference(Value):
    """The claim the volume is bound to."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class PersistentVolumeSpec(Value):
    """What the volume is and where."""

    storage_class_name: str = ""
    node_affinity: VolumeNodeAffinity = VolumeNodeAffinity()
    claim_ref: ClaimReference | None = None
    csi: CSIVolumeSource | None = None
    aws_elastic_block_store: ElasticBlockStoreSource | None = field(default=None, name="awsElasticBlockStore")
    local: PathSource | None = None
    host_path: PathSource | None = None


class PersistentVolumeStatus(Value):
    """Whether it is bound to a claim."""

    phase: str = ""


class PersistentVolume(KubeObject):
    """A volume."""

    kind: ClassVar[str] = "PersistentVolume"
    plural: ClassVar[str] = "persistentvolumes"
    namespaced: ClassVar[bool] = False

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologyExpression(Value):
    """A label and the values a volume may have for it."""

    key: str
    values: tuple[str, ...] = ()


class TopologyTerm(Value):
    """Labels that must all match."""

    match_label_expressions: tuple[TopologyExpression, ...] = ()


class StorageClass(KubeObject):
    """How volumes are made."""

    group: ClassVar[str] = "storage.k8s.io"
    kind: ClassVar[str] = "StorageClass"
    plural: ClassVar[str] = "storageclasses"
    namespaced: ClassVar[bool] = False

    provisioner: str = ""
    volume_binding_mode: str = IMMEDIATE
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class VolumeNodeResources(Value):
    """How many volumes of a driver the node can have; absent means no limit."""

    count: int | None = None


class CSINodeDriver(Value):
    """A driver that runs on the node."""

    name: str
    node_id: str = field(default="", name="nodeID")
    allocatable: VolumeNodeResources = VolumeNodeResources()
    topology_keys: tuple[str, ...] = ()


class CSINodeSpec(Value):
    """The drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubeObject):
    """What a node can attach; it has the name of the node."""

    group: ClassVar[str] = "storage.k8s.io"
    kind: ClassVar[str] = "CSINode"
    plural: ClassVar[str] = "csinodes"
    namespaced: ClassVar[bool] = False

    spec: CSINodeSpec = CSINodeSpec()


class VolumeAttachmentSource(Value):
    """What is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Value):
    """Which volume should be on which node."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Value):
    """Whether it is attached."""

    attached: bool = False


class VolumeAttachment(KubeObject):
    """A volume on a node."""

    group: ClassVar[str] = "storage.k8s.io"
    kind: ClassVar[str] = "VolumeAttachment"
    plural: ClassVar[str] = "volumeattachments"
    namespaced: ClassVar[bool] = False

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
