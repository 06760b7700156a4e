"""Families about pods and other pods: spread, affinity, anti-affinity, namespaces."""

import random

from tests.differential.pieces import (
    ARCH,
    TEAM,
    ZONES,
    background,
    family,
    near,
    pod_row,
    pool,
    replicas,
    required,
    row,
    selector,
    spread,
    spread_world,
)
from tests.differential.terms import CAPACITY_TYPE, HOSTNAME, ZONE, Json


@family
def zone_spread(rng: random.Random) -> Json:
    parts = spread_world(rng)
    pods = background(rng)
    for i in range(rng.randint(1, 3)):
        how: Json = {"topologySpreadConstraints": [spread(ZONE, f"app{i}", rng.choice([1, 1, 2]))]}
        if rng.random() < 0.3:
            how["nodeSelector"] = {ZONE: "a"}
        elif rng.random() < 0.3:
            how["affinity"] = {"nodeAffinity": required([row(ZONE, "In", "a", "b")])}
        pods += replicas(rng, f"app{i}", rng.randint(2, 8), **how)
    return {**parts, "pods": pods}


@family
def host_spread(rng: random.Random) -> Json:
    parts = spread_world(rng)
    pods = background(rng)
    for i in range(rng.randint(1, 3)):
        rows = [spread(HOSTNAME, f"app{i}", rng.choice([1, 1, 2, 3]))]
        if rng.random() < 0.4:
            rows.append(spread(ZONE, f"app{i}", rng.choice([1, 2])))
        pods += replicas(rng, f"app{i}", rng.randint(2, 7), topologySpreadConstraints=rows)
    return {**parts, "pods": pods}


@family
def other_spread(rng: random.Random) -> Json:
    """Spread over capacity types and over a label of the pool."""
    parts = spread_world(rng)
    key = rng.choice([CAPACITY_TYPE, TEAM, ARCH])
    rows = [row(TEAM, "In", "red", "blue", "green")] if key == TEAM else []
    pods = background(rng) + replicas(
        rng, "app0", rng.randint(2, 8), topologySpreadConstraints=[spread(key, "app0", rng.choice([1, 2]))]
    )
    return {**parts, "nodePools": [pool(rows=rows)], "pods": pods}


