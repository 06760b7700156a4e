"""InstanceType settings: what users set for an instance type, over what the provider says.

The API kind is `InstanceType`; the class is named for what it holds, so that it is not mistaken for the thing it describes.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from joiner.model.conditions import Condition, ConditionSet
from joiner.model.customobject import CustomObject
from joiner.model.meta import Value
from joiner.model.rules import CONDITIONS, RESOURCE_LIST, Amount, Field


class InstanceTypeSettingsSpec(Value):
    """Offerings replace the provider's, resources merge over them, overhead replaces the hypervisor's share."""

    offerings: Annotated[
        tuple[Annotated[Mapping[str, str | int | float], Field(max_properties=50)], ...] | None,
        "The offerings of the type, in place of the provider's. Each is a map of labels to one value; karpenter.sh/price is the"
        " price per hour. A label that is left out may have any value the provider offers.",
        Field(max_items=1000),
    ] = None
    resources: Annotated[
        Mapping[str, Amount],
        "What a machine of the type has; merged over what the provider knows.",
        RESOURCE_LIST,
    ] = {}
    overhead: Annotated[
        Mapping[str, Amount],
        "What the hypervisor takes of it, in place of the provider's estimate.",
        RESOURCE_LIST,
    ] = {}


class OfferingMatch(Value):
    """What became of one entry of `spec.offerings`."""

    index: Annotated[int, "The place of the entry in the list, counted from 0.", Field(minimum=0, format="int32")]
    matched: Annotated[bool, "Whether the provider can launch it."]
    message: Annotated[str, "Why it cannot, or which other entry is used in its place.", Field(max_length=1024)] = ""


class InstanceTypeSettingsStatus(Value):
    """Whether the settings found their type."""

    conditions: Annotated[tuple[Condition, ...], "Whether any provider knows the type.", CONDITIONS] = ()
    offerings: Annotated[
        tuple[OfferingMatch, ...],
        "What became of each entry of spec.offerings.",
        Field(max_items=1000, list_type="map", list_keys=("index",)),
    ] = ()


class InstanceTypeSettings(CustomObject):
    """Settings of the instance type that has the object's name."""

    group: ClassVar[str] = "karpenter.sh"
    version: ClassVar[str] = "v1alpha1"
    kind: ClassVar[str] = "InstanceType"
    plural: ClassVar[str] = "instancetypes"
    namespaced: ClassVar[bool] = False
    title: ClassVar[str] = "What an instance type is, over what the provider says. The object's name is the type's."
    condition_set: ClassVar[ConditionSet] = ConditionSet(dependents=("ValidationSucceeded", "InstanceTypeFound"))

    spec: Annotated[InstanceTypeSettingsSpec, "What the type is.", Field(required=True)] = InstanceTypeSettingsSpec()
    status: Annotated[InstanceTypeSettingsStatus, "Whether the settings found their type."] = (
        InstanceTypeSettingsStatus()
    )
