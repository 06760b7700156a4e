"""Those who attach volumes to nodes and take them off again, told by the pods that are there."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

from joiner.clock import Clock
from joiner.kube.client import Client, Key
from joiner.kube.controller import DONE, Change, Reconciler, Result, Watch
from joiner.kube.errors import AlreadyExists, NotFound
from joiner.kube.informer import Index, Informers
from joiner.model.meta import KubeObject, ObjectMeta, replace
from joiner.model.node import Node, is_ready
from joiner.model.pod import Pod
from joiner.model.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
)
from joiner.sim.scheduler.clusterindex import claims_of, is_finished

ATTACH_S: Final = 2.0
DETACH_S: Final = 5.0
"""From the end of the last pod that used a volume on a node to its detachment."""
FORCE_S: Final = 360.0
"""The same for a node that is lost: no kubelet says there that the volume is free."""


def _claims(pod: Pod) -> Iterable[str]:
    return map(str, claims_of(pod))


def _pod_node(pod: Pod) -> Iterable[str]:
    return (pod.spec.node_name,) if pod.spec.node_name and pod.spec.volumes else ()


def _node(attachment: VolumeAttachment) -> Iterable[str]:
    return (attachment.spec.node_name,) if attachment.spec.node_name else ()


def _volume(attachment: VolumeAttachment) -> Iterable[str]:
    name = attachment.spec.source.persistent_volume_name
    return (name,) if name else ()


INDEXES: Final[Mapping[type[KubeObject], Mapping[str, Index]]] = {
    Pod: {"claim": _claims, "volumes-on": _pod_node},
    VolumeAttachment: {"node": _node, "volume": _volume},
}


class Attacher(Reconciler):
    """Keeps the attachments of a node in step with the pods that are there. A volume is on one node at a time."""

    name = "volumes.attacher"

    def __init__(self, *, client: Client, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._informers = informers
        self._clock = clock
        self._unused: dict[str, float] = {}
        """Attachment to since when no pod on its node needs it."""
        self._begun: dict[str, float] = {}
        """Attachment to when it was asked for."""
        self.watches = (
            Watch(Pod, self._of_pod),
            Watch(PersistentVolumeClaim, self._of_claim),
            Watch(PersistentVolume, self._of_volume),
            Watch(VolumeAttachment, self._of_attachment),
            Watch(Node, self._of_node),
        )

    # -- which nodes are concerned

    @staticmethod
    def _of_pod(change: Change) -> Iterable[Key]:
        pod: Pod = change.latest
        return (Key("", pod.spec.node_name),) if pod.spec.node_name and claims_of(pod) else ()

    def _users(self, claim: str) -> Iterable[Key]:
        pods = self._informers.by(Pod, "claim", claim)
        return [Key("", pod.spec.node_name) for pod in pods if pod.spec.node_name]

    def _of_claim(self, change: Change) -> Iterable[Key]:
        return self._users(str(Key(change.latest.metadata.namespace, change.latest.name)))

    def _of_volume(self, change: Change) -> Iterable[Key]:
        reference = change.latest.spec.claim_ref
        return self._users(str(Key(reference.namespace, reference.name))) if reference is not None else ()

    def _of_attachment(self, change: Change) -> Iterable[Key]:
        attachment: VolumeAttachment = change.latest
        if change.after is None:
            self._unused.pop(attachment.name, None)
            self._begun.pop(attachment.name, None)
        volume = self._informers.get(PersistentVolume, attachment.spec.source.persistent_volume_name or "")
        others = self._of_volume(Change(None, volume)) if volume is not None else ()
        return (Key("", attachment.spec.node_name), *others)

    def _of_node(self, change: Change) -> Iterable[Key]:
        attached = self._informers.by(VolumeAttachment, "node", change.latest.name)
        return (Key("", change.latest.name),) if attached else ()

    # -- one node

    async def reconcile(self, key: Key) -> Result:
        """Attach what is needed, let go of what has not been needed for a while, and come back for the rest."""
        needed = self._needed(key.name)
        there = {each.name: each for each in self._informers.by(VolumeAttachment, "node", key.name)}
        waits: list[float] = []
        for name in sorted(needed):
            if name not in there and not self._is_elsewhere(needed[name].name, key.name):
                await self._attach(name, needed[name], key.name)
        for name in sorted(there):
            if name in needed:
                self._unused.pop(name, None)
                waits.extend(await self._complete(there[name]))
            else:
                waits.extend(await self._let_go(there[name]))
        return Result(min(waits)) if waits else DONE

    def _needed(self, node: str) -> dict[str, PersistentVolume]:
        found: dict[str, PersistentVolume] = {}
        for pod in self._informers.by(Pod, "volumes-on", node):
            if is_finished(pod):
                continue
            for key in claims_of(pod):
                claim = self._informers.get(PersistentVolumeClaim, key.name, key.namespace)
                volume = self._informers.get(PersistentVolume, claim.spec.volume_name) if claim is not None else None
                if volume is not None and volume.spec.csi is not None:
                    found[attachment_name(volume, node)] = volume
        return found

    def _is_elsewhere(self, volume: str, node: str) -> bool:
        attached = self._informers.by(VolumeAttachment, "volume", volume)
        return not self._is_shared(volume) and any(each.spec.node_name != node for each in attached)

    def _is_shared(self, name: str) -> bool:
        volume = self._informers.get(PersistentVolume, name)
        reference = volume.spec.claim_ref if volume is not None else None
        claim = (
            self._informers.get(PersistentVolumeClaim, reference.name, reference.namespace)
            if reference is not None
            else None
        )
        return claim is not None and any(mode.endswith("Many") for mode in claim.spec.access_modes)

    async def _attach(self, name: str, volume: PersistentVolume, node: str) -> None:
        assert volume.spec.csi is not None
        spec = VolumeAttachmentSpec(
            attacher=volume.spec.csi.driver,
            node_name=node,
            source=VolumeAttachmentSource(persistent_volume_name=volume.name),
        )
        self._begun[name] = self._clock.monotonic()
        try:
            await self._client.create(VolumeAttachment(metadata=ObjectMeta(name=name), spec=spec))
        except AlreadyExists:
            return

    async def _complete(self, attachment: VolumeAttachment) -> Iterable[float]:
        if attachment.status.attached or attachment.metadata.deletion_timestamp is not None:
            return ()
        left = self._begun.setdefault(attachment.name, self._clock.monotonic()) + ATTACH_S - self._clock.monotonic()
        if left > 0:
            return (left,)
        done = replace(attachment, status=VolumeAttachmentStatus(attached=True))
        await self._client.patch_status(attachment, done)
        return ()

    async def _let_go(self, attachment: VolumeAttachment) -> Iterable[float]:
        now = self._clock.monotonic()
        since = self._unused.setdefault(attachment.name, now)
        node = self._informers.get(Node, attachment.spec.node_name)
        left = since + (DETACH_S if node is not None and is_ready(node) else FORCE_S) - now
        if left > 0:
            return (left,)
        if attachment.metadata.deletion_timestamp is None:
            try:
                await self._client.delete(VolumeAttachment, attachment.name, uid=attachment.metadata.uid)
            except NotFound:
                return ()
        return ()


def attachment_name(volume: PersistentVolume, node: str) -> str:
    """The name of the attachment of a volume to a node: the same for every caller."""
    driver = volume.spec.csi.driver if volume.spec.csi is not None else ""
    return f"csi-{hashlib.sha256(f'{volume.name}/{driver}/{node}'.encode()).hexdigest()[:40]}"
