"""What was written, by whom and when: one line each. Two runs are the same when their digests are."""

import hashlib
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

AT_ONCE: Final = 500
"""So many lines go into the digest together."""


class Trace:
    """The last lines for people, a digest of all of them for comparing, and every line for a sink, if there is one."""

    def __init__(self, last: int = 400, sink: Callable[[str], None] | None = None) -> None:
        self.last: deque[str] = deque(maxlen=last)
        self.verbs: Counter[str] = Counter()
        """How often each verb occurred."""
        self._digest = hashlib.sha256()
        self._lines: list[str] = []
        """What the digest has not taken in yet."""
        self._sink = sink

    def record(self, time: float, actor: str, verb: str, kind: str, key: object, detail: str = "") -> None:
        """One thing that was done. The time is in seconds since the world began."""
        line = f"{time:11.3f} {actor:<18} {verb:<8} {kind} {key} {detail}".rstrip()
        self.last.append(line)
        self.verbs[verb] += 1
        self._lines.append(line)
        if len(self._lines) >= AT_ONCE:
            self._take_in()
        if self._sink is not None:
            self._sink(line)

    def _take_in(self) -> None:
        self._lines.append("")
        self._digest.update("\n".join(self._lines).encode())
        self._lines = []

    def digest(self) -> str:
        """A text that differs as soon as one line does."""
        if self._lines:
            self._take_in()
        return self._digest.hexdigest()

    def __len__(self) -> int:
        return self.verbs.total()
