"""Connections that nothing comes through any more, though no side closed them: a load balancer forgot them, a cable is out."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pytest
from tests.loopback import Answer, Asked, listening, status
from tests.unit.kube.test_http_client import asking, node

from joiner.kube import errors
from joiner.kube.http.client import HttpClient
from joiner.kube.http.transport import keeping_alive
from joiner.model.node import Node

PATIENCE_S = 0.4


@dataclass
class Balancer:
    """Passes bytes on, until it forgets its connections without closing them; new ones work."""

    port: int
    connections: list[asyncio.Event] = field(default_factory=list)

    def forget(self) -> None:
        for each in self.connections:
            each.set()


@contextmanager
def balanced(target: int) -> Iterator[Balancer]:
    balancer, ready, over, loop = Balancer(0), threading.Event(), asyncio.Event(), asyncio.new_event_loop()
    writers: list[asyncio.StreamWriter] = []

    async def passes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event) -> None:
        with suppress(OSError):
            while piece := await reader.read(1 << 16):
                if not silent.is_set():
                    writer.write(piece)
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        silent = asyncio.Event()
        balancer.connections.append(silent)
        there, away = await asyncio.open_connection("127.0.0.1", target)
        writers.extend((writer, away))
        await asyncio.gather(passes(reader, away, silent), passes(there, writer, silent))

    async def live() -> None:
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        balancer.port = server.sockets[0].getsockname()[1]
        ready.set()
        await over.wait()
        server.close()
        for each in writers:
            each.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(live()), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield balancer
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(30)
        loop.close()


def test_one_request_is_lost_on_forgotten_connections_and_the_next_goes_over_a_new_one() -> None:
    """However many there are: of a lease that is renewed every two seconds no more than one renewal may be lost."""

    async def test(client: HttpClient) -> str:
        await asyncio.gather(*(client.get(Node, "n") for _ in range(12)))
        balancer.forget()
        with pytest.raises(errors.Unreachable, match="in time"):
            await client.get(Node, "n")
        return (await client.get(Node, "n")).name

    with listening(lambda asked: Answer(node("n"))) as server, balanced(server.port) as balancer:
        assert asking(f"http://127.0.0.1:{balancer.port}", test, timeout_s=PATIENCE_S) == "n"
        assert len(balancer.connections) > 2, "several connections were open, and forgotten"


def test_a_server_that_is_slow_with_one_answer_keeps_its_connections() -> None:
    def handler(asked: Asked) -> Answer:
        return Answer(lines=[], stays=True) if asked.path.endswith("/slow") else Answer(node("n"))

    async def test(client: HttpClient) -> None:
        slow = asyncio.create_task(client.get(Node, "slow"))
        for _ in range(8):
            await asyncio.sleep(PATIENCE_S / 4)
            await client.get(Node, "n")
        with pytest.raises(errors.Unreachable):
            await slow

    with listening(handler) as server, balanced(server.port) as balancer:
        asking(f"http://127.0.0.1:{balancer.port}", test, timeout_s=PATIENCE_S)
        assert len(balancer.connections) == 2


def test_a_watch_goes_on_while_other_connections_are_given_up() -> None:
    def handler(asked: Asked) -> Answer:
        if "watch" in asked.query:
            return Answer(lines=[{"type": "ADDED", "object": node("a", "6")}], stays=True)
        return Answer(lines=[], stays=True)

    async def test(client: HttpClient) -> str:
        watch = client.watch(Node, "5")
        name = (await anext(watch)).object.name
        for _ in range(3):
            with pytest.raises(errors.Unreachable):
                await client.get(Node, "n")
        following = asyncio.ensure_future(anext(watch))
        done, _ = await asyncio.wait([following], timeout=0.2)
        assert not done, "it is still open"
        following.cancel()
        return name

    with listening(handler) as server:
        assert asking(server.url, test, timeout_s=PATIENCE_S) == "a"


def test_a_server_that_refuses_is_no_silent_one() -> None:
    async def test(client: HttpClient) -> None:
        for _ in range(3):
            with pytest.raises(errors.Throttled):
                await client.get(Node, "n")

    with listening(lambda asked: status(429, "TooManyRequests", "later")) as server, balanced(server.port) as balancer:
        asking(f"http://127.0.0.1:{balancer.port}", test, timeout_s=PATIENCE_S)
        assert len(balancer.connections) == 1


def test_the_system_notices_a_dead_peer_within_a_minute() -> None:
    [info, *_] = socket.getaddrinfo("127.0.0.1", 1, type=socket.SOCK_STREAM)
    with keeping_alive(info) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle, every, times = (
            made.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
    assert idle + every * times <= 60
