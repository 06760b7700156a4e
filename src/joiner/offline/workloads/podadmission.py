"""What the API server adds to a pod on the way: priorities, overhead of RuntimeClasses, defaults of LimitRanges, host ports."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from joiner.model.meta import Value, replace
from joiner.model.pod import Container, Pod, PodSpec, with_host_ports
from joiner.model.podpolicy import LimitRange, LimitRangeItem, PriorityClass, RuntimeClass
from joiner.model.resources import Resources
from joiner.state.pods import limits_as_requests

SYSTEM_PRIORITIES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""Priority classes that every cluster has."""


class Rules(Value):
    """What the API server goes by when a pod is made."""

    limit_ranges: tuple[LimitRange, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    runtime_classes: tuple[RuntimeClass, ...] = ()


def admitted(spec: PodSpec, namespace: str, rules: Rules) -> PodSpec:
    """The spec as the API server would store it, as far as it matters for where a pod can run."""
    spec = with_host_ports(limits_as_requests(spec))
    spec = _with_runtime(spec, rules.runtime_classes)
    spec = _with_priority(spec, rules.priority_classes)
    for limit_range in rules.limit_ranges:
        if limit_range.metadata.namespace == namespace:
            for item in limit_range.spec.limits:
                if item.type == "Container":
                    spec = _within(spec, item)
    return spec


def elsewhere(pods: Iterable[Pod], rules: Rules) -> Iterator[str]:
    """The classes that waiting pods name and that are not given, each with what is assumed instead."""
    runtimes = {each.name for each in rules.runtime_classes}
    priorities = {*SYSTEM_PRIORITIES, *(each.name for each in rules.priority_classes)}
    found: dict[str, None] = {}
    for pod in pods:
        spec, is_stored = pod.spec, pod.metadata.creation_timestamp is not None  # then its class has added what it adds
        runtime = spec.runtime_class_name
        if runtime and runtime not in runtimes and not is_stored:
            said = "the overhead, nodeSelector and tolerations that it gives pods are not planned for"
            found[f"RuntimeClass {runtime} is not in these files; {said}"] = None
        priority = spec.priority_class_name
        if priority and priority not in priorities and spec.priority is None:
            found[f"PriorityClass {priority} is not in these files; its pods are planned for with priority 0"] = None
    yield from sorted(found)


def _with_runtime(spec: PodSpec, classes: Iterable[RuntimeClass]) -> PodSpec:
    runtime = next((each for each in classes if each.name == spec.runtime_class_name), None)
    if runtime is None:
        return spec
    return replace(
        spec,
        overhead=spec.overhead or runtime.overhead.pod_fixed,
        node_selector={**runtime.scheduling.node_selector, **spec.node_selector},
        tolerations=(*spec.tolerations, *(t for t in runtime.scheduling.tolerations if t not in spec.tolerations)),
    )


def _with_priority(spec: PodSpec, classes: Sequence[PriorityClass]) -> PodSpec:
    if spec.priority is not None:
        return spec
    if not spec.priority_class_name:
        usual = max((each for each in classes if each.global_default), key=lambda each: each.name, default=None)
        return spec if usual is None else replace(spec, priority=usual.value, priority_class_name=usual.name)
    known = {**SYSTEM_PRIORITIES, **{each.name: each.value for each in classes}}
    value = known.get(spec.priority_class_name)
    return spec if value is None else replace(spec, priority=value)


def _within(spec: PodSpec, item: LimitRangeItem) -> PodSpec:
    # A range that gives only some of its numbers derives the others: the limit from the most, the request from the limit.
    limits = {**item.max, **item.default}
    requests = {**item.min, **limits, **item.default_request}
    return replace(
        spec,
        containers=tuple(_filled(each, limits, requests) for each in spec.containers),
        init_containers=tuple(_filled(each, limits, requests) for each in spec.init_containers),
    )


def _filled(container: Container, limits: Resources, requests: Resources) -> Container:
    given = container.resources
    return replace(
        container,
        resources=replace(given, requests={**requests, **given.requests}, limits={**limits, **given.limits}),
    )
