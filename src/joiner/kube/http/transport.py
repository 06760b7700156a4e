"""Requests to one API server: connections, identity, the rate limit, and whether writing is allowed at all.

Connections are made anew when the client certificate or the trusted authorities change, and when nothing comes through them any
more. A request whose identity the server refuses is sent again if that may have been renewed meanwhile, and one that it refuses
for now after the time it asks for: neither was carried out. Nothing else is retried here: callers know what a repetition means,
this does not.
"""

import asyncio
import io
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import aiohttp

from joiner.kube.errors import KubeError, Throttled, Unauthorized, Unreachable
from joiner.kube.http import tls
from joiner.kube.http.access import Access, AccessError, Identity
from joiner.kube.http.answers import error_of, status_of
from joiner.kube.http.ratelimit import Priority, RateLimit
from joiner.kube.tasks import Tasks

REQUEST_S: Final = 30.0
CONNECT_S: Final = 10.0
SILENCE_S: Final = 150.0
"""A watch that says nothing for so long, not even with a bookmark, is dead: the server tells of its progress every minute."""
OUTLIVED_S: Final = 900.0
"""How long connections stay open that others took the place of; no watch lasts longer."""
TRIES: Final = 5
"""How often a request is sent that the server is too busy for: work of several requests would rarely end otherwise."""
WAITED_MOST_S: Final = 5.0
"""Where the server asks for more time than that, the caller is told instead."""
LARGE: Final = 1 << 20
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"

_KEEP_ALIVE: Final = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
AddrInfo = tuple[int, int, int, str, tuple[object, ...]]
"""As `socket.getaddrinfo` gives it."""
Permit = Callable[[], float]
"""How many more seconds writing is allowed. Raises KubeError when it is not."""


class Request(NamedTuple):
    """One request."""

    method: str
    path: str
    parameters: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = JSON
    priority: Priority = Priority.READ
    timeout_s: float = REQUEST_S
    evicting: bool = False


class _Connections(NamedTuple):
    """A session, and what it was made for."""

    session: aiohttp.ClientSession
    made_of: tuple[object, ...]


