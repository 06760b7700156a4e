"""What open claims cost: on the market, or out of the reservation that they hold."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from joiner.bitset import UnitSet
from joiner.catalog.market import RESERVED_DIVISOR, Offering, Option
from joiner.model import labels
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.nodes.openclaim import Claim
from joiner.scheduling.nodes.template import Template

if TYPE_CHECKING:
    from joiner.scheduling.engine.firstfit import FirstFit


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
        """What those reservations cost whose machines all cost the same for every claim."""

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
                best = stock.prices(_into(found, name), reserved=True).first(found.units)
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


def _into(claim: Claim, name: str) -> Requirements:
    """What a node must be that is launched into a reservation, or as one of the machines that a provider has so many of."""
    pins = claim.template.stock.pins(name)
    return Requirements((*claim.requirements.without(*pins).values(), *pins.values()))


_ON_THE_MARKET: Final = Requirements([Requirement(labels.CAPACITY_TYPE, (labels.RESERVED,), complement=True)])


def settled(run: "FirstFit", claim: Claim) -> Requirements:
    """What the node must be: into the claim's reservation if it has one, and never into that of another claim."""
    held = run.reservations.holds(claim.number)
    if held is not None and not (claim.needs_choice and held in claim.template.stock.counted_names):
        return _into(claim, held)
    if claim.template.stock.reserved(claim.requirements):
        return run.joined.of(claim.requirements, _ON_THE_MARKET) or claim.requirements & _ON_THE_MARKET
    return claim.requirements


def cheapest(run: "FirstFit", claim: Claim) -> float:
    """What the claim costs, bought as cheaply as it can be."""
    held = held_offering(run, claim)
    if held is not None:
        return held.offering.cost
    return on_the_market(run, claim.template, claim.requirements, claim.units, claim.min_values)


def compared(run: "FirstFit", claim: Claim) -> float:
    """What the claim counts when plans are compared: out of a reservation next to nothing, whatever price it is given."""
    held = held_offering(run, claim)
    return cheapest(run, claim) if held is None else compared_cost(held.offering)


def held_offering(run: "FirstFit", claim: Claim) -> Option | None:
    """What the claim is launched as out of the reservation that it holds, or as the machine that is counted for it."""
    held = run.reservations.holds(claim.number)
    if held is None:
        return None
    best = claim.template.stock.prices(_into(claim, held), reserved=True).first(claim.units)
    assert best is not None, "a claim holds a reservation that has no machine for it"
    return best.option


def compared_cost(offering: Offering) -> float:
    """The price to compare: of a reserved offering below every other one, a smaller machine below a larger one."""
    if not offering.reserved:
        return offering.cost
    return offering.cost if offering.divisor > 1 else offering.cost / RESERVED_DIVISOR


def on_the_market(
    run: "FirstFit",
    template: Template,
    requirements: Requirements,
    units: UnitSet,
    min_values: Mapping[str, int] | None = None,
) -> float:
    """What the cheapest of some units costs without a reservation; infinite where none can be bought.

    Where offerings of one type differ, minValues may keep a claim from its cheapest ones.
    """
    if min_values and template.stock.varies:
        terms = run.launch_terms[template.name].of(requirements, units, min_values)
        return math.inf if terms is None else terms.price
    key = (template.name, requirements, units)
    known = run.market.get(key)
    if known is None:
        best = template.stock.prices(requirements).first(units)
        known = run.market[key] = math.inf if best is None else best.offering.cost
    return known
