"""Launch templates: made when a launch needs them, named by a hash of all they say, deleted when they were idle for a while."""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from joiner.clock import Clock
from joiner.cloud.aws.api import ALREADY_EXISTS, NOT_FOUND, AwsApi, AwsError, pages
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.aws.nodeclass.families import family_of
from joiner.cloud.aws.nodeclass.machineparts import GIB, BlockDeviceMapping
from joiner.model.meta import Value

PREFIX: Final = "karpenter.k8s.aws/"
IDLE_S: Final = 300.0
"""So long a template is kept after its last launch."""
ONLY: Final = "capacity-reservations-only"
_MARKETS: Final = {"capacity-block": "capacity-block"}
INTERRUPTIBLE: Final = "interruptible-capacity-reservation"


class Template(Value):
    """One launch template: machines that differ in nothing but type and place."""

    image_id: str
    user_data: str
    tenancy: str = "default"
    reservation_id: str = ""
    reservation_type: str = ""
    interruptible: bool = False
    opts_out: bool = False
    """Whether machines must stay out of open reservations."""
    efa: int = 0
    placement_group_id: str = ""
    partition: int = 0
    """The partition of the placement group; 0 leaves it to EC2."""
    enclaves: bool = False
    ipv6: bool = False
    """Whether the machines are for a cluster whose pods have IPv6 addresses."""
    spot: bool = False


def data(template: Template, node_class: EC2NodeClass, tags: Mapping[str, str]) -> dict[str, Any]:
    """What EC2 is told, in its own words."""
    spec, status = node_class.spec, node_class.status
    made: dict[str, Any] = {
        "ImageId": template.image_id,
        "UserData": base64.b64encode(template.user_data.encode()).decode(),
        "IamInstanceProfile": {"Name": status.instance_profile},
        "Monitoring": {"Enabled": bool(spec.detailed_monitoring)},
        "BlockDeviceMappings": block_devices(node_class),
        "MetadataOptions": {
            "HttpEndpoint": spec.metadata_options.http_endpoint,
            "HttpProtocolIpv6": spec.metadata_options.http_protocol_ipv6,
            "HttpPutResponseHopLimit": spec.metadata_options.http_put_response_hop_limit,
            "HttpTokens": spec.metadata_options.http_tokens,
            "InstanceMetadataTags": "disabled",
        },
        "NetworkInterfaces": interfaces(template, node_class),
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": written(tags)}
            for kind in ("network-interface", *(("spot-instances-request",) if template.spot else ()))
        ],
    }
    placement: dict[str, Any] = {"GroupId": template.placement_group_id} if template.placement_group_id else {}
    if template.partition:
        placement["PartitionNumber"] = template.partition
    if template.enclaves:
        made["EnclaveOptions"] = {"Enabled": True}
    if template.tenancy != "default" or placement:
        made["Placement"] = {"Tenancy": template.tenancy, **placement}
    if spec.cpu_options is not None and spec.cpu_options.nested_virtualization:
        made["CpuOptions"] = {"NestedVirtualization": spec.cpu_options.nested_virtualization}
    if template.reservation_id:
        target = {"CapacityReservationId": template.reservation_id}
        made["CapacityReservationSpecification"] = {
            "CapacityReservationPreference": ONLY,
            "CapacityReservationTarget": target,
        }
        market = INTERRUPTIBLE if template.interruptible else _MARKETS.get(template.reservation_type)
        if market:
            made["InstanceMarketOptions"] = {"MarketType": market}
    elif template.opts_out:
        made["CapacityReservationSpecification"] = {"CapacityReservationPreference": "none"}
    return {key: value for key, value in made.items() if value not in ([], {})}


