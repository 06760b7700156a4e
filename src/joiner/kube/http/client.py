"""The client of a real API server: `kube.client` over HTTP.

Lists come as the initial events of a watch where the server offers that, else in pages. Objects are changed by merge patches with
exactly what differs, never replaced. Entries of lists that we model only in part are completed from the live object first.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from random import Random
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from joiner.kube.client import BOOKMARK, Listing, WatchEvent, key_of
from joiner.kube.errors import Conflict, Gone, Invalid, NotFound
from joiner.kube.http import decode
from joiner.kube.http.ratelimit import Priority
from joiner.kube.http.transport import MERGE_PATCH, REQUEST_S, Permit, Request, Transport
from joiner.model import codec, patch
from joiner.model.customobject import CustomObject
from joiner.model.meta import KubeObject

K = TypeVar("K", bound=KubeObject)
Document = dict[str, Any]

PAGE: Final = 500
WATCH_S: Final = (300, 600)
"""A watch is asked to end after a time drawn from here, so that not all end at once."""
ABSENT_S: Final = 60.0
"""How often it is asked whether a kind that the server does not know is known now."""
PODS: Final = "/api/v1/namespaces/{namespace}/pods/{name}/{verb}"


def path_of(kind: type[KubeObject], namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Where the objects of a kind are, or one of them."""
    start = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    within = f"/namespaces/{quote(namespace, safe='')}" if kind.namespaced and namespace else ""
    ending = "".join(f"/{quote(part, safe='')}" for part in (name, subresource) if part)
    return f"{start}{within}/{kind.plural}{ending}"


