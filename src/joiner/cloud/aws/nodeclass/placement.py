"""Placement groups: how they are looked up, the labels of machines in them, and their partitions."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from joiner.cloud.aws.api import NOT_FOUND, AwsApi, AwsError
from joiner.cloud.aws.nodeclass.ec2nodeclass import GROUP, EC2NodeClassSpec
from joiner.cloud.registration import Answer
from joiner.model.meta import Value
from joiner.model.nodeclaim import NodeClaim
from joiner.requirements import Requirement, Requirements

GROUP_ID: Final = f"{GROUP}/placement-group-id"
PARTITION: Final = f"{GROUP}/placement-group-partition"
LABELS: Final = frozenset({GROUP_ID, PARTITION})


class PlacementGroup(Value):
    """A placement group. A class without one has the one without an id."""

    id: str = ""
    strategy: str = ""
    state: str = "available"
    partitions: int = 0

    def __str__(self) -> str:
        return f"{self.id} ({self.state})" if self.id else "none"

    def requirements(self) -> Iterator[Requirement]:
        """The labels of machines in the group; without a group they are absent, so that pods which ask for one stay away."""
        numbers = tuple(str(number) for number in range(1, self.partitions + 1))
        yield Requirement(GROUP_ID, (self.id,) if self.id else ())
        yield Requirement(PARTITION, numbers)

    def partition_of(self, asked: Requirements) -> int:
        """The lowest partition that a claim asks for; 0 where it leaves the choice to EC2."""
        wanted = asked.get(PARTITION)
        numbers = range(1, self.partitions + 1) if wanted is not None else ()
        return next((number for number in numbers if wanted is not None and wanted.has(str(number))), 0)


async def placement_group(api: AwsApi, spec: EC2NodeClassSpec) -> PlacementGroup | None:
    """The placement group of a class; nothing where there is none of that name or id."""
    wanted = spec.placement_group_selector
    if wanted is None:
        return None
    asked: dict[str, Any] = {"GroupNames": [wanted.name]} if wanted.name else {"GroupIds": [wanted.id]}
    try:
        answer = await api.call("ec2", "describe_placement_groups", **asked)
    except AwsError as error:
        if error.code in NOT_FOUND:
            return None
        raise
    found = next(iter(answer.get("PlacementGroups") or ()), None)
    if found is None:
        return None
    return PlacementGroup(
        id=found["GroupId"],
        strategy=found.get("Strategy", ""),
        state=found.get("State") or "available",
        partitions=found.get("PartitionCount") or 0,
    )


def placed(raw: Mapping[str, Any]) -> dict[str, str]:
    """The labels of a machine by its placement, as far as EC2 tells of it."""
    told = raw.get("Placement") or {}
    known = {GROUP_ID: told.get("GroupId"), PARTITION: told.get("PartitionNumber")}
    return {key: str(value) for key, value in known.items() if value}


class Described(Protocol):
    """Something that describes machines."""

    async def get(self, named: str) -> Mapping[str, Any]:
        """A machine as EC2 describes it, by its provider id."""
        ...


class PartitionHook:
    """Finds out which partition EC2 chose for a machine; pods may ask for one, so its node waits for it."""

    name = "placement-group-partition"

    def __init__(self, machines: Described, group_of: Callable[[NodeClaim], PlacementGroup]) -> None:
        self._machines, self._group_of = machines, group_of

    async def registered(self, claim: NodeClaim) -> Answer:
        """The label, once it is known."""
        if not self._group_of(claim).partitions or claim.metadata.labels.get(PARTITION):
            return Answer()
        number = ((await self._machines.get(claim.status.provider_id)).get("Placement") or {}).get("PartitionNumber")
        return Answer(labels={PARTITION: str(number)}) if number else Answer(again_s=5.0)
