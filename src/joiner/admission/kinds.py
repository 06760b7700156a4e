"""Which kinds are ours: a value the caller extends with its provider's, never a registry."""

from collections.abc import Iterator
from typing import Final

from joiner.model.capacitybuffer import CapacityBuffer
from joiner.model.customobject import CustomObject
from joiner.model.meta import Value
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.model.typesettings import InstanceTypeSettings


class Kinds(Value):
    """The kinds that are judged."""

    classes: tuple[type[CustomObject], ...] = ()

    @classmethod
    def of(cls, *classes: type[CustomObject]) -> "Kinds":
        """These kinds and no others."""
        return cls(classes=classes)

    def plus(self, *classes: type[CustomObject]) -> "Kinds":
        """These kinds and some more."""
        return Kinds(classes=self.classes + classes)

    def find(self, api_version: str, kind: str) -> type[CustomObject] | None:
        """The class that an object of this kind is read into."""
        return next((known for known in self if (known.api_version(), known.kind) == (api_version, kind)), None)

    def __iter__(self) -> Iterator[type[CustomObject]]:
        return iter(self.classes)


CORE_KINDS: Final = Kinds.of(NodePool, NodeClaim, NodeOverlay, InstanceTypeSettings, CapacityBuffer)
