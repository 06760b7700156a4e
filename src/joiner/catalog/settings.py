"""InstanceType settings applied to the provider's types, before overlays.

Resources merge, overhead takes the place of the hypervisor's share, and a list of offerings replaces the provider's whole
list. Availability and counts always stay the provider's: settings cannot make an offering launchable.
"""

from collections.abc import Iterable, Iterator, Mapping

from joiner.catalog.market import InstanceType, Offering
from joiner.model import labels
from joiner.model.labels import Vocabulary
from joiner.model.meta import Value, replace
from joiner.model.resources import PODS
from joiner.model.typesettings import InstanceTypeSettings, InstanceTypeSettingsSpec
from joiner.requirements import Requirement, Requirements


class EntryOutcome(Value):
    """What became of one entry of `spec.offerings`."""

    entry: Mapping[str, str]
    matched: int
    """How many of the provider's offerings the entry stands for."""
    overlaps: tuple[int, ...] = ()
    """Positions of entries that took precedence where both cover one offering; normal where those are more specific."""
    problem: str = ""
    """Why the entry can never be bought; empty when it can."""


class SettingsOutcome(Value):
    """What one InstanceType object did."""

    name: str
    found: bool
    """Whether the provider knows a type of this name."""
    entries: tuple[EntryOutcome, ...] = ()


class SettledType(Value):
    """The types after settings, in the provider's order, and what each object did."""

    types: tuple[InstanceType, ...]
    outcomes: tuple[SettingsOutcome, ...]
    decided: frozenset[str] = frozenset()
    """Labels that only settings put on offerings: a node has them because its claim says so, whatever is bought."""


def settle(
    raw: tuple[InstanceType, ...], settings: Iterable[InstanceTypeSettings], vocabulary: Vocabulary
) -> SettledType:
    """Apply every settings object to the type it names. Types without settings stay the very same objects."""
    by_name = {settings_object.name: settings_object for settings_object in settings}
    if not by_name:
        return SettledType(types=raw, outcomes=())
    types: list[InstanceType] = []
    outcomes: dict[str, SettingsOutcome] = {name: SettingsOutcome(name=name, found=False) for name in by_name}
    for instance_type in raw:
        chosen = by_name.get(instance_type.name)
        if chosen is not None:
            instance_type, entries = settled_type(instance_type, chosen.spec, vocabulary)
            outcomes[chosen.name] = SettingsOutcome(name=chosen.name, found=True, entries=entries)
        types.append(instance_type)
    return SettledType(
        types=tuple(types),
        outcomes=tuple(outcomes[name] for name in sorted(outcomes)),
        decided=frozenset(_added(raw, types)) - {labels.CAPACITY_TYPE, labels.ZONE, vocabulary.reservation_id},
    )


def _added(raw: Iterable[InstanceType], settled: Iterable[InstanceType]) -> Iterator[str]:
    """The labels of offerings that the provider's offerings of the type do not have."""
    for before, after in zip(raw, settled, strict=True):
        if before is not after:
            offered = {key for offering in before.offerings for key in offering.requirements}
            yield from {key for offering in after.offerings for key in offering.requirements} - offered


def settled_type(
    raw: InstanceType, spec: InstanceTypeSettingsSpec, vocabulary: Vocabulary
) -> tuple[InstanceType, tuple[EntryOutcome, ...]]:
    """One type with its settings applied."""
    capacity, hypervisor = dict(raw.capacity), dict(raw.vm_overhead)
    for name, amount in spec.resources.items():
        # A stated amount is what the node reports, so nothing more is taken off it, unless overhead says so below.
        capacity[name] = (
            min(int(amount), raw.pods_limit) if name == PODS and raw.pods_limit is not None else int(amount)
        )
        hypervisor.pop(name, None)
    for name, amount in spec.overhead.items():
        if name in capacity:
            capacity[name] = max(0, capacity[name] + hypervisor.get(name, 0) - amount)
            hypervisor[name] = int(amount)
    offerings = raw.offerings
    outcomes: tuple[EntryOutcome, ...] = ()
    if spec.offerings is not None:
        offerings, outcomes = _replaced(raw, spec.offerings, vocabulary)
    return replace(raw, capacity=capacity, vm_overhead=hypervisor, offerings=offerings), outcomes


