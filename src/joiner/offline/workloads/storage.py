"""Storage objects completed: manifests rarely hold the claims and classes that a cluster would have by the time it matters."""

from collections.abc import Iterable

from joiner.model.meta import ObjectMeta, replace
from joiner.model.pod import Pod
from joiner.model.storage import (
    BIND_COMPLETED,
    BOUND,
    DEFAULT_CLASS,
    IMMEDIATE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    StorageClass,
)
from joiner.scheduling.problem import Storage

ASSUMED: str = "assumed"
"""The name of the StorageClass that stands for a default class that is not among the files."""


def completed(storage: Storage, pods: Iterable[Pod]) -> tuple[Storage, tuple[str, ...]]:
    """The storage with everything the pods' volumes lead to, and a sentence for whatever had to be assumed.

    Claims of ephemeral volumes are made with the pod, so they are no assumption.
    """
    claims = {(each.metadata.namespace, each.name): each for each in storage.claims}
    classes = {each.name: each for each in storage.classes}
    notes: dict[str, None] = {}
    for pod in pods:
        for volume in pod.spec.volumes:
            name = volume.claim_name(pod.name)
            identity = (pod.metadata.namespace, name or "")
            if name is None or identity in claims:
                continue
            template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
            if volume.ephemeral is None:
                notes[
                    f"PersistentVolumeClaim {'/'.join(identity)} is not in these files; it is taken as not bound yet"
                ] = None
            spec = template.spec if template is not None else PersistentVolumeClaimSpec()
            metadata = ObjectMeta(name=name, namespace=pod.metadata.namespace)
            claims[identity] = PersistentVolumeClaim(metadata=metadata, spec=spec)
    usual = _default_class(classes.values())
    for identity, claim in claims.items():
        if claim.spec.volume_name:
            claims[identity] = _bound(claim)
            continue
        if claim.spec.storage_class_name == "":
            continue
        wanted = claim.spec.storage_class_name or usual
        claims[identity] = replace(claim, spec=replace(claim.spec, storage_class_name=wanted))
        if wanted not in classes:
            which = f"StorageClass {wanted}" if claim.spec.storage_class_name else "a default StorageClass"
            notes[f"{which} is not in these files; its volumes are taken to be possible in every zone"] = None
            classes[wanted] = StorageClass(
                metadata=ObjectMeta(name=wanted), volume_binding_mode=WAIT_FOR_FIRST_CONSUMER
            )
        elif classes[wanted].volume_binding_mode == IMMEDIATE and not claim.metadata.uid:
            # A cluster would have bound it by the time the pod waits.
            notes[
                f"StorageClass {wanted} binds at once; new volumes are taken to be wherever it allows and pods go"
            ] = None
            later = replace(classes[wanted].metadata, name=f"{wanted}, later")
            classes[later.name] = replace(classes[wanted], metadata=later, volume_binding_mode=WAIT_FOR_FIRST_CONSUMER)
            claims[identity] = replace(claim, spec=replace(claim.spec, storage_class_name=later.name))
    whole = Storage(claims=tuple(claims.values()), volumes=storage.volumes, classes=tuple(classes.values()))
    return whole, tuple(notes)


def _bound(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """The claim, bound to the volume it names if it says so itself or was never in a cluster that could say so."""
    if claim.metadata.uid and claim.status.phase != BOUND:
        return claim
    marks = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
    return replace(claim, metadata=replace(claim.metadata, annotations=marks))


def _default_class(classes: Iterable[StorageClass]) -> str:
    marked = [each for each in classes if each.metadata.annotations.get(DEFAULT_CLASS) == "true"]
    return max((each.name for each in marked), default=ASSUMED)
