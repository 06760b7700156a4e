"""What claims count against the limits of their pool before it is known which machine they will be."""

from collections.abc import Iterable, Mapping

from joiner.bitset import UnitSet
from joiner.catalog.build import Catalog
from joiner.model import labels
from joiner.model.nodeclaim import NodeClaim
from joiner.model.resources import NODES, Resources
from joiner.state.snapshot import Snapshot


def most(catalog: Catalog, types: Iterable[str], names: Iterable[str]) -> Resources:
    """The largest capacity that a node of one of these types can have, by resource."""
    stock, wanted = catalog.market.stock, frozenset(types)
    units = UnitSet(sum(1 << number for number, unit in enumerate(stock.units) if unit.name in wanted))
    return {name: stock.capacity(name).largest(units) for name in names if name != NODES}


def types_of(claim: NodeClaim) -> tuple[str, ...]:
    """The types that a claim names; none when it may be any."""
    found = (each for each in claim.spec.requirements if each.key == labels.INSTANCE_TYPE and each.operator == "In")
    return tuple(name for each in found for name in each.values)


def used_by(snapshot: Snapshot, pool: str, limits: Mapping[str, int], catalog: Catalog) -> Resources:
    """What the pool has and will have: claims that are not launched count as the largest machine they may become."""
    total = dict(snapshot.used.get(pool, {}))
    for each in snapshot.unlaunched:
        if each.nodepool == pool and not each.deleting and each.claim is not None and limits:
            for name, amount in most(catalog, types_of(each.claim), limits).items():
                total[name] = total.get(name, 0) + amount
    return total
