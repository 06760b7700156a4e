"""Who changed what: every price, capacity and overhead that differs from what the provider said, with the object to thank.

Nothing is recorded while the market is built; the questions are asked again, of the same functions, when somebody wants to know.
"""

import math
from collections.abc import Iterator
from typing import Literal

from joiner.catalog import overlay as overlaying
from joiner.catalog.build import Catalog
from joiner.catalog.market import InstanceType, Offering
from joiner.model import labels, resources
from joiner.model.meta import Value
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.typesettings import InstanceTypeSettings
from joiner.requirements import EVERYTHING, Requirements


class Change(Value):
    """One thing that is not as the provider has it."""

    instance_type: str
    offering: str
    """`spot/us-west-2b`, with a reservation id where there is one; empty when it holds for the whole type."""
    field: str
    """`price`, `capacity.<resource>`, `overhead.<resource>` or `offering`."""
    before: str
    after: str
    sizes: tuple[float, float]
    """Before and after as numbers, to be put in order; an unknown price is infinite."""
    kind: Literal["InstanceType", "NodeOverlay"]
    name: str
    """The object that did it."""


class Effect(Value):
    """What one object did to everything a pool can buy, in one line."""

    kind: Literal["InstanceType", "NodeOverlay"]
    name: str
    field: str
    types: int
    offerings: int
    """How many offerings it touched; 0 when it holds for whole types."""
    before: tuple[str, str]
    """The smallest and the largest value before."""
    after: tuple[str, str]


def changes(catalog: Catalog, instance_type: InstanceType) -> Iterator[Change]:
    """Everything that settings and overlays did to one type of the catalogue."""
    market = catalog.market
    number = next(i for i, each in enumerate(market.types) if each is instance_type)
    return _changes(catalog, number)


def _changes(catalog: Catalog, number: int) -> Iterator[Change]:
    market = catalog.market
    settled = market.settled.types[number]
    yield from _by_settings(market.raw[number], settled)
    yield from _by_overlays(settled, market.overlays.effects(settled))


def effects(catalog: Catalog) -> tuple[Effect, ...]:
    """The changes to the types a pool can buy, gathered by the object and field that made them."""
    gathered: dict[tuple[str, str, str], list[Change]] = {}
    for number in range(len(catalog.types)):
        if catalog.eligible >> number & 1:
            for change in _changes(catalog, number):
                gathered.setdefault((change.kind, change.name, change.field), []).append(change)
    return tuple(_gathered(found) for _, found in sorted(gathered.items()))


def _gathered(found: list[Change]) -> Effect:
    first = found[0]
    return Effect(
        kind=first.kind,
        name=first.name,
        field=first.field,
        types=len({change.instance_type for change in found}),
        offerings=sum(bool(change.offering) for change in found),
        before=_range([(change.sizes[0], change.before) for change in found]),
        after=_range([(change.sizes[1], change.after) for change in found]),
    )


def _range(values: list[tuple[float, str]]) -> tuple[str, str]:
    return min(values)[1], max(values)[1]


class Stage(Value):
    """How many types were left after one demand."""

    demand: str
    types: int


def funnel(catalog: Catalog) -> tuple[Stage, ...]:
    """Why the other types cannot be bought by the pool: the types that are left after each demand, one after the other."""
    index = catalog.index
    stages = [Stage(demand="known to the provider", types=len(catalog.types))]
    left = index.buyable(EVERYTHING)
    stages.append(Stage(demand="something available at a known price", types=left.bit_count()))
    for requirement in catalog.requirements.values():
        before, left = left, left & index.select(Requirements([requirement]))
        if left != before:
            stages.append(Stage(demand=str(requirement), types=left.bit_count()))
    if left != catalog.eligible:
        stages.append(Stage(demand="all of these in one offering", types=catalog.eligible.bit_count()))
    return tuple(stages)


def place(offering: Offering) -> str:
    """The offering in a few characters: its capacity type and zone, then whatever else tells it apart."""
    settled = offering.requirements.labels()
    shown = [settled.pop(labels.CAPACITY_TYPE, "any"), settled.pop(labels.ZONE, "any zone")]
    own = [value for key, value in settled.items() if key.endswith("-reservation-id")]
    return "/".join([*shown, *own])


def price_text(cost: float) -> str:
    """A price as it is shown: enough digits to tell neighbours apart, `unknown` when nobody said."""
    return "unknown" if math.isinf(cost) else f"{cost:.10g}"


def _by_settings(raw: InstanceType, settled: InstanceType) -> Iterator[Change]:
    if raw is settled:
        return
    by = (InstanceTypeSettings.kind, raw.name)
    for field, before, after in (
        ("capacity", raw.capacity, settled.capacity),
        ("overhead", raw.vm_overhead, settled.vm_overhead),
    ):
        for name in sorted({*before, *after}):
            if before.get(name, 0) != after.get(name, 0):
                yield _amount(raw, "", field, name, before.get(name, 0), after.get(name, 0), by)
    if raw.offerings is settled.offerings:
        return
    costs = {place(offering): offering.cost for offering in raw.offerings}
    provided = {key for offering in raw.offerings for key in offering.requirements}
    for offering in settled.offerings:
        if (was := costs[place(offering)]) != offering.cost:
            yield _price(raw, _narrowed(offering, provided), was, offering.cost, by)
    kept = {place(offering) for offering in settled.offerings}
    for where in costs:
        if where not in kept:
            yield _change(raw, where, "offering", ("offered", "removed"), (1, 0), by)


def _narrowed(offering: Offering, provided: set[str]) -> str:
    """The place, and the labels by which settings narrowed it."""
    extra = [str(requirement) for key, requirement in offering.requirements.items() if key not in provided]
    return " ".join([place(offering), *extra])


def _by_overlays(settled: InstanceType, effects: tuple[overlaying.Effect, ...]) -> Iterator[Change]:
    for offering, effect in zip(settled.offerings, effects, strict=True):
        if effect is overlaying.NO_EFFECT:
            continue
        where, result = place(offering), effect.on(offering)
        if effect.price is not None:
            yield _price(settled, where, offering.cost, result.cost, (NodeOverlay.kind, effect.price.name))
        for name, overlay in effect.capacity.items():
            was = offering.capacity.get(name, settled.capacity.get(name, 0))
            yield _amount(
                settled, where, "capacity", name, was, result.capacity[name], (NodeOverlay.kind, overlay.name)
            )
        for name, overlay in effect.overhead.items():
            was = offering.overhead.get(name, 0)
            yield _amount(
                settled, where, "overhead", name, was, result.overhead[name], (NodeOverlay.kind, overlay.name)
            )


def _amount(
    of: InstanceType, where: str, field: str, name: str, before: int, after: int, by: tuple[str, str]
) -> Change:
    shown = (resources.text(name, before), resources.text(name, after))
    return _change(of, where, f"{field}.{name}", shown, (before, after), by)


def _price(of: InstanceType, where: str, before: float, after: float, by: tuple[str, str]) -> Change:
    return _change(of, where, "price", (price_text(before), price_text(after)), (before, after), by)


def _change(
    of: InstanceType, where: str, field: str, shown: tuple[str, str], sizes: tuple[float, float], by: tuple[str, str]
) -> Change:
    return Change(
        instance_type=of.name,
        offering=where,
        field=field,
        before=shown[0],
        after=shown[1],
        sizes=sizes,
        kind=by[0],  # type: ignore[arg-type]
        name=by[1],
    )
