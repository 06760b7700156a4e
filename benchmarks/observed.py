"""`joiner run` with a watch on itself: how long its event loop stands still, when its cache of pods heard of changes, its memory.

`python -m benchmarks.observed FILE`: runs on the cluster that KUBECONFIG names until SIGTERM. At SIGUSR1 it writes what was seen
since the last time into the file, as JSON, and begins anew.
"""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from joiner.assembly import Joiner
from joiner.cli.run import settings
from joiner.cli.run.process import Process
from joiner.clock import SystemClock
from joiner.kube.client import Client
from joiner.kube.controller import Change
from joiner.kube.tasks import Tasks
from joiner.model.pod import Pod
from joiner.observe.logs import Log, outputs

CHANGED = "example.com/changed"
"""The annotation by which changes are told apart."""
TICK_S = 0.005


def memory_mb() -> dict[str, int]:
    """What the kernel says of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    fields = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return {"rss": int(fields["VmRSS"]) // 1024, "peak rss": int(fields["VmHWM"]) // 1024}


def percentile(values: list[float], share: float) -> float:
    """The value that this share of the values is not above."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


class Observed(Process):
    """The process, watched."""

    def __init__(self, asked: settings.Settings, log: Log, file: Path) -> None:
        super().__init__(asked, log)
        self._file, self._began = file, time.monotonic()
        self._heard_at: dict[str, float] = {}
        self._gaps: list[float] = []
        self._synced: dict[str, Any] = {}
        self._controllers: Joiner | None = None
        self._watching = Tasks()
        self._watching.start("ticks", self._tick())
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self._write)

    def _joiner(self, client: Client) -> Joiner:
        made = self._controllers = super()._joiner(client)
        made.informers.of(Pod).listen(self._heard)
        return made

    def _heard(self, change: Change) -> None:
        if change.before is not None and change.after is not None:
            mark = change.after.metadata.annotations.get(CHANGED)
            if mark is not None and mark != change.before.metadata.annotations.get(CHANGED):
                self._heard_at[mark] = time.time()

    async def _tick(self) -> None:
        before = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            self._gaps.append(now - before - TICK_S)
            before = now
            if not self._synced and self._controllers is not None and self._controllers.manager.started:
                self._synced = {"seconds": round(now - self._began, 2), **memory_mb()}

    def _write(self) -> None:
        used = os.times()
        seen = {
            "first sync": self._synced,
            "cpu seconds": round(used.user + used.system, 2),
            "cpu seconds of children": round(used.children_user + used.children_system, 2),
            "memory": memory_mb(),
            "heard": self._heard_at,
            "stall p99, s": round(percentile(self._gaps, 0.99), 3),
            "stall max, s": round(max(self._gaps, default=0.0), 3),
        }
        unfinished = self._file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(seen), encoding="utf-8")
        unfinished.rename(self._file)
        self._heard_at.clear()
        self._gaps.clear()


async def main(file: Path) -> int:
    """Run until told to end."""
    asked = settings.read([], os.environ, provider="kwok")
    log = Log(SystemClock(), level=asked.options.log_level, write=outputs(asked.options.log_output_paths))
    return await Observed(asked, log, file).run()


if __name__ == "__main__":
    import gc

    gc.set_threshold(50_000, 20, 100)  # as `joiner run` does
    sys.exit(asyncio.run(main(Path(sys.argv[1]))))
