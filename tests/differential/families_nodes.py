"""Families about pods and nodes: requests, selectors, taints, daemons, volumes, ports, nodes in every state of life."""

import random

from tests.differential.pieces import (
    ARCH,
    FAMILY,
    TEAM,
    ZONES,
    background,
    family,
    near,
    node,
    pod,
    pod_row,
    pool,
    pool_row,
    preferred,
    replicas,
    required,
    row,
    size,
    some_daemons,
    some_nodes,
    spread,
    spread_world,
    storage_class,
    types,
    volume,
    zones_of,
)
from tests.differential.terms import CAPACITY_TYPE, HOSTNAME, INITIALIZED, INSTANCE_TYPE, NODEPOOL, ZONE, Json


@family
def plain(rng: random.Random) -> Json:
    return {"pods": [one for i in range(rng.randint(1, 5)) for one in replicas(rng, f"app{i}", rng.randint(1, 8))]}


@family
def containers(rng: random.Random) -> Json:
    """Start-up containers, sidecars, overhead of a runtime: what a pod really needs."""
    pods = replicas(rng, "web", rng.randint(2, 8))
    for one in pods:
        cpu, memory = size(rng)
        first: Json = {"name": "first", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
        if rng.random() < 0.4:
            first["restartPolicy"] = "Always"
        second: Json = {"name": "second", "image": "app", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
        one["spec"]["initContainers"] = rng.choice([[first], [first, second], [second, first]])
        if rng.random() < 0.3:
            one["spec"]["overhead"] = {"cpu": "250m", "memory": "120Mi"}
    return {"pods": pods + background(rng)}


@family
def operators(rng: random.Random) -> Json:
    pools = [pool(f"pool{i}", [pool_row(rng) for _ in range(rng.randint(1, 3))]) for i in range(rng.randint(1, 3))]
    pods = background(rng)
    for i in range(rng.randint(2, 5)):
        how: Json = {}
        if rng.random() < 0.4:
            how["nodeSelector"] = dict([rng.choice([(FAMILY, "m"), (TEAM, "red"), (ARCH, "amd64"), (ZONE, "a")])])
        if rng.random() < 0.8:
            how["affinity"] = {"nodeAffinity": required([pod_row(rng) for _ in range(rng.randint(1, 2))])}
        pods += replicas(rng, f"app{i}", rng.randint(1, 5), **how)
    return {"nodePools": pools, "pods": pods}


@family
def terms(rng: random.Random) -> Json:
    """Required node affinity with several terms, of which one must hold."""
    pods = background(rng)
    for i in range(rng.randint(2, 4)):
        choice = [[pod_row(rng) for _ in range(rng.randint(1, 2))] for _ in range(rng.randint(2, 4))]
        pods += replicas(rng, f"app{i}", rng.randint(1, 5), affinity={"nodeAffinity": required(*choice)})
    return {"nodePools": [pool(rows=[pool_row(rng)])], "pods": pods}


@family
def preferences(rng: random.Random) -> Json:
    pods = background(rng)
    for i in range(rng.randint(2, 4)):
        wish = [(rng.choice([1, 10, 50, 100]), [pod_row(rng)]) for _ in range(rng.randint(1, 3))]
        pods += replicas(rng, f"app{i}", rng.randint(1, 5), affinity={"nodeAffinity": preferred(*wish)})
    return {"pods": pods, "options": rng.choice([{}, {}, {"preferencePolicy": "Ignore"}])}


@family
def taints(rng: random.Random) -> Json:
    kinds = [
        {"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "web", "effect": "NoSchedule"},
        {"key": "slow", "effect": "PreferNoSchedule"},
        {"key": "gpu", "effect": "NoExecute"},
    ]
    tolerations = [
        {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Exists"},
        {"key": "gpu", "operator": "Exists", "effect": "NoExecute"},
        {"operator": "Exists"},
    ]
    pools = [
        pool(
            f"pool{i}",
            taints=rng.sample(kinds, rng.randint(0, 2)),
            weight=rng.randint(1, 3),
            startupTaints=[{"key": "starting", "effect": "NoSchedule"}],
        )
        for i in range(rng.randint(1, 4))
    ]
    pods = [
        one
        for i in range(rng.randint(2, 5))
        for one in replicas(rng, f"app{i}", rng.randint(1, 4), tolerations=rng.sample(tolerations, rng.randint(0, 2)))
    ]
    return {"nodePools": pools, "pods": pods}


@family
def daemons(rng: random.Random) -> Json:
    pools = [pool(taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}] if rng.random() < 0.3 else [])]
    if rng.random() < 0.4:
        pools.append(pool("red", labels={TEAM: "red"}, weight=rng.choice([1, 5])))
    pods = [
        one
        for i in range(rng.randint(1, 4))
        for one in replicas(rng, f"app{i}", rng.randint(1, 6), tolerations=[{"key": "dedicated", "operator": "Exists"}])
    ]
    if rng.random() < 0.3:
        pods += replicas(rng, "scraped", 2, ports=[{"containerPort": 80, "hostPort": 9100, "protocol": "TCP"}])
    return {"nodePools": pools, "daemonSets": some_daemons(rng), "pods": pods}


@family
def existing(rng: random.Random) -> Json:
    catalogue = types(rng)
    nodes, running = some_nodes(rng, catalogue, rng.randint(1, 4))
    parts: Json = {"instanceTypes": catalogue, "nodes": nodes, "boundPods": running}
    if rng.random() < 0.4:
        parts["daemonSets"] = some_daemons(rng)
    pods = background(rng)
    for i in range(rng.randint(1, 3)):
        how: Json = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]} if rng.random() < 0.3 else {}
        if rng.random() < 0.3:
            how["nodeSelector"] = dict([rng.choice([(HOSTNAME, "n0"), (FAMILY, "m"), (ZONE, "a")])])
        pods += replicas(rng, f"app{i}", rng.randint(1, 5), **how)
    return {**parts, "pods": pods}


