"""The clusters that are measured: grown and then left with too few pods, or bought by hand."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from random import Random

import numpy as np

from benchmarks.consolidation.places import PodKind
from benchmarks.consolidation.shop import ON_DEMAND, Shop
from benchmarks.consolidation.upstreamfit import Offers, UpstreamFit
from benchmarks.consolidation.world import Launch, World
from joiner.model import labels

SERVICES = (
    # thousandths of a cpu, MiB for each cpu, how common
    (100, 2048, 14), (100, 5120, 8), (250, 2048, 16), (250, 4096, 14), (500, 2048, 12), (500, 6144, 6),
    (1000, 2048, 6), (1000, 4096, 5), (2000, 4096, 3), (2000, 8192, 2),
)  # fmt: skip
NODE_GROUPS = (
    "m5.large",
    "m5.xlarge",
    "m5.2xlarge",
    "c5.xlarge",
    "r5.xlarge",
    "m6i.xlarge",
    "m6i.2xlarge",
    "c5.2xlarge",
)
REMAINS = (0.15, 0.75)
"""Each deployment is scaled to a random part between these."""
PER_NODE = 4
"""Deployments for every ten nodes."""


@dataclass(frozen=True)
class Family:
    """How a cluster is made."""

    topology: bool = False
    spot: bool = False
    reserved: bool = False
    by_hand: float = 0.0
    """Bought by hand: which part of the pods goes; 0 if grown."""


FAMILIES = {
    "plain": Family(),
    "topology": Family(topology=True),
    "reservations": Family(reserved=True),
    "mixed": Family(spot=True),
    "all": Family(topology=True, spot=True, reserved=True),
    "hand-bought": Family(by_hand=0.55),
    "hand-bought full": Family(by_hand=0.08),
}


def teams(pools: int) -> list[tuple[str, str]]:
    """Pools with their teams: the first two of twenty belong to one team, every other to its own."""
    if pools == 1:
        return [("pool-00", "team-00")]
    return [(f"pool-{number:02}", f"team-{max(1, number):02}") for number in range(pools)]


def made(name: str, nodes: int, pools: int, seed: int, *, ordered: bool, policy: str = "", services: int = 0) -> World:
    """The cluster of a family; the same one for every seed, whoever decides about it then."""
    family, dice = FAMILIES[name], Random(f"{name} {nodes} {pools} {seed}")
    given = teams(pools)
    ways = [labels.ON_DEMAND, *([labels.SPOT] if family.spot else [])]
    shop = Shop(given, ways, _reservations(dice, nodes) if family.reserved else {})
    count = services or max(12, nodes * PER_NODE // 10, 4 * len(shop.teams))
    kinds = [_kind(number, dice, family, len(shop.teams)) for number in range(count)]
    world = World(shop, kinds, seed, ordered=ordered, policy=policy)
    world.age = timedelta(days=1) if family.by_hand else timedelta()
    grow = _bought if family.by_hand else _grown
    grow(world, family, nodes, dice)
    _scaled(world, family, dice)
    world.dice, world.age = Random(seed), timedelta()
    return world


def _reservations(dice: Random, nodes: int) -> dict[tuple[str, int], int]:
    """Places for about a tenth of what there is, of a few types."""
    names = ["m5.large", "m5.xlarge", "c5.xlarge", "r5.xlarge", "m6i.2xlarge"]
    return {(name, dice.randrange(3)): max(1, nodes // 50) for name in names}


def _kind(number: int, dice: Random, family: Family, teams: int) -> PodKind:
    cpu, per_cpu, _ = dice.choices(SERVICES, [weight for _, _, weight in SERVICES])[0]
    fate = dice.random() if family.topology else 1.0
    return PodKind(
        number=number,
        cpu=cpu,
        memory=per_cpu * cpu // 1000,
        team=number % teams,
        zonal=fate < 0.35,
        apart=0.35 <= fate < 0.49,
        on_demand=family.spot and dice.random() < 0.3,
    )


def _replicas(kind: PodKind, dice: Random) -> int:
    if kind.apart:
        return dice.randint(2, 6)
    return dice.randint(2, 40 if kind.cpu <= 250 else 16 if kind.cpu <= 1000 else 6)


def _grown(world: World, family: Family, nodes: int, dice: Random) -> None:
    """Deployments come and grow in waves; first fit buys what they need."""
    places = world.places
    offers = Offers(world.shop, {})
    while places.count < nodes:
        some = dice.sample(world.kinds, min(len(world.kinds), 6))
        for kind in some:
            if places.count >= nodes:
                break
            _placed(world, offers, {kind.number: _replicas(kind, dice)})


def _placed(world: World, offers: Offers, wanted: dict[int, int]) -> None:
    fit = UpstreamFit(world.places, offers, np.zeros(world.places.size, np.bool_)).run(wanted)
    for kind, slot, count in fit.placed:
        for _ in range(count):
            world.create(kind, slot=slot)
    for claim in fit.claims:
        table = offers.table(claim)
        number, zone, way = np.unravel_index(int(table.argmin()), table.shape)
        slot = world.node(Launch(claim.pool, int(number), int(zone), int(way)), ready=True)
        for kind, count in claim.pods.items():
            for _ in range(count):
                world.create(kind, slot=slot)


def _bought(world: World, family: Family, nodes: int, dice: Random) -> None:
    """Every pool has one usual type, spread over the zones; kube-scheduler fills the nodes to three quarters."""
    shop = world.shop
    groups = [shop.number[dice.choice(NODE_GROUPS)] for _ in shop.pools]
    for number in range(nodes):
        pool = number % len(shop.pools)
        world.node(Launch(pool, groups[pool], number % 3, ON_DEMAND), ready=True)
    places = world.places
    room = Counter[int]()
    for slot in range(places.count):
        room[int(places.team[slot])] += int(places.room[slot, 0])
    used = Counter[int]()
    tired: set[int] = set()
    while len(tired) < len(world.kinds):
        kind = dice.choice([each for each in world.kinds if each.number not in tired])
        for _ in range(_replicas(kind, dice)):
            place = places.best(kind.number, dice)
            if place is None or used[kind.team] > 0.75 * room[kind.team]:
                tired.add(kind.number)
                break
            world.create(kind.number, slot=place)
            used[kind.team] += kind.cpu


def _scaled(world: World, family: Family, dice: Random) -> None:
    """Each deployment is scaled to a random part of what it was."""
    for kind in world.kinds:
        own = [record for record in world.pods.values() if record.kind == kind.number]
        if family.by_hand:
            remains = min(1.0, max(0.05, dice.gauss(1 - family.by_hand, 0.15 * (family.by_hand > 0.2))))
        else:
            remains = dice.uniform(*REMAINS)
        for record in dice.sample(own, len(own) - max(1, round(remains * len(own))) if own else 0):
            world.remove(record)
