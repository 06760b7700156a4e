"""Who changed what: every price, capacity and overhead that differs from what the provider said, with the object to thank.

Nothing is recorded while the market is built; the questions are asked again, of the same functions, when somebody wants to know.
"""

from collections.abc import Iterator
from typing import Literal

from joiner.catalog.build import Catalog
from joiner.catalog.market import InstanceType, Offering
from joiner.catalog.overlay import NO_EFFECT, Effect
from joiner.model import labels, resources
from joiner.model.meta import Value
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.typesettings import InstanceTypeSettings


class Change(Value):
    """One thing that is not as the provider has it."""

    instance_type: str
    offering: str
    """`spot/us-west-2b`, with a reservation id where there is one; empty when it holds for the whole type."""
    field: str
    """`price`, `capacity.<resource>`, `overhead.<resource>` or `offering`."""
    before: str
    after: str
    kind: Literal["InstanceType", "NodeOverlay"]
    name: str
    """The object that did it."""


def changes(catalog: Catalog, instance_type: InstanceType) -> Iterator[Change]:
    """Everything that settings and overlays did to one type of the catalogue."""
    market = catalog.market
    number = next(i for i, each in enumerate(market.types) if each is instance_type)
    yield from _by_settings(market.raw[number], market.settled.types[number])
    yield from _by_overlays(market.settled.types[number], market.overlays.effects(market.settled.types[number]))


def place(offering: Offering) -> str:
    """The offering in a few characters: its capacity type and zone, then whatever else tells it apart."""
    settled = offering.requirements.labels()
    shown = [settled.pop(labels.CAPACITY_TYPE, "any"), settled.pop(labels.ZONE, "any zone")]
    own = [value for key, value in settled.items() if key.endswith("-reservation-id")]
    return "/".join([*shown, *own])


def price_text(offering: Offering) -> str:
    """The price as it is shown: enough digits to tell neighbours apart, `unknown` when nobody said."""
    return "unknown" if offering.price is None else f"{offering.cost:.10g}"


def _by_settings(raw: InstanceType, settled: InstanceType) -> Iterator[Change]:
    if raw is settled:
        return
    for name in sorted({*raw.capacity, *settled.capacity}):
        yield from _amount(raw, "capacity", name, raw.capacity.get(name), settled.capacity.get(name))
    for name in sorted({*raw.vm_overhead, *settled.vm_overhead}):
        yield from _amount(raw, "overhead", name, raw.vm_overhead.get(name), settled.vm_overhead.get(name))
    if raw.offerings is settled.offerings:
        return
    before = {place(offering): price_text(offering) for offering in raw.offerings}
    after = {_narrowed(raw, offering): offering for offering in settled.offerings}
    for where, offering in after.items():
        was = before.get(place(offering), "none")
        if was != price_text(offering):
            yield _change(raw, where, "price", was, price_text(offering), InstanceTypeSettings.kind, raw.name)
    kept = {place(offering) for offering in settled.offerings}
    for where in before:
        if where not in kept:
            yield _change(raw, where, "offering", "offered", "removed", InstanceTypeSettings.kind, raw.name)


def _narrowed(raw: InstanceType, offering: Offering) -> str:
    """The place, and the labels by which settings narrowed it."""
    provided = {key for each in raw.offerings for key in each.requirements}
    extra = [str(requirement) for key, requirement in offering.requirements.items() if key not in provided]
    return " ".join([place(offering), *extra])


def _amount(raw: InstanceType, field: str, name: str, before: int | None, after: int | None) -> Iterator[Change]:
    if (before or 0) != (after or 0):
        was, now = (resources.text(name, amount or 0) for amount in (before, after))
        yield _change(raw, "", f"{field}.{name}", was, now, InstanceTypeSettings.kind, raw.name)


def _by_overlays(settled: InstanceType, effects: tuple[Effect, ...]) -> Iterator[Change]:
    for offering, effect in zip(settled.offerings, effects, strict=True):
        if effect is NO_EFFECT:
            continue
        where, result = place(offering), effect.on(offering)
        if effect.price is not None:
            yield _change(
                settled, where, "price", price_text(offering), price_text(result), NodeOverlay.kind, effect.price.name
            )
        for name, by in effect.capacity.items():
            was = resources.text(name, offering.capacity.get(name, settled.capacity.get(name, 0)))
            now = resources.text(name, result.capacity[name])
            yield _change(settled, where, f"capacity.{name}", was, now, NodeOverlay.kind, by.name)
        for name, by in effect.overhead.items():
            was, now = (resources.text(name, each.overhead.get(name, 0)) for each in (offering, result))
            yield _change(settled, where, f"overhead.{name}", was, now, NodeOverlay.kind, by.name)


def _change(of: InstanceType, where: str, field: str, before: str, after: str, kind: str, name: str) -> Change:
    return Change(
        instance_type=of.name,
        offering=where,
        field=field,
        before=before,
        after=after,
        kind=kind,  # type: ignore[arg-type]
        name=name,
    )
