"""The same cluster for Karpenter's own code: what it decides is held against the rules as they are written here.

`ORACLE=path python -m benchmarks.consolidation.asked FILE` asks it about some clusters, on the way that these rules take, and
records what was asked and answered, a line for each.
"""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.consolidation.clusters import made
from benchmarks.consolidation.places import PodKind
from benchmarks.consolidation.shop import RESERVATION, RESERVED, TEAM, WAYS, ZONES, Shop
from benchmarks.consolidation.upstream import Choice, Upstream
from benchmarks.consolidation.world import Launch, World
from joiner.catalog.market import RESERVED_DIVISOR
from joiner.model import labels

Json = dict[str, Any]
ASKED: Final = (
    *(("plain", 40, 1, seed, "") for seed in range(11, 16)),
    *(("topology", 40, 1, seed, "") for seed in range(11, 14)),
    *(("mixed", 40, 1, seed, "") for seed in range(11, 14)),
    *(("reservations", 40, 1, seed, "") for seed in range(11, 14)),
    *(("hand-bought", 40, 1, seed, "") for seed in range(11, 13)),
    *(("all", 40, 1, seed, "") for seed in range(11, 13)),
    *(("plain", 40, 1, seed, "Balanced") for seed in range(11, 14)),
    *(("plain", 40, 3, seed, "") for seed in range(11, 13)),
)
STEPS: Final = 3
"""So many commands of each cluster are compared."""
EACH: Final = 12
"""So many single nodes of each."""


# -- a cluster in few words -------------------------------------------------------------------------------------------


def saved(world: World) -> Json:
    """All that is needed to make it again."""
    shop, places = world.shop, world.places
    used = sorted({int(number) for number in places.type[: places.count]} | {number for number, _ in shop.reserved})
    wanted = [number for number in range(len(shop.names)) if number in used or number % 4 == 0]
    kinds = {int(kind) for kind in np.flatnonzero(places.hosts[:, : places.count].sum(axis=1))}
    return {
        "types": [[name, dict(room), [list(row) for row in table]] for name, room, table in (shop.facts[n] for n in wanted)],
        "pools": [list(each) for each in shop.pools],
        "ways": list(shop.ways),
        "policy": world.policy,
        "reserved": [[shop.names[number], zone, count] for (number, zone), count in sorted(world.left().items())],
        "kinds": [
            [each.cpu, each.memory, each.team, each.zonal, each.apart, each.on_demand]
            for each in world.kinds
            if each.number in kinds
        ],
        "nodes": [
            [
                int(places.pool[slot]),
                shop.names[places.type[slot]],
                int(places.zone[slot]),
                int(places.way[slot]),
                [
                    [row, int(places.hosts[kind, slot])]
                    for row, kind in enumerate(sorted(kinds))
                    if places.hosts[kind, slot]
                ],
            ]
            for slot in np.flatnonzero(places.alive[: places.count] & ~places.going[: places.count])
        ],
    }  # fmt: skip


def restored(found: Json) -> World:
    """The cluster again."""
    facts = [(name, room, [[float(price) for price in row] for row in table]) for name, room, table in found["types"]]
    held: dict[tuple[str, int], int] = {}
    for _, name, zone, way, _ in found["nodes"]:
        if way == RESERVED:
            held[name, zone] = held.get((name, zone), 0) + 1
    reserved = {(name, zone): count + held.get((name, zone), 0) for name, zone, count in found["reserved"]}
    shop = Shop([(pool, team) for pool, team in found["pools"]], found["ways"], reserved, facts)
    kinds = [PodKind(number, *each) for number, each in enumerate(found["kinds"])]
    world = World(shop, kinds, 1, ordered=False, policy=found["policy"])
    for pool, name, zone, way, pods in found["nodes"]:
        slot = world.node(Launch(pool, shop.number[name], zone, way), ready=True)
        for kind, count in pods:
            for _ in range(count):
                world.create(kind, slot=slot)
    return world


# -- the same for Karpenter's code ------------------------------------------------------------------------------------


