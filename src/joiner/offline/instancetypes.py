"""`--instance-types`: a catalogue of instance types in the place of the cloud behind the NodeClasses.

So that manifests written for a cloud whose provider is not installed, or whose account is not at hand, can be tried as they are.
An EC2NodeClass over EC2's catalogue stays what it is, with the status it would have in that region; every other class is replaced
by one that has the catalogue and its kubelet settings.
"""

import dataclasses
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from joiner.admission.problem import nearest
from joiner.admission.validate import judge
from joiner.cloud.aws import offline as awsoffline
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.aws.reservations import Described
from joiner.cloud.kwok.nodeclass import DEFAULT_TYPES, EC2_PREFIX, SMALL, KWOKNodeClass, KWOKNodeClassSpec
from joiner.cloud.sources import ec2
from joiner.cloud.sources.catalogue import CatalogueError
from joiner.model.codec import decode, encode, fields
from joiner.model.kubelet import Kubelet
from joiner.model.meta import KubeObject, ObjectMeta, replace
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool
from joiner.offline import ignored
from joiner.offline.ignored import Ignored
from joiner.offline.kinds import known
from joiner.offline.manifests import Manifests, Unsound

_WOULD_CHANGE: Final[Mapping[str, str]] = {
    "blockDeviceMappings": "nodes are planned with a root volume of 20Gi",
    "capacityReservationSelectorTerms": "reservations are not known offline, so their machines are planned at full price",
    "instanceStorePolicy": "local disks are not counted as room for pods",
    "subnetSelectorTerms": "every zone of the catalogue is planned with; name yours with --zones",
    "zones": "every zone of the catalogue is planned with; name yours with --zones",
}
"""Fields of NodeClasses of other clouds, and what a plan takes instead."""
_NO_MATTER: Final = frozenset({
    "amiFamily", "amiSelectorTerms", "advancedNetworking", "associatePublicIPAddress", "context", "detailedMonitoring",
    "imageFamily", "instanceProfile", "metadataOptions", "networkPolicy", "role", "securityGroupSelectorTerms",
    "securityGroupIDs", "snatPolicy", "tags", "userData",
})  # fmt: skip
"""Fields that say nothing about which machines there are, or what they hold."""


def stand_in(manifests: Manifests, catalogue: str | None, reservations: str | None = None) -> Manifests:
    """The same objects over a catalogue, and EC2NodeClasses with the capacity reservations of a file."""
    if catalogue is not None:
        _check(catalogue)
    manifests = _resolved(manifests, _region(catalogue), _described(reservations))
    return manifests if catalogue is None else _replaced(manifests, catalogue)


def _region(catalogue: str | None) -> str:
    """The region that a catalogue of EC2 is of; empty for any other one, and for a region that it does not have."""
    named = (catalogue or "").removeprefix(EC2_PREFIX)
    return named if catalogue != named and named in ec2.regions() else ""


def _described(path: str | None) -> tuple[Described, ...] | None:
    try:
        return None if path is None else awsoffline.read_reservations(Path(path))
    except CatalogueError as error:
        raise Unsound(str(error)) from None


def _resolved(manifests: Manifests, region: str, reservations: tuple[Described, ...] | None) -> Manifests:
    """The EC2NodeClasses with the status they would have, and what of them is not used without an account."""
    classes: dict[str, Any] = {}
    unused: list[Ignored] = []
    for each in manifests.all(EC2NodeClass):
        place = region or awsoffline.region_of(each)
        classes[each.name] = made = awsoffline.resolved(each, place, reservations)
        if place in ec2.regions():
            unread = awsoffline.unread(made, place)
            unused.extend(Ignored(each.kind, (each.name,), reason, f"spec.{field}") for field, reason in unread)
    objects: dict[type[KubeObject], Any] = {**manifests.objects, EC2NodeClass: classes}
    return dataclasses.replace(manifests, objects=objects, unused=(*manifests.unused, *ignored.grouped(unused)))


def _replaced(manifests: Manifests, catalogue: str) -> Manifests:
    pools: dict[str, Any] = {}
    classes: dict[str, Any] = {}
    for pool in manifests.all(NodePool):
        reference = pool.spec.template.spec.node_class_ref
        if _region(catalogue) and _ec2_class(manifests, reference) is not None:
            pools[pool.name] = pool
            continue
        name = reference.name or "default"
        there = manifests.get(KWOKNodeClass, name) if reference.kind == KWOKNodeClass.kind else None
        made = there or KWOKNodeClass(metadata=ObjectMeta(name=name), spec=_like(manifests, reference))
        # Two pools may mean different classes of one name.
        name = name if classes.get(name, made).spec.kubelet == made.spec.kubelet else f"{name}-{reference.kind.lower()}"
        classes[name] = replace(
            made, metadata=replace(made.metadata, name=name), spec=replace(made.spec, instance_types=catalogue)
        )
        pools[pool.name] = _bought_from(pool, name)
    known_classes = {**manifests.objects.get(KWOKNodeClass, {}), **classes}
    referenced = [
        pool.spec.template.spec.node_class_ref
        for pool in manifests.all(NodePool)
        if not (_region(catalogue) and _ec2_class(manifests, pool.spec.template.spec.node_class_ref))
    ]
    given_up = ignored.grouped(each for ref in referenced for each in _unused(manifests, ref))
    unused = (*manifests.unused, *given_up, *_not_there(manifests))
    objects: dict[type[KubeObject], Any] = {**manifests.objects, NodePool: pools, KWOKNodeClass: known_classes}
    return dataclasses.replace(manifests, objects=objects, unused=unused)


