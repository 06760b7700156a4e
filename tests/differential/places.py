"""Where a plan puts pods: nodes that exist, and claims as every node they may still become."""

from dataclasses import dataclass, field
from functools import cached_property

from tests.differential.terms import (
    ABSENT,
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    REGISTERED,
    Allowed,
    Json,
    Labels,
    allowed,
    exactly,
    joined,
    requirements,
)
from tests.differential.world import Kind, Node, Pod, Pool, World


@dataclass(frozen=True)
class Violation:
    """A promise that a plan breaks."""

    rule: str
    where: str
    message: str
    quirk: str = ""
    """The name of the known habit of the reference that explains it, if one does."""

    def __str__(self) -> str:
        return f"{self.rule}{f' ({self.quirk})' if self.quirk else ''} at {self.where}: {self.message}"


@dataclass(frozen=True, eq=False)
class Place:
    """Pods that will share a node."""

    name: str
    pods: list[Pod]

    @property
    def forms(self) -> list[Labels]:
        """The labels of every node it may become."""
        raise NotImplementedError

    @property
    def residents(self) -> list[Pod]:
        """Pods that are there already and stay."""
        return []

    @property
    def taints(self) -> list[Json]:
        raise NotImplementedError

    @cached_property
    def _domains(self) -> dict[str, frozenset[str]]:
        return {}

    def domains(self, key: str) -> frozenset[str]:
        """The domains it may end up in; none when the label will not be there."""
        if key not in self._domains:
            found: set[str] = set()
            for form in self.forms:
                found |= form.get(key, ABSENT).values()
            self._domains[key] = frozenset(found)
        return self._domains[key]


@dataclass(frozen=True, eq=False)
class NodePlace(Place):
    """A node that exists or is on its way."""

    node: Node

    @property
    def forms(self) -> list[Labels]:
        return [self.node.wanted]

    @property
    def residents(self) -> list[Pod]:
        return self.node.pods

    @property
    def taints(self) -> list[Json]:
        return self.node.taints


@dataclass(frozen=True, eq=False)
class ClaimPlace(Place):
    """A node to buy."""

    written: Json
    pool: Pool
    world: World
    types: list[str] = field(default_factory=list)

    @cached_property
    def requirements(self) -> Labels:
        """What the claim says its node will be. A label that may be anything but something is there with another value."""
        parts = []
        for row in self.written.get("requirements") or ():
            if row["key"] == INSTANCE_TYPE:
                continue
            part = requirements([row])
            if row["operator"] == "NotIn":
                key = next(iter(part))
                part = {key: Allowed(excluded=part[key].excluded)}
            parts.append(part)
        return joined(*parts, {INSTANCE_TYPE: exactly(*self.types)})

    @cached_property
    def own(self) -> Labels:
        return joined(
            self.requirements,
            self.pool.labels,
            {REGISTERED: exactly("true"), INITIALIZED: exactly("true"), HOSTNAME: exactly(self.name)},
        )

    @cached_property
    def reservations(self) -> list[str]:
        named = self.requirements.get(self.world.options["reservationIDLabel"])
        return sorted(self.written.get("reservationIDs") or (named.values() if named and named.listed else ()))

    def becomes(self, kind: Kind, base: Labels | None = None) -> Labels | None:
        """The node this kind would be; None when the claim does not allow it."""
        node = dict(self.own if base is None else base)
        for key, value in kind.labels.items():
            if key in node:
                value = node[key] & value
                if value.impossible:
                    return None
            node[key] = value
        return node

    @cached_property
    def matching(self) -> list[tuple[Kind, Labels]]:
        """The listed kinds that fit the claim's requirements, launchable or not."""
        listed = set(self.types)
        found = ((kind, self.becomes(kind)) for kind in self.pool.kinds if kind.name in listed)
        return [(kind, node) for kind, node in found if node is not None]

    @cached_property
    def bought(self) -> list[tuple[Kind, Labels]]:
        """The kinds that it may be launched as; reserved ones only where it names a reservation."""
        return [
            (kind, node)
            for kind, node in self.matching
            if kind.launchable and (kind.capacity_type != "reserved" or kind.reservation in self.reservations)
        ]

    @cached_property
    def forms(self) -> list[Labels]:
        return [node for _, node in self.bought]

    @property
    def taints(self) -> list[Json]:
        return self.pool.taints

    @cached_property
    def freely(self) -> list[tuple[Kind, Labels]]:
        """What it could be launched as, had no reservation been chosen for it: what flexibility is counted over.

        A claim with a reservation lists only what the reservation has, so every kind of the pool counts, too small or not.
        """
        if not self.reservations:
            return self.bought
        markets = self.pool.requirements.get(CAPACITY_TYPE, allowed("Exists", ()))
        for pod in self.pods:
            wanted = [alternative.get(CAPACITY_TYPE) for alternative in pod.alternatives]
            if len(wanted) == 1 and wanted[0] is not None:
                markets = markets & wanted[0]
        kinds = self.pool.requirements.get(INSTANCE_TYPE, allowed("Exists", ()))
        base = {**self.own, CAPACITY_TYPE: markets, INSTANCE_TYPE: kinds}
        base.pop(self.world.options["reservationIDLabel"], None)
        found = ((kind, self.becomes(kind, base)) for kind in self.pool.kinds if kind.launchable)
        return [(kind, node) for kind, node in found if node is not None]
