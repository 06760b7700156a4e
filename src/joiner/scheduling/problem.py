"""The question: everything the engine may know, as one frozen value."""

from collections.abc import Mapping
from typing import Literal

from joiner.catalog.build import Catalog
from joiner.model.labels import Vocabulary
from joiner.model.meta import Value
from joiner.model.nodepool import NodePool
from joiner.model.pod import ContainerPort, Pod
from joiner.model.resources import Resources
from joiner.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from joiner.model.taints import Taint

Amounts = tuple[int, ...]
"""Resource amounts in the order of the run's resource names."""


class PoolOption(Value):
    """A pool that may open claims, with what it can buy."""

    pool: NodePool
    catalog: Catalog
    used: Resources = {}
    """What the pool's nodes have together, `nodes` among it; counted against its limits."""


class ExistingNode(Value):
    """A node that is there or on its way, as pods will find it.

    The caller has settled what depends on a node's state of life: which labels, taints and amounts count by now.
    """

    name: str
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    allocatable: Resources = {}
    used: Resources = {}
    """Requests of the pods that are on it, `pods` among them."""
    daemon_used: Resources = {}
    """The part of `used` that daemon pods have."""
    ports: tuple[ContainerPort, ...] = ()
    volumes: Mapping[str, frozenset[str]] = {}
    """CSI driver to the claims whose volumes are attached."""
    volume_limits: Mapping[str, int] = {}
    """CSI driver to how many volumes it can attach; a driver that is not listed has no limit."""
    initialized: bool = True


class Storage(Value):
    """The storage objects that pods' volumes lead to."""

    claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    classes: tuple[StorageClass, ...] = ()


class Policy(Value):
    """How to schedule."""

    preferences: Literal["Respect", "Ignore"] = "Respect"
    min_values: Literal["Strict", "BestEffort"] = "Strict"
    planning: Literal["Cheapest", "FirstFit"] = "Cheapest"
    """Whether the cheapest of many plans is taken, or the one that serves pods in turn and fills each node, as Karpenter's."""
    types_max: int = 600
    """How many instance types a claim may name."""
    reserved_capacity: bool = True
    """Whether capacity reservations are used at all."""
    reserved_mode: Literal["Strict", "Fallback"] = "Strict"
    """Where limits leave no room for all pods: whether one on a reserved machine stays, or makes way for as many others."""
    node_price: float = 0.0
    """What a node is charged when plans are compared, as a fraction of the median price of what can be bought; 0 is off."""
    spot_width: int = 0
    """How many instance types a spot claim should be able to launch; with 0 any number will do."""
    spot_width_cost: float = 0.0
    """By which fraction a plan may become dearer for that."""


class Problem(Value):
    """Pods that wait, and everything that decides where they can go."""

    pods: tuple[Pod, ...]
    pools: tuple[PoolOption, ...] = ()
    nodes: tuple[ExistingNode, ...] = ()
    bound: tuple[Pod, ...] = ()
    """Pods that run or start somewhere, by `spec.nodeName`: others spread around them, stay near or away."""
    bound_nodes: Mapping[str, Mapping[str, str]] = {}
    """Labels of nodes that host bound pods but take no new ones (they are being deleted)."""
    daemons: tuple[Pod, ...] = ()
    """One pod for each DaemonSet, as it would run on a new node."""
    namespaces: Mapping[str, Mapping[str, str]] = {}
    """Namespace to its labels."""
    storage: Storage = Storage()
    promised: Mapping[str, int] = {}
    """Reservation to how many of its machines claims are on their way to, which the cloud does not know of yet."""
    policy: Policy = Policy()
    vocabulary: Vocabulary = Vocabulary()
