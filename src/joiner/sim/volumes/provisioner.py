"""The volume people: those who make claims of pods' own, those who make volumes, and, next door, those who attach them.

A claim of a class that waits for its first pod gets a volume once the binder has said on which node that pod will be; any other
one at once, in a zone that its class allows. A volume goes with its claim. Volumes that people made by hand are bound only where
claim or volume names the other.
"""

import asyncio
import zlib
from collections.abc import Iterable, Mapping
from typing import Final

from joiner.clock import Clock
from joiner.kube.client import Client, Key, key_of
from joiner.kube.controller import DONE, Change, Controller, Reconciler, Result, Watch
from joiner.kube.errors import AlreadyExists, NotFound
from joiner.kube.informer import Index, Informers
from joiner.model.affinity import NodeSelector, NodeSelectorTerm
from joiner.model.labels import ZONE
from joiner.model.meta import KubeObject, ObjectMeta, replace
from joiner.model.node import Node
from joiner.model.pod import Pod
from joiner.model.requirement import SelectorRequirement
from joiner.model.storage import (
    BIND_COMPLETED,
    BOUND,
    IMMEDIATE,
    ClaimReference,
    CSINode,
    CSIVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from joiner.sim.scheduler.clusterindex import is_finished
from joiner.sim.scheduler.volumefit import SELECTED_NODE, allows, class_of
from joiner.sim.volumes import attacher
from joiner.sim.workloads.podfactory import owned_by

PROVISION_S: Final = 2.0

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"


def _claim_of(volume: PersistentVolume) -> Iterable[str]:
    reference = volume.spec.claim_ref
    return (str(Key(reference.namespace, reference.name)),) if reference is not None else ()


def _volume_named(claim: PersistentVolumeClaim) -> Iterable[str]:
    return (claim.spec.volume_name,) if claim.spec.volume_name else ()


INDEXES: Final[Mapping[type[KubeObject], Mapping[str, Index]]] = {
    **attacher.INDEXES,
    PersistentVolume: {"claim": _claim_of},
    PersistentVolumeClaim: {"volume": _volume_named},
}


class EphemeralClaims(Reconciler):
    """Makes the claims of volumes that live and die with their pod."""

    name = "volumes.ephemeral"

    def __init__(self, *, client: Client, informers: Informers) -> None:
        self._client = client
        self._informers = informers
        self.watches = (Watch(Pod, self._concerned),)
        informers.of(PersistentVolumeClaim)

    @staticmethod
    def _concerned(change: Change) -> Iterable[Key]:
        pod: Pod = change.latest
        own = change.before is None and any(volume.ephemeral is not None for volume in pod.spec.volumes)
        return (Key(pod.metadata.namespace, pod.name),) if own else ()

    async def reconcile(self, key: Key) -> Result:
        """Make the claims that are missing."""
        pod = self._informers.get(Pod, key.name, key.namespace)
        if pod is None or pod.metadata.deletion_timestamp is not None or is_finished(pod):
            return DONE
        for volume in pod.spec.volumes:
            template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
            name = volume.claim_name(pod.name)
            if template is None or name is None:
                continue
            metadata = replace(template.metadata, name=name, namespace=key.namespace, owner_references=(owned_by(pod),))
            try:
                await self._client.create(PersistentVolumeClaim(metadata=metadata, spec=template.spec))
            except AlreadyExists:
                continue
        return DONE


class VolumeProvisioner(Reconciler):
    """Gives claims their volumes, and takes volumes away whose claim is gone."""

    name = "volumes.provisioner"

    def __init__(self, *, client: Client, informers: Informers) -> None:
        self._client = client
        self._informers = informers
        self.watches = (
            Watch(PersistentVolumeClaim),
            Watch(PersistentVolume, self._claims_of_volume),
            Watch(StorageClass, self._unbound),
            Watch(Node, lambda change: self._unbound(change) if change.before is None else ()),
        )
        informers.of(CSINode)

    def _claims_of_volume(self, change: Change) -> Iterable[Key]:
        reference = change.latest.spec.claim_ref
        if reference is not None:
            return (Key(reference.namespace, reference.name),)
        return [key_of(each) for each in self._informers.by(PersistentVolumeClaim, "volume", change.latest.name)]

    def _unbound(self, change: Change) -> Iterable[Key]:
        """A class or a node has come: claims that found none may find one now."""
        claims = self._informers.all(PersistentVolumeClaim)
        return [key_of(each) for each in claims if each.status.phase != BOUND]

    async def reconcile(self, key: Key) -> Result:
        """Bring one claim and its volume together."""
        claim = self._informers.get(PersistentVolumeClaim, key.name, key.namespace)
        for volume in self._informers.by(PersistentVolume, "claim", str(key)):
            reference = volume.spec.claim_ref
            if reference is not None and reference.uid and (claim is None or claim.metadata.uid != reference.uid):
                await self._discard(volume)
        if claim is None or claim.metadata.deletion_timestamp is not None or claim.status.phase == BOUND:
            return DONE
        if claim.spec.volume_name:
            named = self._informers.get(PersistentVolume, claim.spec.volume_name)
            if named is not None:
                await self._bind(claim, named)
            return DONE
        await self._provide(claim)
        return DONE

    async def _discard(self, volume: PersistentVolume) -> None:
        if volume.metadata.deletion_timestamp is None and PROVISIONED_BY in volume.metadata.annotations:
            try:
                await self._client.delete(PersistentVolume, volume.name, uid=volume.metadata.uid)
            except NotFound:
                return

    async def _provide(self, claim: PersistentVolumeClaim) -> None:
        classes = {each.name: each for each in self._informers.all(StorageClass)}
        storage_class = class_of(claim.spec.storage_class_name, classes)
        if storage_class is None:
            return
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if storage_class.volume_binding_mode == IMMEDIATE:
            labels = self._somewhere(claim, storage_class)
            if labels is None:
                return
        elif not selected:
            return
        else:
            labels = await self._near(selected, storage_class)
            if labels is None:
                await self._give_back(claim)
                return
        await asyncio.sleep(PROVISION_S)
        await self._bind(claim, await self._make(claim, storage_class, labels))

    def _somewhere(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> Mapping[str, str] | None:
        """A zone that the class allows, or that has nodes; nothing as long as there are neither."""
        if storage_class.allowed_topologies:
            term = storage_class.allowed_topologies[0]
            return {
                each.key: each.values[zlib.crc32(claim.name.encode()) % len(each.values)]
                for each in term.match_label_expressions
                if each.values
            }
        zones = sorted({each.metadata.labels.get(ZONE, "") for each in self._informers.all(Node)})
        if not zones:
            return None
        zone = zones[zlib.crc32(claim.name.encode()) % len(zones)]
        return {ZONE: zone} if zone else {}

    async def _near(self, name: str, storage_class: StorageClass) -> Mapping[str, str] | None:
        """What the volume and the node have in common; nothing when the node is gone or the class has no volumes there."""
        try:  # the server and not the cache: the binder may have heard of the node before us
            node = await self._client.get(Node, name)
        except NotFound:
            return None
        if not allows(storage_class, node.metadata.labels):
            return None
        csi = self._informers.get(CSINode, name)
        drivers = csi.spec.drivers if csi is not None else ()
        keys = next((each.topology_keys for each in drivers if each.name == storage_class.provisioner), ())
        labels = node.metadata.labels
        return {key: labels[key] for key in keys or (ZONE,) if key in labels}

    async def _give_back(self, claim: PersistentVolumeClaim) -> None:
        """The node will not do: the binder has to choose again."""
        left = {key: text for key, text in claim.metadata.annotations.items() if key != SELECTED_NODE}
        await self._client.patch(claim, replace(claim, metadata=replace(claim.metadata, annotations=left)))

    async def _make(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, labels: Mapping[str, str]
    ) -> PersistentVolume:
        name = f"pvc-{claim.metadata.uid}"
        expressions = tuple(
            SelectorRequirement(key=key, operator="In", values=(labels[key],)) for key in sorted(labels)
        )
        terms = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=expressions),))
        spec = PersistentVolumeSpec(
            storage_class_name=storage_class.name,
            node_affinity=VolumeNodeAffinity(required=terms if expressions else None),
            claim_ref=_reference(claim),
            csi=CSIVolumeSource(driver=storage_class.provisioner, volume_handle=f"vol-{claim.metadata.uid}"),
        )
        metadata = ObjectMeta(name=name, annotations={PROVISIONED_BY: storage_class.provisioner})
        try:
            return await self._client.create(PersistentVolume(metadata=metadata, spec=spec))
        except AlreadyExists:
            return await self._client.get(PersistentVolume, name)

    async def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref
        if reference is not None and reference.uid not in ("", claim.metadata.uid):
            return  # it belongs to another provisioner
        owned = await self._client.patch(
            volume, replace(volume, spec=replace(volume.spec, claim_ref=_reference(claim)))
        )
        await self._client.patch_status(owned, replace(owned, status=PersistentVolumeStatus(phase=BOUND)))
        marks = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
        bound = await self._client.patch(
            claim,
            replace(
                claim,
                metadata=replace(claim.metadata, annotations=marks),
                spec=replace(claim.spec, volume_name=volume.name),
            ),
        )
        await self._client.patch_status(bound, replace(bound, status=PersistentVolumeClaimStatus(phase=BOUND)))


def _reference(claim: PersistentVolumeClaim) -> ClaimReference:
    return ClaimReference(namespace=claim.metadata.namespace, name=claim.name, uid=claim.metadata.uid)


def controllers(*, client: Client, informers: Informers, clock: Clock) -> tuple[Controller, ...]:
    """The volume people. The informers must have `INDEXES`."""
    return (
        EphemeralClaims(client=client, informers=informers),
        VolumeProvisioner(client=client, informers=informers),
        attacher.Attacher(client=client, informers=informers, clock=clock),
    )
