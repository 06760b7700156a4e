"""NodeOverlay: what users know about offerings and the provider does not (price, extra resources, overhead)."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from joiner.model import labels
from joiner.model.conditions import Condition, ConditionSet
from joiner.model.customobject import AGE, READY, Column, CustomObject
from joiner.model.meta import Value
from joiner.model.requirement import MOST_REQUIREMENTS, NOT_IN_NEEDS_VALUES, SelectorRequirement
from joiner.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from joiner.model.rules import (
    CONDITIONS,
    LABEL_VALUE,
    RESOURCE_LIST,
    Amount,
    Field,
    Rule,
    at_most_one,
    key_is_not,
    key_not_ours,
    keys_not_ours,
    keys_without,
)

SELECTABLE: Final = (labels.CAPACITY_TYPE, labels.NODEPOOL, labels.NODEPOOL_SEED_SPELLING)
"""Labels of karpenter.sh that overlays may select by."""
OF_THE_TYPE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
"""Resources that InstanceType settings set, and overlays may not."""
_NO_HOSTNAME: Final = f"{labels.HOSTNAME} is known only once a node is there; an overlay is about machines to be bought"

OverlayRequirement = Annotated[
    SelectorRequirement,
    Field(rules=(NOT_IN_NEEDS_VALUES, key_not_ours(*SELECTABLE), key_is_not(labels.HOSTNAME, _NO_HOSTNAME))),
]


class LabelExpression(SelectorRequirement):
    """One expression of a selector; it knows the bounds Gt and Lt beside the four operators of label selectors."""

    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"],
        "How the label relates to the values. Exists and DoesNotExist take none; Gt and Lt take one number.",
    ]


class LabelSelector(Value):
    """The overlay design's way to choose offerings."""

    match_labels: Annotated[
        Mapping[str, Annotated[str, LABEL_VALUE]],
        "Labels and their values; all must be there.",
        Field(max_properties=100, rules=(keys_not_ours(*SELECTABLE), keys_without((labels.HOSTNAME,), _NO_HOSTNAME))),
    ] = {}
    match_expressions: Annotated[
        tuple[
            Annotated[
                LabelExpression,
                Field(
                    rules=(NOT_IN_NEEDS_VALUES, key_not_ours(*SELECTABLE), key_is_not(labels.HOSTNAME, _NO_HOSTNAME))
                ),
            ],
            ...,
        ],
        "Expressions about labels; all must hold.",
        Field(max_items=MOST_REQUIREMENTS),
    ] = ()


class NodeOverlaySpec(Value):
    """`selector` and `requirements` are two spellings of one thing, and both must match where both are given."""

    rules: ClassVar[tuple[Rule, ...]] = (
        at_most_one(
            ("price", "priceAdjustment", "pricePercent"),
            "price, priceAdjustment and pricePercent are three ways to say one thing; set at most one",
        ),
    )

    selector: Annotated[LabelSelector, "Which offerings the overlay is about. Empty: all of them."] = LabelSelector()
    requirements: Annotated[
        tuple[OverlayRequirement, ...],
        "Which offerings the overlay is about, in the words of a NodePool. Together with selector, both must match.",
        Field(max_items=MOST_REQUIREMENTS),
    ] = ()
    price: Annotated[
        str | None,
        "The price of the offerings, instead of the provider's.",
        Field(
            pattern=r"^[0-9]+(\.[0-9]+)?$", words="a number that is not negative, in quotes, like '0.40'", max_length=32
        ),
    ] = None
    price_adjustment: Annotated[
        str | None,
        "What is added to the provider's price or taken off it: an amount like +0.05, or a share like -10%.",
        Field(
            pattern=(
                r"^([+-][0-9]*\.?[0-9]+|\+[0-9]*\.?[0-9]+%|-[0-9]{1,2}(\.[0-9]+)?%|-100%)$"  # no more than all of it off
            ),
            words="a signed amount like +0.05, a rise like +10%, or a discount from -0% to -100%",
            max_length=32,
        ),
    ] = None
    price_percent: Annotated[
        int | None,
        "The price as a share of the provider's: 90 is ninety percent of it.",
        Field(minimum=0, maximum=1_000_000, format="int32"),
    ] = None
    capacity: Annotated[
        Mapping[str, Amount],
        "Extended resources and huge pages the machines have beyond what the provider knows.",
        RESOURCE_LIST,
        Field(
            rules=(
                keys_without(
                    OF_THE_TYPE,
                    "an overlay adds extended resources and huge pages; cpu, memory, ephemeral-storage and pods of a type are set"
                    " in spec.resources of an InstanceType object (karpenter.sh/v1alpha1) with the type's name",
                ),
            )
        ),
    ] = {}
    overhead: Annotated[
        Mapping[str, Amount], "What the system on the machines takes beyond what the provider knows.", RESOURCE_LIST
    ] = {}
    weight: Annotated[
        int,
        "Where two overlays say different things about one offering, the higher weight counts. Without it, 0.",
        Field(minimum=1, maximum=10_000, format="int32"),
    ] = 0


class NodeOverlayStatus(Value):
    """Whether the overlay is in force."""

    conditions: Annotated[
        tuple[Condition, ...], "Whether the overlay is in force, and which others it contradicts.", CONDITIONS
    ] = ()


class NodeOverlay(CustomObject):
    """An alternative assumption about some offerings."""

    group: ClassVar[str] = "karpenter.sh"
    version: ClassVar[str] = "v1alpha1"
    kind: ClassVar[str] = "NodeOverlay"
    plural: ClassVar[str] = "nodeoverlays"
    namespaced: ClassVar[bool] = False
    title: ClassVar[str] = "An alternative assumption about the price, the resources or the overhead of some offerings."
    condition_set: ClassVar[ConditionSet] = ConditionSet(dependents=("ValidationSucceeded",))
    short_names: ClassVar[tuple[str, ...]] = ("overlays",)
    columns: ClassVar[tuple[Column, ...]] = (
        READY,
        AGE,
        Column(name="Weight", path=".spec.weight", type="integer", wide=True),
    )

    spec: Annotated[NodeOverlaySpec, "The offerings meant, and what is assumed of them.", Field(required=True)] = (
        NodeOverlaySpec()
    )
    status: Annotated[NodeOverlayStatus, "Whether the overlay is in force."] = NodeOverlayStatus()
