"""What was prepared for one question and serves the next: consolidation asks hundreds in a row, a node less or a pod more each.

Frozen values are recognised by identity. Answers are the same without: `tests/property/test_kept_laws.py`.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
M = TypeVar("M")


class Kept:
    """Made from the values of the last question; what the next one does not ask for is forgotten."""

    def __init__(self) -> None:
        self._tables: dict[Hashable, dict[int, tuple[object, Any]]] = {}
        self._states: dict[str, tuple[object, Any]] = {}

    def each(self, kind: Hashable, things: Iterable[T], make: Callable[[T], M]) -> list[M]:
        """What is made of each thing, in their order; `kind` says all else that it depends on."""
        before = self._tables.get(kind, {})
        now: dict[int, tuple[object, Any]] = {}
        made: list[M] = []
        for thing in things:
            known = before.get(id(thing))
            if known is None:
                known = (thing, make(thing))
            now[id(thing)] = known
            made.append(known[1])
        self._tables[kind] = now
        return made

    def state(self, kind: str, key: object, make: Callable[[], M]) -> M:
        """Something that goes along with the questions as long as the key is equal."""
        known = self._states.get(kind)
        if known is None or known[0] != key:
            known = self._states[kind] = (key, make())
        made: M = known[1]
        return made
