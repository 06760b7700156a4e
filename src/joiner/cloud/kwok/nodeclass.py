"""KWOKNodeClass: what the machines of the pretend cloud are like."""

from datetime import UTC, datetime
from pathlib import PurePath
from typing import Annotated, ClassVar, Final, Literal

from joiner.model import codec
from joiner.model.conditions import Condition
from joiner.model.customobject import CustomObject
from joiner.model.duration import Duration
from joiner.model.kubelet import Kubelet
from joiner.model.meta import Value, replace
from joiner.model.rules import CONDITIONS, LABEL_VALUE, SPAN, Field

GROUP: Final = "karpenter.kwok.sh"
DEFAULT_TYPES: Final = "kwok"
SMALL: Final = "small"
EC2_PREFIX: Final = "ec2/"


class CapacityReservation(Value):
    """Machines that are paid for, whether they run or not."""

    id: Annotated[str, "The name of the reservation.", LABEL_VALUE, Field(min_length=1)]
    instance_type: Annotated[str, "The type of the reserved machines.", LABEL_VALUE, Field(min_length=1)]
    zone: Annotated[str, "The zone of the reserved machines.", LABEL_VALUE, Field(min_length=1)]
    count: Annotated[int, "How many machines are reserved.", Field(minimum=0, format="int32")]
    end_time: Annotated[datetime | None, "When the reservation ends. Without it, never."] = None
    type: Annotated[
        Literal["open", "targeted"],
        "Whether any matching machine runs in it, or only one that names it.",
        Field(default="open"),
    ] = "open"


class KWOKNodeClassSpec(Value):
    """Which machines there are, and how they start."""

    node_registration_delay: Annotated[Duration | None, "How long a machine takes to join the cluster.", SPAN] = None
    instance_types: Annotated[
        str,
        "The machines there are: kwok (generated), small (a handful), ec2/us-east-1 or ec2/us-west-2 (EC2's), or a file.",
        Field(default=DEFAULT_TYPES, min_length=1, max_length=4096),
    ] = DEFAULT_TYPES
    kubelet: Annotated[Kubelet, "What a node keeps back from pods, and how many pods it takes."] = Kubelet()
    capacity_reservations: Annotated[
        tuple[CapacityReservation, ...],
        "Machines that are paid for, whether they run or not.",
        Field(max_items=1000, list_type="map", list_keys=("id",)),
    ] = ()

    @property
    def ec2_region(self) -> str | None:
        """The region, if the machines are EC2's."""
        named = self.instance_types
        return named.removeprefix(EC2_PREFIX) if named.startswith(EC2_PREFIX) else None

    @property
    def file(self) -> str | None:
        """The path of a catalogue file, if the machines are in one."""
        built_in = self.instance_types in (DEFAULT_TYPES, SMALL) or self.ec2_region is not None
        return None if built_in else self.instance_types


_READY: Final = Condition(
    type="Ready", status="True", reason="Ready", last_transition_time=datetime(2024, 1, 1, tzinfo=UTC), message=""
)


class KWOKNodeClassStatus(Value):
    """There is nothing to prepare in a pretend cloud, so a class is ready from the start."""

    conditions: Annotated[tuple[Condition, ...], "Whether the class can be used.", CONDITIONS] = (_READY,)


class KWOKNodeClass(CustomObject):
    """What the machines of the pretend cloud are like."""

    group: ClassVar[str] = GROUP
    version: ClassVar[str] = "v1alpha1"
    kind: ClassVar[str] = "KWOKNodeClass"
    plural: ClassVar[str] = "kwoknodeclasses"
    namespaced: ClassVar[bool] = False
    title: ClassVar[str] = "What the machines of the pretend cloud are like."
    short_names: ClassVar[tuple[str, ...]] = ("kwoknc", "kwokncs")

    spec: Annotated[KWOKNodeClassSpec, "Which machines there are, and how they start."] = KWOKNodeClassSpec()
    status: Annotated[
        KWOKNodeClassStatus, "Whether the class can be used.", Field(default={"conditions": [codec.encode(_READY)]})
    ] = KWOKNodeClassStatus()

    def written_in(self, folder: PurePath) -> "KWOKNodeClass":
        """The class as a manifest in that folder means it: a relative path of a catalogue is seen from there."""
        file = self.spec.file
        if file is None or PurePath(file).is_absolute():
            return self
        return replace(self, spec=replace(self.spec, instance_types=str(folder / file)))
