"""Parts of an EC2NodeClass that say what a machine is like: volumes, network, metadata service, kubelet."""

from typing import Annotated, ClassVar, Final, Literal

import msgspec

from joiner.model import quantity
from joiner.model.kubelet import Kubelet
from joiner.model.meta import Value
from joiner.model.rules import Field, Rule, at_least_one

Switch = Literal["enabled", "disabled"]
GIB: Final = (1 << 30) * quantity.MILLI

_SIZE: Final = Field(
    pattern=(
        "^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G"
        "|([1-9]|[1-4][0-9]|5[0-8])Ti|([1-9]|[1-5][0-9]|6[0-4])T)$"
    ),
    words="a size like 100Gi, with Gi, G, Ti or T, up to 64000G",
    max_length=16,
)


class BlockDevice(Value):
    """An EBS volume."""

    rules: ClassVar[tuple[Rule, ...]] = (
        at_least_one(("snapshotID", "volumeSize"), "a volume needs a volumeSize or a snapshotID"),
        Rule(
            cel="!has(self.volumeInitializationRate) || has(self.snapshotID)",
            message="volumeInitializationRate is the speed at which a snapshot is loaded: it needs a snapshotID",
            holds=lambda value: "volumeInitializationRate" not in value or "snapshotID" in value,
        ),
    )

    delete_on_termination: Annotated[bool | None, "Whether the volume goes with its machine."] = None
    encrypted: Annotated[bool | None, "Whether the volume is encrypted."] = None
    iops: Annotated[int | None, "Operations a second.", Field(minimum=0, format="int64")] = None
    kms_key_id: Annotated[str, "The key that encrypts it."] = msgspec.field(default="", name="kmsKeyID")
    snapshot_id: Annotated[str, "The snapshot it is made of."] = msgspec.field(default="", name="snapshotID")
    throughput: Annotated[int | None, "MiB a second.", Field(minimum=0, format="int64")] = None
    volume_initialization_rate: Annotated[
        int | None, "MiB a second at which the snapshot is loaded.", Field(minimum=100, maximum=300, format="int32")
    ] = None
    volume_size: Annotated[str, "The size.", _SIZE] = ""
    volume_type: Annotated[
        Literal["standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"] | None, "The type of the volume."
    ] = None

    @property
    def size(self) -> int | None:
        """Thousandths of bytes; nothing where the snapshot decides."""
        return quantity.parse(self.volume_size) if self.volume_size else None


class BlockDeviceMapping(Value):
    """A volume and the name the system sees it under."""

    device_name: Annotated[str, "The name of the device, like /dev/xvda.", Field(max_length=64)] = ""
    ebs: Annotated[BlockDevice | None, "The volume."] = None
    root_volume: Annotated[bool, "Whether it is what pods write to."] = False


ONE_ROOT: Final = Rule(
    cel="self.filter(each, has(each.rootVolume) && each.rootVolume).size() <= 1",
    message="only one volume can be the root volume",
    holds=lambda value: sum(bool(each.get("rootVolume")) for each in value) <= 1,
)


class NetworkInterface(Value):
    """A network interface that every machine gets."""

    network_card_index: Annotated[int, "The network card.", Field(required=True, minimum=0, format="int32")] = 0
    device_index: Annotated[int, "The place on the card.", Field(required=True, minimum=0, format="int32")] = 0
    interface_type: Annotated[
        Literal["interface", "efa-only"], "An ordinary interface, or one for EFA alone.", Field(required=True)
    ] = "interface"


def _places(value: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(each.get("networkCardIndex"), each.get("deviceIndex")) for each in value]


def _primary(interface: dict[str, object]) -> bool:
    return (interface.get("networkCardIndex"), interface.get("deviceIndex"), interface.get("interfaceType")) == (
        0,
        0,
        "interface",
    )


