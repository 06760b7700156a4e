"""NodeClaim: the request for one node, and what became of it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from joiner.model import labels
from joiner.model.conditions import Condition, ConditionSet
from joiner.model.customobject import AGE, READY, Column, CustomObject
from joiner.model.duration import Duration
from joiner.model.meta import Value
from joiner.model.nodeclass import NodeClassReference
from joiner.model.nodepool import DEFAULT_EXPIRY
from joiner.model.quantity import Quantity
from joiner.model.requirement import MOST_REQUIREMENTS, SelectorRequirementWithMinValues
from joiner.model.rules import CONDITIONS, RESOURCE_LIST, SPAN, SPAN_OR_NEVER, Field, Rule, key_is_not, key_not_ours
from joiner.model.taints import MOST_TAINTS, Taint

ClaimRequirement = Annotated[
    SelectorRequirementWithMinValues,
    Field(
        rules=(
            key_not_ours(labels.CAPACITY_TYPE, labels.NODEPOOL),
            key_is_not(labels.HOSTNAME, f"{labels.HOSTNAME} is known only once the node is there and cannot be chosen"),
        )
    ),
]


class ResourceRequests(Value):
    """What the pods that the claim was made for need."""

    requests: Annotated[Mapping[str, Quantity], "The least the node must have.", RESOURCE_LIST] = {}


class NodeClaimSpec(Value):
    """What the node must be. It is immutable: another request is another claim."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self == oldSelf",
            message="the spec of a NodeClaim cannot be changed; delete the claim and let another one be made",
            holds=lambda value, old: value == old,
        ),
    )

    taints: Annotated[tuple[Taint, ...], "Taints the node keeps for its whole life.", Field(max_items=MOST_TAINTS)] = ()
    startup_taints: Annotated[
        tuple[Taint, ...],
        "Taints the node starts with and another controller removes once it is prepared. Pods need not tolerate them.",
        Field(max_items=MOST_TAINTS),
    ] = ()
    requirements: Annotated[
        tuple[ClaimRequirement, ...],
        "Which machines will do. All of them must hold.",
        Field(required=True, max_items=MOST_REQUIREMENTS),
    ] = ()
    resources: Annotated[ResourceRequests, "What the node is needed for."] = ResourceRequests()
    node_class_ref: Annotated[
        NodeClassReference, "The NodeClass that configures the machine.", Field(required=True)
    ] = NodeClassReference()
    expire_after: Annotated[
        Duration, "How old the node may become before it is replaced.", SPAN_OR_NEVER, Field(default=DEFAULT_EXPIRY)
    ] = Duration.parse(DEFAULT_EXPIRY)
    termination_grace_period: Annotated[
        Duration | None, "How long the node may take to drain before its pods are removed by force.", SPAN
    ] = None


class NodeClaimStatus(Value):
    """What was bought."""

    node_name: Annotated[str, "The Node that joined for this claim."] = ""
    provider_id: Annotated[str, "The provider's name of the machine."] = msgspec.field(default="", name="providerID")
    image_id: Annotated[str, "The image the machine was started from."] = msgspec.field(default="", name="imageID")
    capacity: Annotated[Mapping[str, Quantity], "All that the machine has, as estimated at launch.", RESOURCE_LIST] = {}
    allocatable: Annotated[
        Mapping[str, Quantity], "What pods can use of it, as estimated at launch.", RESOURCE_LIST
    ] = {}
    last_pod_event_time: Annotated[
        datetime | None, "When a pod last came to the node or left it; rounded, to spare writes."
    ] = None
    conditions: Annotated[tuple[Condition, ...], "How far the node has come, and what is in the way.", CONDITIONS] = ()


class NodeClaim(CustomObject):
    """The request for one node, and what became of it."""

    group: ClassVar[str] = "karpenter.sh"
    version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "NodeClaim"
    plural: ClassVar[str] = "nodeclaims"
    namespaced: ClassVar[bool] = False
    title: ClassVar[str] = "The request for one node, and what became of it."
    condition_set: ClassVar[ConditionSet] = ConditionSet(dependents=("Launched", "Registered", "Initialized"))
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="Type", path=r".metadata.labels.node\.kubernetes\.io/instance-type"),
        Column(name="Capacity", path=r".metadata.labels.karpenter\.sh/capacity-type"),
        Column(name="Zone", path=r".metadata.labels.topology\.kubernetes\.io/zone"),
        Column(name="Node", path=".status.nodeName"),
        READY,
        AGE,
        Column(name="ImageID", path=".status.imageID", wide=True),
        Column(name="ID", path=".status.providerID", wide=True),
        Column(name="NodePool", path=r".metadata.labels.karpenter\.sh/nodepool", wide=True),
        Column(name="NodeClass", path=".spec.nodeClassRef.name", wide=True),
        Column(name="Drifted", path='.status.conditions[?(@.type=="Drifted")].status', wide=True),
    )

    spec: Annotated[NodeClaimSpec, "What the node must be.", Field(required=True)] = NodeClaimSpec()
    status: Annotated[NodeClaimStatus, "What was bought."] = NodeClaimStatus()
