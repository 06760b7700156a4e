"""The HTTP endpoints of the process: `/metrics` on one port, `/healthz` and `/readyz` on another."""

from collections.abc import Awaitable, Callable

from aiohttp import web


class PortTaken(OSError):
    """Another process listens there."""


class Endpoints:
    """Servers on all addresses, as the pod's probes and scrapers expect."""

    def __init__(self, *, metrics: Callable[[], Awaitable[bytes]], content_type: str, ready: Callable[[], str]) -> None:
        """`ready` says what is still missing; nothing when all is well."""
        self._metrics, self._content_type, self._ready = metrics, content_type, ready
        self._runners: list[web.AppRunner] = []

    async def start(self, *, metrics_port: int, health_port: int) -> None:
        """Listen. Raises PortTaken. A port of 0 is switched off."""
        probes = [web.get("/healthz", self._healthz), web.get("/readyz", self._readyz)]
        if metrics_port == health_port:
            await self._listen(metrics_port, [web.get("/metrics", self._scrape), *probes], "metrics-port")
            return
        await self._listen(metrics_port, [web.get("/metrics", self._scrape)], "metrics-port")
        await self._listen(health_port, probes, "health-probe-port")

    async def _listen(self, port: int, routes: list[web.RouteDef], flag: str) -> None:
        if port == 0:
            return
        application = web.Application()
        application.add_routes(routes)
        runner = web.AppRunner(application, access_log=None, handle_signals=False)
        await runner.setup()
        self._runners.append(runner)
        try:
            await web.TCPSite(runner, port=port, reuse_address=True).start()
        except OSError as error:
            raise PortTaken(
                f"port {port} cannot be listened on: {error.strerror or error}; end the process that has it, or choose another"
                f" with --{flag} ({flag.upper().replace('-', '_')})"
            ) from None

    async def _scrape(self, request: web.Request) -> web.Response:
        return web.Response(body=await self._metrics(), headers={"Content-Type": self._content_type})

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _readyz(self, request: web.Request) -> web.Response:
        missing = self._ready()
        return web.Response(text=missing or "ok", status=500 if missing else 200)

    async def close(self) -> None:
        """Listen no more."""
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()
