"""The life of the process: connect, check, wait for the lease, run the controllers, and end in order when told to."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from joiner import __version__
from joiner.assembly import Joiner, chance, replica_identity
from joiner.cli.run import checks
from joiner.cli.run.childprocess import in_child
from joiner.cli.run.dryrun import SETTLE_S, guarded, summary, teller
from joiner.cli.run.permissions import needed
from joiner.cli.run.settings import Settings, StartProblem
from joiner.clock import SystemClock
from joiner.cloud.errors import CloudError
from joiner.cloud.provider import CloudProvider, NodeClasses
from joiner.controllers.planning import offloaded
from joiner.kube.client import Client, Key
from joiner.kube.dryrun import DryRunClient
from joiner.kube.election import Election, LeadershipLost, NotLeading
from joiner.kube.errors import Conflict, NotFound, Throttled
from joiner.kube.http import discover
from joiner.kube.http.access import AccessError
from joiner.kube.http.client import HttpClient
from joiner.kube.http.ratelimit import Priority, RateLimit
from joiner.kube.http.transport import Transport
from joiner.kube.tasks import Tasks
from joiner.model.pod import Pod
from joiner.observe import processmetrics
from joiner.observe.endpoints import Endpoints, PortTaken
from joiner.observe.logs import Log

LEASE_TIMEOUT_S: Final = 5.0
FALLBACK_NAMESPACE: Final = "kube-system"
EXIT_LEASE_LOST: Final = 3
PODS_APART: Final = 2_000
"""From so many pods on metrics are written in a process of their own."""
FILLING_S: Final = 0.5
"""How often it is asked whether the caches are filled."""


class Process:
    """One run of the controllers. Made inside the loop that it runs in."""

    def __init__(self, settings: Settings, log: Log) -> None:
        self._settings, self._log = settings, log
        self._clock = SystemClock()
        self._random = chance()
        self._tasks = Tasks(failed=self._failed)
        self._end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._error: BaseException | None = None
        self._state = "the API server has not been reached yet"
        self._leading = False

    async def run(self) -> int:
        """Run until a signal comes or something ends it; gives the exit code. Raises StartProblem."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, signal.Signals(number).name)
        self._tasks.start("process", self._live())
        try:
            return await self._end
        finally:
            await self._tasks.close()
            if self._error is not None:
                raise self._error

    def _signalled(self, name: str) -> None:
        self._log.info("stopping", signal=name)
        self._finish(0)

    def _finish(self, code: int) -> None:
        if not self._end.done():
            self._end.set_result(code)

    def _failed(self, name: str, error: BaseException) -> None:
        self._error = error
        self._finish(1)

    async def _live(self) -> None:
        settings = self._settings
        limit = RateLimit(
            self._clock, per_second=settings.options.kube_client_qps, burst=settings.options.kube_client_burst
        )
        transport = Transport(self._access(), limit, agent=f"joiner/{__version__}")
        try:
            await self._connected(transport)
        finally:
            await transport.close()

    def _access(self) -> Any:
        try:
            return discover.find(
                kubeconfig_file=self._settings.kubeconfig,
                context=self._settings.context,
                clock=self._clock,
                environment=os.environ,
                home=Path.home(),
            )
        except AccessError as error:
            raise StartProblem(str(error)) from None

    async def _connected(self, transport: Transport) -> None:
        version = await checks.reachable(transport)
        election = self._election(transport)
        absent: set[Any] = set()
        client = HttpClient(
            transport,
            random=self._random,
            permit=election.permit if election is not None else None,
            absent=absent,
            unreadable=lambda message: self._log.error(message),
        )
        dry = DryRunClient(client, teller(self._log)) if self._settings.dry_run else None
        joiner = self._joiner(dry or client)
        kinds = joiner.informers.kinds()
        absent.update(await checks.absent(transport, kinds, self._log))
        present = [kind for kind in kinds if kind not in absent]
        wanted = needed(
            present,
            provider=self._settings.provider.name,
            lease_namespace=self._namespace(transport) if election is not None else "",
            lease_name=self._settings.options.leader_election_name,
            reads_only=self._settings.dry_run,
            deletion_costs=self._settings.options.gates.pod_deletion_cost_management,
        )
        absent.update(await checks.allowed(transport, wanted, self._log, present))
        endpoints = self._endpoints(joiner)
        try:
            await self._listen(endpoints)
            self._log.info("connected", server=transport.access.server, kubernetes=version.text)
            if dry is None:
                options = self._settings.options
                own = self._namespace(transport) if election is not None else ""  # what is not taken is not ours
                await checks.alone(client, namespace=own, name=options.leader_election_name, log=self._log)
            self._state = ""
            if dry is not None:
                await self._look(joiner, dry)
            else:
                await self._lead(joiner, election)
        finally:
            await endpoints.close()

    async def _look(self, joiner: Joiner, client: DryRunClient) -> None:
        """Let the controllers work for a while on a cluster that does not change by it."""
        working = Tasks(failed=self._failed)
        working.start("controllers", joiner.run())
        try:
            await asyncio.sleep(self._settings.options.batch_max_duration + SETTLE_S)
        finally:
            await working.close()
        summary(client, self._log)
        self._finish(0)

    def _joiner(self, client: Client) -> Joiner:
        settings = self._settings

        def connect(node_classes: NodeClasses, given: Client, tasks: Tasks) -> CloudProvider:
            made = settings.provider.connect(node_classes=node_classes, clock=self._clock, client=given, tasks=tasks)
            return guarded(made, self._log) if settings.dry_run else made

        try:
            return Joiner(
                options=settings.options,
                client=client,
                connect=connect,
                clock=self._clock,
                random=self._random,
                spread=settings.spread,
                failed=self._told,
                log=self._log,
                compute=offloaded(in_child, self._clock),
                apart=in_child,
                jitter=self._random,
            )
        except CloudError as error:
            raise StartProblem(f"provider {settings.provider.name}: {error}") from None

    def _told(self, controller: str, key: Key, error: Exception) -> None:
        """What a controller could not do. That another client was faster, or the server busy, is no failure.

        Nor is a write that is not sent because the lease is lost: that is told once, and ends the process.
        """
        named = {"controller": controller, "namespace": key.namespace, "name": key.name}
        if isinstance(error, Conflict | NotFound | Throttled | NotLeading):
            self._log.debug("will be tried again", **named, reason=str(error))
        else:
            self._log.error("Reconciler error", **named, error=f"{type(error).__name__}: {error}")

    def _namespace(self, transport: Transport) -> str:
        asked = self._settings.options.leader_election_namespace or os.environ.get("SYSTEM_NAMESPACE", "")
        return asked or transport.access.namespace or FALLBACK_NAMESPACE

    def _election(self, transport: Transport) -> Election | None:
        options = self._settings.options
        if options.disable_leader_election or self._settings.dry_run:
            return None
        client = HttpClient(transport, random=self._random, priority=Priority.LEASE, timeout_s=LEASE_TIMEOUT_S)
        return Election(
            client,
            namespace=self._namespace(transport),
            name=options.leader_election_name,
            identity=replica_identity(os.environ),
            clock=self._clock,
            random=self._random,
            told=lambda holder: self._log.info("leader is", holder=holder),
            troubled=lambda why: self._log.error("the lease can be neither read nor written now", error=why),
        )

    def _endpoints(self, joiner: Joiner) -> Endpoints:
        registry = joiner.metrics.registry
        processmetrics.register(registry)
        return Endpoints(
            metrics=lambda: scraped(lambda: processmetrics.text(registry), pods=len(joiner.informers.of(Pod).store)),
            content_type=processmetrics.CONTENT_TYPE,
            ready=lambda: self._state or self._unfilled(joiner),
        )

    def _unfilled(self, joiner: Joiner) -> str:
        """What a replica that leads still lacks; one that only stands by is ready at once."""
        return "the caches are not filled yet" if self._leading and not joiner.manager.started else ""

    async def _listen(self, endpoints: Endpoints) -> None:
        options = self._settings.options
        if self._settings.dry_run:
            return  # it does not live long enough to be scraped, and must not take the ports of a replica that works
        try:
            await endpoints.start(metrics_port=options.metrics_port, health_port=options.health_probe_port)
        except PortTaken as error:
            raise StartProblem(str(error)) from None

    async def _lead(self, joiner: Joiner, election: Election | None) -> None:
        """Run the controllers as long as we lead."""
        beside = Tasks(failed=lambda name, error: self._lost(error))
        try:
            if election is not None:
                await election.acquire()
                self._log.info("leading", identity=election.identity)
                beside.start("lease", election.hold())
            self._leading = True
            beside.start("memory", _settle(joiner))
            try:
                await joiner.run()
            finally:
                await beside.close()
        finally:
            if election is not None:
                await election.release()

    def _lost(self, error: BaseException) -> None:
        if isinstance(error, LeadershipLost):
            self._log.error("leader election lost", error=str(error))
            self._finish(EXIT_LEASE_LOST)
        else:
            self._failed("lease", error)


async def scraped(text: Callable[[], bytes], *, pods: int) -> bytes:
    """All metrics. Those of many pods take seconds to write: meanwhile the loop goes on."""
    return text() if pods < PODS_APART else await in_child(text)


async def _settle(joiner: Joiner) -> None:
    """What the caches hold after the first lists will live for long: the garbage collector need not look at it again."""
    while not joiner.manager.started:
        await asyncio.sleep(FILLING_S)
    gc.collect()
    gc.freeze()


def run(settings: Settings, outputs: tuple[Callable[[str], None], ...]) -> int:
    """Run the process to its end; gives the exit code."""
    log = Log(SystemClock(), level=settings.options.log_level, write=outputs, commit=__version__)
    choice = settings.provider
    if settings.dry_run:
        log = log.having(dryRun=True)
    log.info(f"provider {choice.name}", reason=choice.reason)
    gc.set_threshold(50_000, 20, 100)
    return asyncio.run(_main(settings, log))


async def _main(settings: Settings, log: Log) -> int:
    return await Process(settings, log).run()
