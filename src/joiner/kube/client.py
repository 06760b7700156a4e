"""The port: everything that is ever asked of a Kubernetes API server.

Objects are typed by their class. Changes are told as a pair, the object as it was read and as it should be; only what differs
between the two is sent, so that fields we do not model survive and two writers of different fields do not fight.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from joiner.model.meta import KubeObject

K = TypeVar("K", bound=KubeObject)

ADDED: Literal["ADDED"] = "ADDED"
MODIFIED: Literal["MODIFIED"] = "MODIFIED"
DELETED: Literal["DELETED"] = "DELETED"
BOOKMARK: Literal["BOOKMARK"] = "BOOKMARK"

Happening = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


class Key(NamedTuple):
    """Which object of a kind. The namespace is empty for kinds that have none."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(thing: KubeObject) -> Key:
    """The key of an object."""
    metadata = thing.metadata
    return tuple.__new__(Key, (metadata.namespace, metadata.name))  # asked so often that the way around counts


class Listing(NamedTuple, Generic[K]):
    """All objects of a kind, as of one moment."""

    items: tuple[K, ...]
    resource_version: str


class WatchEvent(NamedTuple, Generic[K]):
    """One thing that happened. A bookmark only says how far the history has come; its object is empty but for that."""

    type: Happening
    object: K


class Reader(Protocol):
    """Asking."""

    async def get(self, kind: type[K], name: str, namespace: str = "") -> K:
        """The object as the server has it now. Raises NotFound."""
        ...

    async def list(
        self,
        kind: type[K],
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        latest: bool = True,
    ) -> Listing[K]:
        """All objects of the kind that have these labels and fields (`spec.nodeName`, `metadata.name` …), by key.

        As the server has them now. What need not be the `latest` it may take from a cache that is behind, which is cheaper.
        """
        ...

    def watch(self, kind: type[K], resource_version: str) -> AsyncIterator[WatchEvent[K]]:
        """What happens after that version. Ends when the server hangs up; raises Gone when the version is too old."""
        ...


class Writer(Protocol):
    """Changing."""

    async def create(self, thing: K) -> K:
        """The object as it was stored. Raises AlreadyExists, Invalid."""
        ...

    async def patch(self, before: K, after: K, *, locked: bool = False) -> K:
        """Bring the difference into the object, all but its status.

        It never reaches another object of the same name: raises Conflict when the UID differs. Locked, it does so whenever the
        object is not as it was read. Raises NotFound, Invalid. When nothing differs nothing is sent.
        """
        ...

    async def patch_status(self, before: K, after: K, *, locked: bool = False) -> K:
        """Bring the difference of the status into the object, and nothing else."""
        ...

    async def delete(
        self, kind: type[K], name: str, namespace: str = "", *, uid: str = "", grace_period_s: int | None = None
    ) -> None:
        """Ask for the object to go; finalizers may hold it for a while. Raises NotFound, Conflict when the UID differs."""
        ...

    async def evict(self, namespace: str, name: str, *, uid: str = "") -> None:
        """Ask for a pod to go if its disruption budgets allow. Raises EvictionBlocked, NotFound, Conflict."""
        ...

    async def bind(self, namespace: str, name: str, *, node: str, uid: str = "") -> None:
        """Give a pod its node. Raises Conflict when it has one."""
        ...


class Client(Reader, Writer, Protocol):
    """The whole door."""
