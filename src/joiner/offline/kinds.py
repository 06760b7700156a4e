"""Which kinds and labels the command line knows: ours, and those of every provider that is installed."""

from functools import reduce
from pathlib import PurePath
from typing import Protocol, TypeVar, runtime_checkable

from joiner.admission.kinds import CORE_KINDS, Kinds
from joiner.clock import SystemClock
from joiner.cloud import plugins
from joiner.cloud.provider import CloudProvider, K
from joiner.model.customobject import CustomObject
from joiner.model.labels import Vocabulary
from joiner.model.meta import KubeObject
from joiner.offline.files import STDIN

C = TypeVar("C", bound=KubeObject)


class _NoNodeClasses:
    """A provider that is only asked what it knows needs no objects."""

    def get(self, kind: type[K], name: str) -> K | None:
        """There is none."""
        return None


@runtime_checkable
class _HasPaths(Protocol):
    """An object that may name files beside its manifest."""

    def written_in(self, folder: PurePath) -> KubeObject: ...


def known() -> tuple[Kinds, Vocabulary]:
    """Our kinds with the NodeClasses of all providers, and the labels of all of them."""
    idle = providers()
    classes = (kind for provider in idle for kind in provider.node_classes() if issubclass(kind, CustomObject))
    words = [provider.vocabulary() for provider in idle] or [Vocabulary()]
    return CORE_KINDS.plus(*classes), reduce(Vocabulary.joined, words)


def providers() -> tuple[CloudProvider, ...]:
    """Every provider that is installed, over a world without NodeClasses: for questions that need none."""
    return tuple(plugins.find(name)(node_classes=_NoNodeClasses(), clock=SystemClock()) for name in plugins.names())


def as_written(made: C, source: str) -> C:
    """The object as its manifest means it: a relative path in it is seen from the manifest's folder."""
    if source == STDIN or not isinstance(made, _HasPaths):
        return made
    placed = made.written_in(PurePath(source).parent)
    return placed if isinstance(placed, type(made)) else made