class Transport:
    """The way to one API server. Make it inside a running loop, and close it."""

    def __init__(
        self,
        access: Access,
        limit: RateLimit,
        *,
        agent: str = "joiner",
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`agent` is how requests call themselves in the server's audit log; `pause` waits for so many seconds."""
        self.access = access
        self._limit, self._agent, self._pause = limit, agent, pause
        self._connections: _Connections | None = None
        self._answered = 0.0
        """When the server answered last, by the clock of the loop."""
        self._tasks = Tasks()

    async def send(self, request: Request, permit: Permit | None = None) -> bytes:
        """The body of the answer. Raises the error that the server's Status stands for, or Unreachable."""
        for _ in range(TRIES - 1):
            try:
                return await self._answered_to(request, permit)
            except Throttled as error:
                if request.priority is Priority.LEASE or error.after_s > WAITED_MOST_S:
                    raise
                await self._pause(error.after_s)
        return await self._answered_to(request, permit)

    async def _answered_to(self, request: Request, permit: Permit | None) -> bytes:
        await self._limit.enter(request.priority)
        late = False
        try:
            try:
                return await self._send(request, permit)
            except Unauthorized:
                if not self.access.credentials.rejected():
                    raise
                return await self._send(request, permit)
        except Unreachable as error:
            late = _is_late(error)
            raise
        finally:
            self._limit.leave(request.priority, late=late)

    async def _send(self, request: Request, permit: Permit | None) -> bytes:
        session, identity = await self._session()
        # Asked last: between being allowed and being sent there is no waiting.
        timeout_s = request.timeout_s if permit is None else min(request.timeout_s, permit())
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S)
        asked = asyncio.get_running_loop().time()
        try:
            return await self._exchanged(session, identity, request, timeout)
        except Unreachable as error:
            if _is_late(error) and self._answered < asked:
                self._give_up(session)
            raise

    def _give_up(self, session: aiohttp.ClientSession) -> None:
        """Idle connections may be dead all of them, and each would cost a request. What is under way on them may still end."""
        if self._connections is not None and self._connections.session is session:
            self._connections = None
            self._tasks.start("silent connections", _close_later(session))

    async def _exchanged(
        self, session: aiohttp.ClientSession, identity: Identity, request: Request, timeout: aiohttp.ClientTimeout
    ) -> bytes:
        async with self._exchange(session, identity, request, timeout) as response:
            self._answered = asyncio.get_running_loop().time()
            body = await response.read()
            if response.status >= 400:
                status = status_of(response.status, body)
                raise error_of(status, response.headers, evicting=request.evicting)
            if response.status >= 300 or not body.lstrip().startswith(b"{"):
                raise _foreign(request)
            return body

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[aiohttp.StreamReader]:
        """The answer as it comes, for watches. Raises as `send` does."""
        await self._limit.enter(request.priority)
        self._limit.leave(request.priority)
        session, identity = await self._session()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S)
        async with self._exchange(session, identity, request, timeout) as response:
            if response.status >= 400:
                body = await response.read()
                error = error_of(status_of(response.status, body), response.headers)
                if isinstance(error, Unauthorized):
                    self.access.credentials.rejected()
                raise error
            if response.status >= 300:
                raise _foreign(request)
            yield response.content

    @asynccontextmanager
    async def _exchange(
        self, session: aiohttp.ClientSession, identity: Identity, request: Request, timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = [*identity.headers, ("Accept", JSON)]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        try:
            async with session.request(
                request.method,
                f"{self.access.server}{request.path}",
                params=request.parameters,
                data=_sent(request.body),
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                proxy=self.access.proxy or None,
                server_hostname=self.access.tls_server_name or None,
            ) as response:
                yield response
        except KubeError:
            raise
        except AccessError as error:
            raise Unauthorized(str(error)) from None
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            cause = None if isinstance(error, aiohttp.ClientHttpProxyError) else error  # it holds the proxy's password
            raise Unreachable(f"{request.method} {request.path}: {_told(error, self.access)}") from cause

    async def _session(self) -> tuple[aiohttp.ClientSession, Identity]:
        try:
            identity = await self.access.credentials.identity()
            made_of = (identity.certificate, self.access.authority.bundle())
            known = self._connections
            if known is not None and known.made_of == made_of:
                return known.session, identity
        except AccessError as error:
            raise Unauthorized(str(error)) from None
        try:
            context = tls.context_for(self.access, identity.certificate)
        except AccessError as error:
            if known is not None:
                return known.session, identity  # files are being replaced: the connections there are will do until then
            raise Unauthorized(str(error)) from None
        connector = aiohttp.TCPConnector(
            limit=0, ssl=True if context is None else context, keepalive_timeout=60, socket_factory=keeping_alive
        )
        session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": self._agent},
            skip_auto_headers=("Accept-Encoding",),
            read_bufsize=1 << 18,
        )
        self._connections = _Connections(session, made_of)
        if known is not None:
            self._tasks.start("old connections", _close_later(known.session))
        return session, identity

    async def close(self) -> None:
        """Close every connection."""
        await self._tasks.close()
        if self._connections is not None:
            await self._connections.session.close()
            self._connections = None


def keeping_alive(address: AddrInfo) -> socket.socket:
    """A socket whose dead peer the system notices: a watch says nothing for minutes, and nothing is sent to it."""
    made = socket.socket(*address[:3])
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE.items():
        if hasattr(socket, option):  # each system has some of them
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def _is_late(error: Unreachable) -> bool:
    return isinstance(error.__cause__, TimeoutError)


def _sent(body: bytes | None) -> bytes | io.BytesIO | None:
    """What is large is sent piece by piece, so that others get their turn."""
    return io.BytesIO(body) if body is not None and len(body) > LARGE else body


async def _close_later(session: aiohttp.ClientSession) -> None:
    """What is under way on old connections may end first."""
    try:
        await asyncio.sleep(OUTLIVED_S)
    finally:
        await session.close()


def _foreign(request: Request) -> Unreachable:
    return Unreachable(
        f"{request.method} {request.path}: the answer is not one of a Kubernetes API server, but of another server or of a proxy"
    )


def _told(error: BaseException, access: Access) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the certificate of {access.server} is not trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy for {access.server} cannot be reached: {error.os_error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy for {access.server} refuses to connect: HTTP {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{access.server} cannot be reached: {error.os_error.strerror or error.os_error}"
    if isinstance(error, asyncio.TimeoutError):
        return f"{access.server} did not answer in time"
    return f"the connection to {access.server} broke: {error or type(error).__name__}"
