"""A picture of the cluster turned into a scheduling problem."""

from collections import Counter
from collections.abc import Iterable

from joiner.model.labels import Vocabulary
from joiner.model.pod import Pod
from joiner.scheduling.problem import Policy, PoolOption, Problem
from joiner.state.snapshot import Snapshot


def problem(
    snapshot: Snapshot,
    options: Iterable[PoolOption],
    *,
    virtual: tuple[Pod, ...] = (),
    policy: Policy,
    vocabulary: Vocabulary,
) -> Problem:
    """Everything that waits for a place, and what decides where it can be."""
    pools = tuple(options)
    for each in pools:
        vocabulary = vocabulary.extended(well_known=each.catalog.market.vocabulary.well_known)
    return Problem(
        pods=(*snapshot.waiting, *snapshot.evicted, *virtual),
        pools=pools,
        nodes=snapshot.existing,
        bound=snapshot.bound,
        bound_nodes=snapshot.bound_nodes,
        daemons=snapshot.daemons,
        namespaces=snapshot.namespaces,
        storage=snapshot.storage,
        promised=_promised(snapshot, vocabulary.reservation_id),
        policy=policy,
        vocabulary=vocabulary,
    )


def _promised(snapshot: Snapshot, key: str) -> dict[str, int]:
    """Reservation to the claims that will be launched into it."""
    counts: Counter[str] = Counter()
    for each in snapshot.unlaunched:
        if each.claim is not None and not each.deleting:
            counts.update(
                wanted.values[0]
                for wanted in each.claim.spec.requirements
                if key and wanted.key == key and wanted.operator == "In" and wanted.values
            )
    return dict(sorted(counts.items()))


def same(left: Problem, right: Problem) -> bool:
    """Whether two problems made from pictures ask the same. Parts that did not change are the same objects."""
    return (
        left.nodes is right.nodes
        and left.bound is right.bound
        and left.daemons is right.daemons
        and left.namespaces is right.namespaces
        and left.storage is right.storage
        and left.bound_nodes is right.bound_nodes
        and left.promised == right.promised
        and left.policy == right.policy
        and len(left.pods) == len(right.pods)
        and all(one is other or one == other for one, other in zip(left.pods, right.pods, strict=True))
        and len(left.pools) == len(right.pools)
        and all(map(_same_option, left.pools, right.pools))
    )


def _same_option(left: PoolOption, right: PoolOption) -> bool:
    return left.catalog is right.catalog and left.used == right.used and left.pool.spec == right.pool.spec
