"""Families about what is bought: weights, limits, minValues, overlays, reservations, devices."""

import random

from tests.differential.pieces import (
    ARCH,
    CPU,
    FAMILY,
    GPU,
    RESERVATION,
    background,
    family,
    near,
    node,
    overlay,
    pool,
    replicas,
    row,
    types,
    zones_of,
)
from tests.differential.terms import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODEPOOL, ZONE, Json


@family
def weights(rng: random.Random) -> Json:
    catalogue = types(rng)
    names = [kind["name"] for kind in catalogue]
    pools = [pool(f"pool{i}", weight=rng.choice([1, 10, 10, 50])) for i in range(rng.randint(2, 4))]
    narrow = {
        p["metadata"]["name"]: sorted(rng.sample(names, rng.randint(1, len(names))))
        for p in pools
        if rng.random() < 0.6
    }
    pods = [one for i in range(rng.randint(1, 4)) for one in replicas(rng, f"app{i}", rng.randint(1, 7))]
    return {"nodePools": pools, "instanceTypes": catalogue, "instanceTypesByNodePool": narrow, "pods": pods}


@family
def limits(rng: random.Random) -> Json:
    def some() -> Json:
        return rng.choice(
            [
                {"cpu": str(rng.choice([4, 8, 16, 20]))},
                {"memory": f"{rng.choice([16, 32, 64])}Gi"},
                {"cpu": "16", "memory": "48Gi"},
            ]
        )

    pools = [pool(f"pool{i}", limits=some(), weight=rng.choice([1, 10])) for i in range(rng.randint(1, 3))]
    catalogue = types(rng)
    parts: Json = {"nodePools": pools, "instanceTypes": catalogue}
    if rng.random() < 0.4:
        parts["nodes"] = [node("n0", rng.choice(catalogue), zones_of(catalogue)[0], owner="pool0")]
    parts["pods"] = [one for i in range(rng.randint(2, 5)) for one in replicas(rng, f"app{i}", rng.randint(1, 8))]
    return parts


@family
def limits_nodes(rng: random.Random) -> Json:
    """A limit on the number of nodes, which the reference does not count within a run."""
    catalogue = types(rng)
    pools = [pool("first", limits={"nodes": str(rng.randint(1, 3))}, weight=10)] + (
        [pool("second")] if rng.random() < 0.6 else []
    )
    pods = replicas(rng, "lonely", rng.randint(2, 5), affinity={"podAntiAffinity": near(HOSTNAME, "lonely")})
    return {"nodePools": pools, "instanceTypes": catalogue, "pods": pods + background(rng)}


def flexible_rows(rng: random.Random) -> list[Json]:
    return rng.sample(
        [
            row(INSTANCE_TYPE, "Exists", minValues=rng.randint(2, 6)),
            row(FAMILY, "Exists", minValues=rng.randint(1, 3)),
            row(ZONE, "Exists", minValues=rng.randint(1, 3)),
            row(CAPACITY_TYPE, "Exists", minValues=rng.randint(1, 2)),
            row(FAMILY, "In", "c", "m", "r", minValues=2),
        ],
        rng.randint(1, 2),
    )


@family
def min_values(rng: random.Random) -> Json:
    pools = [pool("wide", flexible_rows(rng), weight=10)] + ([pool("narrow")] if rng.random() < 0.5 else [])
    pods = [one for i in range(rng.randint(1, 4)) for one in replicas(rng, f"app{i}", rng.randint(1, 6))]
    if rng.random() < 0.4:
        pods += replicas(rng, "pinned", rng.randint(1, 3), nodeSelector={ZONE: "a"})
    return {"nodePools": pools, "pods": pods}


@family
def best_effort(rng: random.Random) -> Json:
    return {**min_values(rng), "options": {"minValuesPolicy": "BestEffort"}}


def overlay_rows(rng: random.Random) -> list[Json]:
    return rng.choice(
        [
            [],
            [row(FAMILY, "In", rng.choice(["c", "m", "r"]))],
            [row(CPU, "Gt", 4)],
            [row(CAPACITY_TYPE, "In", "spot")],
            [row(ZONE, "In", "a")],
            [row(NODEPOOL, "In", "default")],
            [row(ARCH, "NotIn", "arm64")],
            [row(FAMILY, "In", "m"), row(CAPACITY_TYPE, "In", "on-demand")],
        ]
    )


def price_change(rng: random.Random) -> Json:
    return rng.choice(
        [
            {"priceAdjustment": "-30%"},
            {"priceAdjustment": "+50%"},
            {"priceAdjustment": "+0.01"},
            {"priceAdjustment": "-0.05"},
            {"price": "0.031"},
            {"price": "0.5"},
        ]
    )


@family
def overlays(rng: random.Random) -> Json:
    """Overlays of different weights; capacity for whole types."""
    some = [
        overlay(f"price{i}", overlay_rows(rng), weight=10 * i + 1, **price_change(rng))
        for i in range(rng.randint(1, 3))
    ]
    pods = [one for i in range(rng.randint(1, 4)) for one in replicas(rng, f"app{i}", rng.randint(1, 6))]
    if rng.random() < 0.5:
        where = rng.choice([[row(FAMILY, "In", "m")], [row(CPU, "Gt", 2)], []])
        some.append(overlay("devices", where, weight=5, capacity={GPU: "2"}))
        pods += replicas(rng, "device", rng.randint(1, 3), extra={GPU: "1"})
    return {
        "nodeOverlays": some,
        "pods": pods,
        "nodePools": [pool(), pool("other", weight=rng.choice([1, 10]))][: rng.randint(1, 2)],
    }


