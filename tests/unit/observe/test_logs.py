"""Logs, and the endpoints of the process."""

import asyncio
import json
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from joiner.observe import processmetrics
from joiner.observe.endpoints import Endpoints, PortTaken
from joiner.observe.logs import Log, outputs


class Noon:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, 0, 0, 123_000, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def test_a_line_has_the_keys_of_karpenters_log_and_those_of_its_controller() -> None:
    lines: list[str] = []
    log = Log(Noon(), write=[lines.append], commit="abc").having(controller="provisioner")

    log.info("created nodeclaim", NodeClaim={"name": "a"}, **{"instance-types": "x, y"})

    assert lines[0].endswith("\n")
    assert list(json.loads(lines[0]).items()) == [
        ("level", "INFO"), ("time", "2026-01-01T12:00:00.123Z"), ("logger", "controller"), ("message", "created nodeclaim"),
        ("commit", "abc"), ("controller", "provisioner"), ("NodeClaim", {"name": "a"}), ("instance-types", "x, y"),
    ]  # fmt: skip


@pytest.mark.parametrize(("level", "written"), [("debug", "diwe"), ("info", "iwe"), ("error", "e")])
def test_the_level_says_how_much(level: str, written: str) -> None:
    lines: list[str] = []
    log = Log(Noon(), level=level, write=[lines.append])
    log.debug("d")
    log.info("i")
    log.warn("w")
    log.error("e")

    assert "".join(json.loads(line)["message"] for line in lines) == written


def test_lines_go_to_every_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Log(Noon(), write=outputs(f"stderr, {tmp_path / 'log'}")).info("hello")

    assert "hello" in capsys.readouterr().err
    assert "hello" in (tmp_path / "log").read_text()


def asked(ready: str, *paths: str) -> dict[str, tuple[int, str]]:
    async def main() -> dict[str, tuple[int, str]]:
        registry = CollectorRegistry()
        processmetrics.register(registry)

        async def metrics() -> bytes:
            return processmetrics.text(registry)

        endpoints = Endpoints(metrics=metrics, content_type=processmetrics.CONTENT_TYPE, ready=lambda: ready)
        port = free_port()
        await endpoints.start(metrics_port=port, health_port=port)
        found: dict[str, Any] = {}
        try:
            async with aiohttp.ClientSession() as session:
                for path in paths:
                    async with session.get(f"http://127.0.0.1:{port}{path}") as response:
                        found[path] = response.status, await response.text()
            with pytest.raises(PortTaken, match=f"port {port}"):
                await Endpoints(metrics=metrics, content_type="", ready=str).start(metrics_port=port, health_port=0)
        finally:
            await endpoints.close()
        return found

    return asyncio.run(main())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_probes_and_metrics() -> None:
    found = asked("the caches are empty", "/healthz", "/readyz", "/metrics")

    assert found["/healthz"] == (200, "ok")
    assert found["/readyz"] == (500, "the caches are empty")
    values = dict(line.rsplit(" ", 1) for line in found["/metrics"][1].splitlines() if not line.startswith("#"))
    for name in ("process_resident_memory_bytes", "process_cpu_seconds_total", "go_gc_heap_live_bytes"):
        assert float(values[name]) > 0
    assert asked("", "/readyz")["/readyz"] == (200, "ok")
