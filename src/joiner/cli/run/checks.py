"""What must be there before the controllers start, each with the sentence that says what to do when it is not."""

import asyncio
from collections.abc import Iterable
from typing import Final

from joiner.cli.run.permissions import OPTIONAL
from joiner.cli.run.settings import StartProblem
from joiner.kube.client import Reader
from joiner.kube.election import LEASE_S
from joiner.kube.errors import Forbidden, KubeError, Unauthorized, Unreachable
from joiner.kube.http import preflight
from joiner.kube.http.preflight import Permission
from joiner.kube.http.transport import Transport
from joiner.model.clusterobjects import Lease
from joiner.model.meta import KubeObject
from joiner.observe.logs import Log

OLDEST: Final = (1, 29)
"""The oldest Kubernetes whose API server understands every rule of our CRDs."""
WATCHED_S: Final = LEASE_S
"""How long a lease in another namespace is watched: a holder that is alive renews it meanwhile, whatever its clock says."""
_SHOWN: Final = 5


async def reachable(transport: Transport) -> preflight.Version:
    """Talk to the server for the first time."""
    origin, server = transport.access.origin, transport.access.server
    try:
        version = await preflight.version(transport)
    except Unauthorized as error:
        raise StartProblem(
            f"the API server {server} does not accept the credentials of {origin}: {error}; they are wrong or have expired:"
            " log in again, or renew the token"
        ) from None
    except Forbidden as error:
        raise StartProblem(f"the API server {server} does not even tell its version: {error}; check {origin}") from None
    except Unreachable as error:
        raise StartProblem(f"{error}; check {origin}, the network, and that the API server runs") from None
    except KubeError as error:
        raise StartProblem(f"the API server {server} cannot be used: {error}; check {origin}") from None
    if version[:2] < OLDEST:
        raise StartProblem(
            f"the API server {server} has version {version.text}; Kubernetes {OLDEST[0]}.{OLDEST[1]} is the oldest that works:"
            " upgrade the cluster"
        )
    return version


async def absent(transport: Transport, kinds: Iterable[type[KubeObject]], log: Log) -> frozenset[type[KubeObject]]:
    """The kinds that the server lacks and that can be done without."""
    try:
        missing = await preflight.unknown_kinds(transport, kinds)
    except KubeError as error:
        raise StartProblem(f"the API server does not tell which kinds it has: {error}") from None
    fatal = [f"{kind.plural}.{kind.group}" for kind in missing if kind.plural not in OPTIONAL]
    if fatal:
        raise StartProblem(
            f"the cluster has no CustomResourceDefinition for {', '.join(fatal)}; install them first:"
            " joiner crds | kubectl apply --server-side -f -"
        )
    for kind in missing:
        log.info(f"{kind.kind} objects are not read: the cluster has no such kind", kind=kind.kind)
    return frozenset(missing)


async def allowed(
    transport: Transport, needed: Iterable[Permission], log: Log, kinds: Iterable[type[KubeObject]]
) -> frozenset[type[KubeObject]]:
    """That we may do what we must. Gives the kinds that we may not read and can do without."""
    try:
        missing = await preflight.denied(transport, needed)
    except KubeError as error:
        raise StartProblem(f"the API server does not tell what is allowed: {error}") from None
    fatal = [each for each in missing if each.resource.partition("/")[0] not in OPTIONAL]
    if fatal:
        shown = ", ".join(map(str, fatal[:_SHOWN]))
        more = f" and {len(fatal) - _SHOWN} more" if len(fatal) > _SHOWN else ""
        raise StartProblem(
            f"{transport.access.origin} may not {shown}{more}; grant it with the ClusterRole and Role of the chart"
            " (charts/joiner), bound to this user or service account"
        )
    unread = {each.resource for each in missing if each.verb in ("list", "watch")}
    for resource in sorted(unread):
        log.info(f"{resource} are not read: the permission to list and watch them is missing", resource=resource)
    return frozenset(kind for kind in kinds if kind.plural in unread and kind.plural in OPTIONAL)


async def alone(client: Reader, *, namespace: str, name: str, log: Log) -> None:
    """That no other controller works on this cluster under a lease of its own, in another namespace."""
    before = await _others(client, namespace, name, log)
    if not before:
        return
    await asyncio.sleep(WATCHED_S)
    for other, lease in (await _others(client, namespace, name, log)).items():
        if other in before and lease.spec.renew_time != before[other].spec.renew_time:
            raise StartProblem(
                f"{lease.spec.holder_identity} already works on this cluster with the lease {other}/{name}, and two controllers"
                f" would both buy nodes for the same pods: stop it, or stand by for it with --leader-election-namespace={other}"
            )


async def _others(client: Reader, namespace: str, name: str, log: Log) -> dict[str, Lease]:
    """Leases of the same name in other namespaces that have a holder."""
    try:
        found = (await client.list(Lease, fields={"metadata.name": name})).items
    except KubeError as error:
        log.info("it is not known whether another controller works on this cluster", reason=str(error))
        return {}
    held = (each for each in found if each.metadata.namespace != namespace and each.spec.holder_identity)
    return {each.metadata.namespace: each for each in held}
