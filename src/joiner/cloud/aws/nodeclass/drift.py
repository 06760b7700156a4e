"""Why a machine is no longer what its EC2NodeClass asks for. The first reason counts."""

from collections.abc import Mapping
from typing import Any, Final

from joiner.catalog.market import InstanceType
from joiner.cloud.aws.instancetypes import fits, requirements_of
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.aws.nodeclass.hash import HASH, HASH_VERSION
from joiner.model.nodeclaim import NodeClaim

NODE_CLASS: Final = "NodeClassDrift"
AMI: Final = "AMIDrift"
SECURITY_GROUP: Final = "SecurityGroupDrift"
SUBNET: Final = "SubnetDrift"
CAPACITY_RESERVATION: Final = "CapacityReservationDrift"
PLACEMENT_GROUP: Final = "PlacementGroupDrift"


def static(claim: NodeClaim, node_class: EC2NodeClass) -> str:
    """Whether the class was edited since the launch. Hashes of different versions are not compared."""
    mine, current = claim.metadata.annotations, node_class.metadata.annotations
    known = all(each.get(key) for each in (mine, current) for key in (HASH, HASH_VERSION))
    if known and mine[HASH_VERSION] == current[HASH_VERSION] and mine[HASH] != current[HASH]:
        return NODE_CLASS
    return ""


def of_machine(
    raw: Mapping[str, Any], node_class: EC2NodeClass, kind: InstanceType | None, reservation_selected: bool
) -> str:
    """What differs between a machine and what its class has found."""
    status = node_class.status
    image = next((each.id for each in status.amis if kind is not None and fits(kind, requirements_of(each))), "")
    if image and raw.get("ImageId") and raw["ImageId"] != image:
        return AMI
    groups = {each.id for each in status.security_groups}
    if groups and {each["GroupId"] for each in raw.get("SecurityGroups") or ()} != groups:
        return SECURITY_GROUP
    if status.subnets and raw.get("SubnetId") not in {each.id for each in status.subnets}:
        return SUBNET
    return "" if reservation_selected else CAPACITY_RESERVATION


def of_placement(raw: Mapping[str, Any], group_id: str) -> str:
    """Whether a machine is in another placement group than the one of its class, or in one although the class has none."""
    own = (raw.get("Placement") or {}).get("GroupId") or ""
    return "" if own == group_id else PLACEMENT_GROUP
