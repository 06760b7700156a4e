"""The pods that wait for the pretend scheduler, in lines: all pods of a line get the same answer at the same moment.

Where a thousand pods of one kind wait, one of them is asked about, not all.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from joiner.kube.client import Key
from joiner.model.pod import Pod

Order = tuple[int, datetime, Key]
"""The important first, then the oldest."""


class Waiting(NamedTuple):
    """A pod that wants a node."""

    pod: Pod
    like: bytes
    """Equal for pods that get the same answer."""
    order: Order


class Lines:
    """The pods by key, and the lines by what their pods are like."""

    def __init__(self) -> None:
        self._pods: dict[Key, Waiting] = {}
        self._lines: dict[bytes, list[Order]] = {}
        self.stirred: set[bytes] = set()
        """Lines in which a pod came or changed. Never walked through, only asked."""

    def put(self, waiting: Waiting) -> None:
        """A pod gets in line, or is another one by now."""
        key = waiting.order[2]
        known = self._pods.get(key)
        if known is None or known.like != waiting.like or known.order != waiting.order:
            self.pop(key)
            insort(self._lines.setdefault(waiting.like, []), waiting.order)
        self._pods[key] = waiting
        self.stirred.add(waiting.like)

    def pop(self, key: Key) -> None:
        """A pod does not wait any more, if it did."""
        known = self._pods.pop(key, None)
        if known is None:
            return
        line = self._lines[known.like]
        del line[bisect_left(line, known.order)]
        if not line:
            del self._lines[known.like]
            self.stirred.discard(known.like)

    def get(self, key: Key) -> Waiting | None:
        """The pod of that name, if it waits."""
        return self._pods.get(key)

    def __getitem__(self, key: Key) -> Waiting:
        return self._pods[key]

    def __contains__(self, key: Key) -> bool:
        return key in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def line(self, like: bytes) -> Iterator[Pod]:
        """The pods of one line, in order."""
        return (self._pods[order[2]].pod for order in self._lines.get(like, ()))

    def heads(self) -> list[tuple[Order, bytes]]:
        """Who is first in each line."""
        return [(line[0], like) for like, line in self._lines.items()]

    def after(self, order: Order, like: bytes) -> Order | None:
        """Who comes next in the line."""
        line = self._lines.get(like, [])
        place = bisect_right(line, order)
        return line[place] if place < len(line) else None
