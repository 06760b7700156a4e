"""NodeOverlays applied to types: which overlay matches which offering, and what the merged effect is.

Overlays match offerings. Per field (price, each capacity resource, each overhead resource) the highest weight wins and nothing
stacks. Overlays of equal weight that set the same field on the same offering are a misconfiguration: they merge in
alphabetical order, the later name wins, and the conflict is reported on both.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from joiner.bitset import OverlaySet
from joiner.catalog.market import InstanceType, Offering
from joiner.model import labels
from joiner.model.labels import Vocabulary
from joiner.model.meta import Value, replace
from joiner.model.nodeoverlay import NodeOverlay
from joiner.model.nodepool import NodePool
from joiner.requirements import Requirement, Requirements

PRICE = "price"
CAPACITY = "capacity"
OVERHEAD = "overhead"


class Conflict(Value):
    """Two overlays of one weight that set the same field on the same offering."""

    loser: str
    winner: str
    field: str
    """`price`, `capacity.<resource>` or `overhead.<resource>`."""
    example: str
    """An instance type on which it happens."""


class Effect(Value):
    """What a set of overlays does to an offering: the winner of each field."""

    price: NodeOverlay | None = None
    capacity: Mapping[str, NodeOverlay] = {}
    overhead: Mapping[str, NodeOverlay] = {}
    clashes: tuple[tuple[str, str, str], ...] = ()
    """Loser, winner and field of each misconfiguration."""

    def on(self, offering: Offering) -> Offering:
        """The offering with the overlays applied. Availability, counts and every other field stay."""
        price = offering.price if self.price is None else adjusted(offering.price, self.price)
        return replace(
            offering,
            price=price,
            price_overlaid=self.price is not None,
            capacity={**offering.capacity, **{name: int(by.spec.capacity[name]) for name, by in self.capacity.items()}},
            overhead={**offering.overhead, **{name: int(by.spec.overhead[name]) for name, by in self.overhead.items()}},
        )


NO_EFFECT = Effect()


def adjusted(price: float | None, overlay: NodeOverlay) -> float | None:
    """The price after one overlay: replaced, multiplied or moved, and never below zero. An unknown price can only be replaced."""
    spec = overlay.spec
    if spec.price is not None:
        return float(spec.price)
    if price is None:
        return None
    if spec.price_percent is not None:
        return max(0.0, price * spec.price_percent / 100)
    if spec.price_adjustment is None:
        return price
    text = spec.price_adjustment
    if text.endswith("%"):
        # The factor is exact before it meets the price: 1.5 at -25% is 1.125 and 10 at -10% is 9.
        return max(0.0, price * float(1 + Decimal(text[:-1]) / 100))
    return max(0.0, price + float(text))


def sets_price(overlay: NodeOverlay) -> bool:
    """Whether the overlay sets or changes prices."""
    spec = overlay.spec
    return spec.price is not None or spec.price_adjustment is not None or spec.price_percent is not None


def selector(overlay: NodeOverlay, vocabulary: Vocabulary) -> tuple[Requirement, ...]:
    """Everything an offering must satisfy, from both spellings. The parts are not merged: each has to match by itself."""
    spec = overlay.spec
    spelled = Requirements.of_labels(spec.selector.match_labels, vocabulary).values()
    written = (*spec.selector.match_expressions, *spec.requirements)
    parts = (*spelled, *(Requirement.read(entry, vocabulary) for entry in written))
    return tuple(_renamed(part) if part.key == labels.NODEPOOL_SEED_SPELLING else part for part in parts)


def _renamed(part: Requirement) -> Requirement:
    return Requirement(
        labels.NODEPOOL,
        part.values,
        complement=part.complement,
        gte=part.gte,
        lte=part.lte,
        must_exist=part.must_exist,
    )


def pool_labels(pool: NodePool, vocabulary: Vocabulary) -> Requirements:
    """What is known of every node of a pool before it is bought: its requirements, labels, name and NodeClass."""
    template = pool.spec.template
    settled = {**template.metadata.labels, labels.NODEPOOL: pool.name}
    if template.spec.node_class_ref.name:
        settled[template.spec.node_class_ref.label_key] = template.spec.node_class_ref.name
    return Requirements.read(template.spec.requirements, vocabulary) & Requirements.of_labels(settled, vocabulary)


class Overlays:
    """The overlays in the order in which they merge, ready to be matched against the offerings of one pool.

    A set of overlays is an integer with one bit each. For every label some selector asks for, each different thing that
    can be known about it is evaluated once; the overlays of an offering are then a few `&`.
    """

    def __init__(self, overlays: Iterable[NodeOverlay], pool: Requirements, vocabulary: Vocabulary) -> None:
        self._overlays = tuple(sorted(overlays, key=lambda overlay: (overlay.spec.weight, overlay.name)))
        self._pool = pool
        self._parts: dict[str, list[tuple[OverlaySet, Requirement]]] = {}
        for number, overlay in enumerate(self._overlays):
            for part in selector(overlay, vocabulary):
                self._parts.setdefault(part.key, []).append((OverlaySet(1 << number), part))
        self._all = OverlaySet((1 << len(self._overlays)) - 1)
        self._matching: dict[tuple[str, Requirement | None, Requirement | None], OverlaySet] = {}
        self._effects: dict[OverlaySet, Effect] = {OverlaySet(0): NO_EFFECT}

    def __len__(self) -> int:
        return len(self._overlays)

    def effects(self, instance_type: InstanceType) -> tuple[Effect, ...]:
        """For each offering of the type, what the overlays do to it."""
        return tuple(map(self._effect, self.matching(instance_type)))

    def names(self, mask: OverlaySet) -> frozenset[str]:
        """The names of a set of overlays."""
        return frozenset(overlay.name for number, overlay in enumerate(self._overlays) if mask >> number & 1)

    def matching(self, instance_type: InstanceType) -> tuple[OverlaySet, ...]:
        """For each offering of the type, the set of overlays that match it."""
        offered = {key for offering in instance_type.offerings for key in offering.requirements}
        of_type = instance_type.requirements
        matching = self._all
        for key in self._parts:
            if key not in offered:
                matching &= self._for_label(key, of_type.get(key), None)
        if not matching:
            return (OverlaySet(0),) * len(instance_type.offerings)
        keys = [(key, of_type.get(key)) for key in self._parts if key in offered]
        return tuple(self._of_offering(matching, keys, offering) for offering in instance_type.offerings)

    def _of_offering(
        self, matching: OverlaySet, keys: list[tuple[str, Requirement | None]], offering: Offering
    ) -> OverlaySet:
        for key, of_type in keys:
            matching &= self._for_label(key, of_type, offering.requirements.get(key))
        return matching

    def _effect(self, matching: OverlaySet) -> Effect:
        effect = self._effects.get(matching)
        if effect is None:
            members = [overlay for number, overlay in enumerate(self._overlays) if matching >> number & 1]
            effect = self._effects[matching] = _merged(members)
        return effect

    def _for_label(self, key: str, of_type: Requirement | None, of_offering: Requirement | None) -> OverlaySet:
        """The overlays whose selectors allow what is known about one label."""
        known = (key, of_type, of_offering)
        matching = self._matching.get(known)
        if matching is None:
            pool = self._pool.get(key)
            matching = self._all
            for bit, part in self._parts[key]:
                if not matches(part, pool, of_type, of_offering):
                    matching &= ~bit
            self._matching[known] = matching
        return matching


def relevant(
    overlays: Iterable[NodeOverlay], pool: Requirements, described: frozenset[str], vocabulary: Vocabulary
) -> tuple[NodeOverlay, ...]:
    """The overlays that can match nodes of the pool at all, as far as labels show that no type or offering defines."""
    return tuple(
        overlay
        for overlay in overlays
        if all(
            part.key in described or matches(part, pool.get(part.key), None, None)
            for part in selector(overlay, vocabulary)
        )
    )


def matches(
    part: Requirement, pool: Requirement | None, of_type: Requirement | None, of_offering: Requirement | None
) -> bool:
    """Whether nodes with these requirements on the key match a part of a selector.

    Every value that pool, type and offering leave open must match: an overlay counts only where it is certain. A label that is
    defined nowhere is only matched by `NotIn` and `DoesNotExist`.
    """
    known: Requirement | None = None
    for requirement in (pool, of_type, of_offering):
        if requirement is not None:
            known = requirement if known is None else known & requirement
    if known is None:
        return part.allows_absence
    return known.is_within(part)


def _merged(overlays: list[NodeOverlay]) -> Effect:
    """The winners, from overlays in rising order of weight and name: the last one wins."""
    if not overlays:
        return NO_EFFECT
    setters: dict[tuple[str, str], list[NodeOverlay]] = {}
    for overlay in overlays:
        for field in _fields(overlay):
            setters.setdefault(field, []).append(overlay)
    winners = {field: overlays_of[-1] for field, overlays_of in setters.items()}
    price = winners.pop((PRICE, ""), None)
    return Effect(
        price=price,
        capacity={resource: winner for (field, resource), winner in winners.items() if field == CAPACITY},
        overhead={resource: winner for (field, resource), winner in winners.items() if field == OVERHEAD},
        clashes=tuple(clash for field, overlays_of in setters.items() for clash in _clashes(field, overlays_of)),
    )


def _fields(overlay: NodeOverlay) -> list[tuple[str, str]]:
    fields = [(PRICE, "")] if sets_price(overlay) else []
    fields += [(CAPACITY, name) for name in sorted(overlay.spec.capacity)]
    return fields + [(OVERHEAD, name) for name in sorted(overlay.spec.overhead)]


def _clashes(field: tuple[str, str], setters: list[NodeOverlay]) -> list[tuple[str, str, str]]:
    name = ".".join(part for part in field if part)
    by_weight: dict[int, list[str]] = {}
    for overlay in setters:
        by_weight.setdefault(overlay.spec.weight, []).append(overlay.name)
    return [(loser, names[-1], name) for names in by_weight.values() for loser in names[:-1]]


def overlaid(instance_type: InstanceType, effects: tuple[Effect, ...]) -> InstanceType:
    """The type with the effects on its offerings; the very same object when there are none."""
    if all(effect is NO_EFFECT for effect in effects):
        return instance_type
    offerings = tuple(
        offering if effect is NO_EFFECT else effect.on(offering)
        for offering, effect in zip(instance_type.offerings, effects, strict=True)
    )
    return replace(instance_type, offerings=offerings)


def conflicts(types: Iterable[InstanceType], effects: Iterable[tuple[Effect, ...]]) -> tuple[Conflict, ...]:
    """Every misconfiguration once, each with the first type on which it shows."""
    examples: dict[tuple[str, str, str], str] = {}
    for instance_type, of_type in zip(types, effects, strict=True):
        for effect in of_type:
            for clash in effect.clashes:
                examples.setdefault(clash, instance_type.name)
    return tuple(
        Conflict(loser=loser, winner=winner, field=field, example=example)
        for (loser, winner, field), example in sorted(examples.items())
    )
