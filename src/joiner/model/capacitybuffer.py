"""CapacityBuffer: spare capacity that is kept ready for pods that do not exist yet."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from joiner.model.conditions import Condition
from joiner.model.customobject import AGE, Column, CustomObject
from joiner.model.meta import Value
from joiner.model.quantity import Quantity
from joiner.model.rules import CONDITIONS, RESOURCE_LIST, Field, Rule, at_most_one

ACTIVE_CAPACITY: Final = "buffer.x-k8s.io/active-capacity"


class PodTemplateReference(Value):
    """A PodTemplate of the same namespace."""

    name: Annotated[str, "The name of the PodTemplate.", Field(min_length=1, max_length=253)]


class ScalableReference(Value):
    """A workload of the same namespace whose pods the buffer imitates."""

    kind: Annotated[str, "The kind of the workload.", Field(min_length=1, max_length=63)]
    name: Annotated[str, "The name of the workload.", Field(min_length=1, max_length=253)]
    api_group: Annotated[str, "The API group of the workload; empty for the core group.", Field(max_length=253)] = ""


class CapacityBufferSpec(Value):
    """For which pods room is kept, and for how many."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
            message="podTemplateRef needs replicas or limits to say how much room to keep",
            holds=lambda value: "podTemplateRef" not in value or "replicas" in value or "limits" in value,
            field=".podTemplateRef",
        ),
        at_most_one(
            ("podTemplateRef", "scalableRef"),
            "podTemplateRef and scalableRef exclude each other: pods are like one or the other",
        ),
    )

    provisioning_strategy: Annotated[str, "How the room is kept.", Field(default=ACTIVE_CAPACITY, max_length=316)] = (
        ACTIVE_CAPACITY
    )
    pod_template_ref: Annotated[PodTemplateReference | None, "The pods to keep room for."] = None
    scalable_ref: Annotated[ScalableReference | None, "The workload whose pods to keep room for."] = None
    replicas: Annotated[int | None, "For how many pods.", Field(minimum=0, format="int32")] = None
    percentage: Annotated[
        int | None, "For how many pods, as a share of the workload's.", Field(minimum=0, format="int32")
    ] = None
    limits: Annotated[Mapping[str, Quantity], "The most room to keep, by resource.", RESOURCE_LIST] = {}


class CapacityBufferStatus(Value):
    """What the buffer came to."""

    pod_template_ref: Annotated[PodTemplateReference | None, "The PodTemplate that is used."] = None
    pod_template_generation: Annotated[int | None, "The generation of it that is used.", Field(format="int64")] = None
    replicas: Annotated[int | None, "For how many pods room is kept.", Field(format="int32")] = None
    provisioning_strategy: Annotated[str, "How the room is kept."] = ""
    conditions: Annotated[
        tuple[Condition, ...], "Whether the buffer is understood and its room is there.", CONDITIONS
    ] = ()


class CapacityBuffer(CustomObject):
    """Room that is kept ready for pods that are not there yet."""

    group: ClassVar[str] = "autoscaling.x-k8s.io"
    version: ClassVar[str] = "v1beta1"
    kind: ClassVar[str] = "CapacityBuffer"
    plural: ClassVar[str] = "capacitybuffers"
    namespaced: ClassVar[bool] = True
    title: ClassVar[str] = "Room that is kept ready for pods that are not there yet."
    short_names: ClassVar[tuple[str, ...]] = ("cb",)
    categories: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[Column, ...]] = (
        Column(name="Strategy", path=".spec.provisioningStrategy"),
        Column(name="PodTemplate", path=".status.podTemplateRef.name"),
        Column(name="Replicas", path=".status.replicas", type="integer"),
        Column(name="Conditions", path=".status.conditions[*].type"),
        Column(name="Statuses", path=".status.conditions[*].status"),
        Column(name="Reasons", path=".status.conditions[*].reason"),
        AGE,
    )

    spec: Annotated[CapacityBufferSpec, "For which pods room is kept.", Field(required=True)] = CapacityBufferSpec()
    status: Annotated[CapacityBufferStatus, "What the buffer came to."] = CapacityBufferStatus()