@family
def overlay_conflicts(rng: random.Random) -> Json:
    """Overlays of one weight that want to change the same thing, and capacity for some offerings of a type."""
    some = [
        overlay(f"o{i}", overlay_rows(rng), weight=rng.choice([1, 1, 5]), **price_change(rng))
        for i in range(rng.randint(2, 3))
    ]
    pods = [one for i in range(rng.randint(1, 3)) for one in replicas(rng, f"app{i}", rng.randint(1, 6))]
    if rng.random() < 0.5:
        some.append(
            overlay("devices", [row(rng.choice([ZONE, ZONE, FAMILY]), "In", "a", "m")], weight=9, capacity={GPU: "2"})
        )
        pods += replicas(rng, "device", rng.randint(1, 3), extra={GPU: "1"})
    return {"nodeOverlays": some, "pods": pods}


def reserve(rng: random.Random, catalogue: list[Json], ids: list[str]) -> None:
    """Give some types reserved offerings; an id belongs to one type and zone, or is shared."""
    for kind in catalogue:
        for way in kind["offerings"]:
            way["requirements"].append(row(RESERVATION, "DoesNotExist"))
    left = {name: rng.choice([0, 1, 1, 2, 3]) for name in ids}
    for name in ids:
        for kind in rng.sample(catalogue, rng.choice([1, 1, 1, 2]) if len(catalogue) > 1 else 1):
            base = max(way["price"] for way in kind["offerings"])
            where = [
                row(ZONE, "In", rng.choice(zones_of([kind]))),
                row(CAPACITY_TYPE, "In", "reserved"),
                row(RESERVATION, "In", name),
            ]
            kind["offerings"].append(
                {
                    "requirements": where,
                    "price": round(base / 10_000_000, 12),
                    "available": True,
                    "reservationCapacity": left[name],
                }
            )
            for about in kind["requirements"]:
                if about["key"] == CAPACITY_TYPE and "reserved" not in about["values"]:
                    about["values"].append("reserved")
                if about["key"] == RESERVATION and name not in about["values"]:
                    about["values"].append(name)
            if not any(about["key"] == RESERVATION for about in kind["requirements"]):
                kind["requirements"].append(row(RESERVATION, "In", name))
    for kind in catalogue:
        if not any(about["key"] == RESERVATION for about in kind["requirements"]):
            kind["requirements"].append(row(RESERVATION, "DoesNotExist"))


@family
def reservations(rng: random.Random) -> Json:
    catalogue = types(rng, most=12)
    reserve(rng, catalogue, [f"cr-{i}" for i in range(rng.randint(1, 4))])
    markets = rng.choice(
        [[], [row(CAPACITY_TYPE, "In", "reserved", "on-demand", "spot")], [row(CAPACITY_TYPE, "In", "reserved")]]
    )
    pools = [pool("first", markets, weight=10)] + (
        [pool("second", [row(CAPACITY_TYPE, "In", "on-demand", "spot")])] if rng.random() < 0.6 else []
    )
    pods = [one for i in range(rng.randint(1, 3)) for one in replicas(rng, f"app{i}", rng.randint(1, 4))]
    if rng.random() < 0.6:
        pods += replicas(rng, "lonely", rng.randint(2, 5), affinity={"podAntiAffinity": near(HOSTNAME, "lonely")})
    return {"instanceTypes": catalogue, "nodePools": pools, "pods": pods}


@family
def reservations_fallback(rng: random.Random) -> Json:
    return {**reservations(rng), "options": {"reservedOfferingMode": "Fallback"}}


@family
def devices(rng: random.Random) -> Json:
    catalogue = types(rng)
    for kind in rng.sample(catalogue, max(1, len(catalogue) // 3)):
        kind["capacity"][GPU] = str(rng.choice([1, 2, 4]))
        for way in kind["offerings"]:
            way["price"] = round(way["price"] * 4, 5)
    pods = background(rng)
    for i in range(rng.randint(1, 3)):
        pods += replicas(rng, f"gpu{i}", rng.randint(1, 4), extra={GPU: str(rng.choice([1, 1, 2]))})
    return {"instanceTypes": catalogue, "pods": pods}


@family
def hugepages(rng: random.Random) -> Json:
    catalogue = types(rng)
    for kind in rng.sample(catalogue, max(1, len(catalogue) // 2)):
        kind["capacity"]["hugepages-2Mi"] = rng.choice(["256Mi", "1Gi", "2Gi"])
    pods = background(rng)
    for i in range(rng.randint(1, 3)):
        pods += replicas(rng, f"db{i}", rng.randint(1, 4), extra={"hugepages-2Mi": rng.choice(["128Mi", "512Mi"])})
    return {"instanceTypes": catalogue, "pods": pods}
