"""Joiner as a process of its own, with the token of a ServiceAccount: start, end, kill, and what it says of itself."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.controlplane.cluster import Cluster
from tools.controlplane.processes import free_ports, spawn, tail

NAMESPACE, ACCOUNT = "kube-system", "joiner"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/karpenter-leader-election"
GATES = "NodeRepair=true,StaticCapacity=true,CapacityBuffer=true"
PATIENCE_S = 180


class Controller:
    """One replica."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        name: str = "joiner-0",
        *,
        server: str = "",
        provider: str = "kwok",
        **environment: str,
    ) -> None:
        self.cluster, self.name, self._provider = cluster, name, provider
        self.log = folder / f"{name}.log"
        self._kubeconfig = cluster.token_kubeconfig(folder / f"{name}.kubeconfig", NAMESPACE, ACCOUNT, server=server)
        self._more = environment
        self.process: subprocess.Popen[bytes] | None = None
        self.metrics_port = self.health_port = 0

    def _environment(self) -> Mapping[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH", "LANG") if name in os.environ}
        return {
            **kept,
            "KUBECONFIG": str(self._kubeconfig),
            "POD_NAME": self.name,
            "SYSTEM_NAMESPACE": NAMESPACE,
            "LEADER_ELECTION_NAMESPACE": NAMESPACE,
            "METRICS_PORT": str(self.metrics_port),
            "HEALTH_PROBE_PORT": str(self.health_port),
            "FEATURE_GATES": GATES,
            "LOG_LEVEL": "debug",
            "BATCH_IDLE_DURATION": "500ms",
            **self._more,
        }

    def start(self, *, leads: bool = True) -> "Controller":
        """Start it and wait until it is ready, and until it leads."""
        self.metrics_port, self.health_port = free_ports(2)
        command = [sys.executable, "-m", "joiner", "run", "--provider", self._provider]
        self.process = spawn(command, self.log, env=self._environment())
        self._wait(self.is_ready, "ready")
        if leads:
            self._wait(self.leads, "the leader")
        return self

    def _wait(self, true: Any, what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not true():
            assert self.process is not None
            if self.process.poll() is not None or time.monotonic() > end:
                state = f"ended with {self.process.returncode}" if self.process.poll() is not None else "did not"
                raise AssertionError(f"{self.name} had to be {what} and {state}; its log:\n{tail(self.log, 30)}")
            time.sleep(0.1)

    def is_ready(self) -> bool:
        """What its readiness probe says."""
        return self.get(self.health_port, "/readyz")[0] == 200

    def leads(self) -> bool:
        """Whether the lease names this replica."""
        return self.holder().partition("_")[0] == self.name

    def holder(self) -> str:
        """Who has the lease."""
        status, lease = self.cluster.request("GET", LEASE)
        return str(lease["spec"].get("holderIdentity") or "") if status == 200 else ""

    def get(self, port: int, path: str) -> tuple[int, str]:
        """Ask it over HTTP; 0 when it does not answer."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it without a chance to tidy up."""
        self.signal(signal.SIGKILL)
        assert self.process is not None
        self.process.wait()

    def stop(self) -> int:
        """End it as a kubelet does; returns its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode

    def lines(self) -> Iterator[dict[str, Any]]:
        """What it has logged."""
        for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                yield {"level": "ERROR", "message": f"not JSON: {line}"}
