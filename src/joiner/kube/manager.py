"""The manager: wakes controllers when what they watch changes, retries what fails, and ends everything in order."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from joiner.kube.client import Key
from joiner.kube.controller import AT_WORK, Change, Controller, Watch
from joiner.kube.errors import Conflict, NotFound, Throttled
from joiner.kube.informer import Informers
from joiner.kube.queue import Queue
from joiner.kube.tasks import Tasks

GRAIN_S: Final = 0.001
"""A clock counts in whole microseconds: a key that comes back exactly when asked to may find that it is not time yet."""
Failed = Callable[[str, Key, Exception], None]

IDLE_MOST: Final = 8
"""How many workers of a controller wait for work; more come when there is more to do, and leave again."""
IN_ONE_GO: Final = 20
"""After so many keys all other tasks have a turn, even if none of them had to wait for anything."""
CONFLICT_S: Final = 0.05
"""After a conflict the cache needs a moment to hear of the other write."""


class _Running:
    """A controller, its queue, and the keys it has in work."""

    def __init__(self, controller: Controller, tasks: Tasks, failed: Failed) -> None:
        self.controller = controller
        self.queue: Queue[Key] = Queue(controller.backoff, self._dispatch)
        self._tasks = tasks
        self._failed = failed
        self._busy = 0
        self._idle: list[asyncio.Future[Key]] = []
        self._workers = 0
        self._open = False
        controller.attach(self.queue.add)

    def open(self) -> None:
        """Begin to work; before, keys only gather."""
        self._open = True
        for key in self.controller.keys_at_start:
            self.queue.add(key)
        self._dispatch()

    def close(self) -> None:
        """Begin nothing any more."""
        self._open = False
        self.queue.close()

    def _dispatch(self) -> None:
        while self._open and self._busy < self.controller.workers:
            key = self.queue.take()
            if key is None:
                return
            self._busy += 1
            if self._idle:
                self._idle.pop().set_result(key)
            else:
                self._workers += 1
                self._tasks.start(f"{self.controller.name} {self._workers}", self._worker(key))

    async def _worker(self, key: Key | None) -> None:
        """One key after the other; a worker without one waits for the next, unless enough others do."""
        AT_WORK.set(self.controller.name)
        turns = 0
        while key is not None:
            await self._work(key)
            key = self.queue.take()
            turns += 1
            if key is None:
                self._busy -= 1
                if len(self._idle) >= IDLE_MOST:
                    return
                turns = 0
                self._idle.append(asyncio.get_running_loop().create_future())
                key = await self._idle[-1]
            elif turns % IN_ONE_GO == 0:
                await asyncio.sleep(0)

    async def _work(self, key: Key) -> None:
        try:
            result = await self.controller.reconcile(key)
            self.queue.forget(key)
            if result.after_s is not None:
                self.queue.add_after(key, result.after_s + GRAIN_S if result.after_s > 0 else 0.0)
        except (Conflict, NotFound) as error:
            # Another client was faster; the cache will catch up. Back off only if it keeps happening.
            self.queue.retry(key, soon_s=CONFLICT_S)
            self._failed(self.controller.name, key, error)
        except Throttled as error:
            self.queue.add_after(key, error.after_s)
            self._failed(self.controller.name, key, error)
        except Exception as error:  # whatever it is, it is counted, told, and tried again
            self.queue.retry(key)
            self._failed(self.controller.name, key, error)
        finally:
            self.queue.done(key)

    def waking(self, watch: Watch) -> Callable[[Change], None]:
        """Who is told of every change of what is watched; mostly it wakes no controller."""
        keys, settle_s, queue = watch.keys, watch.settle_s, self.queue

        def wake(change: Change) -> None:
            for key in keys(change):
                queue.add_after(key, settle_s)

        return wake


class Manager:
    """Runs controllers over shared caches until it is cancelled."""

    def __init__(self, informers: Informers, controllers: Iterable[Controller], failed: Failed) -> None:
        self._informers = informers
        self._tasks = Tasks(failed=self._broken)
        self._error: BaseException | None = None
        self._stopped = asyncio.Event()
        self._running = [_Running(each, self._tasks, failed) for each in controllers]
        for running in self._running:
            for watch in running.controller.watches:
                self._connect(running, watch)
        self.started = False

    def _connect(self, running: _Running, watch: Watch) -> None:
        self._informers.of(watch.kind).listen(running.waking(watch))

    def _broken(self, name: str, error: BaseException) -> None:
        self._error = error
        self._stopped.set()

    async def run(self) -> None:
        """Start the caches, then the controllers in the order they were given; end in the same order."""
        try:
            await self._informers.start(self._tasks)
            for running in self._running:
                running.open()
            self.started = True
            await self._stopped.wait()
            assert self._error is not None
            raise self._error
        finally:
            for running in self._running:
                running.close()
            await self._tasks.close()
