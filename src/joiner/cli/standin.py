"""`--instance-types`: a catalogue of instance types in the place of the cloud behind the NodeClasses.

So that manifests written for a cloud whose provider is not installed, or whose account is not at hand, can be tried as they are.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from joiner.cli.world import World
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.model.meta import ObjectMeta, replace
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import NodePool

F = TypeVar("F", bound=Callable[..., Any])


def option(function: F) -> F:
    """The `--instance-types` option of a command."""
    text = (
        "Let every NodePool buy these types, whatever its NodeClass says: kwok, ec2/us-east-1, ec2/us-west-2 or a file."
    )
    return click.option("--instance-types", "catalogue", metavar="CATALOGUE", help=text)(function)


def stand_in(world: World, catalogue: str | None) -> World:
    """The same objects, with the NodeClass of every pool replaced by one that has the catalogue."""
    if catalogue is None:
        return world
    pools: dict[str, Any] = {}
    classes: dict[str, Any] = {}
    for pool in world.all(NodePool):
        name = pool.spec.template.spec.node_class_ref.name or "default"
        known = world.get(KWOKNodeClass, name) or KWOKNodeClass(metadata=ObjectMeta(name=name))
        classes[name] = replace(known, spec=replace(known.spec, instance_types=catalogue))
        pools[pool.name] = _bought_from(pool, name)
    return World({**world.objects, NodePool: pools, KWOKNodeClass: {**world.objects.get(KWOKNodeClass, {}), **classes}})


def _bought_from(pool: NodePool, name: str) -> NodePool:
    reference = NodeClassReference(group=KWOKNodeClass.group, kind=KWOKNodeClass.kind, name=name)
    spec = replace(pool.spec.template.spec, node_class_ref=reference)
    return replace(pool, spec=replace(pool.spec, template=replace(pool.spec.template, spec=spec)))
