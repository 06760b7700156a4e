"""Why a pool can or cannot buy a type: how its requirements narrow the market, and which types and overlays they exclude."""

from collections.abc import Iterable, Iterator

from joiner.bitset import OverlaySet
from joiner.catalog import overlay as overlaying
from joiner.catalog.build import Catalog
from joiner.catalog.market import InstanceType, Offering
from joiner.model.meta import Value
from joiner.model.nodeoverlay import NodeOverlay
from joiner.requirements import Requirement, Requirements, unconstrained


class ExclusionStage(Value):
    """How many types were left after one requirement."""

    demand: str
    types: int


def funnel(catalog: Catalog) -> tuple[ExclusionStage, ...]:
    """Why the other types cannot be bought by the pool: how many are left after each of its requirements in turn."""
    index = catalog.index
    stages = [ExclusionStage(demand="known to the provider", types=len(catalog.types))]
    # Labels of the pool's own are there from the start: an offering that is only for nodes with one is not lost to the others.
    well_known = catalog.market.vocabulary.well_known
    defined = Requirements(unconstrained(key) for key in catalog.requirements if key not in well_known)
    left = index.buyable(defined)
    stages.append(ExclusionStage(demand="something available at a known price", types=left.bit_count()))
    for requirement in catalog.requirements.values():
        before, left = left, left & index.select(defined & Requirements([requirement]))
        if left != before:
            stages.append(ExclusionStage(demand=str(requirement), types=left.bit_count()))
    if left != catalog.eligible:
        stages.append(ExclusionStage(demand="all of these in one offering", types=catalog.eligible.bit_count()))
    return tuple(stages)


def exclusions(catalog: Catalog, instance_type: InstanceType) -> tuple[str, ...]:
    """Everything that keeps the pool from buying one type; empty when it can."""
    if any(catalog.offerings(instance_type)):
        return ()
    reasons = list(_unmet(catalog, instance_type))
    if not any(offering.launchable for offering in instance_type.offerings):
        reasons.append(_nothing_for_sale(instance_type))
    return tuple(reasons or ["no offering of it meets all demands of the pool at once"])


def refusals(catalog: Catalog, instance_type: InstanceType, offering: Offering) -> tuple[str, ...]:
    """The requirements of the pool that one offering does not meet, and what the offering requires of the pool."""
    described = (instance_type.requirements, offering.requirements)
    wanted = [
        f"the pool wants {requirement}"
        for key, requirement in catalog.requirements.items()
        if any(key in labels and not labels[key].agrees(requirement) for labels in described)
    ]
    missing = catalog.requirements.undefined(offering.requirements, catalog.market.vocabulary.well_known)
    return (*wanted, *(f"it is only for nodes with {offering.requirements[key]}" for key in missing))


def _unmet(catalog: Catalog, instance_type: InstanceType) -> Iterator[str]:
    """The requirements of the pool that no offering of the type meets."""
    for key, wanted in catalog.requirements.items():
        own = instance_type.requirements.get(key)
        if own is not None and not own.agrees(wanted):
            yield f"the pool wants {wanted}, and this type has {_valued(own)}"
            continue
        offered = [o.requirements[key] for o in instance_type.offerings if o.launchable and key in o.requirements]
        if offered and not any(requirement.agrees(wanted) for requirement in offered):
            values = sorted({_valued(requirement) for requirement in offered})
            yield f"the pool wants {wanted}, and what can be bought of this type has {', '.join(values)}"


def _valued(requirement: Requirement) -> str:
    if requirement.complement:
        return str(requirement)
    return ", ".join(sorted(requirement.values)) or f"no {requirement.key}"


def _nothing_for_sale(instance_type: InstanceType) -> str:
    if not instance_type.offerings:
        return "it is not offered at all"
    if any(offering.available for offering in instance_type.offerings):
        return "its price is not known"
    return "nothing of it is available"


class Idle(Value):
    """An overlay that matches no offering a pool can buy."""

    overlay: str
    excluded_by: str
    """The part of its selector that no offering matches; empty when only all parts together match none."""
    key: str
    """The label of that part."""


def idle(catalog: Catalog, overlays: Iterable[NodeOverlay]) -> tuple[Idle, ...]:
    """The overlays that match no offering which the pool can buy."""
    market = catalog.market
    bought: list[tuple[InstanceType, Offering]] = []
    used = OverlaySet(0)
    for number, settled in enumerate(market.settled.types):
        if not catalog.eligible >> number & 1:
            continue
        masks = market.overlays.matching(settled)
        for offering, mask in zip(market.types[number].offerings, masks, strict=True):
            if market.index.allows(offering, catalog.requirements):
                used |= mask
                bought.append((settled, offering))
    names = market.overlays.names(used)
    return tuple(_idle(catalog, overlay, bought) for overlay in overlays if overlay.name not in names) if bought else ()


def _idle(catalog: Catalog, overlay: NodeOverlay, bought: list[tuple[InstanceType, Offering]]) -> Idle:
    for part in overlaying.selector(overlay, catalog.market.vocabulary):
        key, of_pool = part.key, catalog.requirements.get(part.key)
        described = {(of_type.requirements.get(key), offering.requirements.get(key)) for of_type, offering in bought}
        if not any(overlaying.matches(part, of_pool, *labels) for labels in described):
            return Idle(overlay=overlay.name, excluded_by=str(part), key=key)
    return Idle(overlay=overlay.name, excluded_by="", key="")
