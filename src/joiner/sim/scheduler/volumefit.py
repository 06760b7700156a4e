"""Which nodes the volumes of a pod can be reached from, and how many volumes a node can have."""

from collections.abc import Iterator, Mapping
from typing import Final

from joiner.kube.client import Key
from joiner.model.node import Node
from joiner.model.pod import Pod
from joiner.model.storage import BOUND, DEFAULT_CLASS, IMMEDIATE, StorageClass
from joiner.sim.scheduler.clusterindex import ClusterIndex, NodeEntry, claims_of
from joiner.sim.scheduler.nodefit import term_matches

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""On a claim: the node its first pod will be on, so that the volume is made where that node can reach it."""

VOLUME_ELSEWHERE: Final = "volume cannot be reached"
TOO_MANY_VOLUMES: Final = "too many volumes"
VOLUME_UNBOUND: Final = "volume claim not bound yet"


def class_of(name: str | None, classes: Mapping[str, StorageClass]) -> StorageClass | None:
    """The class a claim means; without a name the default one."""
    if name is not None:
        return classes.get(name)
    defaults = [each for each in classes.values() if each.metadata.annotations.get(DEFAULT_CLASS) == "true"]
    return max(defaults, key=lambda each: each.name, default=None)


def allows(storage_class: StorageClass, labels: Mapping[str, str]) -> bool:
    """Whether the class can make a volume for a node with these labels."""
    return not storage_class.allowed_topologies or any(
        all(labels.get(each.key) in each.values for each in term.match_label_expressions)
        for term in storage_class.allowed_topologies
    )


def claim_problem(pod: Pod, places: ClusterIndex) -> str | None:
    """Why no node at all will do as long as its claims are as they are."""
    for key in claims_of(pod):
        claim = places.claims.get(key)
        if claim is None:
            return f"volume claim {key.name} does not exist"
        if claim.metadata.deletion_timestamp is not None:
            return f"volume claim {key.name} is being deleted"
        if not claim.spec.volume_name:
            storage_class = class_of(claim.spec.storage_class_name, places.classes)
            if storage_class is None or storage_class.volume_binding_mode == IMMEDIATE:
                return VOLUME_UNBOUND
    return None


def is_bound(key: Key, places: ClusterIndex) -> bool:
    """Whether the claim has its volume for good, and we know the volume."""
    claim = places.claims.get(key)
    return claim is not None and claim.status.phase == BOUND and claim.spec.volume_name in places.volumes


def volume_refusals(pod: Pod, entry: NodeEntry, places: ClusterIndex) -> Iterator[str]:
    """Why the volumes keep the pod off the node."""
    claims = claims_of(pod)
    if not claims:
        return
    assert entry.node is not None
    if not all(_reaches(key, entry.node, places) for key in claims):
        yield VOLUME_ELSEWHERE
    if _too_many_volumes(claims, entry, places):
        yield TOO_MANY_VOLUMES


def _reaches(key: Key, node: Node, places: ClusterIndex) -> bool:
    claim = places.claims.get(key)
    if claim is None:
        return False
    if claim.spec.volume_name:
        volume = places.volumes.get(claim.spec.volume_name)
        required = volume.spec.node_affinity.required if volume is not None else None
        return volume is not None and (
            required is None or any(term_matches(term, node) for term in required.node_selector_terms)
        )
    selected = places.entries.get(claim.metadata.annotations.get(SELECTED_NODE, ""))
    if selected is not None and selected.node is not None and selected.name != node.name:
        return False
    storage_class = class_of(claim.spec.storage_class_name, places.classes)
    return storage_class is not None and allows(storage_class, node.metadata.labels)


def _too_many_volumes(claims: tuple[Key, ...], entry: NodeEntry, places: ClusterIndex) -> bool:
    csi = places.drivers.get(entry.name)
    limits = {each.name: each.allocatable.count for each in csi.spec.drivers} if csi is not None else {}
    if not limits:
        return False
    there = {key for pod_entry in entry.with_claims.values() for key in pod_entry.claims}
    count: dict[str, int] = {}
    for key in sorted({*there, *claims}):
        driver = _driver(key, places)
        count[driver] = count.get(driver, 0) + 1
    new = {_driver(key, places) for key in claims if key not in there}
    return any((limit := limits.get(driver)) is not None and count[driver] > limit for driver in new)


def _driver(key: Key, places: ClusterIndex) -> str:
    claim = places.claims.get(key)
    if claim is None:
        return ""
    volume = places.volumes.get(claim.spec.volume_name)
    if volume is not None:
        return volume.spec.csi.driver if volume.spec.csi is not None else ""
    storage_class = class_of(claim.spec.storage_class_name, places.classes)
    return storage_class.provisioner if storage_class is not None else ""
