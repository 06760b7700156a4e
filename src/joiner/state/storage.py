"""The storage objects of the cluster, kept as they change: what a pod's volumes lead to, without looking at all the others."""

from collections.abc import Iterable
from typing import Final

from joiner.model.labels import Vocabulary
from joiner.model.pod import Pod
from joiner.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from joiner.scheduling.pods.volumetopology import VolumeIndex
from joiner.scheduling.problem import Storage

ClaimKey = tuple[str, str]

KINDS: Final = (PersistentVolumeClaim, PersistentVolume, StorageClass)


def claims_of(pod: Pod) -> tuple[ClaimKey, ...]:
    """Namespace and name of the volume claims of a pod."""
    names = (volume.claim_name(pod.name) for volume in pod.spec.volumes)
    return tuple((pod.metadata.namespace, name) for name in names if name is not None)


class LiveVolumeIndex(VolumeIndex):
    """A volume index that objects are added to and removed from."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(Storage(), vocabulary)
        self._by_volume: dict[str, dict[ClaimKey, None]] = {}
        """Volume to the claims that name it."""

    def put_claim(self, key: ClaimKey, claim: PersistentVolumeClaim | None) -> bool:
        """Take in a claim, or that it is gone; gives whether anything that matters changed."""
        old = self._claims.get(key)
        if not _differ(old, claim):
            return False
        if old is not None and old.spec.volume_name:
            self._by_volume.get(old.spec.volume_name, {}).pop(key, None)
        if claim is None:
            del self._claims[key]
            return True
        self._claims[key] = claim
        if claim.spec.volume_name:
            self._by_volume.setdefault(claim.spec.volume_name, {})[key] = None
        return True

    def put_volume(self, name: str, volume: PersistentVolume | None) -> tuple[ClaimKey, ...]:
        """Take in a volume, or that it is gone; gives the claims that name it, if anything that matters changed."""
        if not _differ(self._volumes.get(name), volume):
            return ()
        if volume is None:
            del self._volumes[name]
        else:
            self._volumes[name] = volume
        return tuple(self._by_volume.get(name, ()))

    def put_class(self, name: str, storage_class: StorageClass | None) -> None:
        """Take in a class, or that it is gone."""
        if storage_class is None:
            self._classes.pop(name, None)
        else:
            self._classes[name] = storage_class

    def storage_of(self, pods: Iterable[Pod]) -> Storage:
        """Everything that the volumes of some pods lead to."""
        keys = sorted({key for pod in pods if pod.spec.volumes for key in claims_of(pod)})
        claims = [self._claims[key] for key in keys if key in self._claims]
        volumes = sorted({claim.spec.volume_name for claim in claims if claim.spec.volume_name in self._volumes})
        classes = sorted({claim.spec.storage_class_name or "" for claim in claims} & self._classes.keys())
        return Storage(
            claims=tuple(claims),
            volumes=tuple(self._volumes[name] for name in volumes),
            classes=tuple(self._classes[name] for name in classes),
        )


def _differ(
    old: PersistentVolumeClaim | PersistentVolume | None, new: PersistentVolumeClaim | PersistentVolume | None
) -> bool:
    if old is None or new is None:
        return old is not new
    return (
        old.spec != new.spec
        or old.status != new.status
        or old.metadata.annotations != new.metadata.annotations
        or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
    )