class HttpClient:
    """A `Client` of one API server."""

    def __init__(
        self,
        transport: Transport,
        *,
        random: Random,
        permit: Permit | None = None,
        absent: set[type[KubeObject]] | None = None,
        unreadable: Callable[[str], None] = lambda message: None,
        priority: Priority | None = None,
        timeout_s: float = REQUEST_S,
    ) -> None:
        """`permit` is asked before every write, `absent` are kinds that the server does not have and that count as empty."""
        self.transport = transport
        self._random, self._permit, self._unreadable, self._priority = random, permit, unreadable, priority
        self._absent: set[type[KubeObject]] = set() if absent is None else absent
        self._timeout_s = timeout_s
        self._streams_lists = True
        self._heard: dict[type[KubeObject], str] = {}
        """Up to which version each kind is known: of several API servers one may be further behind than another."""

    # -- reading -------------------------------------------------------------------------------------------------

    async def get(self, kind: type[K], name: str, namespace: str = "") -> K:
        """The object as the server has it now."""
        return decode.thing(await self._send("GET", path_of(kind, namespace, name)), kind)

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
        if kind in self._absent:
            return Listing((), "")
        parameters: dict[str, str] = {}
        if labels:
            parameters["labelSelector"] = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        if fields:
            parameters["fieldSelector"] = ",".join(f"{key}={value}" for key, value in sorted(fields.items()))
        if parameters or namespace:
            return await self._paged(kind, path_of(kind, namespace), parameters, "" if latest else "0")
        heard = self._heard.get(kind, "0")
        try:
            found = await self._everything(kind, "" if latest else heard)
        except Gone:
            if latest or heard == "0":
                raise
            found = await self._everything(kind, "")  # what was heard is of a history that is not there any more
        self._heard[kind] = found.resource_version
        return found

    async def _everything(self, kind: type[K], at_least: str) -> Listing[K]:
        """All objects of a kind, as of a version or later; without one, as of now."""
        if self._streams_lists:
            try:
                found = await self._streamed(kind, at_least)
            except Invalid:
                self._streams_lists = False
            else:
                if found is not None:
                    return found
        return await self._paged(kind, path_of(kind), {}, at_least)

    async def _streamed(self, kind: type[K], at_least: str) -> Listing[K] | None:
        """The list as the first events of a watch: neither side ever has to hold it as one text. None if it was not completed."""
        parameters = {
            "watch": "1",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "120",
            **({"resourceVersion": at_least} if at_least else {}),
        }
        found: dict[tuple[str, str], K] = {}
        async for event in self._events(kind, parameters):
            if event.type != BOOKMARK:
                found[key_of(event.object)] = event.object
            elif decode.INITIAL_EVENTS_END in event.object.metadata.annotations:
                items = tuple(found[key] for key in sorted(found))
                return Listing(items, event.object.metadata.resource_version)
        return None

    async def _paged(self, kind: type[K], path: str, parameters: Mapping[str, str], at_least: str) -> Listing[K]:
        asked = {**parameters, "limit": str(PAGE)}
        if at_least:
            asked |= {"resourceVersion": at_least, "resourceVersionMatch": "NotOlderThan"}
        items: list[K] = []
        while True:
            page = decode.page(await self._send("GET", path, asked), kind, self._unreadable)
            items.extend(page.items)
            if not page.metadata.continue_:
                return Listing(tuple(sorted(items, key=key_of)), page.metadata.resource_version)
            asked = {**parameters, "limit": str(PAGE), "continue": page.metadata.continue_}

    async def watch(self, kind: type[K], resource_version: str) -> AsyncIterator[WatchEvent[K]]:
        """What happens after that version."""
        if kind in self._absent:
            await self._until_present(kind)
            raise Gone(f"{kind.kind} is known to the server now")
        parameters = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(self._random.randint(*WATCH_S)),
        }
        async for event in self._events(kind, parameters):
            self._heard[kind] = event.object.metadata.resource_version
            yield event

    async def _events(self, kind: type[K], parameters: Mapping[str, str]) -> AsyncIterator[WatchEvent[K]]:
        rest = b""
        request = Request("GET", path_of(kind), parameters, priority=self._reading)
        async with self.transport.stream(request) as content:
            async for chunk in content.iter_any():
                lines = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
                rest = lines.pop()
                for line in lines:
                    if line:
                        event = decode.frame(line, kind, self._unreadable)
                        if event is not None:
                            yield event
                # What has arrived already is handed out without waiting: others get their turn in between.
                await asyncio.sleep(0)

    async def _until_present(self, kind: type[KubeObject]) -> None:
        while True:
            await asyncio.sleep(ABSENT_S * (0.5 + self._random.random()))
            try:
                await self._send("GET", path_of(kind), {"limit": "1"})
            except NotFound:
                continue
            self._absent.discard(kind)
            return

    # -- writing -------------------------------------------------------------------------------------------------

    async def create(self, thing: K) -> K:
        """The object as it was stored."""
        kind, metadata = type(thing), thing.metadata
        namespace = (metadata.namespace or "default") if kind.namespaced else ""
        body = await self._write("POST", path_of(kind, namespace), codec.encode(thing), self._importance(kind))
        return decode.thing(body, kind)

    async def patch(self, before: K, after: K, *, locked: bool = False) -> K:
        """Bring the difference into the object, all but its status."""
        return await self._patch(before, after, locked, status=False)

    async def patch_status(self, before: K, after: K, *, locked: bool = False) -> K:
        """Bring the difference of the status into the object."""
        return await self._patch(before, after, locked, status=True)

    async def _patch(self, before: K, after: K, locked: bool, *, status: bool) -> K:
        if before == after:
            return before
        kind, metadata = type(before), before.metadata
        changes = _wanted(patch.changes(before, after), status)
        if not changes:
            return before
        if not isinstance(before, CustomObject) and _holds_entries(changes):
            changes = _wanted(patch.changes(before, after, await self._live(before, locked)), status)
        if locked:
            changes.setdefault("metadata", {})["resourceVersion"] = metadata.resource_version
        if metadata.uid:
            changes.setdefault("metadata", {})["uid"] = metadata.uid
        path = path_of(kind, metadata.namespace, metadata.name, "status" if status else "")
        body = await self._write("PATCH", path, changes, self._importance(kind), MERGE_PATCH)
        return decode.thing(body, kind)

    async def _live(self, thing: KubeObject, locked: bool) -> Document:
        """The object with all its fields. Raises Conflict when it must be the one that was read, and is not."""
        body = await self._send("GET", path_of(type(thing), thing.metadata.namespace, thing.metadata.name))
        live: Document = msgspec.json.decode(body)
        version = live.get("metadata", {}).get("resourceVersion")
        if locked and version != thing.metadata.resource_version:
            raise Conflict(
                f"{thing.kind} {key_of(thing)} is at version {version} and was read at"
                f" {thing.metadata.resource_version}: read it again"
            )
        return live

    async def delete(
        self, kind: type[K], name: str, namespace: str = "", *, uid: str = "", grace_period_s: int | None = None
    ) -> None:
        """Ask for the object to go."""
        body = _deletion(uid, grace_period_s)
        decode.done(await self._write("DELETE", path_of(kind, namespace, name), body, Priority.REMOVE))

    async def evict(self, namespace: str, name: str, *, uid: str = "") -> None:
        """Ask for a pod to go if its disruption budgets allow."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": _deletion(uid, None),
        }
        path = _pod_path(namespace, name, "eviction")
        decode.done(await self._write("POST", path, body, Priority.REMOVE, evicting=True))

    async def bind(self, namespace: str, name: str, *, node: str, uid: str = "") -> None:
        """Give a pod its node."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, **({"uid": uid} if uid else {})},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        decode.done(await self._write("POST", _pod_path(namespace, name, "binding"), body, Priority.WRITE))

    async def scale(self, kind: type[KubeObject], name: str, namespace: str = "", *, replicas: int) -> None:
        """Say how many replicas there should be, through the scale subresource."""
        path = path_of(kind, namespace, name, "scale")
        await self._write("PATCH", path, {"spec": {"replicas": replicas}}, Priority.WRITE, MERGE_PATCH)

    # -- sending -------------------------------------------------------------------------------------------------

    @property
    def _reading(self) -> Priority:
        return Priority.READ if self._priority is None else self._priority

    def _importance(self, kind: type[KubeObject]) -> Priority:
        if self._priority is not None:
            return self._priority
        return Priority.EVENT if kind.kind == "Event" else Priority.WRITE

    async def _send(self, method: str, path: str, parameters: Mapping[str, str] | None = None) -> bytes:
        return await self.transport.send(
            Request(method, path, parameters or {}, priority=self._reading, timeout_s=self._timeout_s)
        )

    async def _write(
        self,
        method: str,
        path: str,
        document: Document,
        priority: Priority,
        content_type: str = "application/json",
        *,
        evicting: bool = False,
    ) -> bytes:
        request = Request(
            method,
            path,
            body=msgspec.json.encode(document),
            content_type=content_type,
            priority=priority,
            evicting=evicting,
            timeout_s=self._timeout_s,
        )
        return await self.transport.send(request, self._permit)


def _pod_path(namespace: str, name: str, verb: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}/{verb}"


def _deletion(uid: str, grace_period_s: int | None) -> Document:
    options: Document = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace_period_s is not None:
        options["gracePeriodSeconds"] = grace_period_s
    return options


def _wanted(changes: Document, status: bool) -> Document:
    """The part of a patch that its target takes: the status, or everything else."""
    return {key: value for key, value in changes.items() if (key == "status") == status}


def _holds_entries(changes: Any) -> bool:
    """Whether a list of mappings is replaced somewhere."""
    if isinstance(changes, Mapping):
        return any(_holds_entries(each) for each in changes.values())
    return isinstance(changes, list) and any(isinstance(each, Mapping) for each in changes)