@family
def in_flight(rng: random.Random) -> Json:
    """Claims without a node, and nodes that are still starting."""
    catalogue = types(rng)
    kind, zone = rng.choice(catalogue), rng.choice(zones_of(catalogue))
    labels = node("x", kind, zone)["metadata"]["labels"]
    labels.pop(HOSTNAME)
    status = {"capacity": kind["capacity"], "allocatable": kind["capacity"]}
    coming = {
        "metadata": {"name": "coming", "labels": labels},
        "spec": {"taints": [], "requirements": []},
        "status": {**status, "providerID": "oracle://coming"},
    }
    starting = node("starting", kind, zone, labels={INITIALIZED: "false"})
    starting["spec"]["taints"] = [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
        {"key": "cni", "effect": "NoSchedule"},
        *([{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}] if rng.random() < 0.3 else []),
    ]
    starting["status"]["allocatable"] = {**kind["capacity"], "cpu": rng.choice(["0", kind["capacity"]["cpu"]])}
    claim = {
        "metadata": {"name": "claim-starting", "labels": labels},
        "spec": {"startupTaints": [{"key": "cni", "effect": "NoSchedule"}], "requirements": []},
        "status": {**status, "providerID": "oracle://starting", "nodeName": "starting"},
    }
    which = rng.choice([0, 1, 2])
    return {
        "instanceTypes": catalogue,
        "nodes": [starting] if which else [],
        "nodeClaims": [claim] * bool(which) + [coming] * (which != 1),
        "pods": [one for i in range(rng.randint(1, 3)) for one in replicas(rng, f"app{i}", rng.randint(1, 5))],
    }


@family
def deleting(rng: random.Random) -> Json:
    catalogue = types(rng)
    nodes, running = some_nodes(rng, catalogue, rng.randint(2, 4))
    gone = sorted(rng.sample([n["metadata"]["name"] for n in nodes], rng.randint(1, 2)))
    pods = replicas(
        rng, "app0", rng.randint(1, 4), topologySpreadConstraints=[spread(ZONE, "app0")] if rng.random() < 0.4 else []
    )
    limit: Json = {"limits": {"cpu": "40"}} if rng.random() < 0.3 else {}
    return {
        "nodePools": [pool(**limit)],
        "instanceTypes": catalogue,
        "nodes": nodes,
        "boundPods": running,
        "deletingNodes": gone,
        "pods": pods + background(rng),
    }


@family
def volumes(rng: random.Random) -> Json:
    parts = spread_world(rng)
    objects = [storage_class("free"), storage_class("one", ["a"]), storage_class("either", ["a"], ["b"])]
    pods = background(rng)
    for i in range(rng.randint(2, 6)):
        names = [f"data{i}", f"logs{i}"][: rng.randint(1, 2)]
        for name in names:
            objects += volume(name, rng.choice([None, *ZONES[:2]]), rng.choice(["free", "one", "either"]))
        how: Json = {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]}
        if rng.random() < 0.3:
            how["topologySpreadConstraints"] = [spread(ZONE, "db")]
        pods.append(pod(f"db-{i}", *size(rng), {"app": "db"}, **how))
    return {**parts, "objects": objects, "pods": pods}


@family
def attachments(rng: random.Random) -> Json:
    """Existing nodes that can hold only so many volumes."""
    catalogue = types(rng)
    nodes = [
        node(f"n{i}", max(catalogue, key=lambda kind: int(kind["capacity"]["cpu"])), zones_of(catalogue)[0])
        for i in range(rng.randint(1, 2))
    ]
    objects = [storage_class("free")]
    for one in nodes:
        drivers = [
            {"name": "ebs.csi.aws.com", "nodeID": one["metadata"]["name"], "allocatable": {"count": rng.randint(1, 2)}}
        ]
        objects.append(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": one["metadata"]["name"]},
                "spec": {"drivers": drivers},
            }
        )
    pods = []
    for i in range(rng.randint(3, 6)):
        objects += volume(f"data{i}", None)
        pods.append(
            pod(
                f"db-{i}",
                "100m",
                "128Mi",
                {"app": "db"},
                volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": f"data{rng.randint(0, i)}"}}],
            )
        )
    return {"instanceTypes": catalogue, "nodes": nodes, "objects": objects, "pods": pods + background(rng)}


