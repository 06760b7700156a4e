"""Whether a claim is still what its pool would buy today."""

from collections.abc import Iterable, Mapping
from typing import Final

from joiner.catalog.market import InstanceType, Offering
from joiner.model import labels
from joiner.model.labels import Vocabulary
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.requirements import Requirements

NODEPOOL_DRIFTED: Final = "NodePoolDrifted"
REQUIREMENTS_DRIFTED: Final = "RequirementsDrifted"
INSTANCE_TYPE_NOT_FOUND: Final = "InstanceTypeNotFound"


def from_pool(claim: NodeClaim, pool: NodePool, vocabulary: Vocabulary) -> str:
    """How the claim differs from its pool: in the template, in the requirements, or (empty) not at all."""
    ours, theirs = claim.metadata.annotations, pool.metadata.annotations
    versions = (ours.get(labels.NODEPOOL_HASH_VERSION), theirs.get(labels.NODEPOOL_HASH_VERSION))
    hashes = (ours.get(labels.NODEPOOL_HASH), theirs.get(labels.NODEPOOL_HASH))
    # Hashes made by different rules say nothing about each other.
    if None not in (*versions, *hashes) and versions[0] == versions[1] and hashes[0] != hashes[1]:
        return NODEPOOL_DRIFTED
    wanted = Requirements.read(pool.spec.template.spec.requirements, vocabulary)
    known = Requirements.of_labels(claim.metadata.labels, vocabulary)
    # A provider may leave out a label that it knows. What is bought instead would lack it as well, and be replaced without end.
    asked = Requirements.read(claim.spec.requirements, vocabulary)
    unset = Requirements(each for key, each in asked.items() if key in vocabulary.well_known and key not in known)
    return "" if (known & unset).compatible(wanted) else REQUIREMENTS_DRIFTED


def from_market(claim: NodeClaim, types: Iterable[InstanceType], vocabulary: Vocabulary) -> str:
    """Whether the provider no longer has what the claim is, available or not.

    `types` are the provider's own: settings and overlays describe what will be bought, they never disturb what runs.
    """
    named = claim.metadata.labels.get(labels.INSTANCE_TYPE, "")
    found = next((each for each in types if each.name == named), None)
    if found is not None and any(_is_of(claim.metadata.labels, each, vocabulary) for each in found.offerings):
        return ""
    return INSTANCE_TYPE_NOT_FOUND


def _is_of(known: Mapping[str, str], offering: Offering, vocabulary: Vocabulary) -> bool:
    """Whether the machine could have been bought through the offering.

    A reserved machine counts as on-demand too: a reservation may end before the label is changed.
    """
    allowed = {known.get(labels.CAPACITY_TYPE, "")}
    ignored = {labels.CAPACITY_TYPE}
    if labels.RESERVED in allowed:
        allowed.add(labels.ON_DEMAND)
        ignored.add(vocabulary.reservation_id)
    if offering.capacity_type not in allowed:
        return False
    settled = offering.requirements.without(*ignored)
    return Requirements.of_labels(known, vocabulary).intersects(settled)
