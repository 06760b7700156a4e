"""Workloads to measure the planner with, as scenario documents: the same question can be put to another scheduler.

`benchmark` is the mix of Karpenter's own scheduling benchmark: a fifth each of plain, zone-spread, host-spread, zone-affine
and host-anti-affine pods of random sizes on 400 types whose price is exactly proportional to their size. `deployments` are
services of equal replicas, a minority of them constrained, on the types and prices of EC2; `topology` are such with topology
rules. `preferences` are identical pods
with a preference that can be met, one that cannot, and one that makes them want a node each.
"""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from joiner.catalog.market import InstanceType
from joiner.cloud.sources import ec2
from joiner.model import resources
from joiner.requirements import Requirements

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

SERVICES = (
    # thousandths of a cpu, MiB for each cpu, how common
    (50, 2048, 8), (100, 2048, 18), (100, 5120, 10), (250, 2048, 16), (250, 4096, 14), (500, 2048, 12),
    (500, 6144, 6), (1000, 2048, 6), (1000, 4096, 5), (2000, 4096, 3), (2000, 8192, 1), (4000, 4096, 1),
)  # fmt: skip
CONSTRAINTS = {
    "plain": 50, "zone-spread": 18, "host-spread": 4, "anti-affinity": 3, "arm64": 7, "on-demand": 8, "category": 4,
    "zone-pinned": 3, "soft-zone-spread": 3,
}  # fmt: skip

TOPOLOGY = {
    "zone-affinity": 20, "zone-affinity-to-other": 10, "zone-spread": 18, "host-spread": 8, "anti-affinity": 10,
    "zone-anti-affinity-to-other": 5, "soft-zone-affinity": 8, "soft-zone-anti-affinity": 5, "soft-zone-spread": 6, "plain": 10,
}  # fmt: skip
"""What services of the kind `topology` ask for."""
FLEXIBLE = {
    "node.kubernetes.io/instance-type": 10, "karpenter.k8s.aws/instance-family": 4, "karpenter.k8s.aws/instance-cpu": 3,
    CAPACITY_TYPE: 1,
}  # fmt: skip
"""Labels with the number of values that a pool may ask to be left."""


def _one_of(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def _pod(name: str, cpu: int, memory_mib: int, labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    requests = {"cpu": f"{cpu}m", "memory": f"{memory_mib}Mi"}
    container = {"name": "main", "image": "app", "resources": {"requests": requests}}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container], **spec}}


def _spread(key: str, labels: dict[str, str], skew: int = 1, hard: bool = True) -> dict[str, Any]:
    unsatisfiable = "DoNotSchedule" if hard else "ScheduleAnyway"
    selector = {"matchLabels": labels}
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": unsatisfiable, "labelSelector": selector}


