"""Caches of the API server's objects, kept current by watching, and told to listeners.

Reading a cache never waits, and may be a little behind the server. A write on the word of a cache must survive that.
"""

import asyncio
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, Final, Generic, TypeVar

from joiner.kube.client import BOOKMARK, DELETED, Key, Reader, key_of
from joiner.kube.controller import Change
from joiner.kube.errors import Gone, KubeError, Throttled
from joiner.kube.tasks import Tasks
from joiner.model.meta import KubeObject

K = TypeVar("K", bound=KubeObject)
Listener = Callable[[Change], None]
Index = Callable[[Any], Iterable[str]]

RETRY_S_LEAST: Final = 0.5
RETRY_S_MOST: Final = 30.0
IN_ONE_GO: Final = 2_000
"""After so many objects of a list other tasks have a turn: the lease must be renewed also while thousands of pods come in."""


class Store(Generic[K]):
    """All objects of one kind, by key and by the indexes that were asked for."""

    def __init__(self, indexes: Mapping[str, Index]) -> None:
        self._objects: dict[Key, K] = {}
        self._indexes = dict(indexes)
        self._found: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in indexes}
        self._values: dict[Key, list[tuple[str, ...]]] = {}
        """What each object has in each index."""
        self._all: tuple[K, ...] | None = ()
        self._order: list[Key] = []
        """The keys in order, kept so: everything is asked for far more often than a key comes or goes."""

    def get(self, key: tuple[str, str]) -> K | None:
        """The object, if it is known. A pair that says the same as a key will do."""
        return self._objects.get(key)  # type: ignore[call-overload, no-any-return]

    def all(self) -> tuple[K, ...]:
        """Every object, by key; the very same answer as long as nothing changed."""
        if self._all is None:
            self._all = tuple([self._objects[key] for key in self._order])
        return self._all

    def by(self, index: str, value: str) -> tuple[K, ...]:
        """The objects with that value in the index, by key."""
        found = self._found[index].get(value)
        return tuple([self._objects[key] for key in sorted(found)]) if found else ()

    def put(self, thing: K) -> K | None:
        """Take in an object; gives what it takes the place of."""
        key = key_of(thing)
        before = self._objects.get(key)
        self._reindex(key, thing)
        self._objects[key] = thing
        self._all = None
        if before is None:
            insort(self._order, key)
        return before

    def drop(self, key: Key) -> K | None:
        """Forget an object; gives it."""
        before = self._objects.pop(key, None)
        if before is not None:
            self._all = None
            self._reindex(key, None)
            del self._order[bisect_left(self._order, key)]
        return before

    def _reindex(self, key: Key, thing: K | None) -> None:
        had = self._values.pop(key, None) or [()] * len(self._indexes)
        has = [tuple(values_of(thing)) if thing is not None else () for values_of in self._indexes.values()]
        if thing is not None:
            self._values[key] = has
        if had == has:
            return
        for found, old, new in zip(self._found.values(), had, has, strict=True):
            if old == new:
                continue
            for value in dict.fromkeys(old):
                found[value].pop(key, None)
                if not found[value]:
                    del found[value]
            for value in new:
                found.setdefault(value, {})[key] = None

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[K]:
        return iter(self._objects.values())


