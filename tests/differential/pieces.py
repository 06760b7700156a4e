"""What generated scenarios are made of: machines, pools, pods, nodes, as plain data in the scenario format."""

import random
from collections.abc import Callable
from typing import Any

from tests.differential.terms import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL, ZONE, Json

ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"
FAMILY, CPU, TEAM = "example.com/family", "example.com/cpu", "example.com/team"
RESERVATION = "oracle.test/reservation-id"
GPU = "example.com/gpu"
SHAPES = {"c": 2, "m": 4, "r": 8}
ZONES = ["a", "b", "c"]

Family = Callable[[random.Random], Json]
FAMILIES: dict[str, Family] = {}


def family(function: Family) -> Family:
    """A family goes by its function's name."""
    FAMILIES[function.__name__.replace("_", "-")] = function
    return function


def row(key: str, operator: str, *values: object, **more: Any) -> Json:
    written: Json = {"key": key, "operator": operator, **more}
    return {**written, "values": [str(value) for value in values]} if values else written


def types(
    rng: random.Random, most: int = 30, zones: list[str] | None = None, extra: dict[str, str] | None = None
) -> list[Json]:
    """A catalogue: some families and sizes, spot and on-demand in some zones, a few of them sold out."""
    zones = zones or ZONES[: rng.randint(1, 3)]
    markets = rng.choice([["on-demand"], ["spot", "on-demand"], ["spot", "on-demand"]])
    arches = rng.choice([["amd64"], ["amd64"], ["amd64", "arm64"]])
    sizes = sorted(rng.sample([1, 2, 4, 8, 16, 32], rng.randint(2, 5)))
    letters = sorted(rng.sample(sorted(SHAPES), rng.randint(1, 3)))
    chosen = [(letter, arch, size) for letter in letters for arch in arches for size in sizes]
    if len(chosen) < 3:
        chosen += [("x", "amd64", size) for size in (2, 8)]
    return [machine(rng, *one, zones=zones, markets=markets, extra=extra) for one in chosen[:most]]


def machine(
    rng: random.Random,
    letter: str,
    arch: str,
    cpu: int,
    zones: list[str],
    markets: list[str],
    extra: dict[str, str] | None = None,
) -> Json:
    ratio = SHAPES.get(letter, 4)
    name = f"{letter}{'g' if arch == 'arm64' else ''}-{cpu}"
    base = cpu * (0.03 + 0.004 * ratio) * (0.85 if arch == "arm64" else 1) * rng.uniform(0.9, 1.15)
    offerings = []
    for zone in zones:
        for market in markets:
            price = base * (rng.uniform(0.25, 0.6) if market == "spot" else 1.0)
            where = [row(ZONE, "In", zone), row(CAPACITY_TYPE, "In", market)]
            offerings.append({"requirements": where, "price": round(price, 5), "available": rng.random() < 0.92})
    about = [
        row(INSTANCE_TYPE, "In", name),
        row(ARCH, "In", arch),
        row(OS, "In", "linux"),
        row(ZONE, "In", *zones),
        row(CAPACITY_TYPE, "In", *markets),
        row(FAMILY, "In", letter),
        row(CPU, "In", cpu),
    ]
    return {
        "name": name,
        "requirements": about,
        "offerings": offerings,
        "capacity": {
            "cpu": str(cpu),
            "memory": f"{cpu * ratio}Gi",
            "pods": str(min(110, 8 * cpu + 4)),
            **(extra or {}),
        },
        "overhead": {"kubeReserved": {"cpu": "80m", "memory": "200Mi"}},
    }


def pool(
    name: str = "default", rows: list[Json] | None = None, labels: dict[str, str] | None = None, **spec: Any
) -> Json:
    inner: Json = {"requirements": rows or []}
    for part in ("taints", "startupTaints"):
        if part in spec:
            inner[part] = spec.pop(part)
    template: Json = {"spec": inner, **({"metadata": {"labels": labels}} if labels else {})}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def pod(name: str, cpu: str, memory: str, labels: dict[str, str] | None = None, **spec: Any) -> Json:
    requests = {"cpu": cpu, "memory": memory, **spec.pop("extra", {})}
    container: Json = {"name": "main", "image": "app", "resources": {"requests": requests}}
    ports = spec.pop("ports", None)
    metadata: Json = {"name": name, **({"labels": labels} if labels else {})}
    if "namespace" in spec:
        metadata["namespace"] = spec.pop("namespace")
    if ports:
        container["ports"] = ports
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def size(rng: random.Random) -> tuple[str, str]:
    return rng.choice(["100m", "250m", "500m", "900m", "1", "1500m", "2", "3"]), rng.choice(
        ["128Mi", "512Mi", "1Gi", "2Gi", "4Gi"]
    )


