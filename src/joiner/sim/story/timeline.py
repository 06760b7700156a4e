"""Who is there at which time of a story, as far as people make and delete things: known before anything runs."""

from collections.abc import Sequence

from joiner.model.duration import Duration
from joiner.sim.story.document.format import Timed
from joiner.sim.story.phrases import brief

Key = tuple[str, str]
"""The kind of an object in lower case, and its name."""


class Presence:
    """What people have made so far, while the steps go by in order of time."""

    def __init__(self, ends: Duration) -> None:
        self._ends = ends
        self._there: dict[Key, None] = {}
        self._comes: dict[Key, Duration] = {}
        """When each thing comes for the first time."""
        self._gone: dict[Key, Duration] = {}
        self._brought: dict[str, list[Key]] = {}
        """The place of a step to what it brings."""
        self._traffic: dict[Key, tuple[Duration, Duration]] = {}
        self.unsure = False
        """Whether something could not be read: then nothing is called absent."""

    def announce(self, kind: str, name: str, step: Timed | None) -> None:
        """A thing that a step brings; without a step it is there from the beginning."""
        key = (kind.lower(), name)
        if step is None:
            self._there[key] = None
            return
        self._brought.setdefault(step.path, []).append(key)
        self._comes[key] = min(step.at, self._comes.get(key, step.at))

    def enter(self, step: Timed) -> None:
        """The step happens, and what it brings is there."""
        self._there.update(dict.fromkeys(self._brought.get(step.path, ())))

    def busy(self, keys: Sequence[Key], at: Duration, lasts: Duration | None) -> None:
        """A step `traffic` scales it again and again."""
        for key in keys:
            self._traffic[key] = (at, self._ends if lasts is None else Duration(at + lasts))

    def leave(self, key: Key, at: Duration) -> Duration | None:
        """It is deleted. If a step `traffic` still scales it: since when."""
        self._there.pop(key, None)
        self._gone[key] = at
        since, until = self._traffic.pop(key, (at, at))
        return since if at < until else None

    def absence(self, keys: Sequence[Key]) -> str:
        """Why none of the things is there now; empty when one is."""
        if self.unsure or any(key in self._there for key in keys):
            return ""
        gone = [self._gone[key] for key in keys if key in self._gone]
        if gone:
            return f"it is deleted at {brief(max(gone))}"
        comes = [self._comes[key] for key in keys if key in self._comes]
        return f"it comes at {brief(min(comes))}" if comes else ""