class _Entry(Value):
    """An entry taken apart: what chooses among the provider's offerings, and what narrows the chosen ones."""

    position: int
    written: Mapping[str, str]
    choosing: Requirements
    narrowing: Requirements
    price: float | None
    problem: str

    @property
    def precedence(self) -> tuple[int, int]:
        """More labels first, then the order of the list."""
        return (-len(self.choosing) - len(self.narrowing), self.position)


def _read(position: int, entry: Mapping[str, object], raw: InstanceType, vocabulary: Vocabulary) -> _Entry:
    written = {key: str(getattr(value, "text", value)) for key, value in entry.items()}
    wanted = Requirements.of_labels({k: v for k, v in written.items() if k != labels.PRICE}, vocabulary)
    offered = {key for offering in raw.offerings for key in offering.requirements}
    narrowing = Requirements(requirement for key, requirement in wanted.items() if key not in offered)
    impossible = raw.requirements.conflicts(narrowing)
    problem = f"{raw.requirements[impossible[0]]} rules out {narrowing[impossible[0]]}" if impossible else ""
    return _Entry(
        position=position,
        written=written,
        choosing=Requirements(requirement for key, requirement in wanted.items() if key in offered),
        narrowing=narrowing,
        price=float(written[labels.PRICE]) if labels.PRICE in written else None,
        problem=problem,
    )


def _replaced(
    raw: InstanceType, written: Iterable[Mapping[str, object]], vocabulary: Vocabulary
) -> tuple[tuple[Offering, ...], tuple[EntryOutcome, ...]]:
    entries = [_read(position, entry, raw, vocabulary) for position, entry in enumerate(written)]
    usable = sorted((entry for entry in entries if not entry.problem), key=lambda entry: entry.precedence)
    offerings: list[Offering] = []
    matched = dict.fromkeys(range(len(entries)), 0)
    given = dict.fromkeys(matched, 0)
    overlaps: dict[int, set[int]] = {position: set() for position in matched}
    for offering in raw.offerings:
        claimed: list[_Entry] = []
        for entry in usable:
            if not offering.requirements.compatible(entry.choosing):
                continue
            regions = _left_over(entry, claimed, overlaps[entry.position])
            price = offering.price if entry.price is None else entry.price
            offerings.extend(
                replace(offering, requirements=offering.requirements & region, price=price) for region in regions
            )
            matched[entry.position] += 1
            given[entry.position] += len(regions)
            claimed.append(entry)
    outcomes = (
        _outcome(entry, matched[entry.position], given[entry.position], overlaps[entry.position]) for entry in entries
    )
    return tuple(offerings), tuple(outcomes)


def _left_over(entry: _Entry, claimed: Iterable[_Entry], overlaps: set[int]) -> list[Requirements]:
    """What the entry still covers of one offering after the entries before it: disjoint sets of node labels."""
    regions = [entry.narrowing]
    for earlier in claimed:
        before = regions
        regions = [piece for region in before for piece in _minus(region, earlier.narrowing)]
        if regions != before:
            overlaps.add(earlier.position)
    return regions


def _minus(region: Requirements, taken: Requirements) -> list[Requirements]:
    """`region` without the nodes that carry all labels of `taken`."""
    if not region.intersects(taken):
        return [region]
    pieces: list[Requirements] = []
    inside = region
    for key, requirement in taken.items():
        if key in region and region[key].is_within(requirement):
            continue
        outside = Requirement(key, requirement.values, complement=True)
        pieces.append(inside & Requirements([outside]))
        inside = inside & Requirements([requirement])
    return pieces


def _outcome(entry: _Entry, matched: int, given: int, overlaps: set[int]) -> EntryOutcome:
    problem, others = entry.problem, tuple(sorted(overlaps))
    if not problem and not matched:
        problem = f"the provider has no offering with {entry.choosing or 'any label'}"
    elif not problem and not given:
        named = " and ".join(f"spec.offerings[{other}]" for other in others)
        problem = f"{named} {'comes' if len(others) == 1 else 'come'} first wherever it applies"
    return EntryOutcome(entry=entry.written, matched=matched, overlaps=others, problem=problem)
