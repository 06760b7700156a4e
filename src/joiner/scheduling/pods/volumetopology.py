"""Volumes: in which places a pod's storage can be reached, and how many attachments it needs."""

from collections.abc import Iterable, Mapping
from typing import Final

from joiner.model.labels import HOSTNAME, Vocabulary
from joiner.model.meta import Value
from joiner.model.pod import Pod
from joiner.model.storage import (
    BIND_COMPLETED,
    IMMEDIATE,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyExpression,
)
from joiner.requirements import Requirement, Requirements, unreadable
from joiner.scheduling.problem import Storage

IN_TREE: Final[Mapping[str, str]] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""Provisioners of old, and the drivers that do their work today."""


class PodVolumes(Value):
    """What a pod's volumes ask of the node."""

    places: tuple[Requirements, ...] = (Requirements(),)
    """Of these, one must hold."""
    attachments: Mapping[str, frozenset[str]] = {}
    """CSI driver to the claims whose volumes must be attached."""
    problem: str = ""
    """Why the pod cannot be placed at all; empty when it can."""


NO_VOLUMES: Final = PodVolumes()


class VolumeIndex:
    """The storage objects by name."""

    def __init__(self, storage: Storage, vocabulary: Vocabulary) -> None:
        self._claims = {(each.metadata.namespace, each.name): each for each in storage.claims}
        self._volumes = {each.name: each for each in storage.volumes}
        self._classes = {each.name: each for each in storage.classes}
        self._vocabulary = vocabulary

    def volumes_of(self, pod: Pod) -> PodVolumes:
        """What the pod's volumes ask of the node."""
        names = [name for volume in pod.spec.volumes if (name := volume.claim_name(pod.name)) is not None]
        if not names:
            return NO_VOLUMES
        namespace = pod.metadata.namespace
        claims = [claim for name in names if (claim := self._claims.get((namespace, name))) is not None]
        attachments: dict[str, frozenset[str]] = {}
        for claim in claims:
            driver = self._driver(claim)
            if driver:
                attachments[driver] = attachments.get(driver, frozenset()) | {f"{namespace}/{claim.name}"}
        problems = [problem for name in names if (problem := self._problem(namespace, name))]
        if problems:
            # A pod that runs keeps its volumes attached, whatever has become of their claims since.
            return PodVolumes(attachments=attachments, problem="; ".join(problems))
        places: tuple[Requirements, ...] = (Requirements(),)
        for claim in claims:
            places = _both(places, self._places(claim))
        return PodVolumes(places=places, attachments=attachments)

    def _problem(self, namespace: str, name: str) -> str:
        claim = self._claims.get((namespace, name))
        if claim is None:
            return f"PersistentVolumeClaim {name} does not exist"
        if claim.metadata.deletion_timestamp is not None:
            return f"PersistentVolumeClaim {name} is being deleted"
        if claim.status.phase == "Lost":
            return f"PersistentVolumeClaim {name} has lost its volume"
        return self._volume_problem(claim) if claim.spec.volume_name else self._class_problem(claim)

    def _volume_problem(self, claim: PersistentVolumeClaim) -> str:
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is None:
            return f"PersistentVolume {claim.spec.volume_name} of PersistentVolumeClaim {claim.name} does not exist"
        if volume.metadata.deletion_timestamp is not None:
            return f"PersistentVolume {volume.name} of PersistentVolumeClaim {claim.name} is being deleted"
        if BIND_COMPLETED not in claim.metadata.annotations:
            return f"PersistentVolumeClaim {claim.name} names a volume but is not bound to it yet"
        required = volume.spec.node_affinity.required
        terms = required.node_selector_terms if required is not None else ()
        if any(unreadable(each) for term in terms for each in term.match_expressions):
            return (
                f"PersistentVolume {volume.name} has a node affinity that makes no sense: a bound must be one integer"
            )
        return ""

    def _class_problem(self, claim: PersistentVolumeClaim) -> str:
        if not claim.spec.storage_class_name:
            return f"PersistentVolumeClaim {claim.name} is not bound and names no StorageClass"
        storage_class = self._classes.get(claim.spec.storage_class_name)
        if storage_class is None:
            return f"StorageClass {claim.spec.storage_class_name} of PersistentVolumeClaim {claim.name} does not exist"
        if storage_class.volume_binding_mode == IMMEDIATE:
            return f"PersistentVolumeClaim {claim.name} waits to be bound: its StorageClass binds immediately"
        return ""

    def _places(self, claim: PersistentVolumeClaim) -> tuple[Requirements, ...]:
        volume = self._volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            return self._reachable_from(volume)
        storage_class = self._classes.get(claim.spec.storage_class_name or "")
        if storage_class is None or not storage_class.allowed_topologies:
            return (Requirements(),)
        return tuple(self._topology(term.match_label_expressions) for term in storage_class.allowed_topologies)

    def _topology(self, expressions: Iterable[TopologyExpression]) -> Requirements:
        found: list[Requirement] = []
        for each in expressions:
            key = self._vocabulary.normal_key(each.key)
            found.append(Requirement(key, [self._vocabulary.normal_value(key, value) for value in each.values]))
        return Requirements(found)

    def _reachable_from(self, volume: PersistentVolume) -> tuple[Requirements, ...]:
        required = volume.spec.node_affinity.required
        if required is None or not required.node_selector_terms:
            return (Requirements(),)
        on_one_node = volume.spec.local is not None or volume.spec.host_path is not None
        places = []
        for term in required.node_selector_terms:
            kept = [e for e in term.match_expressions if not (on_one_node and e.key == HOSTNAME)]
            places.append(Requirements.read(kept, self._vocabulary))
        return tuple(places)

    def _driver(self, claim: PersistentVolumeClaim) -> str:
        volume = self._volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            if volume.spec.csi is not None:
                return volume.spec.csi.driver
            return IN_TREE["kubernetes.io/aws-ebs"] if volume.spec.aws_elastic_block_store is not None else ""
        storage_class: StorageClass | None = self._classes.get(claim.spec.storage_class_name or "")
        return IN_TREE.get(storage_class.provisioner, storage_class.provisioner) if storage_class is not None else ""


def _both(left: tuple[Requirements, ...], right: tuple[Requirements, ...]) -> tuple[Requirements, ...]:
    """Every combination that is possible; when none is, all of them, so that the refusal can tell."""
    pairs = [(one, other) for one in left for other in right]
    possible = [one & other for one, other in pairs if one.intersects(other)]
    return tuple(dict.fromkeys(possible or [one & other for one, other in pairs]))
