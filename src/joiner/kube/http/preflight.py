"""What is asked of an API server before controllers start: its version, the kinds it knows, and what we may do."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from joiner.kube.errors import NotFound
from joiner.kube.http import decode
from joiner.kube.http.ratelimit import Priority
from joiner.kube.http.transport import Request, Transport
from joiner.model.meta import KubeObject, Value


class Version(NamedTuple):
    """The version of an API server."""

    major: int
    minor: int
    text: str


class _Version(Value):
    major: str
    minor: str
    git_version: str = "unknown"


class _Resource(Value):
    name: str


class _Resources(Value):
    resources: tuple[_Resource, ...]


class _Decision(Value):
    allowed: bool = False


class _Review(Value):
    status: _Decision


class Permission(NamedTuple):
    """Something that may be done with a kind, or with a subresource of it."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    """One object alone: a role may be limited to it."""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}{f' {self.name}' if self.name else ''}{where}"


def permission(
    verb: str, kind: type[KubeObject], subresource: str = "", namespace: str = "", name: str = ""
) -> Permission:
    """What a verb on a kind asks for."""
    return Permission(verb, kind.group, f"{kind.plural}/{subresource}" if subresource else kind.plural, namespace, name)


async def version(transport: Transport) -> Version:
    """The version of the server."""
    said = decode.read(await transport.send(Request("GET", "/version")), _Version)
    return Version(_number(said.major), _number(said.minor), said.git_version)


def _number(text: str) -> int:
    digits = "".join(each for each in text if each.isdecimal())  # some say "29+"
    return int(digits or 0)


async def unknown_kinds(transport: Transport, kinds: Iterable[type[KubeObject]]) -> tuple[type[KubeObject], ...]:
    """Those of the kinds that the server does not know."""
    wanted = tuple(kinds)
    groups = sorted({(kind.group, kind.version) for kind in wanted})
    found = dict(zip(groups, await asyncio.gather(*(_resources(transport, *each) for each in groups)), strict=True))
    return tuple(kind for kind in wanted if kind.plural not in found[kind.group, kind.version])


async def _resources(transport: Transport, group: str, version: str) -> frozenset[str]:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        said = decode.read(await transport.send(Request("GET", path)), _Resources)
    except NotFound:
        return frozenset()
    return frozenset(each.name for each in said.resources)


async def denied(transport: Transport, permissions: Iterable[Permission]) -> tuple[Permission, ...]:
    """Those of the permissions that we do not have, as the server sees it."""
    wanted = tuple(dict.fromkeys(permissions))
    allowed = await asyncio.gather(*(_allowed(transport, each) for each in wanted))
    return tuple(each for each, may in zip(wanted, allowed, strict=True) if not may)


async def _allowed(transport: Transport, wanted: Permission) -> bool:
    resource, _, subresource = wanted.resource.partition("/")
    attributes = {
        "verb": wanted.verb,
        "group": wanted.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": wanted.namespace,
        "name": wanted.name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    request = Request("POST", path, body=msgspec.json.encode(review), priority=Priority.READ)
    return decode.read(await transport.send(request), _Review).status.allowed
