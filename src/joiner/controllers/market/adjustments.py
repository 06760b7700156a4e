"""NodeOverlays and InstanceType settings out of the caches, as one value.

The same object is handed out until an overlay or setting changes, so that "nothing changed" is a comparison of identities. Status
changes nothing: our own writes to it would otherwise rebuild every catalogue.
"""

from joiner.admission.runtime import overlay_problems, settings_problems
from joiner.catalog.build import NO_ADJUSTMENTS, Adjustments
from joiner.kube.controller import Change
from joiner.kube.informer import Informers
from joiner.model.labels import Vocabulary
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.typesettings import InstanceTypeSettings


class LiveAdjustments:
    """The overlays and settings in force. One that makes no sense is left out; its status says why."""

    def __init__(self, informers: Informers, vocabulary: Vocabulary, *, overlays: bool) -> None:
        self._informers, self._vocabulary, self._with_overlays = informers, vocabulary, overlays
        self._current: Adjustments | None = NO_ADJUSTMENTS
        for kind in (NodeOverlay, InstanceTypeSettings):
            informers.of(kind).listen(self._heard)

    def _heard(self, change: Change) -> None:
        if change.before is None or change.after is None or change.before.spec != change.after.spec:
            self._current = None

    def __call__(self) -> Adjustments:
        """As of now."""
        if self._current is None:
            self._current = self._read()
        return self._current

    def _read(self) -> Adjustments:
        overlays = self._informers.all(NodeOverlay) if self._with_overlays else ()
        return Adjustments(
            settings=tuple(
                each
                for each in self._informers.all(InstanceTypeSettings)
                if not any(problem.is_error for problem in settings_problems(each, self._vocabulary))
            ),
            overlays=tuple(
                each
                for each in overlays
                if not any(problem.is_error for problem in overlay_problems(each, self._vocabulary))
            ),
        )
