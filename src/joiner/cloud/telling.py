"""Events of a provider: what it tells about an object beside its conditions.

A provider that tells something has `tell_with`, which is given the way to tell it. The reasons are those of `observe/events.py`.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from joiner.model.meta import KubeObject

Tell = Callable[[KubeObject, str, str], None]
"""Tells of an object, with the reason in one word and a message."""


@runtime_checkable
class HasEvents(Protocol):
    """A provider with something to tell."""

    def tell_with(self, tell: Tell) -> None:
        """From now on events are told this way."""
        ...
