"""What a NodeClass's kubelet block does to a type: what the node keeps back, and how many pods it takes."""

from collections.abc import Mapping
from typing import Final

from joiner.catalog.market import InstanceType, Overhead
from joiner.model.kubelet import Kubelet
from joiner.model.meta import replace
from joiner.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources

DEFAULT_KUBELET: Final = Kubelet()
"""A kubelet block that says nothing."""

_SCHEDULABLE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)


def kept_back(usual: Overhead, kubelet: Kubelet) -> Overhead:
    """The overhead of a node: the usual one, each amount replaced by the kubelet block where that names it."""
    return Overhead(
        kube_reserved=_over(usual.kube_reserved, kubelet.kube_reserved),
        system_reserved=_over(usual.system_reserved, kubelet.system_reserved),
        eviction_hard={**usual.eviction_hard, **kubelet.hard_thresholds()},
    )


def _over(usual: Resources, own: Mapping[str, int]) -> Resources:
    """Process ids can be reserved too, but no pod asks for them."""
    return {**usual, **{name: int(own[name]) for name in _SCHEDULABLE if name in own}}


def under(kubelet: Kubelet, types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
    """Types whose numbers are given, on nodes with this kubelet: it can lower the number of pods, never raise it."""
    return types if kubelet == DEFAULT_KUBELET else tuple(_under(kubelet, instance_type) for instance_type in types)


def _under(kubelet: Kubelet, instance_type: InstanceType) -> InstanceType:
    capacity = instance_type.capacity
    limit = kubelet.pods_limit(capacity.get(CPU, 0))
    if limit is not None and PODS in capacity:
        capacity = {**capacity, PODS: min(limit, capacity[PODS])}
    return replace(
        instance_type, capacity=capacity, overhead=kept_back(instance_type.overhead, kubelet), pods_limit=limit
    )