def replicas(rng: random.Random, app: str, count: int, **spec: Any) -> list[Json]:
    """Pods of one deployment: equal but for their names."""
    cpu, memory = spec.pop("size", None) or size(rng)
    labels = {"app": app, **spec.pop("labels", {})}
    return [pod(f"{app}-{index}", cpu, memory, labels, **spec) for index in range(count)]


def background(rng: random.Random, most: int = 8) -> list[Json]:
    return [
        one
        for index in range(rng.randint(0, 2))
        for one in replicas(rng, f"plain{index}", rng.randint(1, max(1, most // 2)))
    ]


def required(*terms: list[Json]) -> Json:
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": t} for t in terms]
        }
    }


def preferred(*weighted: tuple[int, list[Json]]) -> Json:
    terms = [{"weight": weight, "preference": {"matchExpressions": rows}} for weight, rows in weighted]
    return {"preferredDuringSchedulingIgnoredDuringExecution": terms}


def selector(**labels: str) -> Json:
    return {"matchLabels": labels}


def near(key: str, app: str, hard: bool = True, weight: int = 10, **more: Any) -> Json:
    """A pod affinity (or anti-affinity) to the pods of an app."""
    term = {"topologyKey": key, "labelSelector": selector(app=app), **more}
    if hard:
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]}


def spread(key: str, app: str, skew: int = 1, hard: bool = True, **more: Any) -> Json:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": selector(app=app),
        **more,
    }


def node(
    name: str, kind: Json, zone: str, market: str = "on-demand", owner: str | None = "default", **more: Any
) -> Json:
    """A node of an instance type."""
    about = {r["key"]: r["values"][0] for r in kind["requirements"] if r["key"] not in (ZONE, CAPACITY_TYPE)}
    labels = {**about, ZONE: zone, CAPACITY_TYPE: market, HOSTNAME: name, **more.pop("labels", {})}
    if owner:
        labels[NODEPOOL] = owner
    return {"metadata": {"name": name, "labels": labels}, "spec": more, "status": {"capacity": dict(kind["capacity"])}}


def bound(one: Json, home: str, daemon: str = "") -> Json:
    metadata = dict(one["metadata"])
    if daemon:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon, "uid": daemon, "controller": True}
        ]
    return {"metadata": metadata, "spec": {**one["spec"], "nodeName": home}}


def daemon_set(name: str, cpu: str, memory: str, **spec: Any) -> Json:
    template = pod(name, cpu, memory, {"daemon": name}, **spec)
    body = {
        "selector": {"matchLabels": {"daemon": name}},
        "template": {"metadata": {"labels": {"daemon": name}}, "spec": template["spec"]},
    }
    return {"metadata": {"name": name, "uid": name}, "spec": body}


def zones_of(catalogue: list[Json]) -> list[str]:
    return next(list(r["values"]) for r in catalogue[0]["requirements"] if r["key"] == ZONE)


def pool_row(rng: random.Random) -> Json:
    """One requirement as pools write them, all eight operators."""
    return rng.choice(
        [
            row(FAMILY, "In", *rng.sample(["c", "m", "r", "x"], 3)),
            row(FAMILY, "NotIn", rng.choice(["c", "m", "r"])),
            row(CPU, "Gt", rng.choice([0, 1, 2, 4])),
            row(CPU, "Lt", rng.choice([9, 17, 33])),
            row(CPU, "Gte", rng.choice([1, 2, 4])),
            row(CPU, "Lte", rng.choice([8, 16, 32])),
            row(ARCH, "Exists"),
            row("example.com/retired", "DoesNotExist"),
            row(TEAM, "Exists"),
            row(TEAM, "In", "red", "blue"),
            row(TEAM, "NotIn", "green"),
            row(CAPACITY_TYPE, "In", rng.choice(["spot", "on-demand"]), "on-demand"),
        ]
    )


