"""Limits that do not bind: a plan that was made without them is kept if its nodes stay within them.

While claims are open the largest type that a claim may be counts against the limits of its pool, so that a few claims with many
types seem to use up what would do for hundreds of nodes. Here a plan is looked at when it is complete: each claim needs room for
its cheapest type, for the types that minValues ask for, and for its width on the spot market. If that is within the limits, types
that are too large for what is left are taken off the claims, and nothing else changes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from joiner.bitset import NO_UNITS, UnitSet
from joiner.model.meta import replace
from joiner.model.quantity import MILLI
from joiner.model.resources import NODES
from joiner.scheduling.engine.prepared import PreparedProblem
from joiner.scheduling.nodes.openclaim import Claim
from joiner.scheduling.planners.spotflexibility import is_narrow
from joiner.scheduling.problem import PoolOption, Problem

if TYPE_CHECKING:
    from joiner.scheduling.engine.firstfit import FirstFit

Left = dict[str, int]
"""Resource to how much of it the limits of a pool leave."""


def limited(problem: Problem) -> bool:
    """Whether some pool has limits."""
    return any(option.pool.spec.limits for option in problem.pools)


def without(problem: Problem) -> Problem:
    """The same problem without limits."""
    return replace(problem, pools=tuple(_unlimited(option) for option in problem.pools))


def _unlimited(option: PoolOption) -> PoolOption:
    pool = option.pool
    return replace(option, pool=replace(pool, spec=replace(pool.spec, limits={}))) if pool.spec.limits else option


def surely_bind(problem: Problem, prepared: PreparedProblem) -> bool:
    """Whether all pods together ask for more than there is on nodes, and the limits of all pools leave."""
    left = [_left(option) for option in problem.pools]
    for at, name in enumerate(prepared.names):
        if all(name in some for some in left):
            asked = sum(prepared.classes[number].amounts[at] for number in prepared.numbers)
            on_nodes = sum(max(0, node.left[at]) for node in prepared.nodes())
            if asked > on_nodes + sum(max(0, some[name]) for some in left):
                return True
    return False


def _left(option: PoolOption) -> Left:
    return {name: int(amount) - option.used.get(name, 0) for name, amount in option.pool.spec.limits.items()}


def narrowed(run: "FirstFit", pools: Sequence[PoolOption]) -> bool:
    """Take types off the claims of a run until they are within the limits of these pools; says whether that can be done."""
    found: dict[int, UnitSet] = {}
    for option in pools:
        left = _left(option)
        claims = [claim for claim in run.claims if claim.template.name == option.pool.name]
        if not left or not claims:
            continue
        if left.get(NODES, len(claims) * MILLI) < len(claims) * MILLI:
            return False
        left.pop(NODES, None)
        units = _shared_out(run, claims, left, wide=True) or _shared_out(run, claims, left, wide=False)
        if units is None:
            return False
        found.update(units)
    for claim in run.claims:
        claim.units = found.get(claim.number, claim.units)
    return True


def _shared_out(run: "FirstFit", claims: list[Claim], left: Left, *, wide: bool) -> dict[int, UnitSet] | None:
    """For each claim the units that it may be within the limits; None if they leave too little."""
    needed = {claim.number: _needed(run, claim, left, wide) for claim in claims}
    spare = {name: amount - sum(some[name] for some in needed.values()) for name, amount in left.items()}
    if any(amount < 0 for amount in spare.values()):
        return None
    found: dict[int, UnitSet] = {}
    for done, claim in enumerate(claims):
        units = run.openings.to_be_had(claim)
        for name in left:
            share = needed[claim.number][name] + spare[name] // (len(claims) - done)
            units &= ~claim.template.stock.capacity(name).more_than(share)
        for name in left:
            spare[name] -= claim.template.stock.capacity(name).largest(units) - needed[claim.number][name]
        found[claim.number] = units
    return found


def _needed(run: "FirstFit", claim: Claim, left: Left, wide: bool) -> Left:
    """What the claim counts with as few types as will do: the cheapest ones."""
    stock, units = claim.template.stock, run.openings.to_be_had(claim)
    if run.reservations.holds(claim.number) is None:
        most = run.policy.spot_width if wide and not is_narrow(run, claim, run.policy.spot_width) else 0
        whole, units = claim.units, NO_UNITS
        for priced in stock.prices(claim.requirements).among(whole):
            units |= UnitSet(1 << priced.unit)
            claim.units = units
            if not run.openings.short(claim, units, claim.requirements) and not is_narrow(run, claim, most):
                break
        claim.units = whole
    return {name: stock.capacity(name).largest(units) for name in left}