INTERFACES: Final = (
    Rule(
        cel="self.size() == 0 || self.exists(each, each.networkCardIndex == 0 && each.deviceIndex == 0"
        " && each.interfaceType == 'interface')",
        message="the first interface, card 0 and device 0, must be there and be of type interface",
        holds=lambda value: not value or any(map(_primary, value)),
    ),
    Rule(
        cel="self.all(each, self.filter(other, other.networkCardIndex == each.networkCardIndex"
        " && other.deviceIndex == each.deviceIndex).size() == 1)",
        message="two interfaces cannot have the same card and device",
        holds=lambda value: len(set(_places(value))) == len(value),
    ),
    Rule(
        cel="self.all(each, each.interfaceType != 'efa-only' || self.filter(other, other.interfaceType == 'efa-only'"
        " && other.networkCardIndex == each.networkCardIndex).size() == 1)",
        message="a network card has at most one interface of type efa-only",
        holds=lambda value: _once([e.get("networkCardIndex") for e in value if e.get("interfaceType") == "efa-only"]),
    ),
)


def _once(cards: list[object]) -> bool:
    return len(set(cards)) == len(cards)


class MetadataOptions(Value):
    """How processes on the machine reach its metadata service."""

    http_endpoint: Annotated[Switch, "Whether it can be reached.", Field(default="enabled")] = "enabled"
    http_protocol_ipv6: Annotated[Switch, "Whether it can be reached over IPv6.", Field(default="disabled")] = (
        msgspec.field(default="disabled", name="httpProtocolIPv6")
    )
    http_put_response_hop_limit: Annotated[
        int, "How many hops an answer with a token may take.", Field(default=1, minimum=1, maximum=64, format="int64")
    ] = 1
    http_tokens: Annotated[Literal["required", "optional"], "Whether a token is needed.", Field(default="required")] = (
        "required"
    )


class ConnectionTracking(Value):
    """How long idle connections are remembered; only for machines on Nitro."""

    rules: ClassVar[tuple[Rule, ...]] = (
        at_least_one(
            ("tcpEstablishedTimeout", "udpStreamTimeout", "udpTimeout"), "at least one of the timeouts must be set"
        ),
    )

    tcp_established_timeout: Annotated[
        int | None, "Seconds for TCP.", Field(minimum=60, maximum=432_000, format="int32")
    ] = None
    udp_stream_timeout: Annotated[
        int | None, "Seconds for UDP that answers.", Field(minimum=60, maximum=180, format="int32")
    ] = None
    udp_timeout: Annotated[
        int | None, "Seconds for UDP that does not.", Field(minimum=30, maximum=60, format="int32")
    ] = None


class CPUOptions(Value):
    """What the processors of the machine can do."""

    nested_virtualization: Annotated[Switch | None, "Whether virtual machines can run on it."] = None


_PERCENT: Final = Field(minimum=0, maximum=100, format="int32")


class NodeKubelet(Kubelet):
    """`spec.kubelet` of an EC2NodeClass: what is understood of the kubelet's configuration. Other keys are handed on."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *Kubelet.rules,
        Rule(
            cel="!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent)"
            " || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent",
            message="imageGCHighThresholdPercent must be above imageGCLowThresholdPercent",
            holds=lambda value: (
                value.get("imageGCHighThresholdPercent", 101) > value.get("imageGCLowThresholdPercent", -1)
            ),
        ),
    )

    cluster_dns: Annotated[tuple[str, ...], "Addresses of the DNS servers of pods.", Field(max_items=10)] = (
        msgspec.field(default=(), name="clusterDNS")
    )
    eviction_max_pod_grace_period: Annotated[
        int | None, "The longest grace period in seconds when pods are evicted.", Field(minimum=0, format="int32")
    ] = None
    image_gc_high_threshold_percent: Annotated[
        int | None, "Above this share of the disk images are removed.", _PERCENT
    ] = msgspec.field(default=None, name="imageGCHighThresholdPercent")
    image_gc_low_threshold_percent: Annotated[
        int | None, "Down to this share of the disk images are removed.", _PERCENT
    ] = msgspec.field(default=None, name="imageGCLowThresholdPercent")
    cpu_cfs_quota: Annotated[bool | None, "Whether cpu limits are enforced."] = msgspec.field(
        default=None, name="cpuCFSQuota"
    )
