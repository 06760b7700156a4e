"""A live cluster as documents: the objects that `-f` would read from a dump of it. Nothing is written."""

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from joiner.clock import Clock
from joiner.kube.errors import Forbidden, KubeError, NotFound
from joiner.kube.http import discover
from joiner.kube.http.access import Access
from joiner.kube.http.client import PAGE, path_of
from joiner.kube.http.ratelimit import RateLimit
from joiner.kube.http.transport import Request, Transport
from joiner.model.clusterobjects import Event
from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.offline.files import Documents
from joiner.yamldoc.document import Document, LinePlaces

SOURCE: Final = "cluster"
_PER_SECOND: Final = 50


class ClusterUnread(ValueError):
    """The cluster could not be read: why, and what to do."""


def read(
    kinds: Iterable[type[KubeObject]],
    *,
    clock: Clock,
    kubeconfig: str | None = None,
    context: str | None = None,
    events_of: str = "",
) -> Documents:
    """All objects of these kinds. Kinds that the cluster lacks are passed over, those that we may not read with a note.

    `events_of`: events about the node of this name, and about the claim it belongs to, are read as well.
    """
    access = discover.find(
        kubeconfig_file=kubeconfig, context=context, clock=clock, environment=os.environ, home=Path.home()
    )
    return asyncio.run(_read(access, tuple(dict.fromkeys(kinds)), clock, events_of))


async def _read(access: Access, kinds: tuple[type[KubeObject], ...], clock: Clock, events_of: str) -> Documents:
    transport = Transport(access, RateLimit(clock, per_second=_PER_SECOND, burst=_PER_SECOND))
    found = Documents(files=1)
    try:
        for kind in kinds:
            try:
                found.objects.extend([_document(kind, each) for each in await _list(transport, kind)])
            except NotFound:
                continue
            except Forbidden as error:
                if kind in (Pod, Node, NodePool, NodeClaim):
                    raise
                found.notes.append(f"{kind.kind} objects are left out: {error}")
        for name in _names_of(events_of, found):
            about = {"fieldSelector": f"involvedObject.name={name}"}
            found.objects.extend([_document(Event, each) for each in await _list(transport, Event, about)])
    except KubeError as error:
        raise ClusterUnread(f"the cluster of {access.origin} cannot be read: {error}") from None
    finally:
        await transport.close()
    return found


def _names_of(node: str, found: Documents) -> tuple[str, ...]:
    """The node, and the claim or node that belongs to it."""
    if not node:
        return ()
    names = {node: None}
    for each in found.objects:
        if each.data.get("kind") == NodeClaim.kind:
            pair = (str(each.data["metadata"]["name"]), str(each.data.get("status", {}).get("nodeName", "")))
            if node in pair:
                names.update(dict.fromkeys(filter(None, pair)))
    return tuple(names)


async def _list(transport: Transport, kind: type[KubeObject], chosen: Mapping[str, str] | None = None) -> list[Any]:
    items: list[Any] = []
    parameters = {"limit": str(PAGE), **(chosen or {})}
    while True:
        answer = msgspec.json.decode(await transport.send(Request("GET", path_of(kind), parameters)))
        items.extend(answer.get("items") or ())
        following = answer.get("metadata", {}).get("continue")
        if not following:
            return items
        parameters = {**parameters, "continue": following}


def _document(kind: type[KubeObject], item: dict[str, Any]) -> Document:
    data = {"apiVersion": kind.api_version(), "kind": kind.kind, **item}
    return Document(SOURCE, data, LinePlaces(data, 0))
