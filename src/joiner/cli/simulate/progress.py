"""How far a story has come, on standard error: a bar on a terminal, a line now and then in a log."""

import sys
from typing import Any, Final

import click

from joiner.clock import Clock, SystemClock
from joiner.model.node import Node
from joiner.model.pod import Pod
from joiner.sim.story.phrases import clock_time, counted
from joiner.sim.world import World

EVERY_S: Final = 10.0
"""After so much time a log has another line."""


class StoryProgress:
    """Shown while nothing else is told. What is quick shows nothing in a log."""

    def __init__(self, ends_s: float, clock: Clock | None = None) -> None:
        self._ends, self._clock = ends_s, clock or SystemClock()
        self._last = self._clock.monotonic()
        self._bar = _bar(ends_s) if sys.stderr.isatty() else None

    def at(self, seconds: float, world: World) -> None:
        """The story has come to this second."""
        if self._bar is not None:
            progress, task = self._bar
            progress.update(task, completed=seconds)
            return
        now = self._clock.monotonic()
        if now - self._last >= EVERY_S:
            self._last = now
            nodes, pods = (sum(1 for _ in world.server.objects(kind)) for kind in (Node, Pod))
            there = f"{counted(nodes, 'node')}, {counted(pods, 'pod')}"
            click.echo(f"played {clock_time(seconds)} of {clock_time(self._ends)}: {there}", err=True)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar[0].stop()


def _bar(total: float) -> tuple[Any, Any]:
    from rich.console import Console
    from rich.progress import Progress

    progress = Progress(transient=True, console=Console(stderr=True))
    progress.start()
    return progress, progress.add_task("playing", total=total)
