"""A bad connection: a proxy on loopback in front of the API server that does to requests what a test asks for."""

import asyncio
import itertools
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, TCPConnector, web
from tests.loopback import Served, running
from tools.controlplane.cluster import Cluster

HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host", "te", "upgrade"})
"""Headers that are about one connection."""
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


@dataclass(frozen=True)
class Fault:
    """What happens to a request. Without any of it, the request is passed on."""

    status: int = 0
    """Answered with this status, and not passed on."""
    retry_after: str = ""
    delay_s: float = 0.0
    """So long before it is passed on."""
    lost_answer: bool = False
    """It is passed on and done, and then the connection breaks."""
    half_answer: bool = False
    """The same, after the first half of the answer."""
    unreachable: bool = False
    """The connection breaks at once."""

    @property
    def named(self) -> str:
        """What it is called where faults are counted."""
        names = ("unreachable", "lost_answer", "half_answer")
        return next((name for name in names if getattr(self, name)), str(self.status) if self.status else "slow")


FINE = Fault()
Judge = Callable[[str, str], Fault]
"""What happens to a request, by its method and its path."""


class BadConnection(Served):
    """The proxy: its address, what it does to requests from now on, and what it has seen."""

    def __init__(self, cluster: Cluster) -> None:
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(cluster.pki / "apiserver.crt", cluster.pki / "apiserver.key")
        super().__init__(serving)
        self.cluster = cluster
        self.judge: Judge = fine
        self.counted: Counter[str] = Counter()
        """How many requests met which fault."""
        self.claims_made = 0
        """How many NodeClaims the API server has stored for those behind the proxy, whether they heard of it or not."""
        self.written_at = time.monotonic()
        """When something other than the lease was last written."""
        self._watches: dict[asyncio.Transport, str] = {}
        self._to_halve: set[asyncio.Transport] = set()

    def watched(self) -> Counter[str]:
        """How many watches are open for each path."""
        return Counter(self._watches.values())

    def cut_watches(self) -> None:
        """Break every connection on which a watch is answered."""

        def cut() -> None:
            for transport in tuple(self._watches):
                transport.abort()
            self.counted["watch cut"] += len(self._watches)

        self._loop.call_soon_threadsafe(cut)

    def halve_watches(self) -> None:
        """Break every watch in the middle of the next that it tells."""
        self._loop.call_soon_threadsafe(lambda: self._to_halve.update(self._watches))

    async def _open(self) -> None:
        trusting = ssl.create_default_context(cafile=str(self.cluster.pki / "ca.crt"))
        self._session = ClientSession(
            connector=TCPConnector(ssl=trusting, limit=0), timeout=ClientTimeout(total=None), auto_decompress=False
        )
        await super()._open()

    async def _shut(self) -> None:
        await super()._shut()
        await self._session.close()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        fault = self.judge(request.method, request.path)
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        if fault != FINE:
            self.counted[fault.named] += 1
        if fault.unreachable:
            transport.abort()
            return web.Response()
        if fault.status:
            headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            body = {"kind": "Status", "status": "Failure", "code": fault.status, "message": "a fault of the connection"}
            return web.json_response(body, status=fault.status, headers=headers)
        await asyncio.sleep(fault.delay_s)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        payload = await request.read() or None
        url = f"{self.cluster.server}{request.path_qs}"
        try:
            async with self._session.request(request.method, url, headers=headers, data=payload) as answer:
                self._note(request, answer)
                return await self._answered(request, answer, fault, transport)
        except (ClientError, ConnectionError):
            transport.abort()
            return web.Response()

    def _note(self, request: web.Request, answer: ClientResponse) -> None:
        if request.method != "GET" and "/leases/" not in request.path:
            self.written_at = time.monotonic()
        if (request.method, request.path, answer.status) == ("POST", CLAIMS, 201):
            self.claims_made += 1
        if answer.status == 410:
            self.counted["gone"] += 1

    async def _answered(
        self, request: web.Request, answer: ClientResponse, fault: Fault, transport: asyncio.Transport
    ) -> web.StreamResponse:
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP}
        response = web.StreamResponse(status=answer.status, headers=kept)
        if fault.lost_answer:
            await answer.content.readany()
            transport.abort()
            return response
        await response.prepare(request)
        if fault.half_answer:
            await self._half(response, await answer.content.readany(), transport)
            return response
        if "watch" in request.query:
            self._watches[transport] = request.path
        try:
            async for piece in answer.content.iter_any():
                if b'"code":410' in piece:
                    self.counted["gone"] += 1
                if transport in self._to_halve:
                    self.counted["watch halved"] += 1
                    await self._half(response, piece, transport)
                    return response
                await response.write(piece)
        finally:
            self._watches.pop(transport, None)
            self._to_halve.discard(transport)
        return response

    async def _half(self, response: web.StreamResponse, piece: bytes, transport: asyncio.Transport) -> None:
        await response.write(piece[: len(piece) // 2])
        transport.close()  # unlike an abort, this sends what has been written


def fine(method: str, path: str) -> Fault:
    """Nothing happens to any request."""
    return FINE


def always(fault: Fault) -> Judge:
    """The same happens to every request."""
    return lambda method, path: fault


def in_turn(*faults: Fault, every: int) -> Judge:
    """One of some requests meets a fault, each time the next one. The lease is left alone: losing it is a case of its own."""
    numbers, turns = itertools.count(1), itertools.cycle(faults)

    def judge(method: str, path: str) -> Fault:
        return FINE if "/leases/" in path or next(numbers) % every else next(turns)

    return judge


@contextmanager
def bad_connection(cluster: Cluster) -> Iterator[BadConnection]:
    """A proxy for the length of a test."""
    with running(BadConnection(cluster)) as proxy:
        yield proxy
