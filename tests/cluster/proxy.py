"""A bad connection: a proxy on loopback in front of the API server that does to requests what a test asks for."""

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web
from tools.controlplane.cluster import Cluster

HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host", "te", "upgrade"})
"""Headers that are about one connection."""


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
    unreachable: bool = False
    """The connection breaks at once."""


FINE = Fault()
Judge = Callable[[str, str], Fault]
"""What happens to a request, by its method and its path."""


@dataclass
class BadConnection:
    """The proxy: its address, and what it does to requests from now on."""

    cluster: Cluster
    judge: Judge = lambda method, path: FINE
    counted: dict[str, int] = field(default_factory=dict)
    """How many requests met which fault."""
    port: int = 0

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._streams: set[asyncio.Transport] = set()

    @property
    def url(self) -> str:
        """The address that clients are given instead of the API server's."""
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        assert self._ready.wait(30)

    def stop(self) -> None:
        """End it, and what is open."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    def cut_watches(self) -> None:
        """Break every connection on which a watch is answered, in the middle."""

        def cut() -> None:
            for transport in tuple(self._streams):
                transport.abort()
            self._count("watch cut", len(self._streams))

        self._loop.call_soon_threadsafe(cut)

    def _count(self, what: str, times: int = 1) -> None:
        self.counted[what] = self.counted.get(what, 0) + times

    def _live(self) -> None:
        self._loop.run_until_complete(self._open())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._close())
        self._loop.close()

    async def _open(self) -> None:
        pki = self.cluster.pki
        trusting = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._session = ClientSession(
            connector=TCPConnector(ssl=trusting, limit=0), timeout=ClientTimeout(total=None), auto_decompress=False
        )
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
        application = web.Application(client_max_size=1 << 26)
        application.router.add_route("*", "/{rest:.*}", self._pass)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=serving).start()
        self.port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        await self._runner.cleanup()
        await self._session.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        fault = self.judge(request.method, request.path)
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        if fault.unreachable:
            self._count("unreachable")
            transport.abort()
            return web.Response()
        if fault.status:
            self._count(str(fault.status))
            headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            body = {"kind": "Status", "status": "Failure", "code": fault.status, "message": "a fault of the connection"}
            return web.json_response(body, status=fault.status, headers=headers)
        if fault.delay_s:
            self._count("slow")
            await asyncio.sleep(fault.delay_s)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        try:
            async with self._session.request(
                request.method,
                f"{self.cluster.server}{request.path_qs}",
                headers=headers,
                data=await request.read() or None,
            ) as answer:
                if fault.lost_answer:
                    await answer.read()
                    self._count("lost answer")
                    transport.abort()
                    return web.Response()
                kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP}
                response = web.StreamResponse(status=answer.status, headers=kept)
                await response.prepare(request)
                watching = "watch" in request.query
                if watching:
                    self._streams.add(transport)
                try:
                    async for piece in answer.content.iter_any():
                        await response.write(piece)
                finally:
                    self._streams.discard(transport)
                return response
        except (ClientError, ConnectionError):
            transport.abort()
            return web.Response()


@contextmanager
def bad_connection(cluster: Cluster) -> Iterator[BadConnection]:
    """A proxy for the length of a test."""
    proxy = BadConnection(cluster)
    proxy.start()
    try:
        yield proxy
    finally:
        with suppress(RuntimeError):
            proxy.stop()
