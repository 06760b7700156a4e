"""Outages of the pretend cloud that a story asks for: some of its calls fail, for a while."""

from collections.abc import Mapping
from typing import Final

from joiner.cloud.errors import Transient

CALLS: Final[Mapping[str, frozenset[str]]] = {
    "launch": frozenset({"create"}),
    "terminate": frozenset({"delete"}),
    "list": frozenset({"list", "get"}),
    "types": frozenset({"types"}),
    "everything": frozenset({"create", "delete", "list", "get", "types", "reboot"}),
}
"""What a story calls them, and which calls are meant."""


class Outages:
    """Stands between the cloud and who asks it, and refuses what is down."""

    def __init__(self) -> None:
        self._down: list[str] = []

    def begin(self, what: str) -> None:
        """From now on these calls fail."""
        self._down.append(what)

    def end(self, what: str) -> None:
        """They work again, unless another outage goes on."""
        self._down.remove(what)

    def before(self, call: str, about: str) -> float:
        """Fails if the call is down."""
        if any(call in CALLS[what] for what in self._down):
            raise Transient(f"{call} {about}: the cloud does not answer")
        return 0.0

    def after(self, call: str, about: str) -> float:
        """At once."""
        return 0.0
