"""NodePool: which nodes may be bought, for which pods, and when they may be disrupted."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from joiner.model import labels
from joiner.model.conditions import Condition, ConditionSet
from joiner.model.customobject import AGE, READY, Column, CustomObject
from joiner.model.duration import Duration
from joiner.model.meta import Value
from joiner.model.nodeclass import NodeClassReference
from joiner.model.quantity import Quantity
from joiner.model.requirement import MOST_REQUIREMENTS, SelectorRequirementWithMinValues
from joiner.model.resources import NODES
from joiner.model.rules import (
    CONDITIONS,
    LABEL_VALUE,
    RESOURCE_LIST,
    SPAN,
    SPAN_OR_NEVER,
    Field,
    Rule,
    both_or_neither,
    key_is_not,
    key_not_ours,
    keys_not_ours,
    keys_without,
)
from joiner.model.taints import MOST_TAINTS, Taint

_NO_NODEPOOL: Final = f"{labels.NODEPOOL} is set by Joiner on every node of the pool and cannot be chosen"
_NO_HOSTNAME: Final = f"{labels.HOSTNAME} differs from node to node and cannot be chosen"

DEFAULT_EXPIRY: Final = "720h"
DEFAULT_BUDGET: Final = "10%"


_TEMPLATE_LABELS: Final = Field(
    max_properties=100,
    rules=(
        keys_not_ours(labels.CAPACITY_TYPE, elsewhere=(labels.NODEPOOL,)),
        keys_without((labels.NODEPOOL,), _NO_NODEPOOL),
        keys_without((labels.HOSTNAME,), _NO_HOSTNAME),
    ),
)


class NodeClaimTemplateMeta(Value):
    """Labels and annotations that every node of the pool gets."""

    labels: Annotated[
        Mapping[str, Annotated[str, LABEL_VALUE]],
        "Labels of every node of the pool.",
        _TEMPLATE_LABELS,
    ] = {}
    annotations: Annotated[Mapping[str, str], "Annotations of every node of the pool."] = {}


PoolRequirement = Annotated[
    SelectorRequirementWithMinValues,
    Field(
        rules=(
            key_not_ours(labels.CAPACITY_TYPE, elsewhere=(labels.NODEPOOL,)),
            key_is_not(labels.NODEPOOL, _NO_NODEPOOL),
            key_is_not(labels.HOSTNAME, _NO_HOSTNAME),
        )
    ),
]


class NodeClaimTemplateSpec(Value):
    """What every NodeClaim of the pool asks for."""

    taints: Annotated[
        tuple[Taint, ...], "Taints every node of the pool keeps for its whole life.", Field(max_items=MOST_TAINTS)
    ] = ()
    startup_taints: Annotated[
        tuple[Taint, ...],
        "Taints every node starts with and another controller removes once the node is prepared. Pods need not tolerate them.",
        Field(max_items=MOST_TAINTS),
    ] = ()
    requirements: Annotated[
        tuple[PoolRequirement, ...],
        "Which machines may be bought. All of them must hold.",
        Field(required=True, max_items=MOST_REQUIREMENTS),
    ] = ()
    node_class_ref: Annotated[
        NodeClassReference, "The NodeClass that configures the machines.", Field(required=True)
    ] = NodeClassReference()
    expire_after: Annotated[
        Duration, "How old a node may become before it is replaced.", SPAN_OR_NEVER, Field(default=DEFAULT_EXPIRY)
    ] = Duration.parse(DEFAULT_EXPIRY)
    termination_grace_period: Annotated[
        Duration | None, "How long a node may take to drain before its pods are removed by force.", SPAN
    ] = None


class NodeClaimTemplate(Value):
    """The template of the pool's NodeClaims."""

    metadata: Annotated[NodeClaimTemplateMeta, "Labels and annotations of every node of the pool."] = (
        NodeClaimTemplateMeta()
    )
    spec: Annotated[NodeClaimTemplateSpec, "What every NodeClaim of the pool asks for.", Field(required=True)] = (
        NodeClaimTemplateSpec()
    )


DisruptionReason = Literal["Underutilized", "Empty", "Drifted", "Unhealthy"]
ConsolidationPolicy = Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"]


class Budget(Value):
    """How many nodes of the pool may be disrupted at once, always or in a window of time."""

    rules: ClassVar[tuple[Rule, ...]] = (
        both_or_neither(
            "schedule", "duration", "schedule and duration come together: when the window opens and for how long"
        ),
    )

    nodes: Annotated[
        str,
        "The number of nodes, or a share of the pool's nodes.",
        Field(
            required=True,
            default=DEFAULT_BUDGET,
            pattern="^((100|[0-9]{1,2})%|[0-9]+)$",
            words="a number like 5, or a share from 0% to 100%",
            max_length=16,
        ),
    ] = DEFAULT_BUDGET
    schedule: Annotated[
        str | None,
        "When the window of this budget opens, in cron's five fields, UTC. Without it the budget always holds.",
        Field(
            pattern="^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|[^ ]+( +[^ ]+){4})$",
            words=(
                "five fields of cron like '0 9 * * mon-fri', or one of"
                " @annually, @yearly, @monthly, @weekly, @daily, @midnight, @hourly"
            ),
            max_length=256,
        ),
    ] = None
    duration: Annotated[
        Duration | None,
        "How long the window stays open.",
        Field(
            pattern="^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$",
            words="hours and minutes, like 8h or 1h30m",
            max_length=64,
        ),
    ] = None
    reasons: Annotated[
        tuple[DisruptionReason, ...] | None,
        "The reasons for disruption that this budget is about. Without it, all of them.",
        Field(max_items=50, list_type="set"),
    ] = None