@family
def ports(rng: random.Random) -> Json:
    parts = spread_world(rng)
    pods = background(rng)
    for i in range(rng.randint(1, 4)):
        wanted = {
            "containerPort": 80,
            "hostPort": rng.choice([80, 80, 443]),
            "protocol": rng.choice(["TCP", "TCP", "UDP"]),
        }
        if rng.random() < 0.4:
            wanted["hostIP"] = rng.choice(["10.0.0.1", "10.0.0.2", "0.0.0.0"])
        pods += replicas(rng, f"app{i}", rng.randint(1, 4), ports=[wanted])
    if parts.get("boundPods"):
        parts["boundPods"][0]["spec"]["containers"][0]["ports"] = [
            {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}
        ]
    return {**parts, "pods": pods}


@family
def impossible(rng: random.Random) -> Json:
    choices = [
        replicas(rng, "huge", 2, size=("1000", "1Gi")),
        replicas(rng, "typo", 1, nodeSelector={"topology.kubernetes.io/zon": "a"}),
        replicas(rng, "nowhere", 2, nodeSelector={ZONE: "mars"}),
        replicas(rng, "alone", 2, affinity={"podAffinity": near(ZONE, "nobody")}),
        replicas(rng, "device", 1, extra={"example.com/none": "1"}),
        replicas(rng, "hosted", 1, nodeSelector={HOSTNAME: "no-such-node"}),
        replicas(rng, "self", 1, nodeSelector={NODEPOOL: "no-such-pool"}),
        replicas(rng, "not", 1, affinity={"nodeAffinity": required([row(NODEPOOL, "DoesNotExist")])}),
        replicas(
            rng, "both", 1, affinity={"nodeAffinity": required([row(FAMILY, "In", "m"), row(FAMILY, "NotIn", "m")])}
        ),
    ]
    pods = [one for some in rng.sample(choices, rng.randint(1, 4)) for one in some]
    return {"pods": pods + background(rng)}


@family
def mixed(rng: random.Random) -> Json:
    """Many things at once, as in a real cluster."""
    parts = spread_world(rng)
    parts["nodePools"] = [
        pool(limits={"cpu": "200"}),
        pool(
            "batch", taints=[{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}], weight=rng.choice([1, 20])
        ),
        pool("red", labels={TEAM: "red"}),
    ][: rng.randint(1, 3)]
    if rng.random() < 0.5:
        parts["daemonSets"] = some_daemons(rng)
    pods: list[Json] = []
    for i in range(rng.randint(3, 6)):
        app = f"app{i}"
        choices: list[Json] = [
            {},
            {"topologySpreadConstraints": [spread(ZONE, app), spread(HOSTNAME, app, 2, hard=False)]},
            {"affinity": {"podAntiAffinity": near(HOSTNAME, app)}},
            {"affinity": {"podAffinity": near(ZONE, app)}},
            {"affinity": {"nodeAffinity": required([pod_row(rng)])}},
            {"affinity": {"nodeAffinity": preferred((10, [pod_row(rng)]))}},
            {"nodeSelector": {CAPACITY_TYPE: "on-demand"}},
            {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
            {"ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]},
        ]
        how = rng.choice(choices)
        pods += replicas(rng, app, rng.randint(1, 8), **how)
    return {**parts, "pods": pods}


@family
def edges(rng: random.Random) -> Json:
    """Input at the edge: nothing to buy, nothing to pay, nothing asked, too much asked, company that waits for itself."""
    catalogue = types(rng)
    parts: Json = {"instanceTypes": catalogue, "nodePools": [pool(), pool("empty", weight=50)]}
    parts["instanceTypesByNodePool"] = {"empty": []} if rng.random() < 0.5 else {}
    if rng.random() < 0.4:
        for kind in rng.sample(catalogue, 2):
            for way in kind["offerings"]:
                way["price"] = 0.0
    if rng.random() < 0.2:
        for way in (way for kind in catalogue for way in kind["offerings"]):
            way["available"] = False
    wanted = [row(INSTANCE_TYPE, "In", f"no-{i}") for i in range(40)]
    choices = [
        replicas(rng, "huge", 2, size=("1000000000", "1Gi")),
        replicas(rng, "nothing", 3, size=("0", "0")),
        replicas(
            rng, "choosy", 2, affinity={"nodeAffinity": required(*([one] for one in wanted), [row(ARCH, "Exists")])}
        ),
        replicas(rng, "egg", 1, affinity={"podAffinity": near(ZONE, "hen")})
        + replicas(rng, "hen", 1, affinity={"podAffinity": near(ZONE, "egg")}),
        replicas(rng, "tiny", 30, size=("1m", "1Mi")),
        [{"metadata": {"name": "bare"}, "spec": {"containers": [{"name": "main", "image": "app"}]}}],
    ]
    pods = [one for some in rng.sample(choices, rng.randint(1, 4)) for one in some]
    return {**parts, "pods": pods + background(rng)}
