"""Node: the fields that we read."""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from msgspec import field

from joiner.model.meta import KubeObject, Value
from joiner.model.quantity import Quantity
from joiner.model.taints import Taint


class NodeCondition(Value):
    """A condition as the kubelet and node monitors write it."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None


class NodeSystemInfo(Value):
    """What the kubelet reports about its machine."""

    boot_id: str = field(default="", name="bootID")
    """Differs after every reboot."""
    architecture: str = ""
    operating_system: str = ""
    kubelet_version: str = ""


class NodeSpec(Value):
    """Which machine it is, and what keeps pods off it."""

    provider_id: str = field(default="", name="providerID")
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(Value):
    """What the node has, and its conditions."""

    capacity: Mapping[str, Quantity] = {}
    allocatable: Mapping[str, Quantity] = {}
    conditions: tuple[NodeCondition, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(KubeObject):
    """A node."""

    kind: ClassVar[str] = "Node"
    plural: ClassVar[str] = "nodes"
    namespaced: ClassVar[bool] = False

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


def condition(node: Node, kind: str) -> NodeCondition | None:
    """The condition of that type, if there is one."""
    return next((found for found in node.status.conditions if found.type == kind), None)


def is_ready(node: Node) -> bool:
    """Whether the kubelet says that pods can run."""
    ready = condition(node, "Ready")
    return ready is not None and ready.status == "True"
