"""A picture of the cluster turned into a scheduling problem."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from joiner.model import labels
from joiner.model.claimconditions import LAUNCHED
from joiner.model.conditions import find
from joiner.model.labels import Vocabulary
from joiner.model.nodeclaim import NodeClaim
from joiner.model.pod import Pod
from joiner.requirements import Requirements
from joiner.scheduling.problem import Policy, PoolOption, Problem
from joiner.state.snapshot import Snapshot


def problem(
    snapshot: Snapshot,
    options: Iterable[PoolOption],
    *,
    virtual: tuple[Pod, ...] = (),
    policy: Policy,
    vocabulary: Vocabulary,
    stale_since: datetime | None = None,
) -> Problem:
    """Everything that waits for a place, and what decides where it can be.

    Where the types of a pool are old because newer ones could not be had, the moment they are of says what they cannot know.
    """
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
        promised=promised(snapshot, vocabulary, stale_since, pools),
        policy=policy,
        vocabulary=vocabulary,
    )


def promised(
    snapshot: Snapshot, vocabulary: Vocabulary, stale_since: datetime | None, options: Iterable[PoolOption]
) -> dict[str, int]:
    """Reservation to the claims that will be launched into it, or were after the counts that are known of it.

    A claim that names no reservation but may be launched into one, as those of static pools, takes a place where it can.
    """
    key, counts = vocabulary.reservation_id, Counter[str]()
    free: list[NodeClaim] = []
    for each in snapshot.unlaunched if key else ():
        if each.claim is not None and not each.deleting:
            listed = {w.key: w.values for w in each.claim.spec.requirements if w.operator == "In"}
            if len(listed.get(key, ())) == 1:
                counts.update(listed[key])
            elif labels.RESERVED in listed.get(labels.CAPACITY_TYPE, (labels.RESERVED,)):
                free.append(each.claim)
    for each in snapshot.nodes if key and stale_since is not None else ():
        reservation = each.claim.metadata.labels.get(key, "") if each.claim is not None and each.launched else ""
        if each.claim is not None and reservation and _launched_after(each.claim, stale_since):
            counts[reservation] += 1
    if free:
        _take_places(free, vocabulary, options, counts)
    return dict(sorted(counts.items()))


def _take_places(
    claims: Iterable[NodeClaim], vocabulary: Vocabulary, options: Iterable[PoolOption], counts: Counter[str]
) -> None:
    """Count each claim against the cheapest reservation that it may be launched into and that has a place left."""
    key = vocabulary.reservation_id
    reserved = sorted(
        {
            (option.pool.spec.template.spec.node_class_ref, offering.requirements): (kind, offering)
            for option in options
            for kind in option.catalog.types
            for offering in kind.offerings
            if offering.reserved and offering.launchable
        }.items(),
        key=lambda found: (found[1][1].cost, found[1][1].requirements.at(key).any() or ""),
    )
    for claim in claims if reserved else ():
        asked = Requirements.read(claim.spec.requirements, vocabulary)
        for (node_class, requirements), (kind, offering) in reserved:
            name = requirements.at(key).any() or ""
            fits = node_class == claim.spec.node_class_ref and requirements.intersects(asked)
            if fits and kind.requirements.intersects(asked) and counts[name] < offering.available:
                counts[name] += 1
                break


def _launched_after(claim: NodeClaim, moment: datetime | None) -> bool:
    """Conditions tell time in whole seconds."""
    launched = find(claim.status.conditions, LAUNCHED)
    at = launched.last_transition_time if launched is not None else None
    return at is not None and moment is not None and at >= moment.replace(microsecond=0)


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
