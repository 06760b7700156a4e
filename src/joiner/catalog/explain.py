"""Which settings or overlay changed which price, capacity or overhead from what the provider said.

Nothing is recorded while the market is built; changes are computed again, by the same functions, when they are asked for.
"""

import math
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from joiner.catalog import overlay as overlaying
from joiner.catalog.build import Catalog
from joiner.catalog.market import InstanceType, Offering, Option
from joiner.catalog.overlay import CAPACITY, OVERHEAD, PRICE
from joiner.model import labels, resources
from joiner.model.meta import Value, replace
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.typesettings import InstanceTypeSettings
from joiner.requirements import Requirements


class Change(Value):
    """One value that is not the provider's."""

    instance_type: str
    offering: str
    """`spot/us-west-2b`, with a reservation id where there is one; empty when it holds for the whole type."""
    field: str
    """`price`, `capacity.<resource>`, `overhead.<resource>` or `offering`."""
    before: str
    after: str
    sizes: tuple[float, float]
    """Before and after as numbers, for sorting; an unknown price is infinite."""
    kind: Literal["InstanceType", "NodeOverlay"]
    name: str
    """The object that changed it."""
    buyable: bool
    """Whether it is about a type or offering that the pool can buy, or could if settings had not removed it."""
    reserved: bool
    """Whether it is about machines of a reservation, whose prices only serve for comparison."""


class Effect(Value):
    """What one object changed of everything a pool can buy, in one line."""

    kind: Literal["InstanceType", "NodeOverlay"]
    name: str
    field: str
    reserved: bool
    """Whether these are prices of reserved machines, which are listed apart from what is paid."""
    types: int
    offerings: int
    """How many offerings it changed; 0 when it holds for whole types."""
    before: tuple[str, str]
    """The smallest and the largest value before."""
    after: tuple[str, str]


def changes(catalog: Catalog, instance_type: InstanceType) -> Iterator[Change]:
    """Everything that settings and overlays changed of one type, also where the pool cannot buy it."""
    number = next(i for i, candidate in enumerate(catalog.types) if candidate is instance_type)
    return _changes(catalog, number)


def _changes(catalog: Catalog, number: int) -> Iterator[Change]:
    market, required = catalog.market, catalog.requirements
    settled, result = market.settled.types[number], market.types[number]
    matched = bool(market.index.described(required) >> number & 1)

    def buyable(offering: Offering | None) -> bool:
        if offering is None:
            return bool(catalog.eligible >> number & 1)
        return matched and market.index.allows(offering, required)

    yield from _by_settings(market.raw[number], settled, buyable)
    yield from _by_overlays(settled, result, market.overlays.effects(settled), buyable)


def effects(catalog: Catalog) -> tuple[Effect, ...]:
    """The changes to what a pool can buy, grouped by object and field; reserved prices apart."""
    groups: dict[tuple[str, str, str, bool], list[Change]] = {}
    matched = catalog.index.described(catalog.requirements)
    for number in range(len(catalog.types)):
        if matched >> number & 1:
            for change in _changes(catalog, number):
                if change.buyable:
                    apart = change.reserved and change.field == PRICE
                    groups.setdefault((change.kind, change.name, change.field, apart), []).append(change)
    return tuple(_effect(group, reserved=key[3]) for key, group in sorted(groups.items()))


def _effect(group: list[Change], *, reserved: bool) -> Effect:
    first = group[0]
    return Effect(
        kind=first.kind,
        name=first.name,
        field=first.field,
        reserved=reserved,
        types=len({change.instance_type for change in group}),
        offerings=sum(bool(change.offering) for change in group),
        before=_range([(change.sizes[0], change.before) for change in group]),
        after=_range([(change.sizes[1], change.after) for change in group]),
    )


def _range(values: list[tuple[float, str]]) -> tuple[str, str]:
    return min(values)[1], max(values)[1]


def before_overlays(catalog: Catalog, option: Option) -> Offering:
    """The offering of an option as it was before NodeOverlays: at the price of the provider or of InstanceType settings."""
    if not option.offering.price_overlaid:
        return option.offering
    names = (each.name for each in catalog.types)
    number = next(number for number, name in enumerate(names) if name == option.name)
    pairs = zip(catalog.market.settled.types[number].offerings, catalog.types[number].offerings, strict=True)
    own = (option.offering.requirements, option.offering.price)
    return next((before for before, after in pairs if (after.requirements, after.price) == own), option.offering)


