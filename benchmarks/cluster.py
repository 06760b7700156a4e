"""What `joiner run` costs on a real control plane: beside Karpenter's own controller, with a large cluster in its caches, and
while it plans.

The nodes of the first part are kwok's; the other parts have etcd and an API server only, so that nothing else moves. Seconds of
the processor are those of the controller alone.
"""

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from textwrap import fill
from typing import Any

from aiohttp import ClientError, ClientSession, TCPConnector
from tools.controlplane.binaries import binaries
from tools.controlplane.cluster import Cluster
from tools.controlplane.manifests import install_crds
from tools.controlplane.plane import ControlPlane
from tools.controlplane.processes import free_ports, spawn, tail
from tools.controlplane.tryout import OBJECTS, REFERENCE

from benchmarks.observed import CHANGED, percentile

QUESTION = "What does a cluster cost the controller, beside Karpenter's, and does its mirror keep up?"
PENDING = (500, 2_000)
NODES, PODS = 1_000, 20_000
CHANGES_A_SECOND, CHANGING_S = 200, 60
SHAPES = 5
DEPLOYMENTS, REPLICAS = 1_000, 5
AT_ONCE = 40
PATIENCE_S = 1_800
MERGE = "application/merge-patch+json"
TICKS = os.sysconf("SC_CLK_TCK")
INTRODUCTION = (
    "One Deployment (1 CPU and 1 GiB a pod) on etcd, API server, controller-manager, scheduler and kwok, all on the same"
    " machine: from its creation until all of its pods run. *CPU* and *MB* are the controller's alone. *karpenter* is Karpenter's"
    " own kwok controller (v1.15.0). *Load* is that of the machine when it was over: where it is above the number of cores,"
    " seconds tell more of the machine than of the controller."
)
Document = dict[str, Any]
Call = tuple[str, str, Document, str]

# -- processes --------------------------------------------------------------------------------------------------------


