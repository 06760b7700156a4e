"""A client that reads and never writes: what would have been written is told, and answered as if it had been."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

from joiner.kube.client import Key, Listing, Reader, WatchEvent, key_of
from joiner.model import patch
from joiner.model.meta import KubeObject, replace

K = TypeVar("K", bound=KubeObject)
Told = Callable[[str, str, Key, Any], None]
"""Told of every write: verb, kind, key, and what differs."""


class DryRunClient:
    """A `Client` over another one, of which it only uses the reading half."""

    def __init__(self, reader: Reader, told: Told) -> None:
        self._reader, self._told = reader, told
        self.writes: Counter[tuple[str, str]] = Counter()
        """Verb and kind to how many writes there would have been."""
        self._number = 0
        self._made: dict[tuple[type[KubeObject], Key], KubeObject] = {}

    async def get(self, kind: type[K], name: str, namespace: str = "") -> K:
        """As the server has it, or as it would have been created."""
        made = self._made.get((kind, Key(namespace, name)))
        return made if isinstance(made, kind) else await self._reader.get(kind, name, namespace)

    async def list(
        self,
        kind: type[K],
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        latest: bool = True,
    ) -> Listing[K]:
        """As the server has them."""
        return await self._reader.list(kind, namespace=namespace, labels=labels, fields=fields, latest=latest)

    def watch(self, kind: type[K], resource_version: str) -> AsyncIterator[WatchEvent[K]]:
        """As the server tells it."""
        return self._reader.watch(kind, resource_version)

    async def create(self, thing: K) -> K:
        """The object with an identity that no server gave."""
        self._number += 1
        metadata = thing.metadata
        name = metadata.name or f"{metadata.generate_name}dry{self._number:x}"
        made = replace(
            thing, metadata=replace(metadata, name=name, uid=f"dry-run-{self._number}", resource_version="0")
        )
        self._made[type(thing), key_of(made)] = made
        self._tell("create", type(thing), key_of(made), thing)
        return made

    async def patch(self, before: K, after: K, *, locked: bool = False) -> K:
        """The object as it would be."""
        return self._changed("patch", before, after)

    async def patch_status(self, before: K, after: K, *, locked: bool = False) -> K:
        """The object as it would be."""
        return self._changed("patch the status of", before, after)

    def _changed(self, verb: str, before: K, after: K) -> K:
        if before != after:
            self._tell(verb, type(before), key_of(before), patch.changes(before, after))
        return after

    async def delete(
        self, kind: type[K], name: str, namespace: str = "", *, uid: str = "", grace_period_s: int | None = None
    ) -> None:
        """Nothing goes."""
        self._tell("delete", kind, Key(namespace, name), None)

    async def evict(self, namespace: str, name: str, *, uid: str = "") -> None:
        """Nothing goes."""
        self._count("evict", "Pod", Key(namespace, name), None)

    async def bind(self, namespace: str, name: str, *, node: str, uid: str = "") -> None:
        """The pod stays where it is."""
        self._count("bind", "Pod", Key(namespace, name), node)

    def _tell(self, verb: str, kind: type[KubeObject], key: Key, what: Any) -> None:
        if kind.kind != "Event":  # what they say is in the log anyway
            self._count(verb, kind.kind, key, what)

    def _count(self, verb: str, kind: str, key: Key, what: Any) -> None:
        self.writes[verb, kind] += 1
        self._told(verb, kind, key, what)
