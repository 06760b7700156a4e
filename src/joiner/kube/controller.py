"""What a controller is: a name, what wakes it, and one function from a key to when it wants to be asked again."""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from joiner.kube.client import Key
from joiner.model.meta import KubeObject

ALONE = Key("", "")
"""The one key of a controller that has no object of its own."""
AT_WORK: ContextVar[str] = ContextVar("controller", default="")
"""The name of the controller in whose work something is asked for. Only for metrics: nothing is decided by it."""


class Change(NamedTuple):
    """An object as a cache knew it, and as it knows it now. One of the two may be missing, never both."""

    before: Any
    after: Any

    @property
    def latest(self) -> Any:
        """The object as it is, or as it was last seen."""
        return self.before if self.after is None else self.after


def own_key(change: Change) -> Iterable[Key]:
    """The object itself."""
    metadata = change.latest.metadata
    return (Key(metadata.namespace, metadata.name),)


class Watch(NamedTuple):
    """A kind whose changes wake a controller, and for which of its keys."""

    kind: type[KubeObject]
    keys: Callable[[Change], Iterable[Key]] = own_key
    settle_s: float = 0.0
    """How long to wait for more of the same: changes that come in crowds are then looked at together."""


class Backoff(NamedTuple):
    """How long to wait after a failure, doubling from the least to the most."""

    least_s: float = 1.0
    most_s: float = 60.0

    def after(self, failures: int) -> float:
        """The wait after that many failures in a row."""
        return float(min(self.most_s, self.least_s * 2.0 ** min(failures - 1, 30)))


class Result(NamedTuple):
    """When to come back without being woken; never, if nothing is said."""

    after_s: float | None = None


DONE = Result()


def soonest(*results: Result) -> Result:
    """The result that comes back first."""
    waits = [each.after_s for each in results if each.after_s is not None]
    return Result(min(waits)) if waits else DONE


class Controller(Protocol):
    """One reconciler. It is asked with one key at a time, never twice at once with the same key."""

    @property
    def name(self) -> str:
        """As in metrics and traces."""
        ...

    @property
    def watches(self) -> tuple[Watch, ...]:
        """What wakes it."""
        ...

    @property
    def workers(self) -> int:
        """How many keys may be in work at once."""
        ...

    @property
    def backoff(self) -> Backoff:
        """How it is retried after a failure."""
        ...

    @property
    def keys_at_start(self) -> tuple[Key, ...]:
        """Keys that are asked once at the start, besides those of all objects that are watched: `ALONE` for a loop."""
        ...

    def attach(self, wake: Callable[[Key], None]) -> None:
        """Take the function that wakes it for a key, for reasons that no watch can see."""
        ...

    async def reconcile(self, key: Key) -> Result:
        """Read, ask the core, write, say when to come back. What it raises is retried with back-off."""
        ...


class Reconciler:
    """The defaults of a controller; derive from it and say what differs."""

    name: str = ""
    watches: tuple[Watch, ...] = ()
    workers: int = 10
    backoff: Backoff = Backoff()
    keys_at_start: tuple[Key, ...] = ()
    _wake: Callable[[Key], None] | None = None

    def attach(self, wake: Callable[[Key], None]) -> None:
        """Keep the function that wakes it."""
        self._wake = wake

    def wake(self, key: Key) -> None:
        """Ask for a reconcile of the key; without effect before a manager has taken it."""
        if self._wake is not None:
            self._wake(key)
