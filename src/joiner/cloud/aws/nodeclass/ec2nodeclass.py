"""EC2NodeClass (`karpenter.k8s.aws/v1`): what the EC2 instances of a NodePool are like, and what was found for it in the account.

Fields, defaults and rules are Karpenter's, with the reservation selectors of the capacity-reservations design beside today's. A
single selector term that combines what must stand alone is refused; Karpenter refuses only when all of them do.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from joiner.cloud.aws.nodeclass.machineparts import (
    INTERFACES,
    ONE_ROOT,
    BlockDeviceMapping,
    ConnectionTracking,
    CPUOptions,
    MetadataOptions,
    NetworkInterface,
    NodeKubelet,
)
from joiner.cloud.aws.nodeclass.selectors import (
    CUSTOM,
    FAMILIES,
    NO_WINDOWS,
    ONE_ALIAS,
    TERMS,
    AMISelectorTerm,
    CapacityReservationSelectorTerm,
    PlacementGroupSelector,
    SecurityGroupSelectorTerm,
    SubnetSelectorTerm,
)
from joiner.model import codec
from joiner.model.conditions import Condition, ConditionSet
from joiner.model.customobject import AGE, READY, Column, CustomObject
from joiner.model.meta import Value
from joiner.model.rules import CONDITIONS, Field, OpenObject, Rule, at_least_one, at_most_one

GROUP: Final = "karpenter.k8s.aws"
FINALIZER: Final = f"{GROUP}/termination"
RAID0: Final = "RAID0"

AMIS_READY: Final = "AMIsReady"
SUBNETS_READY: Final = "SubnetsReady"
SECURITY_GROUPS_READY: Final = "SecurityGroupsReady"
INSTANCE_PROFILE_READY: Final = "InstanceProfileReady"
CAPACITY_RESERVATIONS_READY: Final = "CapacityReservationsReady"
PLACEMENT_GROUP_READY: Final = "PlacementGroupReady"
VALIDATION_SUCCEEDED: Final = "ValidationSucceeded"

OWN_TAGS: Final = (
    "eks:eks-cluster-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim", "karpenter.k8s.aws/ec2nodeclass"
)  # fmt: skip
"""Tags that Joiner sets itself; so is every one that begins with `kubernetes.io/cluster`."""


def _is_free_tag(key: str) -> bool:
    return bool(key) and key not in OWN_TAGS and not key.startswith("kubernetes.io/cluster")


_TAG_KEYS: Final = Rule(
    cel=f"self.all(key, key != '' && !(key in [{', '.join(map(repr, OWN_TAGS))}])"
    " && !key.startsWith('kubernetes.io/cluster'))",
    message=f"a tag needs a key, and these are set by Joiner: {', '.join(OWN_TAGS)} and kubernetes.io/cluster…",
    holds=lambda value: all(map(_is_free_tag, value)),
    allows_key=_is_free_tag,
)


def _aliases(value: Mapping[str, Any]) -> list[str]:
    terms = value.get("amiSelectorTerms") or ()
    return [term["alias"] for term in terms if isinstance(term, Mapping) and "alias" in term]


def _family_fits(value: Mapping[str, Any]) -> bool:
    family = value.get("amiFamily")
    return family in (None, CUSTOM) or all(FAMILIES.get(a.partition("@")[0]) == family for a in _aliases(value))


_FAMILY_FITS_CEL: Final = " || ".join(
    f"(self.amiFamily == '{family}' && term.alias.startsWith('{word}@'))" for word, family in FAMILIES.items()
)


class EC2NodeClassSpec(Value):
    """What is wanted."""

    rules: ClassVar[tuple[Rule, ...]] = (
        at_least_one(("role", "instanceProfile"), "write the role of the machines, or an instanceProfile that has it"),
        at_most_one(("role", "instanceProfile"), "role and instanceProfile exclude each other; write one of them"),
        Rule(
            cel="has(self.amiFamily) || self.amiSelectorTerms.exists(term, has(term.alias))",
            message="amiFamily is needed, unless images are selected by an alias",
            holds=lambda value: "amiFamily" in value or bool(_aliases(value)),
        ),
        Rule(
            cel="!has(self.amiFamily) || self.amiFamily == 'Custom'"
            f" || self.amiSelectorTerms.all(term, !has(term.alias) || {_FAMILY_FITS_CEL})",
            message="amiFamily must be the family of the alias, or Custom",
            holds=_family_fits,
            field=".amiFamily",
        ),
        Rule(
            cel="!has(self.amiFamily) || !self.amiFamily.startsWith('Windows')",
            message=NO_WINDOWS,
            holds=lambda value: not str(value.get("amiFamily", "")).startswith("Windows"),
            field=".amiFamily",
        ),
    )

    subnet_selector_terms: Annotated[tuple[SubnetSelectorTerm, ...], "Subnets to launch into.", TERMS] = ()
    security_group_selector_terms: Annotated[
        tuple[SecurityGroupSelectorTerm, ...], "Security groups of the machines.", TERMS
    ] = ()
    capacity_reservation_selector_terms: Annotated[
        tuple[CapacityReservationSelectorTerm, ...], "Capacity reservations to launch into first.", Field(max_items=30)
    ] = ()
    placement_group_selector: Annotated[PlacementGroupSelector | None, "The placement group of the machines."] = None
    ami_selector_terms: Annotated[
        tuple[AMISelectorTerm, ...],
        "Images to boot; a machine gets the newest that fits its type.",
        Field(rules=(ONE_ALIAS,)).over(TERMS),
    ] = ()
    ami_family: Annotated[
        Literal["AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025"] | None,
        "How user data is made, and which volumes there are by default. The alias says it, too.",
    ] = None
    user_data: Annotated[str, "User data of your own; it is merged with what the family needs."] = ""
    role: Annotated[str, "The role of the machines; an instance profile is made for it.", Field(min_length=1)] = ""
    instance_profile: Annotated[str, "An instance profile that is there already.", Field(min_length=1)] = ""
    tags: Annotated[
        Mapping[str, Annotated[str, Field(max_length=256)]],
        "Tags of everything that is made.",
        Field(max_properties=50, rules=(_TAG_KEYS,)),
    ] = {}
    kubelet: Annotated[
        Mapping[str, Any],
        "Settings of the kubelet. All of its configuration can be given; what Joiner plans with is checked.",
        OpenObject(known=NodeKubelet),
    ] = {}
    block_device_mappings: Annotated[
        tuple[BlockDeviceMapping, ...], "Volumes of the machines.", Field(max_items=50, rules=(ONE_ROOT,))
    ] = ()
    instance_store_policy: Annotated[
        Literal["RAID0"] | None, "RAID0 makes the local disks what pods write to, where a machine has any."
    ] = None
    network_interfaces: Annotated[
        tuple[NetworkInterface, ...], "Network interfaces of the machines.", Field(max_items=150, rules=INTERFACES)
    ] = ()
    associate_public_ip_address: Annotated[bool | None, "Whether machines get public addresses."] = msgspec.field(
        default=None, name="associatePublicIPAddress"
    )
    ip_prefix_count: Annotated[
        int | None, "Prefixes of addresses for the first interface.", Field(minimum=0, format="int32")
    ] = msgspec.field(default=None, name="ipPrefixCount")
    detailed_monitoring: Annotated[bool | None, "Whether CloudWatch gets a value every minute."] = None
    metadata_options: Annotated[
        MetadataOptions,
        "How processes on the machine reach its metadata service.",
        Field(
            default={
                "httpEndpoint": "enabled",
                "httpProtocolIPv6": "disabled",
                "httpPutResponseHopLimit": 1,
                "httpTokens": "required",
            }
        ),
    ] = MetadataOptions()
    connection_tracking: Annotated[ConnectionTracking | None, "How long idle connections are remembered."] = None
    context: Annotated[str, "Reserved by EC2; it is handed on with every launch."] = ""
    cpu_options: Annotated[CPUOptions | None, "What the processors can do."] = None

    @property
    def family(self) -> str:
        """The AMI family: the one that is written, or that of the alias."""
        return self.ami_family or next((term.family for term in self.ami_selector_terms if term.alias), CUSTOM)

    @property
    def kubelet_settings(self) -> NodeKubelet:
        """What is understood of the kubelet block."""
        return codec.decode(self.kubelet, NodeKubelet)


class Subnet(Value):
    """A subnet that was found."""

    id: str
    zone: str
    zone_id: Annotated[str, "The id of the zone, which is the same in every account."] = msgspec.field(
        default="", name="zoneID"
    )


class SecurityGroup(Value):
    """A security group that was found."""

    id: str
    name: str = ""


class AMIRequirement(Value):
    """A label that instance types of an image have, or do not have."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class AMI(Value):
    """An image that was found, and the machines it is for."""

    id: str
    name: str = ""
    deprecated: bool = False
    requirements: Annotated[tuple[AMIRequirement, ...], "Which instance types it boots on."] = ()