def written(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as EC2 writes them."""
    return [{"Key": key, "Value": tags[key]} for key in sorted(tags)]


def block_devices(node_class: EC2NodeClass) -> list[dict[str, Any]]:
    """The volumes that the class asks for, or those of its family."""
    given = node_class.spec.block_device_mappings
    if given:
        return [_mapping(each) for each in given]
    return [
        {"DeviceName": each.device, "Ebs": {"Encrypted": True, "VolumeType": "gp3", "VolumeSize": each.gib}}
        for each in family_of(node_class.spec).volumes
    ]


def _mapping(mapping: BlockDeviceMapping) -> dict[str, Any]:
    made: dict[str, Any] = {"DeviceName": mapping.device_name} if mapping.device_name else {}
    if mapping.ebs is not None:
        ebs = mapping.ebs
        size = ebs.size
        given = {
            "DeleteOnTermination": ebs.delete_on_termination,
            "Encrypted": ebs.encrypted,
            "Iops": ebs.iops,
            "KmsKeyId": ebs.kms_key_id or None,
            "SnapshotId": ebs.snapshot_id or None,
            "Throughput": ebs.throughput,
            "VolumeInitializationRate": ebs.volume_initialization_rate,
            "VolumeSize": None if size is None else -(-size // GIB),
            "VolumeType": ebs.volume_type,
        }
        made["Ebs"] = {key: value for key, value in given.items() if value is not None}
    return made


def interfaces(template: Template, node_class: EC2NodeClass) -> list[dict[str, Any]]:
    """Network interfaces: those of the class, as many for EFA as pods ask for, or a single one."""
    spec = node_class.spec
    groups = [each.id for each in node_class.status.security_groups]
    places: list[tuple[int, int, str]]
    if spec.network_interfaces:
        places = [(each.network_card_index, each.device_index, each.interface_type) for each in spec.network_interfaces]
    elif template.efa:
        places = [(card, 0 if card == 0 else 1, "efa") for card in range(template.efa)]
    else:
        places = [(0, 0, "interface")]
    return [_interface(node_class, groups, template.ipv6, *place) for place in places]


def _interface(
    node_class: EC2NodeClass, groups: list[str], ipv6: bool, card: int, device: int, kind: str
) -> dict[str, Any]:
    spec = node_class.spec
    made: dict[str, Any] = {"NetworkCardIndex": card, "DeviceIndex": device, "InterfaceType": kind, "Groups": groups}
    first = (card, device) == (0, 0)
    if first and spec.associate_public_ip_address is not None:
        made["AssociatePublicIpAddress"] = spec.associate_public_ip_address
    if first and ipv6:
        made |= {"PrimaryIpv6": True, "Ipv6AddressCount": 1}
    if first and spec.ip_prefix_count:
        made["Ipv6PrefixCount" if ipv6 else "Ipv4PrefixCount"] = spec.ip_prefix_count
    tracking = spec.connection_tracking
    if tracking is not None and kind != "efa-only":
        given = {
            "TcpEstablishedTimeout": tracking.tcp_established_timeout,
            "UdpStreamTimeout": tracking.udp_stream_timeout,
            "UdpTimeout": tracking.udp_timeout,
        }
        made["ConnectionTrackingSpecification"] = {key: value for key, value in given.items() if value is not None}
    return made


class LaunchTemplates:
    """The templates that launches of this process use."""

    def __init__(self, api: AwsApi, clock: Clock, cluster_name: str) -> None:
        self._api = api
        self._clock = clock
        self._cluster = cluster_name
        self._used: dict[str, float] = {}

    async def ensure(self, template: Template, node_class: EC2NodeClass, tags: Mapping[str, str]) -> str:
        """The name of the template, which is made where it is not there yet. Raises `AwsError`."""
        content = data(template, node_class, tags)
        digest = hashlib.sha256(json.dumps([content, node_class.name], sort_keys=True).encode()).hexdigest()[:20]
        name = f"{PREFIX}{digest}"
        if name not in self._used and not await self._exists(name):
            try:
                await self._api.call(
                    "ec2",
                    "create_launch_template",
                    LaunchTemplateName=name,
                    LaunchTemplateData=content,
                    TagSpecifications=[{"ResourceType": "launch-template", "Tags": written(tags)}],
                )
            except AwsError as error:
                if error.code not in ALREADY_EXISTS:
                    raise
        self._used[name] = self._clock.monotonic()
        return name

    async def _exists(self, name: str) -> bool:
        try:
            answer = await self._api.call("ec2", "describe_launch_templates", LaunchTemplateNames=[name])
        except AwsError as error:
            if error.code in NOT_FOUND:
                return False
            raise
        return bool(answer.get("LaunchTemplates"))

    def forget(self, names: Mapping[str, Any]) -> None:
        """EC2 does not know these any more."""
        for name in names:
            self._used.pop(name, None)

    async def sweep(self) -> None:
        """Delete the templates of the cluster that no launch has used for a while. Raises `AwsError`."""
        now = self._clock.monotonic()
        for name in await self._listed():
            used = self._used.setdefault(name, now)
            if now - used >= IDLE_S:
                await self._delete(name)

    async def delete_all(self, node_class: str) -> None:
        """Delete the templates of a class that goes. Raises `AwsError`."""
        for name in await self._listed({"Name": "tag:karpenter.k8s.aws/ec2nodeclass", "Values": [node_class]}):
            await self._delete(name)

    async def _listed(self, *more: dict[str, Any]) -> list[str]:
        filters = [{"Name": "tag:eks:eks-cluster-name", "Values": [self._cluster]}, *more]
        found = await pages(
            self._api, "ec2", "describe_launch_templates", "LaunchTemplates", Filters=filters, MaxResults=200
        )
        return [each["LaunchTemplateName"] for each in found if each["LaunchTemplateName"].startswith(PREFIX)]

    async def _delete(self, name: str) -> None:
        self._used.pop(name, None)
        try:
            await self._api.call("ec2", "delete_launch_template", LaunchTemplateName=name)
        except AwsError as error:
            if error.code not in NOT_FOUND:
                raise