def _term(key: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def proportional_types(count: int) -> list[dict[str, Any]]:
    """Types of n cpus and 2n GiB, all at the same price for what they have."""
    types: list[dict[str, Any]] = []
    for n in range(1, count + 1):
        price = 0.1 * n + 0.1 * n * 2 * 2**30 / 1e9
        ways = [("spot", 1), ("spot", 2), ("on-demand", 1), ("on-demand", 2), ("on-demand", 3)]
        offerings = [
            {
                "requirements": [_one_of(CAPACITY_TYPE, kind), _one_of(ZONE, f"test-zone-{zone}")],
                "price": price,
                "available": True,
            }
            for kind, zone in ways
        ]
        requirements = [
            _one_of("node.kubernetes.io/instance-type", f"type-{n}"),
            _one_of("kubernetes.io/arch", "amd64"),
            _one_of("kubernetes.io/os", "linux", "windows", "darwin"),
            _one_of(ZONE, "test-zone-1", "test-zone-2", "test-zone-3"),
            _one_of(CAPACITY_TYPE, "spot", "on-demand"),
        ]
        types.append(
            {
                "name": f"type-{n}",
                "requirements": requirements,
                "offerings": offerings,
                "capacity": {"cpu": str(n), "memory": f"{2 * n}Gi", "pods": str(10 * n)},
                "overhead": {"kubeReserved": {"cpu": "100m", "memory": "10Mi"}},
            }
        )
    return types


def _written(requirements: Requirements) -> list[dict[str, Any]]:
    return [{"key": e.key, "operator": e.operator, "values": list(e.values)} for e in requirements.written()]


def _ec2_type(each: InstanceType) -> dict[str, Any]:
    taken = each.overhead
    return {
        "name": each.name,
        "requirements": _written(each.requirements),
        "offerings": [
            {"requirements": _written(o.requirements), "price": o.price, "available": True}
            for o in each.offerings
            if o.price is not None
        ],
        "capacity": resources.written(each.capacity),
        "overhead": {
            "kubeReserved": resources.written(taken.kube_reserved),
            "systemReserved": resources.written(taken.system_reserved),
            "evictionThreshold": resources.written(taken.eviction(each.capacity)),
        },
    }


def ec2_types(count: int) -> list[dict[str, Any]]:
    """So many priced EC2 types of us-west-2, evenly over all families but bare metal and accelerators."""
    sold = (each for each in ec2.catalogue("us-west-2").types if not each.exotic)
    priced = [each for each in sold if any(o.launchable for o in each.offerings)]
    step = max(1.0, len(priced) / count)
    return [_ec2_type(priced[int(number * step)]) for number in range(min(count, len(priced)))]


def benchmark(pods: int, types: int = 400, seed: int = 42) -> dict[str, Any]:
    """The mix of Karpenter's scheduling benchmark."""
    dice = Random(seed)
    made = list(_benchmark_pods(pods, dice))
    pool = {"metadata": {"name": "default"}, "spec": {"template": {"spec": {"requirements": []}}}}
    name = f"benchmark-{pods}x{types}"
    return {"name": name, "nodePools": [pool], "instanceTypes": proportional_types(types), "pods": made}


def _benchmark_pods(count: int, dice: Random) -> Iterator[dict[str, Any]]:
    share = count // 5

    def size() -> tuple[int, int]:
        return dice.choice([100, 250, 500, 1000, 1500]), dice.choice([100, 256, 512, 1024, 2048, 4096])

    def letter() -> str:
        return dice.choice("abcdefg")

    for number in range(count):
        kind = number // share if share else 0
        labels = {"my-label": letter()}
        spec: dict[str, Any] = {}
        if kind in (1, 2):
            spec["topologySpreadConstraints"] = [_spread(ZONE if kind == 1 else HOSTNAME, {"my-label": letter()})]
        elif kind == 3:
            labels = {"my-affinity": letter()}
            spec["affinity"] = {"podAffinity": {_REQUIRED: [_term(ZONE, labels)]}}
        elif kind == 4:
            labels = {"app": "nginx"}
            spec["affinity"] = {"podAntiAffinity": {_REQUIRED: [_term(HOSTNAME, labels)]}}
        yield _pod(f"p{number:06d}", *size(), labels, **spec)


def deployments(
    pods: int, services: int = 200, types: int = 800, seed: int = 42, kind: str = "mixed"
) -> dict[str, Any]:
    """Services of equal replicas, a minority of them constrained, on EC2 types.

    By kind: `mixed`, some of them only on demand; `spot`, all of them on spot or on demand; `on-demand`, in a pool without spot;
    `topology`, most of them with affinity, anti-affinity or spread.
    """
    dice = Random(seed)
    made: list[dict[str, Any]] = []
    for number in range(services):
        cpu, per_cpu, _ = dice.choices(SERVICES, [weight for *_, weight in SERVICES])[0]
        labels = {"app": f"app-{number:03d}", "tier": dice.choice(["web", "api", "batch", "cache"])}
        weights = TOPOLOGY if kind == "topology" else CONSTRAINTS
        asked = dice.choices(list(weights), list(weights.values()))[0]
        asked = "plain" if kind == "spot" and asked == "on-demand" else asked
        other = {"app": f"app-{dice.randrange(services):03d}"} if kind == "topology" else {}
        spec = _constraint(asked, {"app": labels["app"]}, other, dice)
        replicas = pods // services + (1 if number < pods % services else 0)
        memory = max(64, cpu * per_cpu // 1000)
        made += [_pod(f"app-{number:03d}-{replica:05d}", cpu, memory, labels, **spec) for replica in range(replicas)]
    requirements = [
        _one_of("kubernetes.io/os", "linux"),
        _one_of("kubernetes.io/arch", "amd64", "arm64"),
        _one_of(CAPACITY_TYPE, *(("on-demand",) if kind == "on-demand" else ("spot", "on-demand"))),
        _one_of("karpenter.k8s.aws/instance-category", "c", "m", "r"),
    ]
    pool = {"metadata": {"name": "default"}, "spec": {"template": {"spec": {"requirements": requirements}}}}
    name = f"deployments-{pods}in{services}x{types}" + ("" if kind == "mixed" else f"-{kind}")
    sold = [_by_zone(each) if kind == "topology" else each for each in ec2_types(types)]
    return {"name": name, "nodePools": [pool], "instanceTypes": sold, "pods": made}


def _by_zone(sold: dict[str, Any]) -> dict[str, Any]:
    """A type with a spot price of its own in each zone, as there is on every day, so that it matters where the first pod goes."""
    offerings = []
    for offering in sold["offerings"]:
        told = {each["key"]: each["values"] for each in offering["requirements"]}
        factor = Random(f"{sold['name']}/{told[ZONE]}").uniform(0.8, 1.25) if told[CAPACITY_TYPE] == ["spot"] else 1.0
        offerings.append({**offering, "price": round(offering["price"] * factor, 6)})
    return {**sold, "offerings": offerings}


def topology(pods: int, seed: int = 42) -> dict[str, Any]:
    """Services of about ten replicas with topology rules, on EC2 types."""
    return deployments(pods, max(4, pods // 10), 400, seed, "topology")


def _constraint(kind: str, own: dict[str, str], other: dict[str, str], dice: Random) -> dict[str, Any]:
    match kind:
        case "zone-affinity" | "zone-affinity-to-other":
            return {"affinity": {"podAffinity": {_REQUIRED: [_term(ZONE, other if "other" in kind else own)]}}}
        case "zone-anti-affinity-to-other":
            return {"affinity": {"podAntiAffinity": {_REQUIRED: [_term(ZONE, other)]}}}
        case "soft-zone-affinity" | "soft-zone-anti-affinity":
            liked = [{"weight": 10, "podAffinityTerm": _term(ZONE, own)}]
            return {"affinity": {"podAntiAffinity" if "anti" in kind else "podAffinity": {_PREFERRED: liked}}}
        case "zone-spread":
            return {"topologySpreadConstraints": [_spread(ZONE, own)]}
        case "soft-zone-spread":
            return {"topologySpreadConstraints": [_spread(ZONE, own, hard=False)]}
        case "host-spread":
            return {"topologySpreadConstraints": [_spread(HOSTNAME, own, skew=4)]}
        case "anti-affinity":
            return {"affinity": {"podAntiAffinity": {_REQUIRED: [_term(HOSTNAME, own)]}}}
        case "arm64":
            return {"nodeSelector": {"kubernetes.io/arch": "arm64"}}
        case "on-demand":
            return {"nodeSelector": {CAPACITY_TYPE: "on-demand"}}
        case "zone-pinned":
            return {"nodeSelector": {ZONE: dice.choice(["us-west-2a", "us-west-2b", "us-west-2c"])}}
        case "category":
            term = {"matchExpressions": [_one_of("karpenter.k8s.aws/instance-category", "c", "m")]}
            return {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [term]}}}}
    return {}


def preferences(pods: int, types: int = 400) -> dict[str, Any]:
    """Identical pods that would like to keep apart by zone, which cannot be, and by host, which can."""
    labels = {"app": "nginx"}
    liked = [{"weight": 1, "preference": {"matchExpressions": [_one_of(ZONE, "test-zone-1")]}}]
    apart = [
        {"weight": 10, "podAffinityTerm": _term(ZONE, labels)},
        {"weight": 1, "podAffinityTerm": _term(HOSTNAME, labels)},
    ]
    affinity = {"nodeAffinity": {_PREFERRED: liked}, "podAntiAffinity": {_PREFERRED: apart}}
    made = [_pod(f"p{number:06d}", 500, 1024, labels, affinity=affinity) for number in range(pods)]
    pool = {"metadata": {"name": "default"}, "spec": {"template": {"spec": {"requirements": []}}}}
    name = f"preferences-{pods}x{types}"
    return {"name": name, "nodePools": [pool], "instanceTypes": proportional_types(types), "pods": made}


def with_min_values(document: dict[str, Any], keys: int) -> dict[str, Any]:
    """The same question with minValues for so many labels in each pool."""
    pools = json.loads(json.dumps(document["nodePools"]))
    for pool in pools:
        rows = pool["spec"]["template"]["spec"]["requirements"]
        for key, least in list(FLEXIBLE.items())[:keys]:
            row = next((each for each in rows if each["key"] == key), None)
            if row is None:
                rows.append(row := {"key": key, "operator": "Exists"})
            row["minValues"] = least
    return {**document, "name": f"{document['name']}-{keys}minValues", "nodePools": pools}


def with_reservations(document: dict[str, Any], count: int) -> dict[str, Any]:
    """The same question with so many capacity reservations of one instance each, evenly over the types."""
    types = [dict(each) for each in document["instanceTypes"]]
    step = max(1, len(types) // count)
    for number in range(count):
        chosen = types[number * step % len(types)]
        (zone,) = (each["values"] for each in chosen["offerings"][0]["requirements"] if each["key"] == ZONE)
        reserved = {
            "requirements": [
                _one_of(CAPACITY_TYPE, "reserved"),
                _one_of(ZONE, *zone),
                _one_of("oracle.test/reservation-id", f"cr-{number:03d}"),
            ],
            "price": 1e-6 * chosen["offerings"][0]["price"],
            "available": True,
            "reservationCapacity": 1,
        }
        chosen["offerings"] = [*chosen["offerings"], reserved]
    pools = json.loads(json.dumps(document["nodePools"]))
    for pool in pools:
        for each in pool["spec"]["template"]["spec"]["requirements"]:
            if each["key"] == CAPACITY_TYPE:
                each["values"] = [*each["values"], "reserved"]
    return {**document, "name": f"{document['name']}-{count}reserved", "instanceTypes": types, "nodePools": pools}
