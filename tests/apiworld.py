"""A pretend API server for one test, on virtual time."""

from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, NamedTuple, TypeVar

from joiner.kube.client import Client, WatchEvent
from joiner.sim.apiserver.client import Call, Interceptor, NoInterceptor, WatchedChange
from joiner.sim.apiserver.server import ApiServer
from joiner.sim.trace import Trace
from joiner.sim.virtualtime import VirtualClock, VirtualLoop, run

T = TypeVar("T")


class Served(NamedTuple):
    """What a test of the shell needs of the world."""

    loop: VirtualLoop
    clock: VirtualClock
    server: ApiServer
    trace: Trace
    client: Client


def served(
    test: Callable[[Served], Coroutine[Any, Any, T]],
    *,
    seed: int = 1,
    shuffle: bool = False,
    interceptor: Interceptor | None = None,
    **server: Any,
) -> T:
    """Run a test in a world with a server and one client, called `test`."""

    async def main(loop: VirtualLoop) -> T:
        clock, trace = VirtualClock(loop), Trace()
        api = ApiServer(clock, Random(seed), trace, **server)
        return await test(Served(loop, clock, api, trace, api.client("test", interceptor=interceptor)))

    return run(main, shuffle=Random(seed) if shuffle else None)


class Intercepting(NoInterceptor):
    """Does to every call what it was told to: `before`, `after` and `behind` are answers or errors, `told` is by name."""

    def __init__(self, **answers: Any) -> None:
        self.calls: list[Call] = []
        self._answers = answers

    def _answer(self, name: str, call: Call, otherwise: Any) -> Any:
        self.calls.append(call)
        answer = self._answers.get(name, otherwise)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def before(self, call: Call) -> float:
        return float(self._answer("before", call, 0.0))

    def after(self, call: Call) -> float:
        return float(self._answer("after", call, 0.0))

    def behind(self, call: Call) -> int:
        return int(self._answer("behind", call, 0))

    def event(self, call: Call, event: WatchEvent[Any]) -> WatchedChange:
        told: dict[str, WatchedChange] = self._answers.get("told", {})
        return told.get(event.object.name, WatchedChange())