def place(offering: Offering) -> str:
    """The offering in a few characters: its capacity type and zone, then its reservation id."""
    settled = offering.requirements.labels()
    shown = [settled.pop(labels.CAPACITY_TYPE, "any"), settled.pop(labels.ZONE, "any zone")]
    own = [value for key, value in settled.items() if offering.reserved and key.endswith("-reservation-id")]
    return "/".join([*shown, *own])


def bill_text(offering: Offering) -> str:
    """What an offering costs as it is shown; `paid` for a reservation, which costs nothing more."""
    return "paid" if offering.prepaid else price_text(offering.cost)


def price_text(cost: float) -> str:
    """A price as it is shown: enough digits to tell neighbours apart; `unknown` without one."""
    return "unknown" if math.isinf(cost) else f"{cost:.10g}"


Buyable = Callable[[Offering | None], bool]
"""Whether the pool can buy an offering; without one, the type."""


def _by_settings(raw: InstanceType, settled: InstanceType, buyable: Buyable) -> Iterator[Change]:
    if raw is settled:
        return
    by = (InstanceTypeSettings.kind, raw.name)
    whole = _Place(raw.name, "", buyable(None), reserved=False)
    for field, before, after in (
        (CAPACITY, raw.capacity, settled.capacity),
        (OVERHEAD, raw.vm_overhead, settled.vm_overhead),
    ):
        for name in sorted({*before, *after}):
            if before.get(name, 0) != after.get(name, 0):
                yield whole.amount(field, name, before.get(name, 0), after.get(name, 0), by)
    if raw.offerings is settled.offerings:
        return
    provided = {key for offering in raw.offerings for key in offering.requirements}
    were = {offering.requirements: offering for offering in raw.offerings}
    kept: set[Requirements] = set()
    for offering in settled.offerings:
        # Settings add labels to an offering of the provider, and leave those that it has.
        own = Requirements(requirement for key, requirement in offering.requirements.items() if key in provided)
        kept.add(own)
        if (was := were[own]).cost != offering.cost:
            here = _Place(raw.name, _narrowed(offering, provided), buyable(offering), reserved=offering.reserved)
            yield here.price(was.cost, offering.cost, by)
    for own, offering in were.items():
        if own not in kept:
            here = _Place(raw.name, place(offering), buyable(offering), reserved=offering.reserved)
            yield here.change("offering", ("offered", "removed"), (1, 0), by)


def _narrowed(offering: Offering, provided: set[str]) -> str:
    """The place, and the labels by which settings narrowed it."""
    extra = [str(requirement) for key, requirement in offering.requirements.items() if key not in provided]
    own = Requirements(requirement for key, requirement in offering.requirements.items() if key in provided)
    return " ".join([place(replace(offering, requirements=own)), *extra])


def _by_overlays(
    settled: InstanceType, overlaid: InstanceType, effects: tuple[overlaying.Effect, ...], buyable: Buyable
) -> Iterator[Change]:
    for offering, result, effect in zip(settled.offerings, overlaid.offerings, effects, strict=True):
        if effect is overlaying.NO_EFFECT:
            continue
        here = _Place(settled.name, place(offering), buyable(result), reserved=offering.reserved)
        if effect.price is not None:
            yield here.price(offering.cost, result.cost, (NodeOverlay.kind, effect.price.name))
        for name, overlay in effect.capacity.items():
            was = offering.capacity.get(name, settled.capacity.get(name, 0))
            yield here.amount(CAPACITY, name, was, result.capacity[name], (NodeOverlay.kind, overlay.name))
        for name, overlay in effect.overhead.items():
            was = offering.overhead.get(name, 0)
            yield here.amount(OVERHEAD, name, was, result.overhead[name], (NodeOverlay.kind, overlay.name))


class _Place(NamedTuple):
    """Where a change is: a type, and one of its offerings or all."""

    instance_type: str
    offering: str
    buyable: bool
    reserved: bool

    def amount(self, field: str, name: str, before: int, after: int, by: tuple[str, str]) -> Change:
        shown = (resources.text(name, before), resources.text(name, after))
        return self.change(f"{field}.{name}", shown, (before, after), by)

    def price(self, before: float, after: float, by: tuple[str, str]) -> Change:
        return self.change(PRICE, (price_text(before), price_text(after)), (before, after), by)

    def change(self, field: str, shown: tuple[str, str], sizes: tuple[float, float], by: tuple[str, str]) -> Change:
        return Change(
            field=field,
            before=shown[0],
            after=shown[1],
            sizes=sizes,
            kind=by[0],  # type: ignore[arg-type]
            name=by[1],
            **self._asdict(),
        )
