"""Karpenter launches ten nodes, Joiner takes over, then Karpenter again: `python -m tools.take_over`.

On a real control plane with kwok. Fails if a node is replaced, a pod is moved, a claim drifts, or a label or annotation is
left on an object that was not there before.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tools.controlplane.binaries import binaries
from tools.controlplane.cluster import Cluster, Refused
from tools.controlplane.manifests import install_crds
from tools.controlplane.plane import CannotStart, ControlPlane
from tools.controlplane.processes import free_ports, spawn, tail
from tools.controlplane.toolchain import CannotBuild
from tools.controlplane.tryout import OBJECTS

NODES = 10
WATCHED_S = 75
"""How long each controller is watched after it has taken over."""
PATIENCE_S = 300
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election"
APART = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
WORKLOAD = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": NODES,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "web", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}},
            },
        },
    },
}


class Seen(NamedTuple):
    """What must not change."""

    nodes: frozenset[str]
    claims: frozenset[str]
    pods: frozenset[tuple[str, str]]
    drifted: frozenset[str]
    marks: frozenset[str]
    """Kind and key of every label and annotation."""


def _items(cluster: Cluster, path: str) -> list[dict[str, Any]]:
    status, found = cluster.request("GET", path)
    if status != 200:
        raise Refused(f"{path}: {status} {found}")
    items: list[dict[str, Any]] = found["items"]
    return items


def look(cluster: Cluster) -> Seen:
    """The cluster as it is."""
    nodes, pods = _items(cluster, "/api/v1/nodes"), _items(cluster, "/api/v1/namespaces/default/pods")
    claims = _items(cluster, "/apis/karpenter.sh/v1/nodeclaims")
    pools = _items(cluster, "/apis/karpenter.sh/v1/nodepools")
    running = [each for each in pods if each["status"].get("phase") == "Running"]
    return Seen(
        frozenset(each["metadata"]["uid"] for each in nodes),
        frozenset(each["metadata"]["uid"] for each in claims),
        frozenset((each["metadata"]["uid"], each["spec"].get("nodeName", "")) for each in running),
        frozenset(
            each["metadata"]["name"]
            for each in claims
            for condition in each.get("status", {}).get("conditions", ())
            if condition["type"] == "Drifted" and condition["status"] == "True"
        ),
        frozenset(
            f"{kind} {key}"
            for kind, things in (("Node", nodes), ("NodeClaim", claims), ("NodePool", pools))
            for each in things
            for part in ("labels", "annotations")
            for key in each["metadata"].get(part) or {}
        ),
    )


class Working:
    """One controller at work."""

    def __init__(self, cluster: Cluster, name: str, command: list[str], folder: Path) -> None:
        self._cluster, self.name, self._log = cluster, name, folder / f"{name}.log"
        metrics, health = free_ports(2)
        environment = {
            **os.environ,
            "KUBECONFIG": str(cluster.kubeconfig),
            "LEADER_ELECTION_NAMESPACE": "kube-system",
            "KARPENTER_SERVICE": "karpenter",
            "SYSTEM_NAMESPACE": "kube-system",
            "METRICS_PORT": str(metrics),
            "HEALTH_PROBE_PORT": str(health),
        }
        self._before = self._holder()
        self._process = spawn(command, self._log, env=environment)

    def _holder(self) -> str:
        status, lease = self._cluster.request("GET", LEASE)
        return str(lease["spec"].get("holderIdentity") or "") if status == 200 else ""

    def until_leading(self) -> None:
        """Wait for the lease: Karpenter does not release it."""
        self.until(lambda: self._holder() not in ("", self._before), "leads")

    def until(self, true: Any, what: str) -> None:
        """Wait; raises CannotStart when the process ends or takes too long."""
        end = time.monotonic() + PATIENCE_S
        while not true():
            if self._process.poll() is not None or time.monotonic() > end:
                raise CannotStart(f"{self.name}: in vain: {what}; the end of its log:\n{tail(self._log)}")
            time.sleep(0.5)

    def stop(self) -> None:
        """End it as a kubelet does."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def watched(cluster: Cluster, working: Working, before: Seen) -> list[str]:
    """What went wrong while a controller worked on what another had left."""
    working.until_leading()
    end = time.monotonic() + WATCHED_S
    while time.monotonic() < end:
        now = look(cluster)
        problems = [
            name for name in ("nodes", "claims", "pods", "drifted") if getattr(now, name) != getattr(before, name)
        ]
        if problems:
            return [f"{working.name}: {', '.join(problems)} changed"]
        time.sleep(1)
    print(
        f"{working.name}: led for {WATCHED_S} s; {len(now.nodes)} nodes, {len(now.pods)} pods, nothing moved or drifted"
    )
    return []


def take_over(folder: Path) -> list[str]:
    """The whole story; gives what went wrong."""
    karpenter = [str(binaries("karpenter") / "karpenter")]
    joiner = [sys.executable, "-m", "joiner", "run", "--provider", "kwok"]
    with ControlPlane(folder / "control-plane") as cluster:
        install_crds(cluster)
        for each in (*OBJECTS, WORKLOAD):
            cluster.apply(each)
        first = Working(cluster, "karpenter-1", karpenter, folder)
        first.until(lambda: len(look(cluster).pods) == NODES, f"{NODES} pods run")
        time.sleep(15)  # labels, hashes and conditions are written after that
        before = look(cluster)
        print(f"karpenter-1: {len(before.nodes)} nodes, {len(before.claims)} claims, {len(before.pods)} pods")
        first.stop()
        problems: list[str] = []
        for name, command in (("joiner", joiner), ("karpenter-2", karpenter)):
            working = Working(cluster, name, command, folder)
            try:
                problems += watched(cluster, working, before)
            finally:
                working.stop()
        left = sorted(look(cluster).marks - before.marks)
        return [*problems, *(f"left behind: {each}" for each in left)]


def main() -> int:
    """Print what went wrong; 1 if something did."""
    folder = Path(tempfile.mkdtemp(prefix="joiner-take-over-"))
    try:
        problems = take_over(folder)
    except (CannotBuild, CannotStart, Refused) as error:
        problems = [str(error)]
    print("\n".join(problems) or "taken over and given back", f"(logs: {folder})")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
