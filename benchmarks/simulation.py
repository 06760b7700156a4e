"""What the embedded cluster costs: a day with traffic, an hour in which nothing or little happens, and a decision among many.

Each part runs in a process of its own, so that its memory can be told: `python -m benchmarks.simulation day` prints one.
"""

import asyncio
import gc
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import fill
from time import process_time
from typing import Any

from benchmarks.processes import apart
from joiner.catalog.build import Adjustments
from joiner.clock import SystemClock
from joiner.cloud.catalogcache import Catalogs
from joiner.cloud.kwok.nodeclass import KWOKNodeClass
from joiner.cloud.kwok.provider import KwokProvider
from joiner.cloud.provider import K
from joiner.controllers.provisioning.claimwriter import ClaimRequest, dynamic_claim
from joiner.controllers.provisioning.pools import policy_of
from joiner.model.codec import decode
from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.options import Options
from joiner.scheduling.problem import PoolOption
from joiner.scheduling.schedule import schedule
from joiner.sim.story.document.format import read
from joiner.sim.story.player import play
from joiner.sim.trace import Trace
from joiner.sim.world import World
from joiner.state.cluster import Cluster
from joiner.state.problem import problem

QUESTION = (
    "How long does a virtual day take, what does an idle hour cost, and how long does a decision take among many?"
)
SERVICES, LOW, HIGH = 20, 50, 100
SIZES = (100, 500, 2_000)
PODS_PER_NODE = 5
NODES, PODS, NEW = 5_000, 100_000, 1_000
NOW = datetime(2030, 1, 7, tzinfo=UTC)
HOUR_S = 3600.0

# -- a day ------------------------------------------------------------------------------------------------------------


def day(expire: str) -> dict[str, Any]:
    """Twenty services that follow the hours, on nodes that live so long."""
    steps = [step for number in range(SERVICES) for step in _service(number)]
    pool = {"name": "main", "capacity-types": ["on-demand", "spot"], "instance-types": ["m5.4xlarge"]}
    given = {"catalog": "small", "nodepools": [{**pool, "expire-after": expire}]}
    began = process_time()
    played = _played({"story": "a day", "for": "24h", "given": given, "when": steps}, lambda now, world: None)
    return {
        "cpu seconds": round(process_time() - began, 1),
        "nodes": played["nodes"],
        "pods": played["pods"],
        "writes": played["writes"],
    }


def _service(number: int) -> Iterator[dict[str, Any]]:
    name = f"service-{number:02}"
    spread = {"spread": ["zone"]} if number % 4 == 0 else {}
    yield {"at": f"{10 + 7 * number}s", "deploy": name, "replicas": LOW, "cpu": "780m", "memory": "1Gi", **spread}
    yield {"at": f"{120 + 31 * number}s", "traffic": name, "low": LOW, "high": HIGH, "every": "15m"}


def _played(story: dict[str, Any], look: Callable[[float, World], None]) -> dict[str, Any]:
    most = [0, 0]

    def progress(now: float, world: World) -> None:
        counts = len(world.server.store(Node).objects), len(world.server.store(Pod).objects)
        most[:] = map(max, most, counts)
        look(now, world)

    trace = Trace()
    play(read(json.dumps(story), "benchmark", Path()), seed=1, trace=trace, progress=progress)
    return {"nodes": most[0], "pods": most[1], "writes": len(trace)}


# -- an hour ----------------------------------------------------------------------------------------------------------


