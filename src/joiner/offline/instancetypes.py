"""`--instance-types`: a catalogue of instance types in the place of the cloud behind the NodeClasses.

So that manifests written for a cloud whose provider is not installed, or whose account is not at hand, can be tried as they are.
"""

import dataclasses
from typing import Any

from joiner.admission.validate import judge
from joiner.cloud.kwok.nodeclass import KWOKNodeClass, KWOKNodeClassSpec
from joiner.model.codec import decode, fields
from joiner.model.kubelet import Kubelet
from joiner.model.meta import ObjectMeta, replace
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool
from joiner.offline.kinds import known
from joiner.offline.manifests import Manifests, Unsound


def stand_in(manifests: Manifests, catalogue: str | None) -> Manifests:
    """The same objects, with the NodeClass of every pool replaced by one that has the catalogue, and its kubelet settings."""
    if catalogue is None:
        return manifests
    pools: dict[str, Any] = {}
    classes: dict[str, Any] = {}
    for pool in manifests.all(NodePool):
        reference = pool.spec.template.spec.node_class_ref
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
    return dataclasses.replace(manifests, objects={**manifests.objects, NodePool: pools, KWOKNodeClass: known_classes})


def _like(manifests: Manifests, reference: NodeClassReference) -> KWOKNodeClassSpec:
    """What the stand-in keeps of a NodeClass of another cloud: its kubelet settings."""
    wanted = (reference.group, reference.kind, reference.name)
    written = next((each for each in manifests.others if _identity(each) == wanted), {})
    spec = written.get("spec")
    kubelet = spec.get("kubelet") if isinstance(spec, dict) else None
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


def _identity(written: dict[str, Any]) -> tuple[str, Any, Any]:
    metadata = written.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return str(written.get("apiVersion")).rpartition("/")[0], written.get("kind"), name


def _bought_from(pool: NodePool, name: str) -> NodePool:
    reference = NodeClassReference(group=KWOKNodeClass.group, kind=KWOKNodeClass.kind, name=name)
    spec = replace(pool.spec.template.spec, node_class_ref=reference)
    return replace(pool, spec=replace(pool.spec, template=replace(pool.spec.template, spec=spec)))
