"""A group of tasks that starts and ends them in a stated order.

The standard library's group keeps its tasks in a set, so the order in which it cancels them follows memory addresses. Here it is
the order in which they were started, in every run.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """Tasks that live and end together."""

    def __init__(self, failed: Callable[[str, BaseException], None] | None = None) -> None:
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._failed = failed
        self._closed = False
        self._ended: asyncio.Future[None] | None = None

    def start(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        """Begin a task. One that ends with an error is told to the caller that waits for it, or else to the loop."""
        if self._closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        del self._tasks[task]
        if not self._tasks and self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if self._failed is not None:
            self._failed(task.get_name(), error)
        else:
            message = f"the task {task.get_name()} ended with an error"
            task.get_loop().call_exception_handler({"message": message, "exception": error, "task": task})

    async def close(self) -> None:
        """Cancel every task, the oldest first, and wait until all have ended. None can be started any more."""
        self._closed = True
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            self._ended = asyncio.get_running_loop().create_future()
            await self._ended

    def __len__(self) -> int:
        return len(self._tasks)