class Disruption(Value):
    """When nodes of the pool may be replaced or removed."""

    consolidate_after: Annotated[
        Duration,
        "How long no pod must have come or gone before a node counts as a candidate for consolidation.",
        SPAN_OR_NEVER,
        Field(default="0s"),
    ] = Duration(0)
    consolidation_policy: Annotated[
        ConsolidationPolicy,
        "Which nodes are candidates: only empty ones, also those whose pods would fit elsewhere for less, or the latter where"
        " the saving outweighs the disturbance.",
        Field(default="WhenEmptyOrUnderutilized"),
    ] = "WhenEmptyOrUnderutilized"
    budgets: Annotated[
        tuple[Budget, ...],
        "How many nodes may be disrupted at once. The strictest budget of the moment counts.",
        Field(max_items=50, default=[{"nodes": DEFAULT_BUDGET}]),
    ] = (Budget(),)


class NodePoolSpec(Value):
    """What the pool may buy, how much of it, and in which order it is asked."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.replicas) == has(oldSelf.replicas)",
            message="replicas can neither be added to a pool nor removed from it; make a new pool instead",
            holds=lambda value, old: ("replicas" in value) == ("replicas" in old),
            field=".replicas",
        ),
        Rule(
            cel=f"!has(self.replicas) || !has(self.limits) || self.limits.all(name, name == '{NODES}')",
            message="a pool with replicas may only limit nodes",
            holds=lambda value: "replicas" not in value or all(name == NODES for name in value.get("limits", ())),
            field=".limits",
        ),
        Rule(
            cel="!has(self.replicas) || !has(self.weight)",
            message="a pool with replicas has no weight: it is not asked in any order",
            holds=lambda value: "replicas" not in value or "weight" not in value,
            field=".weight",
        ),
    )

    template: Annotated[NodeClaimTemplate, "The template of the pool's NodeClaims.", Field(required=True)] = (
        NodeClaimTemplate()
    )
    disruption: Annotated[
        Disruption, "When nodes of the pool may be replaced or removed.", Field(default={"consolidateAfter": "0s"})
    ] = Disruption()
    limits: Annotated[
        Mapping[str, Quantity],
        "The most that the nodes of the pool may have together; the name nodes limits their number.",
        RESOURCE_LIST,
    ] = {}
    weight: Annotated[
        int,
        "Pools of higher weight are asked first. Without it, 0.",
        Field(minimum=1, maximum=100, format="int32"),
    ] = 0
    replicas: Annotated[
        int | None, "Keep this many nodes, whatever the pods need.", Field(minimum=0, format="int64")
    ] = None


class NodePoolStatus(Value):
    """What the pool has, and whether it can be used."""

    resources: Annotated[Mapping[str, Quantity], "What the nodes of the pool have together.", RESOURCE_LIST] = {}
    nodes: Annotated[int, "How many nodes the pool has.", Field(default=0, format="int64")] = 0
    node_class_observed_generation: Annotated[
        int | None, "The generation of the NodeClass that was last seen.", Field(format="int64")
    ] = None
    conditions: Annotated[tuple[Condition, ...], "Whether the pool can be used, and if not, why.", CONDITIONS] = ()


class NodePool(CustomObject):
    """A pool of nodes that are bought and let go by the same rules."""

    group: ClassVar[str] = "karpenter.sh"
    version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "NodePool"
    plural: ClassVar[str] = "nodepools"
    namespaced: ClassVar[bool] = False
    title: ClassVar[str] = "A pool of nodes that are bought and let go by the same rules."
    condition_set: ClassVar[ConditionSet] = ConditionSet(dependents=("ValidationSucceeded", "NodeClassReady"))
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="NodeClass", path=".spec.template.spec.nodeClassRef.name"),
        Column(name="Nodes", path=".status.nodes", type="integer"),
        READY,
        AGE,
        Column(name="Weight", path=".spec.weight", type="integer", wide=True),
        Column(name="CPU", path=".status.resources.cpu", wide=True),
        Column(name="Memory", path=".status.resources.memory", wide=True),
    )
    scale: ClassVar[tuple[str, str] | None] = (".spec.replicas", ".status.nodes")

    spec: Annotated[NodePoolSpec, "What the pool may buy.", Field(required=True)] = NodePoolSpec()
    status: Annotated[NodePoolStatus, "What the pool has."] = NodePoolStatus()
