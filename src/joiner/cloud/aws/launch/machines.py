"""Machines as EC2 describes them: whose they are, what they are, and whether they are on their way out."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from joiner.catalog.market import InstanceType
from joiner.clock import Clock
from joiner.cloud.aws.api import NOT_FOUND, THROTTLED, AwsApi, AwsError, pages, told
from joiner.cloud.aws.counts import Counts
from joiner.cloud.aws.launch import tags
from joiner.cloud.aws.launch.templates import ONLY
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.aws.nodeclass.placement import placed
from joiner.cloud.aws.pace import MOST, Gathered
from joiner.cloud.errors import InstanceNotFound
from joiner.cloud.provider import Instance
from joiner.cloud.sources import ec2
from joiner.cloud.sources.reservation import DEFAULT_LABELS
from joiner.model import labels

_VALUES: Final = 200
"""How many values one filter has at most."""
LIVE: Final = ("pending", "running", "stopping", "stopped", "shutting-down")
_GONE: Final = "terminated"
_ENDING: Final = ("shutting-down", _GONE)
_PROVIDER_ID: Final = re.compile(r"aws:///([^/]*)/(i-[0-9a-z]+)")

Described = Callable[[str, str], tuple[EC2NodeClass | None, InstanceType | None]]
"""Gives the class of a name, and one of its types."""


def provider_id(zone: str, instance_id: str) -> str:
    """How Kubernetes calls a machine."""
    return f"aws:///{zone}/{instance_id}"


def instance_id(named: str) -> str:
    """EC2's name of a machine. Raises `InstanceNotFound` for what is none of EC2's."""
    match = _PROVIDER_ID.fullmatch(named)
    if match is None:
        raise InstanceNotFound(f"{named!r} is not a machine of EC2: those are written aws:///zone/i-…")
    return match[2]


class Machines:
    """Reads and ends machines. Calls about single machines that come together are one call."""

    def __init__(self, api: AwsApi, clock: Clock, cluster: str, describe: Described, counts: Counts) -> None:
        self._api = api
        self._cluster = cluster
        self._describe = describe
        self._counts = counts
        self._found = Gathered(clock, self._find, counts.gathered("describe_instances"))
        self._ended = Gathered(clock, self._end, counts.gathered("terminate_instances"))

    async def get(self, named: str) -> Mapping[str, Any]:
        """The machine as EC2 describes it. Raises `InstanceNotFound`."""
        identity = instance_id(named)
        try:
            found = await self._found.about(identity)
        except AwsError as error:
            raise told(error, f"machine {identity}") from error
        if found is None or state(found) == _GONE:
            raise InstanceNotFound(f"there is no machine {identity}")
        return found

    async def _find(self, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        for start in range(0, len(ids), _VALUES):
            filters = [{"Name": "instance-id", "Values": list(ids[start : start + _VALUES])}]
            found += await self._ask(Filters=filters, MaxResults=1000)
        return {each["InstanceId"]: each for each in found}

    async def of_claim(self, uid: str) -> tuple[Mapping[str, Any] | None, int]:
        """The machine that was launched for a claim, as far as EC2 shows it, and how many were that have ended."""
        filters = [{"Name": f"tag:{tags.NODECLAIM_UID}", "Values": [uid]}, self._ours()]
        try:
            found = await self._ask(Filters=filters)
        except AwsError as error:
            raise told(error, f"machines of claim {uid}") from error
        living = [each for each in found if state(each) not in _ENDING]
        return next(iter(living), None), len(found) - len(living)

    async def all(self) -> list[Mapping[str, Any]]:
        """All machines of the cluster."""
        filters = [
            {"Name": "tag-key", "Values": [tags.NODEPOOL]},
            {"Name": "tag-key", "Values": [tags.NODE_CLASS]},
            self._ours(),
            _LIVE_FILTER,
        ]
        try:
            return await self._ask(Filters=filters, MaxResults=1000)
        except AwsError as error:
            raise told(error, "machines of the cluster") from error

    async def terminate(self, named: str) -> None:
        """End a machine, unless it is ending. Raises `InstanceNotFound` once it is gone."""
        raw = await self.get(named)
        if state(raw) == "shutting-down":
            return
        identity = instance_id(named)
        error = await self._ended.about(identity)
        if error is None:
            return
        if error.code in NOT_FOUND:
            raise InstanceNotFound(f"there is no machine {identity}")
        placement = raw.get("Placement") or {}
        self._counts.termination_failed(placement.get("AvailabilityZone", ""), placement.get("AvailabilityZoneId", ""))
        raise told(error, f"machine {identity}") from error

    async def _end(self, ids: Sequence[str]) -> dict[str, AwsError]:
        """The errors of those that could not be ended. One that is not there makes EC2 refuse all: each is then ended alone."""
        if len(ids) > MOST:
            return {**await self._end(ids[:MOST]), **await self._end(ids[MOST:])}
        try:
            await self._api.call("ec2", "terminate_instances", InstanceIds=list(ids))
        except AwsError as error:
            if len(ids) == 1 or error.code in THROTTLED:
                return dict.fromkeys(ids, error)
            return {identity: found for each in ids for identity, found in (await self._end([each])).items()}
        return {}

    async def _ask(self, **asked: Any) -> list[Mapping[str, Any]]:
        groups = await pages(self._api, "ec2", "describe_instances", "Reservations", **asked)
        return [each for group in groups for each in group.get("Instances") or ()]

    def _ours(self) -> dict[str, Any]:
        return {"Name": f"tag:{tags.CLUSTER}", "Values": [self._cluster]}

    def read(self, raw: Mapping[str, Any]) -> Instance:
        """The machine as controllers know it."""
        own = tags.read(raw.get("Tags"))
        zone, name = (raw.get("Placement") or {}).get("AvailabilityZone", ""), raw.get("InstanceType", "")
        node_class, kind = self._describe(own.get(tags.NODE_CLASS, ""), name)
        launched = raw.get("LaunchTime")
        return Instance(
            provider_id=provider_id(zone, raw["InstanceId"]),
            claim_name=own.get(tags.NODECLAIM, ""),
            claim_uid=own.get(tags.NODECLAIM_UID, ""),
            image_id=raw.get("ImageId", ""),
            labels={
                **settled(kind, node_class, name, zone, (raw.get("Placement") or {}).get("Tenancy", "default")),
                **_bought_as(raw),
                **placed(raw),
                **({labels.NODEPOOL: own[tags.NODEPOOL]} if own.get(tags.NODEPOOL) else {}),
            },
            capacity=kind.capacity if kind is not None else {},
            allocatable=kind.allocatable() if kind is not None else {},
            launched_at=launched if isinstance(launched, datetime) else None,
            terminating=state(raw) in _ENDING,
        )


_LIVE_FILTER: Final = {"Name": "instance-state-name", "Values": list(LIVE)}


def state(raw: Mapping[str, Any]) -> str:
    """`pending`, `running`, `shutting-down` …"""
    return str((raw.get("State") or {}).get("Name", ""))


def settled(
    kind: InstanceType | None, node_class: EC2NodeClass | None, name: str, zone: str, tenancy: str
) -> dict[str, str]:
    """The labels that a machine has by its type and place."""
    known = kind.requirements.labels() if kind is not None else {labels.INSTANCE_TYPE: name}
    subnets = node_class.status.subnets if node_class is not None else ()
    zone_id = next((each.zone_id for each in subnets if each.zone == zone), "")
    kept = {key: value for key, value in known.items() if key not in DEFAULT_LABELS.names()}
    placed = {labels.ZONE: zone, ec2.TENANCY: tenancy, **({ec2.ZONE_ID: zone_id} if zone_id else {})}
    return ec2.with_eks_names({**kept, **placed})


def reservation_of(raw: Mapping[str, Any]) -> str:
    """The reservation that a machine was launched into by name; one that merely fell into an open one is on demand."""
    wanted = (raw.get("CapacityReservationSpecification") or {}).get("CapacityReservationPreference")
    return str(raw.get("CapacityReservationId") or "") if wanted == ONLY else ""


def _bought_as(raw: Mapping[str, Any]) -> dict[str, str]:
    lifecycle = raw.get("InstanceLifecycle", "")
    if raw.get("SpotInstanceRequestId") or lifecycle == "spot":
        return {labels.CAPACITY_TYPE: labels.SPOT}
    identity = reservation_of(raw)
    if not identity:
        return {labels.CAPACITY_TYPE: labels.ON_DEMAND}
    return {
        labels.CAPACITY_TYPE: labels.RESERVED,
        DEFAULT_LABELS.id: identity,
        DEFAULT_LABELS.type: "capacity-block" if lifecycle == "capacity-block" else "default",
        DEFAULT_LABELS.interruptible: "true" if lifecycle == "interruptible-capacity-reservation" else "false",
    }