def pod_row(rng: random.Random) -> Json:
    """One expression as pods write them, all six operators."""
    return rng.choice(
        [
            row(FAMILY, "In", *rng.sample(["c", "m", "r"], 2)),
            row(FAMILY, "NotIn", rng.choice(["c", "m", "r"])),
            row(CPU, "Gt", rng.choice([1, 2, 3])),
            row(CPU, "Lt", rng.choice([5, 9, 17])),
            row(ARCH, "Exists"),
            row("example.com/retired", "DoesNotExist"),
            row(TEAM, "In", rng.choice(["red", "blue"])),
            row(TEAM, "NotIn", "red"),
            row(TEAM, rng.choice(["Exists", "DoesNotExist"])),
            row(ZONE, "In", *rng.sample(ZONES, 2)),
            row(ZONE, "NotIn", rng.choice(ZONES)),
            row(CAPACITY_TYPE, "In", rng.choice(["spot", "on-demand"])),
            row(INSTANCE_TYPE, "NotIn", "m-4", "c-4"),
            row(ARCH, "In", rng.choice(["amd64", "arm64"])),
        ]
    )


def some_daemons(rng: random.Random) -> list[Json]:
    choices = [
        daemon_set("agent0", "100m", "128Mi"),
        daemon_set("agent1", "300m", "256Mi", tolerations=[{"operator": "Exists"}]),
        daemon_set("agent2", "200m", "1Gi", nodeSelector={FAMILY: "m"}),
        daemon_set(
            "agent3",
            "500m",
            "512Mi",
            affinity={"nodeAffinity": required([row(CPU, "Gt", 4)], [row(ARCH, "In", "arm64")])},
        ),
        daemon_set("agent4", "50m", "64Mi", affinity={"nodeAffinity": required([row(NODEPOOL, "Exists")])}),
        daemon_set("agent5", "50m", "64Mi", ports=[{"containerPort": 9100, "hostPort": 9100, "protocol": "TCP"}]),
        daemon_set("agent6", "1", "2Gi", nodeSelector={TEAM: "red"}),
    ]
    return rng.sample(choices, rng.randint(1, 4))


def some_nodes(rng: random.Random, catalogue: list[Json], count: int) -> tuple[list[Json], list[Json]]:
    """Nodes with running pods."""
    nodes, running = [], []
    for i in range(count):
        home = node(
            f"n{i}",
            rng.choice(catalogue),
            rng.choice(zones_of(catalogue)),
            owner=rng.choice(["default", "default", None]),
        )
        if rng.random() < 0.2:
            home["spec"]["taints"] = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
        nodes.append(home)
        for j in range(rng.randint(0, 2)):
            labels = {"app": rng.choice(["app0", "app1", "old"])}
            running += [bound(pod(f"run{i}{j}", rng.choice(["100m", "400m"]), "256Mi", labels), f"n{i}")]
    return nodes, running


def spread_world(rng: random.Random) -> Json:
    catalogue = types(rng, zones=ZONES[: rng.randint(2, 3)])
    parts: Json = {"instanceTypes": catalogue}
    if rng.random() < 0.5:
        parts["nodes"], parts["boundPods"] = some_nodes(rng, catalogue, rng.randint(1, 3))
    return parts


def overlay(name: str, rows: list[Json], **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"requirements": rows, **spec}}


def storage_class(name: str, *zones: list[str]) -> Json:
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": some}]} for some in zones]
    written = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return {
        **written,
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        **({"allowedTopologies": terms} if terms else {}),
    }


def volume(name: str, zone: str | None, class_name: str = "free") -> list[Json]:
    """A claim for storage; bound to a volume of a zone, or not yet bound."""
    claim: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "storageClassName": class_name,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    if zone is None:
        return [claim]
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    claim["spec"]["volumeName"] = f"pv-{name}"
    claim["status"] = {"phase": "Bound"}
    where = {"required": {"nodeSelectorTerms": [{"matchExpressions": [row(ZONE, "In", zone)]}]}}
    body = {
        "nodeAffinity": where,
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": name},
        "storageClassName": class_name,
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
    }
    return [claim, {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{name}"}, "spec": body}]