def hour(nodes: int) -> dict[str, Any]:
    """An hour in which nothing happens, and one in which fifty pods come, among so many nodes that are there for two hours."""
    pool = {"name": "main", "capacity-types": ["on-demand"], "instance-types": ["m5.xlarge"]}
    web = {"at": "10s", "deploy": "web", "replicas": nodes * PODS_PER_NODE, "cpu": "700m", "memory": "1Gi"}
    batch = {"at": "185m", "deploy": "batch", "replicas": 50, "cpu": "700m", "memory": "1Gi"}
    story = {
        "story": "an hour", "for": "4h", "given": {"catalog": "small", "nodepools": [pool]}, "when": [web, batch],
    }  # fmt: skip
    marks: dict[float, tuple[float, int]] = {}

    def look(now: float, world: World) -> None:
        if now % HOUR_S == 0.0:
            gc.collect()
            gc.freeze()  # what is there is not looked through for garbage again
            marks[now // HOUR_S] = (process_time(), len(world.trace))

    played = _played(story, look)
    row: dict[str, Any] = {"nodes": nodes, "pods": nodes * PODS_PER_NODE, "nodes at the end": played["nodes"]}
    for number, name in ((3.0, "idle"), (4.0, "busy")):
        (before, written), (after, more) = marks[number - 1], marks[number]
        row[f"{name} cpu seconds"], row[f"{name} writes"] = round(after - before, 3), more - written
    return row


# -- a decision -------------------------------------------------------------------------------------------------------


class _Classes:
    def get(self, kind: type[K], name: str) -> K | None:
        return decode({"metadata": {"name": name}, "spec": {"instanceTypes": "ec2/us-west-2"}}, kind)


def decision() -> dict[str, Any]:
    """One answer for pods that have just come to a large cluster in which everything else stands still."""
    provider = KwokProvider(_Classes(), SystemClock())
    vocabulary = provider.vocabulary()
    reference = {"group": KWOKNodeClass.group, "kind": KWOKNodeClass.kind, "name": "default"}
    pool = decode({"metadata": {"name": "main"}, "spec": {"template": {"spec": {"nodeClassRef": reference}}}}, NodePool)
    catalog = asyncio.run(Catalogs(provider, Adjustments, SystemClock()).get(pool))
    cluster = Cluster(vocabulary)
    for thing in _objects():
        cluster.apply(type(thing), None, thing)
    cluster.snapshot(NOW)
    gc.collect()
    gc.freeze()
    for number in range(NEW):
        cluster.apply(Pod, None, _pod(PODS + number, "", "1500m" if number % 2 else "150m"))
    laps = [process_time()]
    snapshot = cluster.snapshot(NOW + timedelta(seconds=10))
    laps.append(process_time())
    option = PoolOption(pool=pool, catalog=catalog, used=snapshot.used.get(pool.name, {}))
    question = problem(snapshot, (option,), policy=policy_of(Options()), vocabulary=vocabulary)
    laps.append(process_time())
    plan = schedule(question)
    laps.append(process_time())
    claims = [dynamic_claim(ClaimRequest(each, option, ()), pool) for each in plan.claims]
    laps.append(process_time())
    names = ("snapshot", "problem", "schedule", "claims")
    spent = {name: round(after - before, 3) for name, before, after in zip(names, laps, laps[1:], strict=False)}
    return {
        "nodes": len(snapshot.nodes),
        "pods": len(snapshot.bound),
        "new pods": len(question.pods),
        **spent,
        "cpu seconds": round(laps[-1] - laps[0], 3),
        "claims made": len(claims),
        "on nodes that are there": sum(len(pods) for pods in plan.placements.values()),
        "refused": len(plan.refusals),
    }


def _objects() -> Iterator[KubeObject]:
    labels = {
        "karpenter.sh/nodepool": "main", "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "m5.4xlarge", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
    }  # fmt: skip
    amounts = {"cpu": "15890m", "memory": "57691Mi", "pods": "234", "ephemeral-storage": "17Gi"}
    conditions = [{"type": kind, "status": "True"} for kind in ("Launched", "Registered", "Initialized", "Ready")]
    reference = {"group": KWOKNodeClass.group, "kind": KWOKNodeClass.kind, "name": "default"}
    for number in range(NODES):
        name, place = f"node-{number:05}", {"topology.kubernetes.io/zone": f"us-west-2{'abc'[number % 3]}"}
        where = {**labels, **place, "kubernetes.io/hostname": name}
        status = {"capacity": amounts, "allocatable": amounts}
        written = {"metadata": {"name": name, "labels": where}, "spec": {"providerID": f"kwok://{name}"}}
        ready = {**status, "conditions": [{"type": "Ready", "status": "True"}]}
        yield decode({**written, "status": ready}, Node)
        claim = {"metadata": {"name": name, "labels": {**labels, **place}}, "spec": {"nodeClassRef": reference}}
        told = {**status, "providerID": f"kwok://{name}", "nodeName": name, "conditions": conditions}
        yield decode({**claim, "status": told}, NodeClaim)
    for number in range(PODS):
        yield _pod(number, f"node-{number % NODES:05}", "750m")


def _pod(number: int, node: str, cpu: str) -> Pod:
    """One of two hundred services; each tenth of them is spread over zones."""
    service = number % 200
    labels = {"app": f"service-{service}"}
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    spec: dict[str, Any] = {"containers": [container], **({"nodeName": node} if node else {})}
    if service % 10 == 0:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": labels},
            }
        ]  # fmt: skip
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"phase": "Running"} if node else {"phase": "Pending", "conditions": [refused]}
    metadata = {"name": f"pod-{number:06}", "namespace": "default", "uid": f"uid-{number:06}", "labels": labels}
    return decode({"metadata": metadata, "spec": spec, "status": status}, Pod)


