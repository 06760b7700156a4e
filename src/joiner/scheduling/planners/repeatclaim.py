"""Opens more claims identical to one just filled, while there are pods of the same sizes: plans are the same without it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from joiner.bitset import NO_RESERVATIONS
from joiner.scheduling.nodes.openclaim import Claim, Fitting
from joiner.scheduling.planners.podsizes import Share, Size

if TYPE_CHECKING:
    from joiner.scheduling.planners.valuegreedy import ValueGreedy


def repeat(run: "ValueGreedy", claim: Claim, most: int) -> int:
    """Open up to so many claims like one that was just filled, while there are pods of the same sizes; says how many.

    Only where nothing beyond the claim itself had a say in what it is: no limit, no reservation, no choice of a domain.
    """
    template = claim.template
    if most < 1 or template.left or run.reservations.holds(claim.number) is not None:
        return 0
    contents = _contents(run, claim)
    if contents is None:
        return 0
    most = min(most, *(_waiting(who) // count for who, count in contents.items()))
    found = Fitting(claim.requirements, claim.units, claim.amounts, NO_RESERVATIONS, claim.min_values)
    for made in range(most):
        if run.effort.spent():
            return made
        twin = Claim(len(run.claims), template)
        twin.cost_max = claim.cost_max
        run.claims.append(twin)
        drawn = [drawn for who, count in contents.items() for drawn in _drawn(who, count)]
        for share, some in drawn:
            share.size.left -= some
        run.commit_whole(twin, [(share.pod_class, share.next(some), share.step) for share, some in drawn], found)
        twin.first_units = claim.first_units
    return most


def _contents(run: "ValueGreedy", claim: Claim) -> dict[Size | Share, int] | None:
    """How many pods of each size are on a claim, or of each share where it matters which; nothing if others have a say."""
    counts: dict[int, int] = {}
    for _, positions, step in claim.parties:
        counts[id(step)] = counts.get(id(step), 0) + len(positions)
    found: dict[Size | Share, int] = {}
    for step_id, count in counts.items():
        share = run.share_of.get(step_id)
        if share is None or not share.by_itself:
            return None
        who = share.size if share.alike else share
        found[who] = found.get(who, 0) + count
    return found


def _waiting(who: Size | Share) -> int:
    shares = [who] if isinstance(who, Share) else who.shares
    return sum(len(share.positions) for share in shares if share is who or share.alike)


def _drawn(who: Size | Share, count: int) -> Iterator[tuple[Share, int]]:
    """Shares to take so many pods from."""
    for share in (who,) if isinstance(who, Share) else who.waiting():
        if share is who or share.alike:
            some = min(count, len(share.positions))
            yield share, some
            count -= some
            if not count:
                return
