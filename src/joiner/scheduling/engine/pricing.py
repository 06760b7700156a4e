"""The end of a run: open claims become claims to buy, at the best offering each can get."""

import math
from typing import TYPE_CHECKING, Final

from joiner.catalog.market import Option
from joiner.catalog.units import Priced, Stock
from joiner.model import labels
from joiner.model.resources import Resources
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.nodes.openclaim import MIN_VALUES, Claim
from joiner.scheduling.nodes.template import Template
from joiner.scheduling.plan import PlannedClaim, Refusal, RefusalReason

if TYPE_CHECKING:
    from joiner.scheduling.engine.firstfit import FirstFit


def finished(run: "FirstFit") -> tuple[tuple[PlannedClaim, ...], dict[int, Refusal]]:
    """The claims to buy, and the pods whose claim turned out not to be flexible enough to be bought."""
    planned: list[PlannedClaim] = []
    dropped: dict[int, Refusal] = {}
    for claim in run.claims:
        requirements, options = _options(run, claim)
        chosen = _truncated(run, claim, requirements, options)
        if chosen is None:
            dropped.update(_too_narrow(run, claim))
            continue
        planned.append(
            PlannedClaim(
                nodepool=claim.template.name,
                pods=run.names_of(claim.positions),
                requirements=_with_min_values(requirements, claim),
                options=chosen,
                requests=_requests(run, claim),
                taints=claim.template.taints,
                reservations=tuple(n for n in _held(run, claim) if n in claim.template.stock.reservation_ids),
                min_values_relaxed=claim.min_values != claim.template.min_values,
            )
        )
    return tuple(planned), dropped


def rounded(price: float) -> float:
    """A price to compare: no decision rests on the last digits of a sum."""
    return float(f"{price:.9g}")


class Costs:
    """What a claim costs out of each reservation it could use."""

    def __init__(self, run: "FirstFit") -> None:
        self._run = run
        self._known: dict[tuple[int, str], float] = {}
        self._agreed: dict[tuple[Requirements, int], bool] = {}
        self.even = self._same_for_all()
        """What those reservations cost whose machines all cost the same, whoever gets them."""

    def __call__(self, claim: int, name: str) -> float:
        """The cost of one claim out of one reservation that it could use."""
        if name in self.even:
            return self.even[name]
        key = (claim, name)
        if key not in self._known:
            found = self._run.claims[claim]
            stock = found.template.stock
            if name in stock.reservation_ids:
                self._known[key] = self._by_id(found, name)
            else:
                best = stock.prices(_into(self._run, found, name), reserved=True).first(found.units)
                self._known[key] = math.inf if best is None else best.offering.cost
        return self._known[key]

    def _same_for_all(self) -> dict[str, float]:
        known: dict[str, set[float]] = {}
        stocks = {id(template.stock): template.stock for template in self._run.templates}
        for stock in stocks.values():
            for name in stock.reservation_ids:
                known.setdefault(name, set()).update(cost for _, _, cost in stock.reserved_ways(name))
        return {name: min(costs) for name, costs in known.items() if len(costs) == 1}

    def _by_id(self, claim: Claim, name: str) -> float:
        """A reservation with an id has few machines: those that the claim could be are looked at one by one."""
        costs = [
            cost
            for shape, unit, cost in claim.template.stock.reserved_ways(name)
            if claim.units >> unit & 1 and self._agree(claim.requirements, shape)
        ]
        return min(costs, default=math.inf)

    def _agree(self, requirements: Requirements, shape: Requirements) -> bool:
        question = (requirements, id(shape))
        if question not in self._agreed:
            self._agreed[question] = requirements.compatible(shape, self._run.vocabulary.well_known)
        return self._agreed[question]


def _into(run: "FirstFit", claim: Claim, name: str) -> Requirements:
    """What a node must be that is launched into a reservation."""
    pinned = [Requirement(labels.CAPACITY_TYPE, (labels.RESERVED,))]
    if name in claim.template.stock.reservation_ids:
        pinned.append(Requirement(run.vocabulary.reservation_id, (name,)))
    return Requirements((*claim.requirements.without(*(each.key for each in pinned)).values(), *pinned))


