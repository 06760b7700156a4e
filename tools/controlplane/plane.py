"""Starts and stops a control plane. Its state is in a folder of its own, its data is thrown away with it."""

import http.client
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tools.controlplane import components
from tools.controlplane.binaries import Say, binaries, to_stderr
from tools.controlplane.certificates import HOST, write_all
from tools.controlplane.cluster import Cluster
from tools.controlplane.components import PORTS, Layout
from tools.controlplane.processes import free_ports, spawn, tail

PATIENCE_S = 120
"""How long a component may take to be ready, on a machine with much else to do."""
TAKEN = "address already in use"


class CannotStart(Exception):
    """A component did not become ready: which, and the end of its log."""


class ControlPlane:
    """The processes of a cluster on loopback. `full`: with controllers, a scheduler and fake kubelets beside the API server."""

    def __init__(
        self,
        folder: Path,
        *,
        full: bool = True,
        controllers: str = "*",
        audited: str = "",
        stages: Sequence[Path] = (),
        say: Say = to_stderr,
    ) -> None:
        """`audited` is the user whose requests are recorded; `stages` are more files with what kwok does."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._full, self._stages, self._say = folder, full, stages, say
        self._controllers, self._audited = controllers, audited
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._layout: Layout | None = None

    @property
    def layout(self) -> Layout:
        """Folders and ports, once it has been started."""
        assert self._layout is not None, "the control plane has not been started"
        return self._layout

    @property
    def cluster(self) -> Cluster:
        """The cluster, for those who use it."""
        ports = self.layout.ports
        return Cluster(self.folder, ports["apiserver"], ports["etcd"])

    def start(self) -> Cluster:
        """Start everything and wait until it is ready. Raises CannotBuild, CannotStart."""
        programs = binaries(say=self._say)
        attempts = 3
        while True:
            attempts -= 1
            try:
                self._start(programs)
                return self.cluster
            except CannotStart as error:
                self.stop()
                if not attempts or TAKEN not in str(error):
                    raise
            except BaseException:
                self.stop()
                raise

    def _start(self, programs: Path) -> None:
        memory = Path("/dev/shm")
        where = memory if os.access(memory, os.W_OK) else self.folder
        self._layout = Layout(
            folder=self.folder,
            ports=dict(zip(PORTS, free_ports(len(PORTS)), strict=True)),
            data=Path(tempfile.mkdtemp(prefix="joiner-etcd-", dir=where)),
            full=self._full,
            controllers=self._controllers,
            audited=self._audited,
            stages=(*sorted((programs / "stages").glob("*.yaml")), *self._stages),
        )
        shutil.rmtree(self._layout.pki, ignore_errors=True)
        write_all(self._layout.pki, self.cluster.server)
        self._run("etcd", programs / "etcd", components.etcd(self._layout))
        self.start_apiserver()
        if not self._full:
            return
        flags = {
            "controller-manager": components.controller_manager,
            "scheduler": components.scheduler,
            "kwok": components.kwok,
        }
        for name, of in flags.items():
            self._run(name, programs / (name if name == "kwok" else f"kube-{name}"), of(self._layout))
        for name in ("controller-manager", "scheduler", "kwok"):
            self._wait(name, partial(self._no_answer, name, "/healthz"))
        self._wait("controller-manager", self._no_default_account)

    def start_apiserver(self) -> None:
        """Start the API server, for the first time or again, and wait until it is ready."""
        self._run("apiserver", binaries() / "kube-apiserver", components.apiserver(self.layout))
        self._wait("apiserver", partial(self._no_answer, "apiserver", "/readyz"))

    def stop_apiserver(self) -> None:
        """End the API server alone, as a crash would."""
        process = self._processes.pop("apiserver")
        process.kill()
        process.wait()

    def signal_apiserver(self, number: signal.Signals) -> None:
        """Send the API server a signal, to hold it and to let it go on."""
        self._processes["apiserver"].send_signal(number)

    def stop(self) -> None:
        """End all processes. The data goes with them, so there is nothing to end gracefully."""
        for process in reversed(self._processes.values()):
            process.kill()
        for process in self._processes.values():
            process.wait()
        self._processes.clear()
        if self._layout is not None:
            shutil.rmtree(self._layout.data, ignore_errors=True)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def log(self, name: str) -> Path:
        """The log of a component."""
        return self.folder / f"{name}.log"

    def _run(self, name: str, program: Path, flags: Sequence[str]) -> None:
        self._processes[name] = spawn([str(program), *flags], self.log(name), cwd=self.folder)

    def _wait(self, name: str, still_missing: Callable[[], str]) -> None:
        end = time.monotonic() + PATIENCE_S
        while missing := still_missing():
            code = self._processes[name].poll()
            if code is not None or time.monotonic() > end:
                what = (
                    f"ended with code {code}" if code is not None else f"was not ready after {PATIENCE_S} s ({missing})"
                )
                raise CannotStart(f"{name} {what}; the end of its log:\n{tail(self.log(name))}")
            time.sleep(0.05)

    def _no_answer(self, name: str, path: str) -> str:
        """Why a component does not count as healthy; empty when it does."""
        port = self.layout.ports[name]
        try:
            plain = name == "kwok"  # serves both kinds on one port, health only in plain text
            status = _plain(port, path) if plain else self.cluster.ask(port, "GET", path, timeout=5)[0]
        except (OSError, http.client.HTTPException) as error:
            return f"{path}: {error!r}"
        return "" if status == 200 else f"{path}: {status}"

    def _no_default_account(self) -> str:
        """Without it every pod is refused."""
        try:
            status = self.cluster.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0]
        except (OSError, http.client.HTTPException) as error:
            return f"the ServiceAccount default: {error!r}"
        return "" if status == 200 else f"the ServiceAccount default: {status}"


def _plain(port: int, path: str) -> int:
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()
