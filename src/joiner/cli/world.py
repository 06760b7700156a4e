"""Manifests as typed objects: what every offline command works on."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import click

from joiner.admission.judge import normalise
from joiner.admission.kinds import Kinds
from joiner.admission.problem import nearest
from joiner.catalog.build import Adjustments
from joiner.cli import inputs, validate
from joiner.cli.kinds import known
from joiner.model.codec import decode
from joiner.model.custom import CustomObject
from joiner.model.meta import KubeObject
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.typesettings import InstanceTypeSettings

C = TypeVar("C", bound=KubeObject)


class Unsound(ValueError):
    """Objects that `joiner validate` would refuse, told the same way."""


@dataclass
class World:
    """The objects of the named files, by kind and name."""

    objects: dict[type[KubeObject], dict[str, KubeObject]] = field(default_factory=dict)

    def get(self, kind: type[C], name: str) -> C | None:
        """The object of that kind and name; this is how providers read NodeClasses."""
        found = self.objects.get(kind, {}).get(name)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[C]) -> tuple[C, ...]:
        """The objects of a kind, in order of name."""
        found = self.objects.get(kind, {})
        return tuple(each for name in sorted(found) if isinstance(each := found[name], kind))

    def adjustments(self) -> Adjustments:
        """What people said about the market."""
        return Adjustments(settings=self.all(InstanceTypeSettings), overlays=self.all(NodeOverlay))

    def pools(self, name: str | None) -> tuple[NodePool, ...]:
        """Every NodePool, or the one that was named."""
        pools = self.all(NodePool)
        if not pools:
            raise Unsound("there is no NodePool in these files; name one with -f")
        if name is None:
            return pools
        chosen = self.get(NodePool, name)
        if chosen is None:
            near = nearest(name, [pool.name for pool in pools])
            hint = f"; did you mean {near}?" if near else f"; there are {', '.join(pool.name for pool in pools)}"
            raise Unsound(f"there is no NodePool {name}{hint}")
        return (chosen,)


def load(filenames: Iterable[str]) -> World:
    """Read, judge and decode. Errors end here, all of them at once; warnings are told on standard error."""
    manifests = inputs.read(filenames)
    kinds, vocabulary = known()
    verdict = validate.examine(manifests, kinds, vocabulary)
    lines = [line for finding in verdict.findings for line in validate.told(finding)]
    if verdict.count("error"):
        raise Unsound("\n".join(["these objects cannot be used:", *lines]))
    for line in lines:
        click.echo(line, err=True)
    world = World()
    for item in manifests.objects:
        kind = _kind(item.data, kinds)
        if kind is not None:
            made = decode(normalise(item.data)[0], kind)
            world.objects.setdefault(kind, {})[made.metadata.name] = made
    return world


def _kind(data: dict[str, object], kinds: Kinds) -> type[CustomObject] | None:
    return kinds.find(str(data.get("apiVersion")), str(data.get("kind")))
