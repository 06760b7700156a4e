"""Nodes as arrays: which pods are where, what is left, and where a pod may go by the rules of kube-scheduler in use here."""

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from benchmarks.consolidation.shop import ON_DEMAND, RESERVED, TEAM, WAYS, ZONES, Floats, Mask, Shop
from joiner.model import labels
from joiner.model.codec import decode
from joiner.model.pod import Pod

HAIR = 1e-6


@dataclass(frozen=True)
class PodKind:
    """The pods of one deployment."""

    number: int
    cpu: int
    """Thousandths."""
    memory: int
    """MiB."""
    team: int
    zonal: bool = False
    """Spread over zones, with a skew of one."""
    apart: bool = False
    """One on a node at most."""
    on_demand: bool = False

    @property
    def name(self) -> str:
        return f"service-{self.number:04}"

    @property
    def request(self) -> Floats:
        return np.array([self.cpu, self.memory * 2**20 * 1000, 1000], np.float64)

    def document(self, teams: list[str]) -> dict[str, Any]:
        own = {"app": self.name}
        selector = {TEAM: teams[self.team], **({labels.CAPACITY_TYPE: labels.ON_DEMAND} if self.on_demand else {})}
        requests = {"cpu": f"{self.cpu}m", "memory": f"{self.memory}Mi"}
        spec: dict[str, Any] = {
            "containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}],
            "nodeSelector": selector,
        }
        alike = {"labelSelector": {"matchLabels": own}}
        if self.zonal:
            spread = {"maxSkew": 1, "topologyKey": labels.ZONE, "whenUnsatisfiable": "DoNotSchedule", **alike}
            spec["topologySpreadConstraints"] = [spread]
        if self.apart:
            term = {"topologyKey": labels.HOSTNAME, **alike}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": self.name, "uid": self.name, "controller": True}
        metadata = {"name": self.name, "namespace": "default", "labels": own, "ownerReferences": [owner]}
        return {"metadata": metadata, "spec": spec}

    def template(self, teams: list[str]) -> Pod:
        return decode(self.document(teams), Pod)


class Places:
    """Every node there ever was: slots are never used again, so they are in the order of names."""

    def __init__(self, shop: Shop, kinds: list[PodKind]) -> None:
        self.shop, self.kinds = shop, kinds
        self.requests: Floats = np.array([each.request for each in kinds], np.float64).reshape(-1, 3)
        self.count = 0
        self.scattered = False
        """Whether pods go anywhere at random: nothing that was planned comes true then."""
        self.team_of_pool = [shop.teams.index(team) for _, team in shop.pools]
        self._grow(64)

    def _grow(self, size: int) -> None:
        def larger(name: str, shape: tuple[int, ...], kind: Any) -> None:
            new = np.zeros(shape, kind)
            old = getattr(self, name, None)
            if old is not None:
                new[tuple(slice(0, length) for length in old.shape)] = old
            setattr(self, name, new)

        for name, width, kind in (
            ("free", (3,), np.float64), ("room", (3,), np.float64), ("alive", (), np.bool_), ("ready", (), np.bool_),
            ("going", (), np.bool_), ("soft", (), np.bool_), ("zone", (), np.int64), ("team", (), np.int64),
            ("pool", (), np.int64), ("type", (), np.int64), ("way", (), np.int64), ("price", (), np.float64),
            ("pods", (), np.int64),
        ):  # fmt: skip
            larger(name, (size, *width), kind)
        larger("hosts", (len(self.kinds), size), np.int64)
        self.size = size

    free: Floats
    room: Floats
    alive: Mask
    ready: Mask
    going: Mask
    soft: Mask
    zone: Any
    team: Any
    pool: Any
    type: Any
    way: Any
    price: Floats
    pods: Any
    hosts: Any

    def add(self, pool: int, number: int, zone: int, way: int, *, ready: bool) -> int:
        """A new node; its slot."""
        if self.count == self.size:
            self._grow(2 * self.size)
        slot = self.count
        self.count += 1
        self.free[slot] = self.room[slot] = self.shop.room[number]
        self.alive[slot], self.ready[slot] = True, ready
        self.zone[slot], self.pool[slot], self.team[slot] = zone, pool, self.team_of_pool[pool]
        self.type[slot], self.way[slot] = number, way
        self.price[slot] = 0.0 if way == RESERVED else self.shop.prices[number, zone, way]
        return slot

    def put(self, kind: int, slot: int, times: int = 1) -> None:
        self.free[slot] -= times * self.requests[kind]
        self.hosts[kind, slot] += times
        self.pods[slot] += times

    def take(self, kind: int, slot: int) -> None:
        self.put(kind, slot, -1)

    def zone_counts(self, kind: int, without: Mask | None = None) -> Floats:
        """Pods of a kind by zone; not those of some nodes."""
        row = self.hosts[kind, : self.count]
        if without is not None:
            row = np.where(without[: self.count], 0, row)
        return np.bincount(self.zone[: self.count], weights=row, minlength=len(ZONES)).astype(np.float64)

    def allowed(self, kind: PodKind) -> Mask:
        """The nodes that pods of a kind select, whatever is on them."""
        found: Mask = self.alive[: self.count] & (self.team[: self.count] == kind.team)
        return found & (self.way[: self.count] == ON_DEMAND) if kind.on_demand else found

    def best(self, number: int, dice: Random) -> int | None:
        """Where kube-scheduler puts a pod: of the nodes that take it the emptiest; one with the soft taint last."""
        kind, end = self.kinds[number], self.count
        fits = self.allowed(kind) & self.ready[:end] & ~self.going[:end]
        fits &= (self.free[:end] + HAIR >= self.requests[number]).all(axis=1)
        if kind.apart:
            fits &= self.hosts[number, :end] == 0
        if kind.zonal:
            counts = self.zone_counts(number)
            fits &= (counts - counts.min() < 1)[self.zone[:end]]
        where = np.flatnonzero(fits)
        if not len(where):
            return None
        if self.scattered:
            return int(where[dice.randrange(len(where))])
        left = (self.free[where, :2] - self.requests[number, :2]) / self.room[where, :2]
        score = np.round(left.mean(axis=1), 9) - 10.0 * self.soft[where]
        best = where[score == score.max()]
        return int(best[dice.randrange(len(best))])

    @property
    def bill(self) -> float:
        """Dollars an hour."""
        return float(self.price[: self.count][self.alive[: self.count]].sum())

    def name(self, slot: int) -> str:
        return f"node-{slot:05}"

    def labels(self, slot: int) -> dict[str, str]:
        pool, team = self.shop.pools[self.pool[slot]]
        own = {
            labels.NODEPOOL: pool,
            TEAM: team,
            labels.INSTANCE_TYPE: self.shop.names[self.type[slot]],
            labels.ARCH: "amd64",
            labels.OS: "linux",
            labels.ZONE: ZONES[self.zone[slot]],
            labels.CAPACITY_TYPE: WAYS[self.way[slot]],
            labels.HOSTNAME: self.name(slot),
        }
        if self.way[slot] == RESERVED:
            own[self.shop_key] = self.shop.reservation(int(self.type[slot]), int(self.zone[slot]))
        return own

    shop_key = "example.com/reservation-id"
