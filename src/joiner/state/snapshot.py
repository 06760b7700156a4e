"""A frozen picture of the cluster, as planners want to see it."""

from collections.abc import Mapping

from joiner.model.meta import Value
from joiner.model.pod import Pod
from joiner.model.resources import Resources
from joiner.scheduling.problem import ExistingNode, Storage
from joiner.state.statenode import StateNode


class Snapshot(Value):
    """What there is at one moment. Parts that did not change are the very objects of the snapshot before."""

    generation: int
    """Two snapshots of one generation are the same object."""
    nodes: tuple[StateNode, ...] = ()
    """Every node and every claim without one, by name; those that go among them."""
    existing: tuple[ExistingNode, ...] = ()
    """The places for pods: all that do not go, by name."""
    bound: tuple[Pod, ...] = ()
    """Pods that are on a node and stay there, and those promised to a claim whose machine is not there yet."""
    bound_nodes: Mapping[str, Mapping[str, str]] = {}
    """Labels of nodes that host bound pods but are no place for others."""
    daemons: tuple[Pod, ...] = ()
    """One pod for each DaemonSet, as it would run on a new node."""
    waiting: tuple[Pod, ...] = ()
    """Pods without a node that nothing was bought for yet."""
    held: tuple[Pod, ...] = ()
    """Pods that a machine is being bought for: they are not planned for while that may still come."""
    evicted: tuple[Pod, ...] = ()
    """Pods of nodes that go, as if they were bound nowhere."""
    used: Mapping[str, Resources] = {}
    """Pool to what its nodes have together, `nodes` among it. Of claims that are not launched only their number counts."""
    unlaunched: tuple[StateNode, ...] = ()
    """Claims whose machine is not bought yet."""
    namespaces: Mapping[str, Mapping[str, str]] = {}
    storage: Storage = Storage()
    """What the volumes of waiting and evicted pods lead to."""
