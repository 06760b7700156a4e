"""The servers that the contract is checked on: the pretend one on virtual time, and a real one over HTTP."""

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar, overload

import pytest
from tests.apiworld import served

from joiner.clock import SystemClock
from joiner.kube.client import Client
from joiner.kube.http.client import HttpClient, path_of
from joiner.kube.http.discover import find
from joiner.kube.http.ratelimit import RateLimit
from joiner.kube.http.transport import Request, Transport
from joiner.model import codec
from joiner.model.meta import KubeObject
from joiner.model.pod import Pod

K = TypeVar("K", bound=KubeObject)
Run = Callable[..., None]

Test = Callable[[Client], Coroutine[Any, Any, None]]
PATIENCE_S = 120


class _Tester(HttpClient):
    """Makes pods with an image, which a real server insists on and which our model of a pod has no use for."""

    async def create(self, thing: K) -> K:
        if not isinstance(thing, Pod):
            return await super().create(thing)
        document = codec.encode(thing)
        document["spec"]["containers"] = [{"image": "none", **each} for each in document["spec"]["containers"]]
        path = path_of(Pod, thing.metadata.namespace)
        answer = await self.transport.send(Request("POST", path, body=json.dumps(document).encode()))
        return codec.decode(json.loads(answer), type(thing))


def over_http(kubeconfig: Path, test: Test) -> None:
    """Run a test with a client of a real server."""

    async def main() -> None:
        clock = SystemClock()
        access = find(kubeconfig_file=str(kubeconfig), clock=clock, environment=os.environ, home=Path.home())
        transport = Transport(access, RateLimit(clock, per_second=1000, burst=1000))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await test(_Tester(transport, random=Random(1)))
        finally:
            await transport.close()

    asyncio.run(main())


@overload
def on_every_server(test: Test) -> Run: ...
@overload
def on_every_server(*, patient: bool = False, **pretend: Any) -> Callable[[Test], Run]: ...
def on_every_server(test: Any = None, *, patient: bool = False, **pretend: Any) -> Any:
    """A test of a client, on every server. The pretend one may be forgetful or talkative; `patient`: the real one takes long."""
    if test is None:
        return partial(on_every_server, patient=patient, **pretend)

    marks = [pytest.mark.cluster, *([pytest.mark.soak] if patient else [])]

    @pytest.mark.parametrize("server", ["pretend", pytest.param("real", marks=marks)])
    def run(server: str, request: pytest.FixtureRequest) -> None:
        if server == "real":
            over_http(request.getfixturevalue("real_cluster").kubeconfig, test)
        else:
            served(lambda world: test(world.client), **pretend)

    run.__name__ = test.__name__
    return run
