"""How long each step of a pass over a large cluster takes: what runs in the event loop holds up leases and watches so long."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from joiner.catalog.build import NO_ADJUSTMENTS, build
from joiner.cloud.aws.provider import VOCABULARY
from joiner.cloud.sources import ec2
from joiner.controllers.disruption.controller import _holds_for_s, _stamp
from joiner.disruption.consolidation.memory import Memory
from joiner.disruption.consolidation.search import consolidate, still_pays
from joiner.disruption.deletioncost import costs
from joiner.disruption.methods.drifted import drift, static_drift
from joiner.disruption.methods.emptiness import emptiness
from joiner.disruption.situation import Rules, Situation
from joiner.model import codec, labels
from joiner.model.meta import KubeObject
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.pod import Pod
from joiner.scheduling.problem import PoolOption
from joiner.state.cluster import Cluster

QUESTION = "How long does each step of a disruption pass over 2,000 nodes and 30,000 pods take?"
NODES, PODS, SERVICES, WAITING = 2_000, 30_000, 600, 200
DRIFTED = 100
NOW = datetime(2030, 1, 7, 12, tzinfo=UTC)
LONG_AGO = (NOW - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
SIZES = ("m6i.2xlarge", "m6i.4xlarge", "c6i.4xlarge", "r6i.2xlarge")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
Document = dict[str, Any]


def _machines(types: dict[str, dict[str, int]], nodes: int) -> Iterator[KubeObject]:
    kinds = ("Launched", "Registered", "Initialized", "Ready", "Consolidatable")
    for number in range(nodes):
        size, name = SIZES[number % len(SIZES)], f"node-{number:04}"
        own = {
            labels.NODEPOOL: "default",
            labels.REGISTERED: "true",
            labels.INITIALIZED: "true",
            labels.INSTANCE_TYPE: size,
            labels.ZONE: ZONES[number % 3],
            labels.CAPACITY_TYPE: labels.ON_DEMAND,
            labels.HOSTNAME: name,
            labels.ARCH: "amd64",
            labels.OS: "linux",
        }
        amounts = {key: f"{value}m" for key, value in types[size].items()}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}
        metadata = {"name": name, "uid": f"uid-{name}", "labels": own, "creationTimestamp": LONG_AGO}
        status: Document = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        yield codec.decode({"metadata": metadata, "spec": {"providerID": f"aws://{name}"}, "status": status}, Node)
        told = [*kinds, *(["Drifted"] if number < DRIFTED else [])]
        conditions = [{"type": each, "status": "True", "lastTransitionTime": LONG_AGO} for each in told]
        status = {"providerID": f"aws://{name}", "nodeName": name, "capacity": amounts, "allocatable": amounts}
        yield codec.decode(
            {"metadata": metadata, "spec": {}, "status": {**status, "conditions": conditions}}, NodeClaim
        )


def _pods(nodes: int, pods: int) -> Iterator[KubeObject]:
    dice = Random(1)
    for number in range(pods + WAITING):
        service = number % SERVICES
        own = {"app": f"service-{service}"}
        spec: Document = {}
        spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": own}}
        if service % 3 == 0:
            spec["topologySpreadConstraints"] = [{**spread, "topologyKey": labels.ZONE}]
        elif service % 7 == 0:
            soft = {**spread, "whenUnsatisfiable": "ScheduleAnyway", "topologyKey": labels.HOSTNAME}
            spec["topologySpreadConstraints"] = [soft]
        requests = {"cpu": f"{100 + 50 * (service % 8)}m", "memory": f"{256 * (1 + service % 4)}Mi"}
        container = {"name": "main", "resources": {"requests": requests}}
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": own["app"],
            "uid": own["app"],
            "controller": True,
        }
        metadata = {
            "name": f"pod-{number:05}",
            "namespace": "default",
            "uid": f"uid-{number}",
            "labels": own,
            "ownerReferences": [owner],
            "creationTimestamp": LONG_AGO,
        }
        status: Document = {"phase": "Running"}
        if number < pods:
            spec["nodeName"] = f"node-{dice.randrange(nodes):04}"
        else:
            refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            status = {"phase": "Pending", "conditions": [refused]}
        yield codec.decode({"metadata": metadata, "spec": {"containers": [container], **spec}, "status": status}, Pod)


def large(nodes: int = NODES, pods: int = PODS) -> Callable[[], Situation]:
    """What a pass looks at in a large cluster on EC2's types."""
    vocabulary = VOCABULARY
    template = {"spec": {"nodeClassRef": {"group": "g", "kind": "K", "name": "default"}, "requirements": []}}
    disruption = {"consolidateAfter": "0s", "budgets": [{"nodes": "10%"}]}
    document = {"metadata": {"name": "default"}, "spec": {"template": template, "disruption": disruption}}
    pool = codec.decode(document, NodePool)
    types = ec2.catalogue(zones=ZONES).types
    catalog = build(types, NO_ADJUSTMENTS, pool, vocabulary)
    amounts = {each.name: each.allocatable() for each in types if each.name in SIZES}
    cluster = Cluster(vocabulary)
    for thing in (*_machines(amounts, nodes), *_pods(nodes, pods)):
        cluster.apply(type(thing), None, thing)

    def situation() -> Situation:
        snapshot = cluster.snapshot(NOW)
        return Situation(
            snapshot=snapshot,
            now=NOW,
            pools={"default": pool},
            options=(PoolOption(pool=pool, catalog=catalog),),
            catalogs={"default": catalog},
            rules=Rules(vocabulary=vocabulary),
        )

    return situation


def run() -> dict[str, Any]:
    situation = large()
    found: dict[str, Any] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.process_time()
        answer = work()
        found[name] = round(time.process_time() - began, 3)
        return answer

    timed("the first snapshot", situation)
    now = situation()
    timed("what a pass depends on", partial(_stamp, now))
    timed("until when that holds", partial(_holds_for_s, now))
    timed("emptiness", partial(emptiness, now))
    timed("static drift", partial(static_drift, now))
    timed("drift", partial(drift, now))
    timed("deletion costs", partial(costs, now))
    decided = timed("consolidation", partial(consolidate, now, Memory()))
    for number, move in enumerate(decided.decision.moves[:3]):
        found[f"nodes of move {number}"] = len(move.candidates)
        timed(f"second look at move {number}", partial(still_pays, move, now, decided.memory))
    return found
