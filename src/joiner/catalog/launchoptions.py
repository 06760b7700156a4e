"""The launch options of a claim: every type and offering that meets it, best first, and whether they satisfy minValues."""

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
    """What the machine of a claim must be: its spec's requirements, and the labels its node will have anyway."""
    asked = Requirements.read(claim.spec.requirements, vocabulary)
    return asked & Requirements.of_labels(claim.metadata.labels, vocabulary)


def buyer(claim: NodeClaim, pool: NodePool | None) -> NodePool:
    """The pool whose catalogue the claim is bought from.

    A claim without one, or whose pool has moved on to another NodeClass, is bought for a pool that is made up from the claim and
    carries its name.
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

    Reserved capacity first, then by price, then by name. A type is listed once for each of its offerings, so that a provider that
    finds one of them without capacity can try the next. Machines for special work are left out where others will do.
    """
    stock, well_known = catalog.market.stock, catalog.market.vocabulary.well_known
    rank = {
        shape: shape.at(labels.CAPACITY_TYPE).any() != labels.RESERVED
        for shape in catalog.index.shapes
        if requirements.compatible(shape, well_known)
    }
    units = stock.described(requirements)
    for ladder, amount in zip(stock.ladders(requests), requests.values(), strict=True):
        units &= ladder.at_least(amount)
    if all(requirement.min_values is None for requirement in requirements.values()):
        units = stock.preferred(units, stock.available(requirements))
    options = [
        Option(name=unit.name, offering=offering)
        for unit, is_left in zip(stock.units, f"{units:b}"[::-1], strict=False)
        if is_left == "1"
        for offering in unit.offerings
        if offering.launchable and offering.requirements in rank
    ]
    return tuple(sorted(options, key=lambda each: (rank[each.offering.requirements], each.offering.cost, each.name)))


def promised(catalog: Catalog, own: Mapping[str, str]) -> tuple[Resources, Resources] | None:
    """Capacity and allocatable of the machine with these labels, with settings and overlays applied to its type.

    The provider knows nothing of settings and overlays. Pods that were planned with them wait for what was promised, and no
    second machine is bought for them because the first one seems to lack it. None if the catalogue no longer has the offering.
    """
    for instance_type in catalog.types:
        if instance_type.name != own.get(labels.INSTANCE_TYPE):
            continue
        for offering in instance_type.offerings:
            if all(own.get(key) == value for key, value in offering.requirements.labels().items()):
                return {**instance_type.capacity, **offering.capacity}, instance_type.allocatable(offering)
    return None


def shortfall(catalog: Catalog, requirements: Requirements, chosen: Sequence[Option]) -> Mapping[str, int]:
    """The labels of which the options leave fewer values than minValues asks for, with the number they leave.

    For labels of offerings the values of the offerings count, for all others those of the types. A claim that goes into a
    reservation is never short: the reservation is paid for, whatever the choice.
    """
    wanted = {key: requirement for key, requirement in requirements.items() if requirement.min_values is not None}
    if not wanted or requirements.at(labels.CAPACITY_TYPE).values == {labels.RESERVED}:
        return {}
    described = {instance_type.name: instance_type.requirements for instance_type in catalog.types}
    values: dict[str, set[str]] = {key: set() for key in wanted}
    for option in chosen:
        for key, seen in values.items():
            requirement = option.offering.requirements.get(key) or described[option.name].at(key)
            if not requirement.complement:
                seen.update(requirement.values)
    counts = {key: sum(map(wanted[key].has, seen)) for key, seen in values.items()}
    return {key: count for key, count in counts.items() if count < (wanted[key].min_values or 0)}
