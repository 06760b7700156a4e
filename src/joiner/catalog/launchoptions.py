"""What a claim can be bought as: every type and offering that will do, best first, and whether they leave enough choice."""

from collections.abc import Mapping, Sequence

from joiner.catalog.build import Catalog
from joiner.catalog.market import Option
from joiner.model import labels
from joiner.model.labels import Vocabulary
from joiner.model.meta import ObjectMeta
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import (
    NodeClaimTemplate,
    NodeClaimTemplateMeta,
    NodeClaimTemplateSpec,
    NodePool,
    NodePoolSpec,
)
from joiner.model.resources import Resources
from joiner.requirements import Requirements


def requirements_of(claim: NodeClaim, vocabulary: Vocabulary) -> Requirements:
    """What the machine of a claim must be: what its spec asks for, and the labels its node will have anyway."""
    asked = Requirements.read(claim.spec.requirements, vocabulary)
    return asked & Requirements.of_labels(claim.metadata.labels, vocabulary)


def buyer(claim: NodeClaim, pool: NodePool | None) -> NodePool:
    """The pool in whose name the claim is bought.

    A claim without one, or whose pool has moved on to another NodeClass, is bought in the name of a pool that is made up from the
    claim and carries its name.
    """
    if pool is not None and pool.spec.template.spec.node_class_ref == claim.spec.node_class_ref:
        return pool
    template = NodeClaimTemplate(
        metadata=NodeClaimTemplateMeta(labels=claim.metadata.labels),
        spec=NodeClaimTemplateSpec(requirements=claim.spec.requirements, node_class_ref=claim.spec.node_class_ref),
    )
    return NodePool(metadata=ObjectMeta(name=f"nodeclaim/{claim.name}"), spec=NodePoolSpec(template=template))


def options(catalog: Catalog, requirements: Requirements, requests: Resources) -> tuple[Option, ...]:
    """Every offering of every type that meets the requirements, holds the requests and can be launched.

    Reserved capacity first, then by price, then by name. A type is listed once for each of its offerings, so that a provider who
    finds one of them empty has the next at hand.
    """
    stock, well_known = catalog.market.stock, catalog.market.vocabulary.well_known
    allowed = {shape for shape in catalog.index.shapes if requirements.compatible(shape, well_known)}
    units = stock.described(requirements)
    for ladder, amount in zip(stock.ladders(requests), requests.values(), strict=True):
        units &= ladder.at_least(amount)
    found = [
        Option(name=unit.name, offering=offering)
        for number, unit in enumerate(stock.units)
        if units >> number & 1
        for offering in unit.offerings
        if offering.launchable and offering.requirements in allowed
    ]
    return tuple(sorted(found, key=lambda option: (option.offering.order, option.name)))


def promised(catalog: Catalog, own: Mapping[str, str]) -> tuple[Resources, Resources] | None:
    """What the machine with these labels has, and what pods can use of it, by everything that people say about its type.

    The provider knows nothing of settings and overlays. Pods that were planned with them wait for what was promised, and nobody
    buys a second machine for them because the first one seems to lack it. Nothing, if the catalogue no longer has the offering.
    """
    for each in catalog.types:
        if each.name != own.get(labels.INSTANCE_TYPE):
            continue
        for offering in each.offerings:
            if all(own.get(key) == value for key, value in offering.requirements.labels().items()):
                return {**each.capacity, **offering.capacity}, each.allocatable(offering)
    return None


def shortfall(catalog: Catalog, requirements: Requirements, chosen: Sequence[Option]) -> Mapping[str, int]:
    """The labels of which the options leave fewer values than minValues asks for, with the number they leave.

    For labels that offerings carry their values count, for all others those of the types. A paid reservation needs no choice: a
    claim that goes into one is never short.
    """
    wanted = {key: each for key, each in requirements.items() if each.min_values is not None}
    if not wanted or requirements.at(labels.CAPACITY_TYPE).values == {labels.RESERVED}:
        return {}
    described = {each.name: each.requirements for each in catalog.types}
    values: dict[str, set[str]] = {key: set() for key in wanted}
    for option in chosen:
        for key, seen in values.items():
            told = option.offering.requirements.get(key) or described[option.name].at(key)
            if not told.complement:
                seen.update(told.values)
    counts = {key: sum(map(wanted[key].has, seen)) for key, seen in values.items()}
    return {key: count for key, count in counts.items() if count < (wanted[key].min_values or 0)}
