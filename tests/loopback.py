"""HTTP servers on loopback, each in a thread of its own. One answers what a test tells it to and remembers what it was asked."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiohttp import web


@dataclass
class Asked:
    """A request that came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    certificate: Any = None

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    """What is answered: a document, or lines one after the other, and then perhaps a cut in the middle."""

    document: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    lines: list[Any] | None = None
    text: bytes | None = None
    cut: bool = False
    """Whether the connection breaks after the lines instead of ending."""
    stays: bool = False
    """Whether it stays open after the lines."""


Handler = Callable[[Asked], Answer]


def status(code: int, reason: str = "", message: str = "", **details: Any) -> Answer:
    """A `Status` of the API."""
    document = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return Answer(document, code)


async def _some_turns() -> None:
    """A single sleep may be over after one turn where the machine is busy."""
    for _ in range(20):
        await asyncio.sleep(0.005)


class Served:
    """A server on loopback in a thread of its own. What it answers is up to its kind."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._context = context
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https' if self._context else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(30)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    def _live(self) -> None:
        self._loop.run_until_complete(self._open())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._shut())
        self._loop.run_until_complete(_some_turns())  # what was aborted closes its sockets in the next of them
        self._loop.close()

    async def _open(self) -> None:
        application = web.Application(client_max_size=1 << 26)
        application.router.add_route("*", "/{rest:.*}", self._serve)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._context)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _shut(self) -> None:
        await self._runner.cleanup()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        raise NotImplementedError


class Loopback(Served):
    """A server that answers what a test tells it to, and remembers what it was asked."""

    def __init__(self, handler: Handler, context: ssl.SSLContext | None = None) -> None:
        super().__init__(context)
        self.asked: list[Asked] = []
        self._handler = handler

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        asked = Asked(
            request.method, request.path, dict(request.query), dict(request.headers), await request.read(), certificate
        )
        self.asked.append(asked)
        answer = self._handler(asked)
        if answer.lines is None:
            body = answer.text if answer.text is not None else json.dumps(answer.document).encode()
            return web.Response(
                body=body, status=answer.status, headers={"Content-Type": "application/json", **answer.headers}
            )
        response = web.StreamResponse(status=answer.status)
        response.enable_chunked_encoding()
        await response.prepare(request)
        for line in answer.lines:
            await response.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        if answer.stays:
            await asyncio.sleep(60)
        if answer.cut and transport is not None:
            transport.abort()
        return response


S = TypeVar("S", bound=Served)


@contextmanager
def running(server: S) -> Iterator[S]:
    """A server for the length of a test."""
    server.start()
    try:
        yield server
    finally:
        server.stop()


def listening(handler: Handler, context: ssl.SSLContext | None = None) -> AbstractContextManager[Loopback]:
    """A server that answers as the handler says, for the length of a test."""
    return running(Loopback(handler, context))