class Informer(Generic[K]):
    """One kind: lists it once, follows what happens, and lists it again when the thread is lost."""

    def __init__(
        self,
        client: Reader,
        kind: type[K],
        indexes: Mapping[str, Index],
        *,
        latest: bool = False,
        jitter: Random | None = None,
    ) -> None:
        self.kind = kind
        self._latest = latest
        self._jitter = jitter
        self.store: Store[K] = Store(indexes)
        self.synced = asyncio.Event()
        self._client = client
        self._listeners: list[Listener] = []
        self._version = ""

    def listen(self, listener: Listener) -> None:
        """Be told of every change, after the store has it."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Follow the kind for ever."""
        failures = 0
        while True:
            failures += 1  # until something was heard, a try counts as failed
            error: KubeError | None = None
            try:
                if not self._version:
                    await self._relist()
                async for event in self._client.watch(self.kind, self._version):
                    failures = 0
                    self._take_in(event.type, event.object)
            except Gone:
                self._version = ""
            except KubeError as problem:
                error = problem
            if failures or error is not None:
                await asyncio.sleep(_patience(max(failures, 1), error) * self._spread())

    def _spread(self) -> float:
        """From three quarters to five quarters, so that the caches of a server that comes back do not all ask at once."""
        return 1.0 if self._jitter is None else 0.75 + self._jitter.random() / 2

    async def _relist(self) -> None:
        listing = await self._client.list(self.kind, latest=self._latest)
        present = {key_of(each) for each in listing.items}
        for key in [key_of(each) for each in self.store.all()]:
            if key not in present:
                self._tell(Change(self.store.drop(key), None))
        for number, each in enumerate(listing.items, start=1):
            self._put(each)
            if number % IN_ONE_GO == 0:
                await asyncio.sleep(0)
        self._version = listing.resource_version
        self.synced.set()

    def _take_in(self, happening: str, thing: K) -> None:
        self._version = thing.metadata.resource_version
        if happening == BOOKMARK:
            return
        if happening == DELETED:
            before = self.store.drop(key_of(thing))
            if before is not None:
                is_same = before.metadata.uid == thing.metadata.uid
                self._tell(Change(thing if is_same else before, None))
        else:
            self._put(thing)

    def _put(self, thing: K) -> None:
        before = self.store.put(thing)
        if before is None or before.metadata.resource_version != thing.metadata.resource_version:
            replaced = before is not None and before.metadata.uid != thing.metadata.uid
            if replaced:  # it went and another of its name came while the watch was broken
                self._tell(Change(before, None))
            self._tell(Change(None if replaced else before, thing))

    def _tell(self, change: Change) -> None:
        for listener in self._listeners:
            listener(change)


def _patience(failures: int, error: KubeError | None) -> float:
    asked = error.after_s if isinstance(error, Throttled) else 0.0
    return max(asked, min(RETRY_S_MOST, RETRY_S_LEAST * 2.0 ** min(failures - 1, 10)))


class Informers:
    """The caches of all kinds that are read, one for each."""

    def __init__(
        self,
        client: Reader,
        indexes: Mapping[type[KubeObject], Mapping[str, Index]] | None = None,
        *,
        latest: frozenset[type[KubeObject]] = frozenset(),
        jitter: Random | None = None,
    ) -> None:
        """`latest` are the kinds of which nothing that was there before the start may be missing after it.

        With `jitter` the waits after failures vary.
        """
        self._client = client
        self._indexes = indexes or {}
        self._latest = latest
        self._jitter = jitter
        self._informers: dict[type[KubeObject], Informer[Any]] = {}
        self._started = False

    def of(self, kind: type[K]) -> Informer[K]:
        """The informer of a kind. All must be asked for before the start."""
        found: Any = self._informers.get(kind)
        if found is None:
            if self._started:
                raise LookupError(f"{kind.kind} is not cached: ask for its informer before the start")
            indexes = self._indexes.get(kind, {})
            found = self._informers[kind] = Informer(
                self._client, kind, indexes, latest=kind in self._latest, jitter=self._jitter
            )
        return found  # type: ignore[no-any-return]

    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        """The object as the cache has it."""
        return self.of(kind).store.get((namespace, name))

    def all(self, kind: type[K]) -> tuple[K, ...]:
        """Every object of the kind, by key."""
        return self.of(kind).store.all()

    def by(self, kind: type[K], index: str, value: str) -> tuple[K, ...]:
        """The objects of the kind with that value in an index."""
        return self.of(kind).store.by(index, value)

    def kinds(self) -> tuple[type[KubeObject], ...]:
        """The kinds that are cached."""
        return tuple(self._informers)

    async def start(self, tasks: Tasks) -> None:
        """Begin to follow every kind, and wait until each has been listed once."""
        self._started = True
        informers = tuple(self._informers.values())
        for informer in informers:
            tasks.start(f"informer {informer.kind.kind}", informer.run())
        for informer in informers:
            await informer.synced.wait()