@family
def spread_policies(rng: random.Random) -> Json:
    parts = spread_world(rng)
    pools = [pool()] + (
        [pool("tainted", [row(ZONE, "In", "c", "d")], taints=[{"key": "dedicated", "effect": "NoSchedule"}])]
        * (rng.random() < 0.6)
    )
    pods = background(rng)
    for i in range(rng.randint(1, 3)):
        more: Json = {}
        if rng.random() < 0.4:
            more["minDomains"] = rng.randint(1, 4)
        if rng.random() < 0.5:
            more["nodeAffinityPolicy"] = rng.choice(["Honor", "Ignore"])
        if rng.random() < 0.5:
            more["nodeTaintsPolicy"] = rng.choice(["Honor", "Ignore"])
        labels = {}
        if rng.random() < 0.4:
            more["matchLabelKeys"] = ["version"]
            labels = {"version": rng.choice(["v1", "v2"])}
        how: Json = {
            "topologySpreadConstraints": [spread(ZONE, f"app{i}", rng.choice([1, 2]), **more)],
            "labels": labels,
        }
        if rng.random() < 0.3:
            how["affinity"] = {"nodeAffinity": required([row(ZONE, "In", "a", "b")])}
        if rng.random() < 0.3:
            how["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
        pods += replicas(rng, f"app{i}", rng.randint(2, 7), **how)
        if labels:
            labels = {"version": "v3"}
            pods += [
                {**one, "metadata": {**one["metadata"], "name": f"new{i}-{j}"}}
                for j, one in enumerate(replicas(rng, f"app{i}", 2, **{**how, "labels": labels}))
            ]
    return {**parts, "nodePools": pools, "pods": pods}


@family
def spread_terms(rng: random.Random) -> Json:
    """Spread beside several terms of node affinity, of which one must hold."""
    parts = spread_world(rng)
    choice = [[pod_row(rng)] for _ in range(rng.randint(2, 3))]
    rows = [spread(rng.choice([ZONE, HOSTNAME]), "app0")]
    pods = replicas(
        rng, "app0", rng.randint(2, 6), topologySpreadConstraints=rows, affinity={"nodeAffinity": required(*choice)}
    )
    return {**parts, "pods": pods + background(rng)}


@family
def soft_spread(rng: random.Random) -> Json:
    parts = spread_world(rng)
    pods = background(rng)
    for i in range(rng.randint(1, 3)):
        rows = [spread(rng.choice([ZONE, HOSTNAME, CAPACITY_TYPE, "example.com/rack"]), f"app{i}", hard=False)]
        how: Json = {"nodeSelector": {ZONE: "a"}} if rng.random() < 0.3 else {}
        pods += replicas(rng, f"app{i}", rng.randint(2, 6), topologySpreadConstraints=rows, **how)
    return {**parts, "pods": pods, "options": rng.choice([{}, {}, {"preferencePolicy": "Ignore"}])}


@family
def affinity(rng: random.Random) -> Json:
    parts = spread_world(rng)
    pods = background(rng)
    for i in range(rng.randint(1, 3)):
        target = rng.choice([f"app{i}", "app0", "app1"])
        how: Json = {"affinity": {"podAffinity": near(rng.choice([ZONE, ZONE, HOSTNAME]), target)}}
        if rng.random() < 0.2:
            how["nodeSelector"] = {ZONE: rng.choice(ZONES[:2])}
        pods += replicas(rng, f"app{i}", rng.randint(1, 6), **how)
    return {**parts, "pods": pods}


@family
def anti_affinity(rng: random.Random) -> Json:
    parts = spread_world(rng)
    if "boundPods" in parts and rng.random() < 0.6:
        for one in parts["boundPods"]:
            one["spec"]["affinity"] = {"podAntiAffinity": near(rng.choice([ZONE, HOSTNAME]), "app0")}
    pods = background(rng)
    for i in range(rng.randint(1, 3)):
        target = rng.choice([f"app{i}", f"app{i}", "app0", "plain0"])
        how: Json = {"affinity": {"podAntiAffinity": near(rng.choice([HOSTNAME, HOSTNAME, ZONE]), target)}}
        if rng.random() < 0.3:
            how["nodeSelector"] = {ZONE: rng.choice(ZONES[:2])}
        pods += replicas(rng, f"app{i}", rng.randint(1, 5), **how)
    return {**parts, "pods": pods}


@family
def soft_affinity(rng: random.Random) -> Json:
    parts = spread_world(rng)
    pods = background(rng)
    for i in range(rng.randint(1, 3)):
        kind = rng.choice(["podAffinity", "podAntiAffinity"])
        wish = near(
            rng.choice([HOSTNAME, ZONE]), rng.choice([f"app{i}", "app0"]), hard=False, weight=rng.choice([1, 50, 100])
        )
        pods += replicas(rng, f"app{i}", rng.randint(1, 5), affinity={kind: wish})
    return {**parts, "pods": pods, "options": rng.choice([{}, {}, {"preferencePolicy": "Ignore"}])}


@family
def namespaces(rng: random.Random) -> Json:
    parts = spread_world(rng)
    parts["objects"] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        for name, labels in {
            "default": {},
            "blue": {"env": "prod"},
            "green": {"env": "prod"},
            "gray": {"env": "test"},
        }.items()
    ]
    pods = background(rng)
    for i, space in enumerate(rng.sample(["default", "blue", "green", "gray"], 3)):
        scope: Json = rng.choice(
            [
                {},
                {"namespaces": ["blue"]},
                {"namespaceSelector": selector(env="prod")},
                {"namespaceSelector": {}},
                {"namespaces": ["gray"], "namespaceSelector": selector(env="prod")},
            ]
        )
        kind = rng.choice(["podAffinity", "podAntiAffinity", "podAntiAffinity"])
        pods += replicas(
            rng,
            f"app{i}",
            rng.randint(1, 4),
            namespace=space,
            labels={"app": "same"},
            affinity={kind: near(rng.choice([HOSTNAME, ZONE]), "same", **scope)},
        )
    return {**parts, "pods": pods}