def names() -> tuple[str, ...]:
    """The catalogues that have a name; anything else is a file."""
    return DEFAULT_TYPES, SMALL, *(EC2_PREFIX + region for region in ec2.regions())


def _check(catalogue: str) -> None:
    """Raises when there is no such catalogue."""
    if catalogue in names() or os.path.exists(catalogue):
        return
    near = nearest(catalogue, names())
    hint = f"; did you mean {near}?" if near else ""
    raise Unsound(f"--instance-types: there is no catalogue or file {catalogue}; there are {', '.join(names())}{hint}")


def _ec2_class(manifests: Manifests, reference: NodeClassReference) -> EC2NodeClass | None:
    is_ec2 = (reference.group, reference.kind) == (EC2NodeClass.group, EC2NodeClass.kind)
    return manifests.get(EC2NodeClass, reference.name) if is_ec2 else None


def _like(manifests: Manifests, reference: NodeClassReference) -> KWOKNodeClassSpec:
    """What the stand-in keeps of a NodeClass of another cloud: its kubelet settings."""
    kubelet = _spec(manifests, reference).get("kubelet")
    if not isinstance(kubelet, dict):
        return KWOKNodeClassSpec()
    ours = {field.written for field in fields(Kubelet)}
    like = {
        "apiVersion": KWOKNodeClass.api_version(),
        "kind": KWOKNodeClass.kind,
        "metadata": {"name": "stand-in"},
        "spec": {"kubelet": {key: value for key, value in kubelet.items() if key in ours}},
    }
    problems = [problem for problem in judge(like, *known()) if problem.is_error]
    if problems:
        lines = (f"{reference.kind} {reference.name}: {problem}" for problem in problems)
        raise Unsound("\n".join(["these kubelet settings cannot be used:", *lines]))
    return decode(like, KWOKNodeClass).spec


def _spec(manifests: Manifests, reference: NodeClassReference) -> dict[str, Any]:
    """The spec of a NodeClass of another cloud, as it is written; empty when it is not in the files."""
    ours = _ec2_class(manifests, reference)
    if ours is not None:
        return dict(encode(ours.spec))
    wanted = (reference.group, reference.kind, reference.name)
    written = next((each for each in manifests.others if _identity(each) == wanted), {})
    spec = written.get("spec")
    return spec if isinstance(spec, dict) else {}


def _unused(manifests: Manifests, reference: NodeClassReference) -> Iterator[Ignored]:
    """The fields of a NodeClass that the catalogue stands in for, one by one where it is known what they would change."""
    spec = _spec(manifests, reference)
    for field in sorted(spec.keys() & _WOULD_CHANGE.keys()):
        yield Ignored(reference.kind, (reference.name,), _WOULD_CHANGE[field], f"spec.{field}")
    others = sorted(str(field) for field in spec.keys() - _WOULD_CHANGE.keys() - _NO_MATTER - {"kubelet"})
    if others:
        names = ", ".join(f"spec.{field}" for field in others)
        yield Ignored(reference.kind, (reference.name,), "with --instance-types only its kubelet settings count", names)


def _not_there(manifests: Manifests) -> Iterator[Ignored]:
    """References of pools to NodeClasses that are not in the files, though others are: whose kubelet settings do not count."""
    given = {_identity(each) for each in manifests.others if str(each.get("kind")).endswith("NodeClass")}
    given |= {(each.group, each.kind, each.name) for each in manifests.all(EC2NodeClass)}
    for pool in manifests.all(NodePool) if given else ():
        reference = pool.spec.template.spec.node_class_ref
        if reference.kind != KWOKNodeClass.kind and (reference.group, reference.kind, reference.name) not in given:
            who = f"{reference.kind} {reference.name} of {reference.group}"
            reason = f"there is no {who} in these files, so nothing is known of its kubelet settings"
            yield Ignored(NodePool.kind, (pool.name,), reason, "spec.template.spec.nodeClassRef")


def _identity(written: dict[str, Any]) -> tuple[str, Any, Any]:
    metadata = written.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return str(written.get("apiVersion")).rpartition("/")[0], written.get("kind"), name


def _bought_from(pool: NodePool, name: str) -> NodePool:
    reference = NodeClassReference(group=KWOKNodeClass.group, kind=KWOKNodeClass.kind, name=name)
    spec = replace(pool.spec.template.spec, node_class_ref=reference)
    return replace(pool, spec=replace(pool.spec, template=replace(pool.spec.template, spec=spec)))
