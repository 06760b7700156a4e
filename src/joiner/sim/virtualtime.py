"""An event loop whose time is a number: when nothing is ready it jumps to the next moment at which something is due.

Two runs from one seed do the same things in the same order, on every machine, on every version of Python and under every hash
seed. Nothing here waits for the outside: there are no sockets, no threads and no signals.
"""

import asyncio
import contextlib
import contextvars
import heapq
from asyncio import Handle, TimerHandle
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack
from weakref import WeakKeyDictionary

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH: Final = datetime(2030, 1, 7, tzinfo=UTC)
"""When a world begins, unless another time is given: a Monday at midnight."""
MOST_ROUNDS: Final = 1_000_000
"""So many rounds at one moment mean that a task goes round in circles."""


class Deadlock(RuntimeError):
    """All tasks wait and nothing will ever happen."""


class Standstill(RuntimeError):
    """A task is always ready, and time never moves on."""


class _Turn(Handle):
    """A handle made with less ado: there are tens of thousands in a run, and this loop is not debugged."""

    __slots__ = ()

    def __init__(self, callback: Any, args: Any, loop: "VirtualLoop", context: contextvars.Context | None) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class _Timer(TimerHandle):
    """The same for a handle with a time."""

    __slots__ = ()

    def __init__(
        self, when: float, callback: Any, args: Any, loop: "VirtualLoop", context: contextvars.Context | None
    ) -> None:
        _Turn.__init__(self, callback, args, loop, context)  # type: ignore[arg-type]
        self._when = when
        self._scheduled = True


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop. With a `shuffle` the tasks that are ready at one moment take their turns in an order drawn from it."""

    def __init__(self, shuffle: Random | None = None) -> None:
        super().__init__()
        self._now = 0.0
        self._shuffle = shuffle
        self._timers: list[tuple[float, int, TimerHandle | asyncio.Future[None]]] = []
        self._count = 0
        self._cancelled = 0
        """How many timers were cancelled since those that were have been swept away."""
        self._rounds = 0
        self._names: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self._broken: BaseException | None = None
        self._ready: Any  # the private queue of the base class

    get_debug = staticmethod(bool)
    """Never; and every future asks."""

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._now

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> Handle:
        """Run it in the next round."""
        handle = _Turn(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> TimerHandle:
        """Run it at that time. Of two with the same time the one that was asked for first comes first."""
        handle = _Timer(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle))
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> TimerHandle:
        """Run it after so many seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def pause(self, seconds: float) -> "asyncio.Future[None]":
        """What `asyncio.sleep` waits for, without what it does around it: most of what happens in a world is waiting."""
        future: asyncio.Future[None] = asyncio.Future(loop=self)
        self._count += 1
        heapq.heappush(self._timers, (self._now + seconds, self._count, future))
        return future

    def _timer_handle_cancelled(self, handle: TimerHandle) -> None:
        self._cancelled += 1
        if self._cancelled > 1000 and self._cancelled * 2 > len(self._timers):
            self._timers = [each for each in self._timers if not each[2].cancelled()]
            heapq.heapify(self._timers)
            self._cancelled = 0

    def create_task(self, coro: Coroutine[Any, Any, T], **options: Any) -> "asyncio.Task[T]":  # type: ignore[override]
        """Start a task, and remember when it was started."""
        self._check_closed()  # type: ignore[attr-defined]
        task = asyncio.Task(coro, loop=self, **options)
        self._count += 1
        self._names[task] = self._count
        return task

    def tasks(self) -> "list[asyncio.Task[Any]]":
        """The tasks that have not ended, the oldest first."""
        return [task for task in self._names if not task.done()]

    def _run_once(self) -> None:
        ready = self._ready
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            self._jump()
        self._rounds += 1
        if self._rounds > MOST_ROUNDS:
            self._rounds = 0
            raise Standstill(f"time stands still at {self._now} s; ready: {self._ready_names()}")
        turns = list(ready)
        ready.clear()
        if self._shuffle is not None and len(turns) > 1:
            self._change_turns(turns, self._shuffle)
        for turn in turns:
            if not turn._cancelled:
                turn._run()
            if self._broken is not None:
                self.raise_what_broke()

    def raise_what_broke(self) -> None:
        """Raise the error of a task that no other task awaits, if there is one."""
        if self._broken is not None:
            error, self._broken = self._broken, None
            raise error

    def _jump(self) -> None:
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not timers:
            raise Deadlock(f"nothing is ready and nothing is due; waiting: {self._waiting()}")
        when = timers[0][0]
        if when > self._now:
            self._now = when
            self._rounds = 0
        while timers and timers[0][0] <= self._now:
            turn = heapq.heappop(timers)[2]
            if isinstance(turn, asyncio.Future):
                if not turn.done():
                    turn.set_result(None)
            elif not turn.cancelled():
                self._ready.append(turn)

    def _ready_names(self) -> str:
        tasks = (getattr(turn._callback, "__self__", None) for turn in self._ready)
        return ", ".join(each.get_name() for each in tasks if isinstance(each, asyncio.Task)) or "callbacks"

    def _waiting(self) -> str:
        return ", ".join(task.get_name() for task in self.tasks()) or "no task"

    @staticmethod
    def _change_turns(turns: list[Any], shuffle: Random) -> None:
        """Only tasks change places with tasks: the library counts on the order of its own callbacks."""
        places = [
            place
            for place, turn in enumerate(turns)
            if isinstance(getattr(turn._callback, "__self__", None), asyncio.Task)
        ]
        if len(places) > 1:
            moved = [turns[place] for place in places]
            shuffle.shuffle(moved)
            for place, handle in zip(places, moved, strict=True):
                turns[place] = handle

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """An error of a task that no other task awaits ends the run."""
        if self._broken is None:
            error = context.get("exception")
            self._broken = error if isinstance(error, BaseException) else RuntimeError(context["message"])
            self._broken.add_note(_described(context))

    def _write_to_self(self) -> None:
        """There is no other thread to wake the loop."""

    def _process_events(self, event_list: Any) -> None:
        """There are no files to watch."""


