"""What a move may buy: only machines that are strictly cheaper than what goes, with as much choice as the pool asks for.

The dearest launch price of each new claim is added up, and the sum must stay below the price of what goes. Types are taken away
from the dearest on until it does; then minValues must still hold on every claim. A claim that may be spot or on demand is pinned
to spot, so that a failed launch cannot buy something dearer.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from joiner.catalog import launchoptions
from joiner.catalog.build import Catalog
from joiner.catalog.market import Option
from joiner.disruption.eligibility import Candidate
from joiner.disruption.nodeprice import NodePrice, of_offering, total
from joiner.model import labels
from joiner.model.meta import replace
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.plan import PlannedClaim

SPOT_CHOICE: Final = 15
"""How many cheaper types a spot node needs to be replaced by a spot node: with fewer it would be reclaimed the sooner."""


class Refused(Exception):
    """The claims cannot be bought for less; the message says why."""


class _Choice:
    """The types that one claim may be, with the dearest price each may be launched at."""

    def __init__(
        self, claim: PlannedClaim, catalog: Catalog, allowed: Requirements, worst: Mapping[str, float]
    ) -> None:
        self.claim, self.catalog, self.requirements = claim, catalog, allowed
        self.worst = dict(sorted(worst.items(), key=lambda each: (each[1], each[0])))
        """Cheapest first."""

    @property
    def dearest(self) -> float:
        return self.worst[next(reversed(self.worst))]

    def drop(self, name: str) -> None:
        del self.worst[name]

    def drop_dearest(self) -> None:
        self.worst.popitem()


class Bought(NamedTuple):
    """The claims as they may be written, and what they would cost."""

    claims: tuple[PlannedClaim, ...]
    price: NodePrice


def cheaper(
    claims: Sequence[PlannedClaim],
    catalogs: Mapping[str, Catalog],
    gone: Sequence[Candidate],
    *,
    spot_to_spot: bool,
) -> Bought:
    """The claims with the types that are strictly cheaper together than what goes. Raises Refused."""
    limit = total(each.price for each in gone).bill
    all_spot = all(each.state.labels.get(labels.CAPACITY_TYPE) == labels.SPOT for each in gone)
    reserved = [claim for claim in claims if claim.reservations]
    choices = [_choice(claim, catalogs[claim.nodepool]) for claim in claims if not claim.reservations]
    if len(gone) > 1:
        for choice in choices:
            _without_what_goes(choice, gone)
    _cut(choices, limit)
    found = list(reserved)
    for choice in choices:
        several = len(gone) > 1 and len(claims) == 1
        names = _enough(choice, all_spot=all_spot, spot_to_spot=spot_to_spot, several_for_one=several)
        found.append(_written(choice, names))
    return Bought(tuple(found), total(of_offering(claim.options[0].offering) for claim in found))


def _choice(claim: PlannedClaim, catalog: Catalog) -> _Choice:
    """The claim pinned to one way of paying."""
    names = {option.name for option in claim.options}
    ways = [
        option
        for option in launchoptions.options(catalog, claim.requirements, claim.requests)
        if option.name in names and not option.offering.reserved
    ]
    kinds = {option.offering.capacity_type for option in ways}
    if not kinds:
        raise Refused("nothing that it could be bought as can be launched now")
    pinned = labels.SPOT if labels.SPOT in kinds else labels.ON_DEMAND
    worst: dict[str, float] = {}
    for option in ways:
        if option.offering.capacity_type == pinned:
            worst[option.name] = max(worst.get(option.name, 0.0), option.offering.cost)
    allowed = claim.requirements & Requirements([_pin(claim.requirements, pinned)])
    return _Choice(claim, catalog, allowed, worst)


def _pin(requirements: Requirements, capacity_type: str) -> Requirement:
    return Requirement.of(
        labels.CAPACITY_TYPE, "In", capacity_type, min_values=requirements.at(labels.CAPACITY_TYPE).min_values
    )


def _without_what_goes(choice: _Choice, gone: Iterable[Candidate]) -> None:
    """Leave out what would only bring back a node that goes: removing the others would have done.

    Of the types that go and could be bought again the cheapest node counts: the claim must be cheaper than that.
    """
    prices = [
        each.price.bill
        for each in gone
        if each.price.bill and each.state.labels.get(labels.INSTANCE_TYPE) in choice.worst
    ]
    if not prices:
        return
    least = min(prices)
    for name in [name for name, price in choice.worst.items() if price >= least]:
        choice.drop(name)
    if not choice.worst:
        raise Refused("what would be bought is what goes: removing fewer nodes comes to the same")


def _cut(choices: list[_Choice], limit: float) -> None:
    """Take the dearest types away until even the dearest launch of every claim is cheaper than what goes."""
    while choices and sum(choice.dearest for choice in choices) >= limit:
        possible = [choice for choice in choices if len(choice.worst) > 1]
        if not possible:
            raise Refused("nothing that is for sale is cheaper than what it would replace")
        max(possible, key=lambda choice: (choice.dearest, choice.claim.nodepool, choice.claim.pods)).drop_dearest()


def _enough(choice: _Choice, *, all_spot: bool, spot_to_spot: bool, several_for_one: bool) -> tuple[str, ...]:
    """The names of the types that are launched with, cheapest first.

    `several_for_one`: whether one node takes the place of several. That cannot go on for ever, so few types will do there, as in
    Karpenter.
    """
    names = tuple(choice.worst)
    spot = choice.requirements.at(labels.CAPACITY_TYPE).values == {labels.SPOT}
    if all_spot and spot:
        if not spot_to_spot:
            raise Refused("spot nodes are not replaced by spot nodes while the gate SpotToSpotConsolidation is off")
        if len(names) < SPOT_CHOICE and not several_for_one:
            raise Refused(
                f"a spot node is replaced by a spot node only with {SPOT_CHOICE} cheaper types to choose from;"
                f" there are {len(names)}"
            )
    lacking = _shortfall(choice, names)
    if lacking:
        key, left = next(iter(sorted(lacking.items())))
        wanted = choice.requirements.at(key).min_values
        raise Refused(f"minValues of {key} is {wanted}, and the cheaper types leave {left}")
    if all_spot and spot and not several_for_one:
        kept = SPOT_CHOICE
        while kept < len(names) and _shortfall(choice, names[:kept]):
            kept += 1
        return names[:kept]
    return names


def _options(choice: _Choice, names: Iterable[str]) -> list[Option]:
    wanted = frozenset(names)
    found = launchoptions.options(choice.catalog, choice.requirements, choice.claim.requests)
    return [option for option in found if option.name in wanted and not option.offering.reserved]


def _shortfall(choice: _Choice, names: Sequence[str]) -> Mapping[str, int]:
    return launchoptions.shortfall(choice.catalog, choice.requirements, _options(choice, names))


def _written(choice: _Choice, names: Sequence[str]) -> PlannedClaim:
    best: dict[str, Option] = {}
    for option in _options(choice, names):
        best.setdefault(option.name, option)
    return replace(choice.claim, requirements=choice.requirements, options=tuple(best.values()))