# -- all of it --------------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[..., dict[str, Any]]] = {"day": day, "hour": hour, "decision": decision}


def by_itself(part: str, *arguments: str) -> dict[str, Any]:
    """What a part found in a process of its own, and how many megabytes that had in use at the most."""
    said, peak = apart([sys.executable, "-m", "benchmarks.simulation", part, *arguments])
    return {**json.loads(said), "peak MB": peak}


def run() -> dict[str, Any]:
    return {
        "a day": {
            f"nodes live {life}": by_itself("day", words) for life, words in (("for ever", "Never"), ("12 h", "12h"))
        },
        "an hour": {str(size): by_itself("hour", str(size)) for size in SIZES},
        "a decision": by_itself("decision"),
    }


def lines(kept: dict[str, Any]) -> list[str]:
    """The part of the page that is about the embedded cluster."""
    numbers = kept["numbers"]
    intro = (
        "Seconds are of the processor, each part in a process of its own. The *day* has twenty services that follow the hours:"
        f" {SERVICES * LOW:,} pods at night, {SERVICES * HIGH:,} at noon, looked at every quarter of an hour; on nodes that stay,"
        " and on nodes that are replaced twice a day."
    )
    table = ["| a day | s | most nodes | most pods | writes | MB |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for name, row in numbers["a day"].items():
        cells = (name, *(row[each] for each in ("cpu seconds", "nodes", "pods", "writes", "peak MB")))
        table.append("| " + " | ".join(map(str, cells)) + " |")
    hours = (
        "An *hour* costs what happens in it. One in which nothing happens costs next to nothing, however large the cluster is;"
        " in the busy one fifty pods come for which ten nodes are bought, and only the plan looks at every node that is there."
    )
    table += ["", fill(hours, 128), "", "| nodes | pods | idle, s | writes | busy, s | writes | MB |"]
    table.append("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    columns = ("nodes", "pods", "idle cpu seconds", "idle writes", "busy cpu seconds", "busy writes", "peak MB")
    for row in numbers["an hour"].values():
        table.append("| " + " | ".join(str(row[each]) for each in columns) + " |")
    made = numbers["a decision"]
    decided = (
        f"A *decision*: {made['new pods']:,} pods come to {made['nodes']:,} nodes with {made['pods']:,} pods, in a catalogue of"
        f" EC2. {made['on nodes that are there']:,} of them find room on nodes that are there, {made['claims made']:,} claims are"
        f" made for the others, {made['refused']:,} are refused. The process has {made['peak MB']:,} MB in use at the most."
    )
    table += ["", fill(decided, 128), "", "| snapshot, s | problem, s | schedule, s | claims, s | together, s |"]
    table.append("| ---: | ---: | ---: | ---: | ---: |")
    spent = ("snapshot", "problem", "schedule", "claims", "cpu seconds")
    table.append("| " + " | ".join(str(made[each]) for each in spent) + " |")
    return [fill(intro, 128), "", *table]


if __name__ == "__main__":
    given = [int(each) if each.isdigit() else each for each in sys.argv[2:]]
    print(json.dumps(PARTS[sys.argv[1]](*given)))
