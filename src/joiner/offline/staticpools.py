"""Static NodePools (`spec.replicas`) in a plan: the nodes that they still have to buy, which pods may then use.

Pods do not change their number of nodes. What is missing of it is bought at the best price, as the controllers would, and the
planner sees it as NodeClaims on their way.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from joiner.catalog import launchoptions
from joiner.catalog.build import Catalog
from joiner.catalog.market import Option
from joiner.model import labels
from joiner.model.meta import ObjectMeta
from joiner.model.node import Node
from joiner.model.nodeclaim import NodeClaim, NodeClaimSpec, NodeClaimStatus
from joiner.model.nodepool import NodePool
from joiner.model.quantity import MILLI, Quantity
from joiner.model.resources import NODES, Resources
from joiner.offline.catalogs import PoolView
from joiner.requirements import Requirements


@dataclass(frozen=True)
class StaticNode:
    """A node that a static NodePool would buy."""

    nodepool: str
    option: Option
    claim: NodeClaim
    """As the planner sees it: on its way, with everything its node will have."""

    @property
    def name(self) -> str:
        """The name under which the planner places pods on it."""
        return self.claim.name


@dataclass(frozen=True)
class StaticNodes:
    """What all static NodePools together would buy."""

    nodes: tuple[StaticNode, ...] = ()
    notes: tuple[str, ...] = ()
    reserved: Mapping[str, int] = field(default_factory=dict)
    """Reservation to how many of its machines these nodes take."""


NONE: Final = StaticNodes()


def static_nodes(views: Iterable[PoolView], nodes: Sequence[Node], claims: Sequence[NodeClaim]) -> StaticNodes:
    """The nodes that static pools have to buy beside those that are there."""
    found: list[StaticNode] = []
    notes: list[str] = []
    taken: Counter[str] = Counter()
    for view in views:
        pool = view.pool
        if pool.spec.replicas is None:
            continue
        there = _there(pool.name, nodes, claims)
        wanted, allowed = pool.spec.replicas - there, _room(pool, there)
        bought = list(_bought(view, min(wanted, allowed), taken))
        found += bought
        notes += _told(pool, there, wanted, allowed, len(bought))
    return StaticNodes(tuple(found), tuple(notes), taken)


def _there(pool: str, nodes: Iterable[Node], claims: Iterable[NodeClaim]) -> int:
    """How many nodes the pool has or is getting; a node and its claim count once."""
    own = [each for each in claims if _stays(each, pool)]
    claimed = {each.status.node_name for each in own} | {each.status.provider_id for each in own}
    alone = [each for each in nodes if _stays(each, pool) and claimed.isdisjoint({each.name, each.spec.provider_id})]
    return len(own) + len(alone)


def _stays(node: Node | NodeClaim, pool: str) -> bool:
    return node.metadata.labels.get(labels.NODEPOOL) == pool and node.metadata.deletion_timestamp is None


def _room(pool: NodePool, there: int) -> int:
    limit = pool.spec.limits.get(NODES)
    return (pool.spec.replicas or 0) if limit is None else limit // MILLI - there


def _bought(view: PoolView, count: int, taken: Counter[str]) -> Iterator[StaticNode]:
    """So many nodes, each as the best that is left: of a reservation there are only as many as it holds."""
    catalog = view.catalog
    key = catalog.market.vocabulary.reservation_id
    options = launchoptions.options(catalog, catalog.requirements, {}) if count > 0 else ()
    at = 0
    for number in range(count):
        while at < len(options):
            reservation = options[at].offering.requirements.labels().get(key, "") if key else ""
            if not reservation or taken[reservation] < options[at].offering.available:
                break
            at += 1
        else:
            return
        if reservation:
            taken[reservation] += 1
        yield StaticNode(view.pool.name, options[at], _claim(view.pool, catalog, options[at], number))


def _claim(pool: NodePool, catalog: Catalog, option: Option, number: int) -> NodeClaim:
    """The claim of such a node, launched and not registered yet."""
    template = pool.spec.template
    machine = next(each for each in catalog.types if each.name == option.name)
    settled: Requirements = catalog.requirements & machine.requirements & option.offering.requirements
    name = f"{pool.name}-static-{number}"
    return NodeClaim(
        metadata=ObjectMeta(name=name, labels={**settled.labels(), **template.metadata.labels}),
        spec=NodeClaimSpec(
            taints=template.spec.taints,
            startup_taints=template.spec.startup_taints,
            node_class_ref=template.spec.node_class_ref,
        ),
        status=NodeClaimStatus(
            provider_id=f"static:///{name}",
            capacity=_quantities({**machine.capacity, **option.offering.capacity}),
            allocatable=_quantities(machine.allocatable(option.offering)),
        ),
    )


def _quantities(amounts: Resources) -> dict[str, Quantity]:
    return {name: Quantity(amount) for name, amount in amounts.items()}


def _told(pool: NodePool, there: int, wanted: int, allowed: int, bought: int) -> Iterator[str]:
    head = f"NodePool {pool.name} is static (spec.replicas: {pool.spec.replicas})"
    if wanted < 0:
        yield f"{head} and has {there} nodes: {-wanted} of them would be removed, which this plan does not count"
    elif bought < wanted:
        why = (
            "spec.limits.nodes allows no more" if allowed <= bought else "nothing more of what it allows can be bought"
        )
        yield f"{head} and has {there}: {bought} are bought, {wanted - bought} are missing, because {why}"