def _described(context: dict[str, Any]) -> str:
    task = context.get("task") or context.get("future")
    name = f" in {task.get_name()}" if isinstance(task, asyncio.Task) else ""
    return f"{context['message'].partition('(')[0].strip()}{name}"


def pause(seconds: float) -> Awaitable[None]:
    """Wait; in a virtual world as cheaply as can be."""
    loop = asyncio.get_running_loop()
    return loop.pause(seconds) if isinstance(loop, VirtualLoop) else asyncio.sleep(seconds)


class VirtualClock:
    """The time of day in a virtual world: an epoch, the time of the loop, and the steps by which it was set."""

    def __init__(self, loop: VirtualLoop, epoch: datetime = EPOCH) -> None:
        self._loop = loop
        self._epoch = epoch
        self._read = (0.0, epoch)

    def now(self) -> datetime:
        """The time of day, in UTC."""
        if self._read[0] != self._loop._now:  # many look at the clock at one moment
            self._read = (self._loop._now, self._epoch + timedelta(seconds=self._loop._now))
        return self._read[1]

    def monotonic(self) -> float:
        """Seconds since the loop was made; no step touches it."""
        return self._loop._now

    def step(self, seconds: float) -> None:
        """Set the time of day forward, or back, as a bad time service does."""
        self._epoch += timedelta(seconds=seconds)
        self._read = (self._loop._now, self._epoch + timedelta(seconds=self._loop._now))


def run(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]], *, shuffle: Random | None = None) -> T:
    """Run a world to its end. Tasks that are left are cancelled, the oldest first; what broke is raised."""
    loop = VirtualLoop(shuffle)
    asyncio.set_event_loop(loop)
    try:
        try:
            result = loop.run_until_complete(loop.create_task(main(loop), name="main"))
        except BaseException:
            with contextlib.suppress(Exception):  # the first error tells more than what follows from it
                _end(loop)
            raise
        _end(loop)
        return result
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _end(loop: VirtualLoop) -> None:
    left = loop.tasks()
    for task in left:
        task.cancel()
    for task in left:
        if not task.done():
            loop.run_until_complete(_settled(task))
    loop.raise_what_broke()
    for task in left:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


async def _settled(task: "asyncio.Task[Any]") -> None:
    done = asyncio.get_running_loop().create_future()
    task.add_done_callback(lambda _: done.cancel())
    with contextlib.suppress(asyncio.CancelledError):
        await done