def scenario(world: World) -> Json:
    """The cluster as a scenario."""
    shop, places = world.shop, world.places
    pools = [_pool(shop, name, team, world.policy) for name, team in shop.pools]
    nodes: list[Json] = []
    pods: list[tuple[int, str, str]] = []
    for slot in np.flatnonzero(places.alive[: places.count]).tolist():
        own = {key: value for key, value in places.labels(slot).items() if key != labels.HOSTNAME}
        room = {"cpu": f"{int(places.room[slot, 0])}m", "memory": str(int(places.room[slot, 1]) // 1000),
                "pods": str(int(places.room[slot, 2]) // 1000)}  # fmt: skip
        nodes.append({"metadata": {"name": places.name(slot), "labels": own}, "status": {"capacity": room}})
        pods.extend((record.kind, record.name, places.name(slot)) for record in world.pods_on[slot].values())
    bound = []
    for kind, name, node in sorted(pods):
        document = world.kinds[kind].document(shop.teams)
        spec = {**document["spec"], "nodeName": node}
        bound.append({"metadata": {"name": name, "labels": document["metadata"]["labels"]}, "spec": spec})
    return {
        "name": "a cluster",
        "nodePools": pools,
        "instanceTypes": [_type(world, number) for number in range(len(shop.names))],
        "nodes": nodes,
        "boundPods": bound,
        "options": {"spotToSpot": True, "noTimeLimits": True, "reservationIDLabel": RESERVATION},
    }


def _pool(shop: Shop, name: str, team: str, policy: str) -> Json:
    ways = [*shop.ways, *([labels.RESERVED] if shop.reserved else [])]
    return {
        "metadata": {"name": name},
        "spec": {
            "template": {
                "metadata": {"labels": {TEAM: team}},
                "spec": {"requirements": [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": ways}]},
            },
            "disruption": {
                "consolidateAfter": "0s",
                "consolidationPolicy": policy,
                "budgets": [{"nodes": "10%"}],
            },
        },
    }


def _type(world: World, number: int) -> Json:
    shop = world.shop
    offerings = []
    for zone, way in zip(*np.nonzero(np.isfinite(shop.prices[number])), strict=True):
        offerings.append(_offering(int(zone), WAYS[way], float(shop.prices[number, zone, way])))
    for (name, zone), count in sorted(world.left().items()):
        if name == number:
            price = shop.on_demand(number, zone) / RESERVED_DIVISOR
            offerings.append(_offering(zone, labels.RESERVED, price, count, shop.reservation(number, zone)))
    kinds = sorted({each["requirements"][0]["values"][0] for each in offerings})
    requirements = [
        _in(labels.INSTANCE_TYPE, shop.names[number]), _in(labels.ARCH, "amd64"), _in(labels.OS, "linux"),
        _in(labels.ZONE, *ZONES), _in(labels.CAPACITY_TYPE, *kinds),
    ]  # fmt: skip
    ids = [shop.reservation(name, zone) for name, zone in sorted(shop.reserved) if name == number]
    if shop.reserved:
        requirements.append(_in(RESERVATION, *ids) if ids else {"key": RESERVATION, "operator": "DoesNotExist"})
    cpu, memory, pods = (int(amount) for amount in shop.room[number])
    return {
        "name": shop.names[number],
        "requirements": requirements,
        "offerings": offerings,
        "capacity": {"cpu": f"{cpu}m", "memory": str(memory // 1000), "pods": str(pods // 1000)},
        "overhead": {},
    }


def _in(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}


def _offering(zone: int, way: str, price: float, count: int | None = None, reservation: str = "") -> Json:
    identity = _in(RESERVATION, reservation) if reservation else {"key": RESERVATION, "operator": "DoesNotExist"}
    found: Json = {
        "requirements": [_in(labels.CAPACITY_TYPE, way), _in(labels.ZONE, ZONES[zone]), identity],
        "price": price,
        "available": True,
    }
    return found if count is None else {**found, "reservationCapacity": count, "available": count > 0}


# -- both, side by side -----------------------------------------------------------------------------------------------


def told(world: World, choice: Choice | None) -> Json:
    """A choice of the rules that are written here, in the words of a recording."""
    if choice is None:
        return {"method": "", "decision": "no-op", "nodes": [], "price": 0.0}
    return {
        "method": choice.method,
        "decision": "replace" if choice.claim is not None else "delete",
        "nodes": sorted(world.places.name(slot) for slot in choice.gone),
        "price": choice.price,
    }


def answered(said: Json) -> Json:
    """An answer of Karpenter's code, in the same words."""
    return {
        "method": said.get("method", ""),
        "decision": said["decision"] or "no-op",
        "nodes": sorted(said["candidates"] or ()),
        "price": sum(float(each["price"]) for each in said["replacements"] or ()),
    }


def same(ours: Json, theirs: Json) -> bool:
    """Whether two answers are the same, prices to a hundredth."""
    alike = all(ours[name] == theirs[name] for name in ("method", "decision", "nodes"))
    return alike and abs(ours["price"] - theirs["price"]) <= 0.01 * max(theirs["price"], 1e-9)


def _asked(program: str, command: str, document: Json, *options: str) -> Json:
    done = subprocess.run(
        [program, command, *options, "/dev/stdin"],
        input=json.dumps(document),
        capture_output=True,
        text=True,
        check=True,
    )
    found: Json = json.loads(done.stdout)
    if found.get("failure"):
        raise RuntimeError(found["failure"])
    return found


def recordings(program: str) -> Iterator[Json]:
    """Clusters and what Karpenter's code says of them."""
    for family, nodes, pools, seed, policy in ASKED:
        world = made(family, nodes, pools, seed, ordered=False, policy=policy)
        mind = Upstream(world, balanced=policy == "Balanced", limits=False)
        for step in range(STEPS):
            small = saved(world)
            again = restored(small)
            said = _asked(program, "disrupt", scenario(again))
            every = _asked(program, "each", scenario(again), "-limit", str(EACH)) if step == 1 else None
            each = [
                {"node": one["name"], "decision": one["decision"] if one["possible"] else "no-op",
                 "price": (one.get("replacement") or {}).get("price", 0.0)}
                for one in (every or {"nodes": []})["nodes"]
            ]  # fmt: skip
            yield {
                "name": f"{family}{' ' + policy if policy else ''}, {pools} pools, seed {seed}, step {step}",
                "cluster": small,
                "answer": answered(said),
                "each": each,
                "cost": [said["simulations"], said["cpuSeconds"]],
            }
            choices = mind.look()
            if not choices:
                break
            command = mind.confirm(choices[0])
            if command is not None:
                world.start(command)
            world.advance(world.now + 400.0)


def main(path: str) -> None:
    lines = [json.dumps(each) for each in recordings(os.environ["ORACLE"])]
    Path(path).write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
