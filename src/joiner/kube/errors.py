"""What can go wrong at the Kubernetes API, told apart only where the caller does something different about it.

KubeError
├─ NotFound          it is gone
├─ AlreadyExists     the name is taken
├─ Conflict          another client wrote first: read again
├─ Invalid           the user's: shows what was wrong
├─ EvictionBlocked   a disruption budget says not now
├─ Throttled         the server asks for patience
├─ Gone              the history is too old: list again
├─ Unauthorized      the server does not know us: credentials are wrong or have expired
├─ Forbidden         the server knows us, and we may not
└─ Unreachable       unknown whether it was done
"""

from collections.abc import Iterable


class KubeError(Exception):
    """The API server said no, or said nothing."""


class NotFound(KubeError):
    """There is no such object, or the one that was meant by its UID is gone."""


class AlreadyExists(KubeError):
    """An object of that name is there already."""


class Conflict(KubeError):
    """The object is not what it was when it was read."""


class Invalid(KubeError):
    """The object may not enter."""

    def __init__(self, message: str, causes: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.causes = tuple(causes)
        """Everything that is wrong, each with its field."""


class EvictionBlocked(KubeError):
    """A disruption budget does not let the pod go now."""


class Throttled(KubeError):
    """Too many requests."""

    def __init__(self, message: str, after_s: float = 1.0) -> None:
        super().__init__(message)
        self.after_s = after_s
        """How long the server asked us to wait."""


class Gone(KubeError):
    """The resource version is older than what the server remembers."""


class Unauthorized(KubeError):
    """The server does not accept our credentials."""


class Forbidden(KubeError):
    """The server knows who asks, and does not allow it."""


class Unreachable(KubeError):
    """No answer came. The request may have been carried out all the same."""
