"""The end of a run: open claims become planned claims, pods without a place get their reasons, and both become a plan."""

from typing import TYPE_CHECKING

from joiner.bitset import UnitSet
from joiner.catalog.market import Option
from joiner.model.resources import Resources
from joiner.requirements import Requirements
from joiner.scheduling.engine.pricing import held_offering, settled
from joiner.scheduling.nodes.launchterms import LaunchTerms
from joiner.scheduling.nodes.openclaim import MIN_VALUES, Claim
from joiner.scheduling.plan import Plan, PlannedClaim, Refusal, RefusalReason
from joiner.scheduling.report.droppedpreferences import given_up
from joiner.scheduling.report.refusal import explained
from joiner.scheduling.report.suggestions import Spelling

if TYPE_CHECKING:
    from joiner.scheduling.engine.firstfit import FirstFit


def to_plan(run: "FirstFit", ended: str = "") -> Plan:
    """The answer of a run, with everything there is to say about it, and what ended the search for a better one."""
    spelling = Spelling(run.problem)
    claims, dropped = _planned_claims(run)
    left = dict.fromkeys(run.of_pod[position] for position in run.left)
    reasons = {each.number: explained(run, each, spelling) for each in left}
    refused = {
        position: Refusal(pod=run.key(position), reasons=reasons[run.of_pod[position].number]) for position in run.left
    }
    refused.update(dropped)
    for position, each in enumerate(run.of_pod) if run.ignored else ():
        if each.number in run.ignored:
            why = run.ignored[each.number].reasons
            refused[position] = Refusal(pod=run.key(position), reasons=why, ignored=True)
    return Plan(
        claims=claims,
        placements={node.node.name: run.names_of(node.members) for node in run.nodes if node.members},
        refusals=tuple(refused[position] for position in sorted(refused)),
        given_up=given_up(run, spelling),
        not_attempted=tuple(run.key(position) for position in run.not_attempted),
        dropped=len(dropped),
        planner=run.planner,
        ended=ended,
    )


def _planned_claims(run: "FirstFit") -> tuple[tuple[PlannedClaim, ...], dict[int, Refusal]]:
    """The claims to buy, and the pods whose claim has more types than it may name, and is not as flexible without these."""
    planned: list[PlannedClaim] = []
    dropped: dict[int, Refusal] = {}
    for claim in run.claims:
        terms = _terms(run, claim)
        chosen = _truncated(run, claim, terms) if terms is not None else None
        if terms is None or chosen is None:
            dropped.update(_too_narrow(run, claim))
            continue
        held = run.reservations.holds(claim.number)
        planned.append(
            PlannedClaim(
                nodepool=claim.template.name,
                pods=run.names_of(claim.positions),
                requirements=_with_min_values(terms.requirements, claim),
                options=chosen,
                requests=_requests(run, claim),
                taints=claim.template.taints,
                reservations=(held,) if held is not None and held in claim.template.stock.reservation_ids else (),
                min_values_relaxed=claim.min_values != claim.template.min_values,
            )
        )
    return tuple(planned), dropped


def _terms(run: "FirstFit", claim: Claim) -> LaunchTerms | None:
    """What the claim is written as; one that goes into a reservation needs no choice."""
    requirements, held = settled(run, claim), run.reservations.holds(claim.number) is not None
    if not claim.template.stock.varies:
        return LaunchTerms(requirements, claim.units, {}, 0.0)
    min_values = {} if held else claim.min_values
    return run.launch_terms[claim.template.name].of(requirements, claim.units, min_values, reserved=held)


def _options(run: "FirstFit", claim: Claim, terms: LaunchTerms) -> tuple[Option, ...]:
    """One option for each type, cheapest first."""
    stock, held = claim.template.stock, run.reservations.holds(claim.number) is not None
    prices = stock.prices(terms.requirements, reserved=held)
    known = prices.options.get(terms.units)
    if known is None:
        named: dict[str, Option] = {}
        for each in prices.among(terms.units):
            named.setdefault(each.option.name, each.option)
        known = prices.options[terms.units] = tuple(named.values())
    first = held_offering(run, claim) if held and claim.needs_choice else None
    if first is not None and first is not known[0]:  # of machines that are counted, others may have the cheaper ones
        known = (first, *(each for each in known if each.name != first.name))
    return known


def _truncated(run: "FirstFit", claim: Claim, terms: LaunchTerms) -> tuple[Option, ...] | None:
    """The cheapest types, as many as a claim may name, and still as flexible as was asked for; nothing if that cannot be."""
    options, most = _options(run, claim, terms), run.policy.types_max
    if len(options) <= most:
        return options or None
    chosen = options[:most]
    if not claim.min_values or run.reservations.holds(claim.number) is not None:
        return chosen
    flexible = run.flexible[claim.template.name]
    names = {each.name for each in chosen}
    stock = claim.template.stock
    units = UnitSet(sum(1 << n for n, unit in enumerate(stock.units) if unit.name in names and terms.units >> n & 1))
    short = flexible.missing(claim.min_values, units, terms.requirements)
    if short and run.policy.min_values == "Strict":
        return None
    claim.min_values = {**claim.min_values, **short}
    return chosen


def _with_min_values(requirements: Requirements, claim: Claim) -> Requirements:
    if not claim.min_values:
        return requirements
    return Requirements(
        requirement.relaxed(claim.min_values.get(key)) if requirement.min_values is not None else requirement
        for key, requirement in requirements.items()
    )


def _too_narrow(run: "FirstFit", claim: Claim) -> dict[int, Refusal]:
    reason = RefusalReason(
        rule=MIN_VALUES,
        object=f"NodePool {claim.template.name}",
        message=f"the {run.policy.types_max} cheapest types do not leave the values that minValues asks for",
    )
    return {position: Refusal(pod=run.key(position), reasons=(reason,)) for position in claim.positions}


def _requests(run: "FirstFit", claim: Claim) -> Resources:
    """What pods ask for, and of the daemons what runs on every type that is left."""
    groups = [group for group in claim.template.daemons if group.units & claim.units]
    totals: dict[str, int] = {}
    for number, name in enumerate(run.names):
        least = min((group.amounts[number] for group in groups), default=0)
        amount = claim.amounts[number] + least
        if amount:
            totals[name] = amount
    return totals
