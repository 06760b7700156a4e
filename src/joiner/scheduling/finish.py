"""The end of a run: open claims become claims to buy, at the best offering each can get."""

from typing import TYPE_CHECKING

from joiner.model import labels
from joiner.model.resources import Resources
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.claims import MIN_VALUES, Claim
from joiner.scheduling.plan import Option, PlannedClaim, Reason, Refusal
from joiner.scheduling.stock import Priced, Stock

if TYPE_CHECKING:
    from joiner.scheduling.run import Run


def finished(run: "Run") -> tuple[tuple[PlannedClaim, ...], dict[int, Refusal]]:
    """The claims to buy, and the pods whose claim turned out not to be flexible enough to be bought."""
    planned: list[PlannedClaim] = []
    dropped: dict[int, Refusal] = {}
    for claim in run.claims:
        requirements = _settled(run, claim)
        held = run.reservations.holds(claim.number) is not None
        prices = claim.template.stock.prices(requirements, reserved=held)
        priced = [each for each in prices.best if claim.units >> each.unit & 1]
        options = _options(claim.template.stock, priced)
        chosen = _truncated(run, claim, requirements, options)
        if chosen is None:
            dropped.update(_too_narrow(run, claim))
            continue
        planned.append(
            PlannedClaim(
                nodepool=claim.template.name,
                pods=tuple(sorted(run.key(position) for _, position, _ in claim.members)),
                requirements=_with_min_values(requirements, claim),
                options=chosen,
                requests=_requests(run, claim),
                taints=claim.template.taints,
                reservations=tuple(filter(None, [run.reservations.holds(claim.number)])),
                min_values_relaxed=claim.min_values != claim.template.min_values,
            )
        )
    return tuple(planned), dropped


def _settled(run: "Run", claim: Claim) -> Requirements:
    """What the node must be: into its reservation if it has one, and never into somebody else's."""
    held = run.reservations.holds(claim.number)
    key = run.vocabulary.reservation_id
    if held is not None:
        pinned = [Requirement(labels.CAPACITY_TYPE, (labels.RESERVED,))]
        if key:
            pinned.append(Requirement(key, (held,)))
        return Requirements((*claim.requirements.without(*(each.key for each in pinned)).values(), *pinned))
    if claim.template.stock.reserved(claim.requirements):
        return claim.requirements & Requirements(
            [Requirement(labels.CAPACITY_TYPE, (labels.RESERVED,), complement=True)]
        )
    return claim.requirements


def _options(stock: Stock, priced: list[Priced]) -> tuple[Option, ...]:
    """One option for each type, at the best of its units; they come cheapest first."""
    best: dict[str, Option] = {}
    for each in priced:
        name = stock.units[each.unit].name
        if name not in best:
            best[name] = Option(name=name, offering=each.offering)
    return tuple(best.values())


def _truncated(
    run: "Run", claim: Claim, requirements: Requirements, options: tuple[Option, ...]
) -> tuple[Option, ...] | None:
    """The cheapest types, as many as a claim may name, and still as flexible as was asked for; nothing if that cannot be."""
    most = run.policy.types_max
    if len(options) <= most:
        return options or None
    chosen = options[:most]
    if not claim.min_values or run.reservations.holds(claim.number) is not None:
        return chosen
    flexible = run.flexible[claim.template.name]
    names = {each.name for each in chosen}
    units = sum(
        1 << n for n, unit in enumerate(claim.template.stock.units) if unit.name in names and claim.units >> n & 1
    )
    if flexible.missing(claim.min_values, units, requirements) and run.policy.min_values == "Strict":
        return None
    return chosen


def _with_min_values(requirements: Requirements, claim: Claim) -> Requirements:
    if not claim.min_values:
        return requirements
    return Requirements(
        requirement.relaxed(claim.min_values.get(key)) if requirement.min_values is not None else requirement
        for key, requirement in requirements.items()
    )


def _too_narrow(run: "Run", claim: Claim) -> dict[int, Refusal]:
    reason = Reason(
        rule=MIN_VALUES,
        object=f"NodePool {claim.template.name}",
        message=f"the {run.policy.types_max} cheapest types do not leave the values that minValues asks for",
    )
    return {position: Refusal(pod=run.key(position), reasons=(reason,)) for _, position, _ in claim.members}


def _requests(run: "Run", claim: Claim) -> Resources:
    """What pods ask for, and of the daemons what runs on every type that is left."""
    groups = [group for group in claim.template.daemons if group.units & claim.units]
    totals: dict[str, int] = {}
    for number, name in enumerate(run.names):
        least = min((group.amounts[number] for group in groups), default=0)
        amount = claim.amounts[number] + least
        if amount:
            totals[name] = amount
    return totals
