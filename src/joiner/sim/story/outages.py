"""Outages that a story asks for: calls of the pretend cloud, or all of the API server, fail for a while."""

from collections.abc import Mapping
from typing import Final

from joiner.cloud.errors import Transient
from joiner.kube.errors import Unreachable
from joiner.sim.apiserver.client import Call, NoInterceptor

API: Final = "api"

CALLS: Final[Mapping[str, frozenset[str]]] = {
    "launch": frozenset({"create"}),
    "terminate": frozenset({"delete"}),
    "list": frozenset({"list", "get"}),
    "types": frozenset({"types"}),
    "everything": frozenset({"create", "delete", "list", "get", "types", "reboot", "receive", "acknowledge"}),
}
"""What a story calls them, and which calls are meant."""


class ApiOutages(NoInterceptor):
    """Stands between the API server and the controllers."""

    down = 0
    """How many outages go on."""

    def before(self, call: Call) -> float:
        """Fails while the server does not answer."""
        if self.down:
            raise Unreachable(f"{call.verb} {call.kind.kind}: the API server does not answer")
        return 0.0


class Outages:
    """Stands between the cloud and who asks it, and refuses what is down."""

    def __init__(self) -> None:
        self._down: list[str] = []
        self.api = ApiOutages()

    def begin(self, what: str) -> None:
        """From now on these calls fail."""
        if what == API:
            self.api.down += 1
        else:
            self._down.append(what)

    def end(self, what: str) -> None:
        """They work again, unless another outage goes on."""
        if what == API:
            self.api.down -= 1
        else:
            self._down.remove(what)

    def before(self, call: str, about: str) -> float:
        """Fails if the call is down."""
        if any(call in CALLS[what] for what in self._down):
            raise Transient(f"{call} {about}: the cloud does not answer")
        return 0.0

    def after(self, call: str, about: str) -> float:
        """At once."""
        return 0.0
