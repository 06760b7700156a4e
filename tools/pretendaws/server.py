"""The server: an account on a thread with an event loop of its own, in the time of this machine."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from aiohttp import web
from tools.pretendaws import wire

from joiner.clock import SystemClock
from joiner.cloud.aws.api import THROTTLED, AwsError
from joiner.cloud.sources import facts
from joiner.model.meta import replace
from joiner.sim.cloud.cloud import PretendCloud
from joiner.sim.cloud.ec2 import door
from joiner.sim.cloud.ec2.events import Events
from joiner.sim.cloud.ec2.face import Ec2Face
from joiner.sim.cloud.ec2.world import Account, account
from joiner.sim.cloud.machines import CloudTiming
from joiner.sim.trace import Trace

T = TypeVar("T")
HOST = "127.0.0.1"
REGION = "us-east-1"
PACE = CloudTiming(call_s=(0.2, 0.2), starts_s=(1.0, 2.0), stops_s=(1.0, 2.0))
_STARTS_S = 30


class PretendAws:
    """An account behind an address. `types` are those that it sells; all, if none are named."""

    def __init__(self, *, types: tuple[str, ...] = (), pace: CloudTiming = PACE) -> None:
        self._types, self._pace = types, pace
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pretend AWS", daemon=True)
        self._runner: web.AppRunner | None = None
        self.port = 0
        self.account: Account
        self.events: Events
        self.face: Ec2Face

    @property
    def url(self) -> str:
        """What `AWS_ENDPOINT_URL` is."""
        return f"http://{HOST}:{self.port}"

    def environment(self) -> dict[str, str]:
        """What a process needs that takes it for AWS."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "pretended",
            "AWS_SECRET_ACCESS_KEY": "pretended",
            "CLUSTER_NAME": self.account.cluster["name"],
            "INTERRUPTION_QUEUE": door.QUEUE,
        }

    def start(self) -> "PretendAws":
        """Listen on a free port of loopback."""
        self._thread.start()
        self._wait(self._listen())
        return self

    def stop(self) -> None:
        """Listen no more."""
        if self._runner is not None:
            self._wait(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> "PretendAws":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def do(self, act: Callable[[Account], T]) -> T:
        """Do something with the account, or look at it, between two requests."""

        async def acted() -> T:
            return act(self.account)

        return self._wait(acted())

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_STARTS_S)

    async def _listen(self) -> None:
        cloud = PretendCloud(clock=SystemClock(), random=Random(1), trace=Trace(), pace=self._pace)
        self.account = account(_sold(self._types), REGION, cloud)
        self.events = Events(self.account, door.QUEUE)
        self.face = Ec2Face(self.account)
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, 0)
        await site.start()
        server: Any = site._server
        self.port = server.sockets[0].getsockname()[1]

    async def _answer(self, asked: web.Request) -> web.Response:
        try:
            request = wire.read(asked.method, asked.path, asked.headers, await asked.read())
        except wire.NotUnderstood as problem:
            return web.Response(status=400, text=str(problem))
        try:
            reply = wire.write(request, await self.face.call(request.service, request.name, **request.parameters))
        except AwsError as error:
            status = 503 if error.code in THROTTLED else 400
            reply = wire.refuse(request.service, error.code, error.message, status)
        return web.Response(
            status=reply.status, body=reply.body.encode(), headers={"Content-Type": reply.content, **reply.headers}
        )


def _sold(names: tuple[str, ...]) -> facts.Facts:
    known = facts.load()
    place = known.regions[REGION]
    sold = {name: each for name, each in place.types.items() if not names or name in names}
    types = tuple(each for each in known.types if each.name in sold)
    return replace(known, types=types, regions={REGION: replace(place, types=sold)})
