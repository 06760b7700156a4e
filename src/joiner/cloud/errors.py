"""What can go wrong at a cloud, told apart only where the caller does something different about it.

CloudError
├─ InsufficientCapacity   try other offerings
├─ InstanceNotFound       already gone: good
├─ NodeClassNotReady      wait for the user
├─ LaunchFailed           shows on the claim
├─ RebootNotSupported     replace the node instead
├─ RebootRefused          replace the node instead
└─ Transient              come back later
"""

from collections.abc import Iterable

from joiner.catalog.market import Offering


class CloudError(Exception):
    """The provider said no."""


class InsufficientCapacity(CloudError):
    """The cloud has none of these left right now."""

    def __init__(self, message: str, offerings: Iterable[tuple[str, Offering]] = ()) -> None:
        super().__init__(message)
        self.offerings = tuple(offerings)
        """Instance type name and offering of everything that was tried."""


class InstanceNotFound(CloudError):
    """There is no such instance any more. Of a young one this may be said too early, unless the provider is `certain`."""

    def __init__(self, message: str = "", *, certain: bool = False) -> None:
        super().__init__(message)
        self.certain = certain


class NodeClassNotReady(CloudError):
    """The NodeClass is missing, or its conditions say it cannot be launched from."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"NodeClass {name} is not ready: {reason}")
        self.name = name
        self.reason = reason


class LaunchFailed(CloudError):
    """The launch was refused for a reason the user can read on the claim."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class RebootNotSupported(CloudError):
    """The provider cannot restart machines."""


class RebootRefused(CloudError):
    """The cloud will not restart this machine, however often it is asked."""


class Transient(CloudError):
    """It may work later: throttling, a time-out, an answer that made no sense."""

    def __init__(self, message: str, after_s: float = 0.0) -> None:
        super().__init__(message)
        self.after_s = after_s
        """How long the provider asked us to wait, if it did."""
