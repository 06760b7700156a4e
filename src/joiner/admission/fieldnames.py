"""Fields that Kubernetes does not know, in its own kinds: a misspelt `nodeSelector` would select nothing, silently.

Our values hold only what decides where a pod can run, so for each of them it is told here what else may stand beside that. What
comes from an API server has been checked by it and is not looked at again.
"""

import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from joiner.admission.amounts import OWN_RESOURCES, nearest_resource
from joiner.admission.problem import FieldProblem, nearest
from joiner.model.codec import fields
from joiner.model.meta import KubeObject, ObjectMeta, Value
from joiner.model.pod import Container, ContainerPort, Pod, PodSpec, ResourceRequirements, Volume
from joiner.model.podpolicy import LimitRange, LimitRangeItem, PodDisruptionBudget, PriorityClass, RuntimeClass
from joiner.model.storage import PersistentVolumeClaim, PersistentVolumeClaimSpec, StorageClass
from joiner.model.workload import (
    DaemonSet,
    DaemonSetSpec,
    Deployment,
    Job,
    JobSpec,
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    ReplicationControllerSpec,
    StatefulSet,
    StatefulSetSpec,
    WorkloadSpec,
)

CHECKED: Final = (
    Pod, PodTemplate, Deployment, ReplicaSet, StatefulSet, ReplicationController, DaemonSet, Job,
    PodDisruptionBudget, PriorityClass, RuntimeClass, LimitRange, PersistentVolumeClaim, StorageClass,
)  # fmt: skip
"""Kinds that people write: those that hold pods, and those that set rules for them."""

_BESIDE: Final[Mapping[type, str]] = {
    ObjectMeta: "managedFields selfLink clusterName",
    PodSpec: """activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks
        ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets os
        readinessGates restartPolicy securityContext serviceAccount serviceAccountName setHostnameAsFQDN
        shareProcessNamespace subdomain workloadRef""",
    Container: """args command env envFrom imagePullPolicy lifecycle livenessProbe readinessProbe resizePolicy
        restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty
        volumeDevices volumeMounts workingDir""",
    ContainerPort: "name",
    ResourceRequirements: "claims",
    Volume: """awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI emptyDir fc flexVolume flocker
        gcePersistentDisk gitRepo glusterfs hostPath image iscsi nfs photonPersistentDisk portworxVolume projected quobyte
        rbd scaleIO secret storageos vsphereVolume""",
    WorkloadSpec: "minReadySeconds paused progressDeadlineSeconds revisionHistoryLimit strategy",
    StatefulSetSpec: """minReadySeconds ordinals persistentVolumeClaimRetentionPolicy podManagementPolicy
        revisionHistoryLimit serviceName updateStrategy""",
    DaemonSetSpec: "minReadySeconds revisionHistoryLimit updateStrategy",
    ReplicationControllerSpec: "minReadySeconds",
    JobSpec: """activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode managedBy manualSelector
        maxFailedIndexes podFailurePolicy podReplacementPolicy successPolicy ttlSecondsAfterFinished""",
    PersistentVolumeClaimSpec: "dataSource dataSourceRef resources selector volumeAttributesClassName volumeMode",
    StorageClass: "allowVolumeExpansion mountOptions parameters reclaimPolicy",
    PriorityClass: "description",
    LimitRangeItem: "maxLimitRequestRatio",
}
_NOT_OURS: Final = (PersistentVolumeClaim,)
"""Not looked into where other objects hold them."""
_FEW: Final = 8
"""Up to so many names all are told when none of them looks like the one that was written."""
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "storage")


def problems(raw: Any, kind: type[KubeObject]) -> Iterator[FieldProblem]:
    """A warning for every field of the object that Kubernetes would drop or refuse."""
    if kind in CHECKED and isinstance(raw, Mapping) and not _is_stored(raw):
        yield from unknown({key: value for key, value in raw.items() if key not in _HEAD}, kind, "")


_HEAD: Final = frozenset({"apiVersion", "kind", "status"})


def _is_stored(raw: Mapping[str, Any]) -> bool:
    metadata = raw.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("uid"))


def unknown(raw: Any, kind: type[Value], path: str) -> Iterator[FieldProblem]:
    """A warning for every field of a part of an object that no value of this kind has."""
    if not isinstance(raw, Mapping):
        return  # the decoder tells
    known, below = names(kind)
    for key, value in raw.items():
        where = f"{path}.{key}" if path else str(key)
        if key not in known:
            message = "Kubernetes knows no such field; it has no effect"
            like = nearest(str(key), known)
            allowed = () if like or len(known) > _FEW else tuple(sorted(known))
            yield FieldProblem(path=where, message=message, severity="warning", nearest=like, allowed=allowed)
        elif kind is ResourceRequirements and key in ("requests", "limits"):
            yield from _unknown_resources(value, where)
        elif key in below:
            items = enumerate(value) if isinstance(value, list) else [("", value)]
            for index, item in items:
                yield from unknown(item, below[key], where if index == "" else f"{where}[{index}]")


def _unknown_resources(raw: Any, path: str) -> Iterator[FieldProblem]:
    for name in raw if isinstance(raw, Mapping) else ():
        if "/" not in name and name not in _RESOURCES and not name.startswith("hugepages-"):
            message = f"Kubernetes knows no such resource; {OWN_RESOURCES}"
            like = nearest_resource(name, _RESOURCES)
            yield FieldProblem(path=f"{path}.{name}", message=message, severity="warning", nearest=like)


@cache
def names(kind: type[Value]) -> tuple[frozenset[str], Mapping[str, type[Value]]]:
    """The fields of a kind by name, and those that hold values of ours again."""
    hints = typing.get_type_hints(kind)
    written = {field.name: field.written for field in fields(kind)}
    inner = {written[name]: found for name in written if (found := _held(hints[name])) is not None}
    return frozenset((*written.values(), *_BESIDE.get(kind, "").split())), inner


def _held(hint: Any) -> type[Value] | None:
    """The kind of value that a field holds: itself, one or none, or a list."""
    for each in (hint, *typing.get_args(hint)):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return each if issubclass(each, Value) and each not in _NOT_OURS else None
    return None
