"""What can be bought in these measurements: EC2's c, m and r types of up to eight cores in three zones."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from joiner.catalog.build import Adjustments, Pipeline
from joiner.catalog.market import RESERVED_DIVISOR, UNLIMITED, InstanceType, Offering
from joiner.cloud.sources import ec2
from joiner.model import labels
from joiner.model.codec import decode
from joiner.model.labels import Vocabulary
from joiner.model.nodepool import NodePool
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.problem import PoolOption

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
WAYS: Final = (labels.ON_DEMAND, labels.SPOT, labels.RESERVED)
ON_DEMAND, SPOT, RESERVED = range(3)
RESOURCES: Final = ("cpu", "memory", "pods")
RESERVATION: Final = "example.com/reservation-id"
TEAM: Final = "example.com/team"
VOCABULARY: Final = Vocabulary(reservation_id=RESERVATION).extended(well_known=[RESERVATION])
SIZES: Final = frozenset({"large", "xlarge", "2xlarge"})

Fact = tuple[str, Mapping[str, int], Sequence[Sequence[float]]]
"""Name of a type, what pods can use, and the prices by zone, on demand and spot."""
Reservations = Mapping[tuple[str, int], int]
"""Type and zone to the places that are reserved there."""


@cache
def _facts() -> tuple[Fact, ...]:
    found: list[Fact] = []
    for each in ec2.catalogue().types:
        family, _, size = each.name.partition(".")
        if family[0] not in "cmr" or not family[1:2].isdigit() or family[1] in "123" or size not in SIZES:
            continue
        if each.requirements.at(labels.ARCH).values != {"amd64"}:
            continue
        prices = {(way.zone, way.capacity_type): way.price for way in each.offerings}
        table = tuple(
            tuple(prices.get((zone, kind)) or float("inf") for kind in (labels.ON_DEMAND, labels.SPOT))
            for zone in ZONES
        )
        if all(way[0] < float("inf") for way in table):
            allocatable = each.allocatable()
            found.append((each.name, {name: allocatable[name] for name in RESOURCES}, table))
    return tuple(found)


class Shop:
    """Everything for sale, the same for all pools; reservations are counted by type and zone."""

    def __init__(
        self,
        pools: Sequence[tuple[str, str]],
        ways: Sequence[str],
        reservations: Reservations | None = None,
        facts: Sequence[Fact] | None = None,
    ) -> None:
        """`pools`: name and team of each; `ways`: the capacity types they may buy; `facts`: types, EC2's if none are given."""
        facts = self.facts = tuple(facts if facts is not None else _facts())
        reservations = reservations or {}
        self.names = [name for name, _, _ in facts]
        self.number = {name: number for number, name in enumerate(self.names)}
        self.room: Floats = np.array([[amounts[each] for each in RESOURCES] for _, amounts, _ in facts], np.float64)
        self.prices: Floats = np.full((len(facts), len(ZONES), len(WAYS)), np.inf)
        for number, (_, _, table) in enumerate(facts):
            for zone, ways_there in enumerate(table):
                for way, price in enumerate(ways_there):
                    if WAYS[way] in ways:
                        self.prices[number, zone, way] = price
        self.reserved = {(self.number[name], zone): count for (name, zone), count in reservations.items()}
        self.pools, self.ways = tuple(pools), tuple(ways)
        self.teams = sorted({team for _, team in pools})
        self._pipeline = Pipeline(VOCABULARY)
        self._options: tuple[object, tuple[PoolOption, ...]] | None = None
        self.types = self._types({})

    def on_demand(self, number: int, zone: int) -> float:
        """The on-demand price, also where no pool buys on demand."""
        return self.facts[number][2][zone][0]

    def _types(self, left: Mapping[tuple[int, int], int]) -> tuple[InstanceType, ...]:
        return tuple(self._type(number, left) for number in range(len(self.names)))

    def _type(self, number: int, left: Mapping[tuple[int, int], int]) -> InstanceType:
        offerings = []
        for zone, way in zip(*np.nonzero(np.isfinite(self.prices[number])), strict=True):
            offerings.append(_offering(int(zone), WAYS[way], float(self.prices[number, zone, way])))
        for (name, zone), count in sorted(self.reserved.items()):
            if name == number:
                there = left.get((name, zone), count)
                offerings.append(
                    _offering(zone, labels.RESERVED, self.on_demand(number, zone), there, self.reservation(name, zone))
                )
        described: dict[str, Sequence[str]] = {
            labels.INSTANCE_TYPE: [self.names[number]],
            labels.ARCH: ["amd64"],
            labels.OS: ["linux"],
            labels.ZONE: list(ZONES),
            labels.CAPACITY_TYPE: sorted({each.capacity_type for each in offerings}),
        }
        return InstanceType(
            name=self.names[number],
            requirements=Requirements(Requirement(key, values) for key, values in described.items()),
            offerings=tuple(offerings),
            capacity={name: int(amount) for name, amount in zip(RESOURCES, self.room[number], strict=True)},
        )

    def reservation(self, number: int, zone: int) -> str:
        """The id of a reservation."""
        return f"cr-{self.names[number]}-{zone}"

    def options(
        self, left: Mapping[tuple[int, int], int], policy: str = "WhenEmptyOrUnderutilized"
    ) -> tuple[PoolOption, ...]:
        """The pools with what they can buy while so many reserved places are left; made anew only where that changed."""
        key = (policy, *sorted(left.items()))
        if self._options is None or self._options[0] != key:
            types = self._types(left) if self.reserved else self.types
            made = []
            for name, team in self.pools:
                pool = self.pool(name, team, policy)
                made.append(PoolOption(pool=pool, catalog=self._pipeline.catalog(types, Adjustments(), pool)))
            self._options = (key, tuple(made))
        return self._options[1]

    @cache  # noqa: B019 - there are few shops
    def pool(self, name: str, team: str, policy: str) -> NodePool:
        """A NodePool with the default budget, whose nodes are quiet at once."""
        ways = [*self.ways, *([labels.RESERVED] if self.reserved else [])]
        document: dict[str, Any] = {
            "metadata": {"name": name},
            "spec": {
                "template": {
                    "metadata": {"labels": {TEAM: team}},
                    "spec": {
                        "requirements": [{"key": labels.CAPACITY_TYPE, "operator": "In", "values": ways}],
                        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                    },
                },
                "disruption": {
                    "consolidateAfter": "0s",
                    "consolidationPolicy": policy,
                    "budgets": [{"nodes": "10%"}],
                },
            },
        }
        return decode(document, NodePool)


def _offering(zone: int, way: str, price: float, count: int = UNLIMITED, reservation: str = "") -> Offering:
    identity = (
        Requirement.of(RESERVATION, "In", reservation) if reservation else Requirement.of(RESERVATION, "DoesNotExist")
    )
    own = Requirements.of_labels({labels.CAPACITY_TYPE: way, labels.ZONE: ZONES[zone]}).values()
    return Offering(
        requirements=Requirements([*own, identity]),
        price=price,
        available=count,
        divisor=RESERVED_DIVISOR if reservation else 1,
    )
