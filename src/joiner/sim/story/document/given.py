"""The words of a story about the world before it begins."""

from collections.abc import Mapping
from typing import Any, Literal

from joiner.model.duration import NEVER, Duration
from joiner.model.meta import Value


class Words(Value, rename="kebab", forbid_unknown_fields=True):
    """A part of a story. A word that is not known is a mistake."""


class ReservationWords(Words):
    """Machines that are paid for."""

    id: str
    instance_type: str
    zone: str
    count: int
    until: Duration | None = None
    """When it ends, counted from the beginning; never, if nothing is said."""
    accepts: Literal["open", "targeted"] = "targeted"
    """Of EC2: whether machines fall into it that do not name it."""
    block: bool = False
    """Of EC2: whether it is a capacity block."""
    owner: str = ""
    """Of EC2: the account that owns it; ours, if nothing is said."""
    tags: Mapping[str, str] = {}
    """Of EC2: its tags."""
    elsewhere: int = 0
    """Of EC2: how many machines of other clusters are in it."""


class MarketWords(Words):
    """How many machines of a sort the cloud has."""

    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    count: int = 0


class DeviceWords(Words):
    """Something that machines have and the cloud does not tell of: overlays and settings do."""

    resource: str
    count: int = 1
    instance_type: str = ""
    after: Duration = Duration(0)
    """How long after the node is ready it shows."""


class HookWords(Words):
    """Something that the cloud does with a machine before its node counts as registered."""

    name: str
    after: Duration = Duration(0)
    """How long it takes from the purchase on."""
    labels: Mapping[str, str] = {}
    """What is known of the machine once it is done."""


class CloudWords(Words):
    """What the cloud is like."""

    launch: Duration = Duration.parse("3s")
    """How long it takes to answer that a machine was bought."""
    boot: Duration = Duration.parse("30s")
    """How long a machine takes until its node joins."""
    ready: Duration = Duration.parse("5s")
    """How long a node takes from joining until it is ready."""
    prepare: Duration = Duration.parse("15s")
    """How long a node takes until what its startup taints wait for is done."""
    terminate: Duration = Duration.parse("20s")
    """How long a machine takes to end."""
    unlisted: Duration = Duration(0)
    """How long it does not tell of a machine that was bought."""
    shelves: tuple[MarketWords, ...] = ()
    """What is scarce; of everything else there is enough."""
    devices: tuple[DeviceWords, ...] = ()
    """What machines have besides what the catalogue says."""
    notices: bool = True
    """Whether controllers are told of spot machines that are taken back; without, they find them gone."""
    registration_hooks: tuple[HookWords, ...] = ()
    """What nodes wait for before they are registered."""


class PoolWords(Words):
    """A NodePool in a few words. Everything that can be said about one can be said with `objects`, too."""

    name: str
    capacity_types: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    requirements: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    """What its claims and nodes are annotated with."""
    taints: tuple[Mapping[str, str], ...] = ()
    startup_taints: tuple[Mapping[str, str], ...] = ()
    limits: Mapping[str, str | int] = {}
    weight: int | None = None
    replicas: int | None = None
    expire_after: Duration = NEVER
    termination_grace_period: Duration | None = None
    consolidate_after: Duration = Duration(0)
    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] = "WhenEmptyOrUnderutilized"
    eviction_cost: Duration | None = None
    """What evicting one of its pods costs, in time of the pod's own price."""
    budgets: tuple[Mapping[str, Any], ...] = ({"nodes": "10%"},)


class Given(Words):
    """The world before the story begins."""

    provider: Literal["kwok", "aws"] = "kwok"
    """Whose API the controllers speak. With `aws` an account in EC2 is pretended, and pools have an EC2NodeClass."""
    catalog: str = "small"
    """The machines there are: small, kwok, ec2/<region>, or a file beside the story."""
    sells: tuple[str, ...] = ()
    """Of EC2: the types that the region has; all of them, if nothing is said."""
    nodepools: tuple[PoolWords, ...] = ()
    reservations: tuple[ReservationWords, ...] = ()
    cloud: CloudWords = CloudWords()
    manifests: tuple[str, ...] = ()
    """Files with Kubernetes objects, beside the story."""
    objects: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, str | int | bool] = {}
    """Flags of the controllers, without the dashes."""