class CapacityReservation(Value):
    """A capacity reservation that was found."""

    id: str
    instance_type: str
    availability_zone: str
    owner_id: str = msgspec.field(default="", name="ownerID")
    instance_match_criteria: Literal["open", "targeted"] = "targeted"
    type: Annotated[Literal["open", "targeted"] | None, "Another name of instanceMatchCriteria."] = None
    end_time: datetime | None = None
    reservation_type: Annotated[Literal["default", "capacity-block"], "What was bought."] = "default"
    interruptible: bool = False
    state: Literal["active", "expiring"] = "active"
    available_instance_count: Annotated[
        int | None, "How many instances can still be launched into it.", Field(minimum=0, format="int64")
    ] = None
    total_instance_count: Annotated[
        int | None, "How many instances are reserved.", Field(minimum=0, format="int64")
    ] = None
    problem: Annotated[str, "Why it cannot be launched into by this class; empty when it can."] = ""


class EC2NodeClassStatus(Value):
    """What was found."""

    subnets: Annotated[tuple[Subnet, ...], "Subnets, those with the most free addresses first."] = ()
    security_groups: Annotated[tuple[SecurityGroup, ...], "Security groups by id."] = ()
    amis: Annotated[tuple[AMI, ...], "Images, the newest first."] = ()
    capacity_reservations: Annotated[tuple[CapacityReservation, ...], "Capacity reservations by id, at most 100."] = ()
    capacity_reservation_count: Annotated[
        int | None, "How many capacity reservations there are, where not all are listed."
    ] = None
    instance_profile: Annotated[str, "The instance profile that machines get."] = ""
    conditions: Annotated[tuple[Condition, ...], "Whether the class can be used.", CONDITIONS] = ()


class EC2NodeClass(CustomObject):
    """What the EC2 instances of a NodePool are like."""

    group: ClassVar[str] = GROUP
    version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "EC2NodeClass"
    plural: ClassVar[str] = "ec2nodeclasses"
    namespaced: ClassVar[bool] = False
    title: ClassVar[str] = "What the EC2 instances of a NodePool are like."
    short_names: ClassVar[tuple[str, ...]] = ("ec2nc", "ec2ncs")
    columns: ClassVar[tuple[Column, ...]] = (READY, AGE, Column(name="Role", path=".spec.role", wide=True))
    condition_set: ClassVar[ConditionSet] = ConditionSet(
        dependents=(
            AMIS_READY,
            SUBNETS_READY,
            SECURITY_GROUPS_READY,
            INSTANCE_PROFILE_READY,
            CAPACITY_RESERVATIONS_READY,
            PLACEMENT_GROUP_READY,
            VALIDATION_SUCCEEDED,
        )
    )

    spec: Annotated[EC2NodeClassSpec, "What is wanted.", Field(required=True)] = EC2NodeClassSpec()
    status: Annotated[EC2NodeClassStatus, "What was found."] = EC2NodeClassStatus()
