"""Which kinds and labels the command line knows: ours, and those of every provider that is installed."""

from functools import cache, reduce
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
    classes = (kind for provider in idle for kind in _classes(provider))
    words = [provider.vocabulary() for provider in idle] or [Vocabulary()]
    return CORE_KINDS.plus(*classes), reduce(Vocabulary.joined, words)


def providers() -> tuple[CloudProvider, ...]:
    """Every provider that is installed and works, over a world without NodeClasses: for questions that need none."""
    return _connected()[0]


def broken_providers() -> tuple[str, ...]:
    """A line about every provider that is installed and cannot be used."""
    return _connected()[1]


@cache
def _connected() -> tuple[tuple[CloudProvider, ...], tuple[str, ...]]:
    """One that is broken is named, and stops no other."""
    found, broken = [], []
    for name in plugins.names():
        try:
            connect = plugins.find(name)
        except plugins.BrokenProvider as error:
            broken.append(str(error))
            continue
        except ImportError:
            continue  # one of ours whose extra is not installed
        try:
            provider = connect(node_classes=_NoNodeClasses(), clock=SystemClock(), client=None, tasks=None)
            Vocabulary().joined(provider.vocabulary())
            _classes(provider)
            found.append(provider)
        except Exception as error:  # whatever goes wrong in a stranger's package
            broken.append(str(plugins.BrokenProvider(name, error)))
    return tuple(found), tuple(broken)


def _classes(provider: CloudProvider) -> tuple[type[CustomObject], ...]:
    return tuple(kind for kind in provider.node_classes() if issubclass(kind, CustomObject))


def as_written(made: C, source: str) -> C:
    """The object as its manifest means it: a relative path in it is seen from the manifest's folder."""
    if source == STDIN or not isinstance(made, _HasPaths):
        return made
    placed = made.written_in(PurePath(source).parent)
    return placed if isinstance(placed, type(made)) else made