def used(pid: int) -> dict[str, float]:
    """Seconds of the processor with those of ended children, and memory in MB, so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    status = dict(line.partition(":")[::2] for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {
        "cpu seconds": round(sum(map(int, fields[11:15])) / TICKS, 1),
        "rss MB": int(status["VmRSS"].split()[0]) // 1024,
        "peak rss MB": int(status["VmHWM"].split()[0]) // 1024,
    }


@contextmanager
def controller(cluster: Cluster, command: list[str], log: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A controller that works on the cluster."""
    metrics, health = free_ports(2)
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "LEADER_ELECTION_NAMESPACE": "kube-system",
        "SYSTEM_NAMESPACE": "kube-system",
        "KARPENTER_SERVICE": "karpenter",
        "METRICS_PORT": str(metrics),
        "HEALTH_PROBE_PORT": str(health),
        **more,
    }
    process = spawn(command, log, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(true: Any, process: subprocess.Popen[bytes], log: Path, what: str) -> None:
    """Wait for something that the controller does."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"in vain: {what}; the end of the controller's log:\n{tail(log, 20)}")
        time.sleep(0.1)


# -- pending pods -----------------------------------------------------------------------------------------------------

JOINER = [sys.executable, "-m", "joiner", "run", "--provider", "kwok"]
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election"
WEB = "/apis/apps/v1/namespaces/default/deployments/web"


def pending(command: list[str], count: int) -> dict[str, Any]:
    """From a Deployment with so many replicas until all of them run."""
    folder = Path(tempfile.mkdtemp(prefix="joiner-pending-"))
    log = folder / "controller.log"
    with ControlPlane(folder / "control-plane") as cluster:
        install_crds(cluster)
        for each in OBJECTS:
            cluster.apply(each)
        with controller(cluster, command, log) as process:
            until(lambda: cluster.request("GET", LEASE)[0] == 200, process, log, "it leads")
            time.sleep(5)  # caches fill, the pool becomes ready
            before, began = used(process.pid), time.monotonic()
            cluster.apply(_deployment(count))
            until(lambda: _ready(cluster) == count, process, log, f"{count} pods run")
            seconds, after = time.monotonic() - began, used(process.pid)
            nodes = cluster.request("GET", "/apis/karpenter.sh/v1/nodeclaims")[1]["items"]
            return {
                "seconds": round(seconds, 1),
                **after,
                "cpu seconds": round(after["cpu seconds"] - before["cpu seconds"], 1),
                "rss MB before": before["rss MB"],
                "nodes": len(nodes),
                "load": round(os.getloadavg()[0], 1),
            }


def _deployment(count: int) -> Document:
    container = {"name": "web", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": count, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def _ready(cluster: Cluster) -> int:
    return int(cluster.request("GET", WEB)[1].get("status", {}).get("readyReplicas", 0))


# -- a large cluster, written by hand -----------------------------------------------------------------------------------


@asynccontextmanager
async def _administrator(cluster: Cluster) -> AsyncIterator[Callable[[Call], Coroutine[Any, Any, None]]]:
    """Sends requests as the administrator."""
    trusting = ssl.create_default_context(cafile=str(cluster.pki / "ca.crt"))
    trusting.load_cert_chain(cluster.pki / "admin.crt", cluster.pki / "admin.key")
    async with ClientSession(cluster.server, connector=TCPConnector(ssl=trusting, limit=AT_ONCE)) as session:

        async def send(call: Call) -> None:
            method, path, body, content = call
            async with session.request(method, path, json=body, headers={"Content-Type": content}) as answer:
                if answer.status >= 300:
                    raise RuntimeError(f"{method} {path}: {answer.status} {await answer.text()}")

        yield send


async def _send_all(cluster: Cluster, calls: Iterable[Call]) -> None:
    """As fast as they go."""
    waiting = iter(calls)
    async with _administrator(cluster) as send, asyncio.TaskGroup() as group:

        async def work() -> None:
            for call in waiting:
                await send(call)

        for _ in range(AT_ONCE):
            group.create_task(work())


async def _change(cluster: Cluster, minute: int) -> dict[str, float]:
    """So many changes of pods a second, at even distances; gives when the API server had taken each."""
    taken: dict[str, float] = {}
    async with _administrator(cluster) as send, asyncio.TaskGroup() as group:

        async def change(number: int) -> None:
            mark = f"{minute}-{number}"
            body = {"metadata": {"annotations": {CHANGED: mark}}}
            with suppress(RuntimeError, TimeoutError, ClientError):  # counted by what was taken
                await send(("PATCH", f"{POD_FOLDER}/pod-{number * 7 % PODS:05}", body, MERGE))
                taken[mark] = time.time()

        began = time.monotonic()
        for number in range(CHANGES_A_SECOND * CHANGING_S):
            await asyncio.sleep(max(0.0, began + number / CHANGES_A_SECOND - time.monotonic()))
            group.create_task(change(number))
    return taken


POD_FOLDER = "/api/v1/namespaces/default/pods"
JSON = "application/json"
AMOUNTS = {"cpu": "16", "memory": "128Gi", "pods": "110", "ephemeral-storage": "20Gi"}
TYPE = {
    "karpenter.sh/nodepool": "default",
    "karpenter.sh/capacity-type": "on-demand",
    "karpenter.sh/registered": "true",
    "karpenter.sh/initialized": "true",
    "karpenter.kwok.sh/kwoknodeclass": "default",
    "node.kubernetes.io/instance-type": "m-16x-amd64-linux",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/os": "linux",
}


def _pod(name: str, app: str, cpu: str, **spec: Any) -> Document:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": "512Mi"}}}
    labels = {"app": app}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container], **spec}}


def _refused() -> Document:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
    return {"status": {"conditions": [condition]}}


def _nodes() -> Iterator[Call]:
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": "2030-01-01T00:00:00Z"}]
    for number in range(NODES):
        name = f"node-{number:04}"
        labels = {**TYPE, "topology.kubernetes.io/zone": f"test-zone-{'abc'[number % 3]}"}
        status = {"capacity": AMOUNTS, "allocatable": AMOUNTS, "conditions": ready}
        metadata = {"name": name, "labels": {**labels, "kubernetes.io/hostname": name}}
        yield (
            "POST",
            "/api/v1/nodes",
            {"metadata": metadata, "spec": {"providerID": f"kwok://{name}"}, "status": status},
            JSON,
        )
        claim = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": name, "labels": labels},
            "spec": {"nodeClassRef": REFERENCE, "requirements": []},
        }
        yield "POST", "/apis/karpenter.sh/v1/nodeclaims", claim, JSON


def _claims() -> Iterator[Call]:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    kinds = ("Launched", "Registered", "Initialized", "Ready")
    conditions = [
        {"type": each, "status": "True", "reason": each, "message": "", "lastTransitionTime": now} for each in kinds
    ]
    for number in range(NODES):
        name = f"node-{number:04}"
        status = {"providerID": f"kwok://{name}", "nodeName": name, "capacity": AMOUNTS, "allocatable": AMOUNTS}
        path = f"/apis/karpenter.sh/v1/nodeclaims/{name}/status"
        yield "PATCH", path, {"status": {**status, "conditions": conditions}}, MERGE


def _bound_pods() -> Iterator[Call]:
    for number in range(PODS):
        node = f"node-{number % NODES:04}"
        yield "POST", POD_FOLDER, _pod(f"pod-{number:05}", f"service-{number % 200}", "780m", nodeName=node), JSON


def _waiting_pods() -> Iterator[Call]:
    for number in range(PODS):
        shape = number % SHAPES
        yield "POST", POD_FOLDER, _pod(f"pod-{number:05}", f"service-{shape}", f"{200 * (shape + 1)}m"), JSON


def _deployments() -> Iterator[Call]:
    """Each with another size, and spread over zones."""
    for number in range(DEPLOYMENTS * REPLICAS):
        service = number % DEPLOYMENTS
        labels = {"matchLabels": {"app": f"service-{service}"}}
        spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        spec = {"topologySpreadConstraints": [{**spread, "labelSelector": labels}]}
        yield "POST", POD_FOLDER, _pod(f"pod-{number:05}", f"service-{service}", f"{100 + service}m", **spec), JSON


def _made_unschedulable(count: int) -> Iterator[Call]:
    for number in range(count):
        yield "PATCH", f"{POD_FOLDER}/pod-{number:05}/status", _refused(), MERGE


@contextmanager
def _bare(*parts: Iterable[Call]) -> Iterator[tuple[Cluster, Path]]:
    """An API server with these objects, and a folder."""
    folder = Path(tempfile.mkdtemp(prefix="joiner-mirror-"))
    with ControlPlane(folder / "control-plane", full=False) as cluster:
        install_crds(cluster)
        for each in OBJECTS:
            cluster.apply(each)
        for part in parts:
            asyncio.run(_send_all(cluster, part))
        yield cluster, folder


def _seen(process: subprocess.Popen[bytes], file: Path, log: Path) -> dict[str, Any]:
    """What the process saw since it was last asked."""
    file.unlink(missing_ok=True)
    process.send_signal(signal.SIGUSR1)
    until(file.exists, process, log, "it answers")
    seen: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return seen


def mirror() -> dict[str, Any]:
    """The first sync of a large cluster, and two minutes in which its pods change: what grows in the second grows for ever."""
    with _bare(_nodes(), _claims(), _bound_pods()) as (cluster, folder):
        log, file = folder / "controller.log", folder / "seen.json"
        command = [sys.executable, "-m", "benchmarks.observed", str(file)]
        with controller(cluster, command, log) as process:
            until(lambda: _started(process, file, log), process, log, "the caches are filled")
            time.sleep(20)
            first = _seen(process, file, log)
            asyncio.run(_change(cluster, 1))
            time.sleep(5)
            between = _seen(process, file, log)
            taken = asyncio.run(_change(cluster, 2))
            time.sleep(5)
            then = _seen(process, file, log)
    # An event may be heard before the answer to the write that made it.
    lags = [max(0.0, at - taken[mark]) for mark, at in then["heard"].items()]
    return {
        "first sync": first["first sync"],
        "before": first["memory"],
        "after a minute": between["memory"],
        "after two": then["memory"],
        "cpu seconds": round(then["cpu seconds"] - between["cpu seconds"], 1),
        "changes": len(taken),
        "heard": len(lags),
        "changes a second": round(len(taken) / (max(taken.values()) - min(taken.values())), 1),
        "lag p50, s": round(percentile(lags, 0.5), 3),
        "lag p99, s": round(percentile(lags, 0.99), 3),
        "lag max, s": round(max(lags, default=0.0), 3),
        **{key: then[key] for key in ("stall p99, s", "stall max, s")},
        "load": round(os.getloadavg()[0], 1),
    }


def _started(process: subprocess.Popen[bytes], file: Path, log: Path) -> bool:
    if not log.exists() or '"leading"' not in log.read_text(encoding="utf-8"):
        return False  # before that it does not know the signal
    return bool(_seen(process, file, log)["first sync"])


def stall(parts: tuple[Iterable[Call], ...], pods: int) -> dict[str, Any]:
    """How long the event loop stands still at the most while many pods that wait are listed and planned."""
    with _bare(*parts) as (cluster, folder):
        log, file = folder / "controller.log", folder / "seen.json"
        command = [sys.executable, "-m", "benchmarks.observed", str(file)]
        began = time.monotonic()
        with controller(cluster, command, log) as process:
            until(lambda: log.exists() and '"leading"' in log.read_text(), process, log, "it leads")
            until(lambda: _claims_made(cluster) > 0, process, log, "it buys")
            seconds = time.monotonic() - began
            time.sleep(15)
            seen = _seen(process, file, log)
            made = _claims_made(cluster)
    return {
        "pods": pods,
        "claims": made,
        "first claim after, s": round(seconds, 1),
        "cpu seconds": round(seen["cpu seconds"] + seen["cpu seconds of children"], 1),
        "peak rss MB": seen["memory"]["peak rss"],
        "stall p99, s": seen["stall p99, s"],
        "stall max, s": seen["stall max, s"],
        "load": round(os.getloadavg()[0], 1),
    }


def _claims_made(cluster: Cluster) -> int:
    return len(cluster.request("GET", "/apis/karpenter.sh/v1/nodeclaims")[1]["items"])


# -- all of it --------------------------------------------------------------------------------------------------------


def run() -> dict[str, Any]:
    karpenter = [str(binaries("karpenter") / "karpenter")]
    return {
        "pending": {
            str(count): {"joiner": pending(JOINER, count), "karpenter": pending(karpenter, count)} for count in PENDING
        },
        "mirror": mirror(),
        "stall": {
            f"{PODS:,} pods of {SHAPES} shapes": stall((_waiting_pods(), _made_unschedulable(PODS)), PODS),
            f"{DEPLOYMENTS:,} deployments of {REPLICAS} pods": stall(
                (_deployments(), _made_unschedulable(DEPLOYMENTS * REPLICAS)), DEPLOYMENTS * REPLICAS
            ),
        },
    }


def lines(kept: dict[str, Any]) -> list[str]:
    """The part of the page that is about a real control plane."""
    numbers = kept["numbers"]
    table = [
        fill(INTRODUCTION, 128),
        "",
        "| pods | controller | seconds to all Running | CPU s | RSS MB | peak | before | nodes | load |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    columns = ("seconds", "cpu seconds", "rss MB", "peak rss MB", "rss MB before", "nodes", "load")
    for count, both in numbers["pending"].items():
        for name, row in both.items():
            table.append(f"| {int(count):,} | {name} | " + " | ".join(str(row[each]) for each in columns) + " |")
    if remark := numbers.get("remark"):
        table += ["", fill(remark, 128)]
    if large := numbers.get("mirror"):
        table += ["", _mirror_line(large)]
    if numbers.get("stall"):
        table += ["", *_stall_lines(numbers["stall"])]
    return table


def _mirror_line(large: dict[str, Any]) -> str:
    first = large["first sync"]
    text = (
        f"A *mirror* of {NODES:,} nodes and {PODS:,} pods is filled {first['seconds']} s after the start of the process, which"
        f" then has {first['rss']} MB ({first['peak rss']} MB at the most until then), at a load of {large['load']}."
    )
    text += (
        f" In a minute with {large['changes a second']} changes of pods a second it is behind by {large['lag p50, s']} s"
        f" (median), {large['lag p99, s']} s (99 of 100), {large['lag max, s']} s (at the most), and needs"
        f" {large['cpu seconds']} s of the processor; the event loop stands still for {large['stall max, s']} s at the most."
        f" Before such changes it has {large['before']['rss']} MB, after a minute of them"
        f" {large['after a minute']['rss']} MB, and after two {large['after two']['rss']} MB."
    )
    return fill(text, 128)


def _stall_lines(stalls: dict[str, Any]) -> list[str]:
    columns = ("stall p99, s", "stall max, s", "first claim after, s", "claims", "cpu seconds", "peak rss MB", "load")
    return [
        "Plans are made in a process of their own. While it works the event loop goes on:",
        "",
        "| waiting pods | stall of the loop p99, s | at the most, s | first claim after, s | claims | CPU s | peak MB | load |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(f"| {name} | " + " | ".join(str(row[each]) for each in columns) + " |" for name, row in stalls.items()),
    ]