_ON_THE_MARKET: Final = Requirements([Requirement(labels.CAPACITY_TYPE, (labels.RESERVED,), complement=True)])


def _settled(run: "FirstFit", claim: Claim) -> Requirements:
    """What the node must be: into its reservation if it has one, and never into somebody else's."""
    held = run.reservations.holds(claim.number)
    if held is not None:
        return _into(run, claim, held)
    if claim.template.stock.reserved(claim.requirements):
        return run.joined.of(claim.requirements, _ON_THE_MARKET) or claim.requirements & _ON_THE_MARKET
    return claim.requirements


def _options(run: "FirstFit", claim: Claim) -> tuple[Requirements, tuple[Option, ...]]:
    """The types the claim may be, cheapest first, and the requirements under which every way to buy them will do.

    Where overlays make some offerings of a type a larger node than others, only the larger ones may do. Then the claim is
    held to the capacity type and zone of its best offering, or such types are left out.
    """
    stock, held = claim.template.stock, run.reservations.holds(claim.number) is not None
    requirements = _settled(run, claim)
    best = stock.prices(requirements, reserved=held).first(claim.units)
    if best is not None and _ambiguous(stock, claim, requirements, best, held):
        where = best.offering.requirements
        pinned = requirements & Requirements(where[key] for key in where if key in _PLACE)
        if not run.flexible[claim.template.name].missing(claim.min_values, claim.units, pinned, _held(run, claim)):
            requirements = pinned
    return requirements, _listed(stock, claim, requirements, held)


def _listed(stock: Stock, claim: Claim, requirements: Requirements, held: bool) -> tuple[Option, ...]:
    """One option for each type, cheapest first; types of which only some kinds of node would do are left out."""
    prices = stock.prices(requirements, reserved=held)
    known = prices.options.get(claim.units)
    if known is None:
        fitting = prices.among(claim.units)
        if stock.has_twins:
            named: dict[str, Priced] = {}
            for each in fitting:
                if not _ambiguous(stock, claim, requirements, each, held):
                    named.setdefault(each.option.name, each)
            fitting = list(named.values())
        known = prices.options[claim.units] = tuple([each.option for each in fitting])
    return known


def cheapest(run: "FirstFit", claim: Claim) -> float:
    """What the claim costs, bought as cheaply as it can be."""
    if run.reservations.holds(claim.number) is None:
        return on_the_market(run, claim.template, claim.requirements, claim.units)
    best = claim.template.stock.prices(_settled(run, claim), reserved=True).first(claim.units)
    return math.inf if best is None else best.offering.cost


def on_the_market(run: "FirstFit", template: Template, requirements: Requirements, units: int) -> float:
    """What the cheapest of some units costs without a reservation; infinite where none can be bought."""
    key = (template.name, requirements, units)
    known = run.market.get(key)
    if known is None:
        best = template.stock.prices(requirements).first(units)
        known = run.market[key] = math.inf if best is None else best.offering.cost
    return known


def _held(run: "FirstFit", claim: Claim) -> tuple[str, ...]:
    held = run.reservations.holds(claim.number)
    return () if held is None else (held,)


_PLACE: Final = (labels.CAPACITY_TYPE, labels.ZONE)


def _ambiguous(stock: Stock, claim: Claim, requirements: Requirements, priced: Priced, held: bool) -> bool:
    """Whether the type could also be bought as a kind of node that does not hold the claim's pods."""
    twins = stock.twins(priced.unit) & ~claim.units
    return bool(twins) and stock.prices(requirements, reserved=held).has(twins)


def _truncated(
    run: "FirstFit", claim: Claim, requirements: Requirements, options: tuple[Option, ...]
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
    stock = claim.template.stock
    units = sum(1 << n for n, unit in enumerate(stock.units) if unit.name in names and claim.units >> n & 1)
    short = flexible.missing(claim.min_values, units, requirements)
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
