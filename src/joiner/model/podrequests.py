"""What a pod takes from a node: one amount per resource, computed from containers, init containers and overhead."""

from collections.abc import Callable, Mapping
from typing import Final

from joiner.model import pod as pods
from joiner.model import resources
from joiner.model.pod import Container, ContainerStatus, Pod, PodSpec

_RESIZE_PENDING: Final = "PodResizePending"
_INFEASIBLE: Final = "Infeasible"
_ONE_POD: Final = resources.of(pods=1)[resources.PODS]

_Amounts = Callable[[Container], resources.Resources]


def of_spec(spec: PodSpec) -> dict[str, int]:
    """The requests of a pod that does not run yet, with the pod itself (`pods: 1`)."""
    return _effective(spec, lambda container: container.resources.requests)


def of_pod(pod: Pod) -> dict[str, int]:
    """The current requests of a pod: while containers are resized in place, the larger of requested and allocated."""
    statuses = {status.name: status for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
    if not statuses:
        return of_spec(pod.spec)
    refused = _resize_is_infeasible(pod)
    return _effective(pod.spec, lambda container: _current(container, statuses.get(container.name), refused))


def limits(spec: PodSpec) -> dict[str, int]:
    """The limits of a pod. Overhead is added only where there is a limit to add to."""
    total = _containers(spec, lambda container: container.resources.limits)
    total.update(_pod_level(spec.resources.limits))
    return {name: amount + (spec.overhead.get(name, 0) if amount else 0) for name, amount in total.items()}


def _effective(spec: PodSpec, amounts: _Amounts) -> dict[str, int]:
    total = _containers(spec, amounts)
    total.update(_pod_level(spec.resources.requests))
    total = resources.add(total, spec.overhead)
    total[resources.PODS] = total.get(resources.PODS, 0) + _ONE_POD
    return total


def _containers(spec: PodSpec, amounts: _Amounts) -> dict[str, int]:
    """Containers run together; init containers one after the other before them; sidecars beside both, once started."""
    running = resources.add(*(amounts(container) for container in spec.containers))
    if not spec.init_containers:
        return running
    sidecars: dict[str, int] = {}
    peaks: list[resources.Resources] = []
    for container in spec.init_containers:
        own = amounts(container)
        if container.restart_policy == pods.ALWAYS:
            sidecars = resources.add(sidecars, own)
            peaks.append(sidecars)
        else:
            peaks.append(resources.add(sidecars, own))
    return resources.largest([resources.add(running, sidecars), *peaks])


def _pod_level(amounts: Mapping[str, int]) -> dict[str, int]:
    return {
        name: amount
        for name, amount in amounts.items()
        if name in (resources.CPU, resources.MEMORY) or resources.is_hugepages(name)
    }


def _current(container: Container, status: ContainerStatus | None, refused: bool) -> resources.Resources:
    requested = container.resources.requests
    if status is None or (status.resources is None and not status.allocated_resources):
        return requested
    allocated = resources.largest([status.resources.requests if status.resources else {}, status.allocated_resources])
    return allocated if refused else resources.largest([requested, allocated])


def _resize_is_infeasible(pod: Pod) -> bool:
    pending = pods.condition(pod, _RESIZE_PENDING)
    return pending is not None and pending.reason == _INFEASIBLE
