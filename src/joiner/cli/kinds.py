"""Which kinds and labels the command line knows: ours, and those of every provider that is installed."""

from functools import reduce

from joiner.admission.kinds import CORE_KINDS, Kinds
from joiner.clock import SystemClock
from joiner.cloud import plugins
from joiner.cloud.provider import CloudProvider, K
from joiner.model.custom import CustomObject
from joiner.model.labels import Vocabulary


class _NoNodeClasses:
    """A provider that is only asked what it knows needs no objects."""

    def get(self, kind: type[K], name: str) -> K | None:
        """There is none."""
        return None


def known() -> tuple[Kinds, Vocabulary]:
    """Our kinds with the NodeClasses of all providers, and the labels of all of them."""
    providers = [_idle(name) for name in plugins.names()]
    classes = (kind for provider in providers for kind in provider.node_classes() if issubclass(kind, CustomObject))
    words = [provider.vocabulary() for provider in providers] or [Vocabulary()]
    return CORE_KINDS.plus(*classes), reduce(_joined, words)


def _idle(name: str) -> CloudProvider:
    return plugins.find(name)(node_classes=_NoNodeClasses(), clock=SystemClock())


def _joined(one: Vocabulary, other: Vocabulary) -> Vocabulary:
    return one.extended(well_known=other.well_known, restricted_domains=other.restricted_domains)
