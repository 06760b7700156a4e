from joiner.catalog.market import InstanceType, Offering
from joiner.disruption import drift
from joiner.model import labels
from joiner.model.labels import Vocabulary
from joiner.model.meta import ObjectMeta, replace
from joiner.model.nodeclaim import NodeClaim
from joiner.model.nodepool import NodePool
from joiner.model.requirement import SelectorRequirementWithMinValues
from joiner.requirements import Requirements

WORDS = Vocabulary(reservation_id="example.com/reservation")
HASHED = {labels.NODEPOOL_HASH: "1", labels.NODEPOOL_HASH_VERSION: "v3"}


def claim(**known: str) -> NodeClaim:
    found = {labels.INSTANCE_TYPE: "m5.large", labels.ZONE: "a", labels.CAPACITY_TYPE: "on-demand", **known}
    return NodeClaim(metadata=ObjectMeta(name="c", labels=found, annotations=HASHED))


def pool(annotations: dict[str, str] = HASHED, **zone: str) -> NodePool:
    made = NodePool(metadata=ObjectMeta(name="p", annotations=annotations))
    wanted = tuple(
        SelectorRequirementWithMinValues(key=labels.ZONE, operator="In", values=(value,)) for value in zone.values()
    )
    template = replace(made.spec.template, spec=replace(made.spec.template.spec, requirements=wanted))
    return replace(made, spec=replace(made.spec, template=template))


def machine(**known: str) -> InstanceType:
    offering = Offering(
        requirements=Requirements.of_labels({labels.ZONE: "a", labels.CAPACITY_TYPE: "on-demand", **known}), price=1.0
    )
    return InstanceType(name="m5.large", requirements=Requirements(), offerings=(offering,))


def test_a_claim_of_the_same_template_has_not_drifted() -> None:
    assert drift.from_pool(claim(), pool(zone="a"), WORDS) == ""


def test_another_template_is_drift() -> None:
    other = pool({**HASHED, labels.NODEPOOL_HASH: "2"})

    assert drift.from_pool(claim(), other, WORDS) == drift.NODEPOOL_DRIFTED


def test_hashes_of_different_rules_are_not_compared() -> None:
    other = pool({labels.NODEPOOL_HASH: "2", labels.NODEPOOL_HASH_VERSION: "v4"})

    assert drift.from_pool(claim(), other, WORDS) == ""


def test_labels_that_the_pool_no_longer_allows_are_drift() -> None:
    assert drift.from_pool(claim(), pool(zone="b"), WORDS) == drift.REQUIREMENTS_DRIFTED


def test_a_type_that_is_sold_no_more_is_drift() -> None:
    assert drift.from_market(claim(), (), WORDS) == drift.INSTANCE_TYPE_NOT_FOUND


def test_a_type_without_an_offering_like_the_claims_is_drift() -> None:
    assert drift.from_market(claim(**{labels.ZONE: "b"}), (machine(),), WORDS) == drift.INSTANCE_TYPE_NOT_FOUND
    assert drift.from_market(claim(), (machine(),), WORDS) == ""


def test_a_reserved_claim_may_also_be_sold_on_demand() -> None:
    reserved = claim(**{labels.CAPACITY_TYPE: "reserved", "example.com/reservation": "cr-1"})

    assert drift.from_market(reserved, (machine(),), WORDS) == ""
    assert drift.from_market(claim(**{labels.CAPACITY_TYPE: "spot"}), (machine(),), WORDS) != ""


def asks(*wanted: SelectorRequirementWithMinValues) -> tuple[NodeClaim, NodePool]:
    """A claim bought for these requirements, and a pool that has them."""
    bought, made = claim(), pool()
    template = replace(made.spec.template, spec=replace(made.spec.template.spec, requirements=wanted))
    return replace(bought, spec=replace(bought.spec, requirements=wanted)), replace(
        made, spec=replace(made.spec, template=template)
    )


def region(*values: str) -> SelectorRequirementWithMinValues:
    return SelectorRequirementWithMinValues(key=labels.REGION, operator="In", values=values)


def test_a_label_that_the_provider_did_not_set_is_no_drift_of_a_claim_bought_for_it() -> None:
    """A claim bought anew would lack it as well: it would be replaced again and again."""
    bought, wanting = asks(region("here"))

    assert drift.from_pool(bought, wanting, WORDS) == ""


def test_a_label_that_the_provider_did_not_set_is_drift_where_the_claim_was_bought_for_something_else() -> None:
    for other in ((), (region("there"),)):
        bought, _ = asks(*other)
        _, wanting = asks(region("here"))

        assert drift.from_pool(bought, wanting, WORDS) == drift.REQUIREMENTS_DRIFTED


def test_a_label_of_the_users_own_that_a_claim_has_lost_is_drift() -> None:
    bought, wanting = asks(SelectorRequirementWithMinValues(key="team", operator="In", values=("web",)))

    assert drift.from_pool(bought, wanting, WORDS) == drift.REQUIREMENTS_DRIFTED
