"""Metrics of the process itself, with the names that tools made for Karpenter read."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

LIVE_HEAP: Final = "go_gc_heap_live_bytes"
CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4


class HeapCollector(Collector):
    """The memory that only one process has: what its objects take, and what the allocator keeps for more of them."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")

    def collect(self) -> Iterator[Metric]:
        """The gauge; nothing on systems that do not tell."""
        held = self._anonymous_bytes()
        if held is not None:
            family = GaugeMetricFamily(LIVE_HEAP, "Heap of this process, under the name that Karpenter's tools read.")
            family.add_metric((), held)
            yield family

    def _anonymous_bytes(self) -> int | None:
        try:
            lines = self._status.read_text(encoding="ascii").splitlines()
        except OSError:
            return None
        found = next((line.split() for line in lines if line.startswith("RssAnon:")), None)
        return int(found[1]) * 1024 if found is not None else None


def register(registry: CollectorRegistry) -> None:
    """Add the metrics of this process: CPU, memory, files, start time, heap. A copy of it that reads them tells the same."""
    pid = os.getpid()
    ProcessCollector(pid=lambda: pid, registry=registry)
    registry.register(HeapCollector(pid))


def text(registry: CollectorRegistry) -> bytes:
    """All metrics, as they are scraped."""
    return generate_latest(registry)
