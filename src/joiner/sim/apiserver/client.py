"""The client of the pretend server: what a call costs in time, and what may go wrong with it.

Every call waits once before it takes effect and once after, so that a caller who is cancelled in between has done something it
never heard of. An interceptor may raise errors, slow calls down, answer with what was, and break watches.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from joiner.kube.client import Key, Listing, WatchEvent, key_of
from joiner.model.meta import KubeObject
from joiner.model.pod import Pod
from joiner.sim.virtualtime import pause

if TYPE_CHECKING:
    from joiner.sim.apiserver.server import ApiServer

K = TypeVar("K", bound=KubeObject)
R = TypeVar("R")

Latency = Callable[[], float] | tuple[float, float]

LATENCY_S: Final = (0.001, 0.010)
"""Of one way, unless another is given."""


class Call(NamedTuple):
    """A call to the server: get, list, watch, create, patch, status, delete, evict or bind."""

    actor: str
    verb: str
    kind: type[KubeObject]
    key: Key


class WatchedChange(NamedTuple):
    """What becomes of one event on its way to a client that watches."""

    delay_s: float = 0.0
    """It and all after it come later."""
    again: int = 0
    """So many of the last events, this one included, are told once more afterwards."""
    broken: bool = False
    """The connection ends instead."""


class Interceptor(Protocol):
    """An interceptor between client and server. All methods are asked at once and must not wait."""

    def before(self, call: Call) -> float:
        """Seconds to add before the effect. What it raises is the answer, and there is no effect."""
        ...

    def after(self, call: Call) -> float:
        """Seconds to add before the answer. What it raises is the answer, although the effect has taken place."""
        ...

    def behind(self, call: Call) -> int:
        """How many versions behind a list may be; 0 for what is now."""
        ...

    def event(self, call: Call, event: WatchEvent[Any]) -> WatchedChange:
        """What becomes of an event."""
        ...


_AS_IT_IS: Final = WatchedChange()


class NoInterceptor:
    """Everything goes as it should."""

    def before(self, call: Call) -> float:
        """At once."""
        return 0.0

    def after(self, call: Call) -> float:
        """At once."""
        return 0.0

    def behind(self, call: Call) -> int:
        """What is now."""
        return 0

    def event(self, call: Call, event: WatchEvent[Any]) -> WatchedChange:
        """As it is."""
        return _AS_IT_IS


class SimClient:
    """A `Client` of one actor. It never hears of an older state than it has heard of before, as long as it lives."""

    def __init__(
        self,
        server: "ApiServer",
        actor: str,
        random: Random,
        latency_s: Latency | None,
        interceptor: Interceptor | None,
    ) -> None:
        self.server = server
        self.actor = actor
        self.interceptor: Interceptor = interceptor or NoInterceptor()
        self.seen: dict[type[KubeObject], int] = {}
        """Up to which version each kind is known."""
        self._latency = _drawn(latency_s or LATENCY_S, random)

    async def get(self, kind: type[K], name: str, namespace: str = "") -> K:
        """The object as the server has it now."""
        call = Call(self.actor, "get", kind, Key(namespace, name))
        return await self._carry(call, lambda: self.server.get(kind, name, namespace))

    async def list(
        self,
        kind: type[K],
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        latest: bool = True,
    ) -> Listing[K]:
        """The objects that are chosen, by key."""
        call = Call(self.actor, "list", kind, Key(namespace, ""))

        def ask() -> Listing[K]:
            behind = 0 if latest else self.interceptor.behind(call)
            version = max(self.server.version - behind, self.seen.get(kind, 0))
            return self.server.list(kind, namespace=namespace, labels=labels, fields=fields, version=version)

        listing = await self._carry(call, ask)
        self.heard(kind, listing.resource_version)
        return listing

    def watch(self, kind: type[K], resource_version: str) -> AsyncIterator[WatchEvent[K]]:
        """What happens after that version."""
        return WatchStream(self, kind, resource_version)

    async def create(self, thing: K) -> K:
        """The object as it was stored."""
        call = Call(self.actor, "create", type(thing), key_of(thing))
        return await self._carry(call, lambda: self.server.create(self.actor, thing))

    async def patch(self, before: K, after: K, *, locked: bool = False) -> K:
        """Bring the difference into the object, all but its status."""
        if before == after:
            return before
        call = Call(self.actor, "patch", type(before), key_of(before))
        return await self._carry(call, lambda: self.server.patch(self.actor, before, after, locked=locked))

    async def patch_status(self, before: K, after: K, *, locked: bool = False) -> K:
        """Bring the difference of the status into the object."""
        if before == after:
            return before
        call = Call(self.actor, "status", type(before), key_of(before))
        return await self._carry(call, lambda: self.server.patch_status(self.actor, before, after, locked=locked))

    async def delete(
        self, kind: type[K], name: str, namespace: str = "", *, uid: str = "", grace_period_s: int | None = None
    ) -> None:
        """Ask for the object to go."""
        call = Call(self.actor, "delete", kind, Key(namespace, name))
        await self._carry(
            call, lambda: self.server.delete(self.actor, kind, name, namespace, uid=uid, grace_s=grace_period_s)
        )

    async def evict(self, namespace: str, name: str, *, uid: str = "") -> None:
        """Ask for a pod to go if its disruption budgets allow."""
        call = Call(self.actor, "evict", Pod, Key(namespace, name))
        await self._carry(call, lambda: self.server.evict(self.actor, namespace, name, uid=uid))

    async def bind(self, namespace: str, name: str, *, node: str, uid: str = "") -> None:
        """Give a pod its node."""
        call = Call(self.actor, "bind", Pod, Key(namespace, name))
        await self._carry(call, lambda: self.server.bind(self.actor, namespace, name, node=node, uid=uid))

    def heard(self, kind: type[KubeObject], version: str) -> None:
        """Remember how far the kind is known."""
        self.seen[kind] = max(self.seen.get(kind, 0), int(version))

    async def travel(self, more_s: float = 0.0) -> None:
        """One way between client and server."""
        delay = self._latency() + more_s
        if delay > 0:
            await pause(delay)

    async def _carry(self, call: Call, effect: Callable[[], R]) -> R:
        await self.travel(self.interceptor.before(call))
        try:
            return effect()
        finally:
            await self.travel(self.interceptor.after(call))


class WatchStream(AsyncIterator[WatchEvent[K]]):
    """One watch: a place in the server's history that moves on."""

    def __init__(self, client: SimClient, kind: type[K], version: str) -> None:
        self._client = client
        self._store = client.server.store(kind)
        self._call = Call(client.actor, "watch", kind, Key("", ""))
        self._version = version
        self._place = -1
        self._farthest = -1
        self._hangups = 0

    async def __anext__(self) -> WatchEvent[K]:
        """The next event, when it comes."""
        if self._place < 0:
            await self._client.travel(self._client.interceptor.before(self._call))
            self._place = self._farthest = self._store.place_after(int(self._version))
            self._hangups = self._store.hangups
        while (entry := self._store.at(self._place)) is None:
            await self._store.more()
            if self._store.hangups != self._hangups:
                break
            await self._client.travel()  # what happens while one event is on its way comes with it
        if entry is None or self._store.hangups != self._hangups:
            raise StopAsyncIteration
        self._place += 1
        if self._place > self._farthest:  # what is told again is not changed again
            self._farthest = self._place
            await self._intercept(entry.event)
        self._client.heard(self._call.kind, entry.event.object.metadata.resource_version)
        return entry.event

    async def _intercept(self, event: WatchEvent[K]) -> None:
        told = self._client.interceptor.event(self._call, event)
        if told.delay_s > 0:
            await pause(told.delay_s)
        if told.broken:
            raise StopAsyncIteration
        self._place = max(self._place - told.again, 0)


def _drawn(latency: Latency, random: Random) -> Callable[[], float]:
    if not isinstance(latency, tuple):
        return latency
    least, most = latency
    if most <= 0:
        return lambda: 0.0
    span, chance = most - least, random.random
    return lambda: least + span * chance()
