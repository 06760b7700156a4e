"""What an API server finds wrong with pods and with whatever makes them, beyond their shape: as far as plans rely on it.

No rule is stricter than that of any Kubernetes we know. What is missing is not blamed here, but for containers: some formats
leave out what has a default.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from joiner.admission.problem import FieldProblem, nearest
from joiner.model import resources
from joiner.model.affinity import (
    DO_NOT_SCHEDULE,
    HONOR,
    IGNORE,
    SCHEDULE_ANYWAY,
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from joiner.model.meta import KubeObject
from joiner.model.pod import Container, Pod, PodSpec, ResourceRequirements
from joiner.model.podpolicy import RuntimeClass
from joiner.model.requirement import DOES_NOT_EXIST, EXISTS, IN, NOT_IN
from joiner.model.selector import LabelSelector
from joiner.model.taints import EFFECTS, Toleration
from joiner.model.workload import (
    DaemonSet,
    Deployment,
    Job,
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

_NO_CONTAINER: Final = (
    "a pod needs at least one container; if this is a patch of kustomize, give what kustomize build prints instead"
)
_OPERATORS: Final = ("Equal", "Exists")
_NEWER_OPERATORS: Final = ("Lt", "Gt")
"""Newer API servers take them when they are told to. Here they tolerate nothing."""
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_PORTS: Final = (1, 65535)
_WEIGHTS: Final = (1, 100)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def problems(made: KubeObject) -> Iterator[FieldProblem]:
    """What is wrong with a pod, or with an object that makes pods or adds to them. Of other kinds nothing is said."""
    match made:
        case Pod():
            yield from _whole(made.spec, "spec")
        case Deployment() | ReplicaSet() | StatefulSet() | ReplicationController():
            yield from _at_least(0, made.spec.replicas, "spec.replicas")
            yield from _own_pods(made)
            yield from _whole(made.spec.template.spec, "spec.template.spec")
        case Job():
            yield from _at_least(0, made.spec.parallelism, "spec.parallelism")
            yield from _at_least(0, made.spec.completions, "spec.completions")
            yield from _whole(made.spec.template.spec, "spec.template.spec")
        case DaemonSet():
            yield from _own_pods(made)
            yield from _whole(made.spec.template.spec, "spec.template.spec")
        case PodTemplate():
            yield from _whole(made.template.spec, "template.spec")
        case RuntimeClass():
            yield from _amounts(made.overhead.pod_fixed, "overhead.podFixed")


def _own_pods(
    made: Deployment | ReplicaSet | StatefulSet | ReplicationController | DaemonSet,
) -> Iterator[FieldProblem]:
    """A workload whose selector does not choose the pods of its template would make pods for ever."""
    selector, found = made.spec.selector, made.spec.template.metadata.labels
    if isinstance(selector, Mapping):
        selector = LabelSelector(match_labels=selector)
    if selector is not None and not selector.matches(found):
        labels = ", ".join(f"{key}={value}" for key, value in sorted(found.items())) or "none"
        message = f"must be labels that spec.selector chooses; they are {labels}"
        yield FieldProblem(path="spec.template.metadata.labels", message=message)


def _whole(spec: PodSpec, path: str) -> Iterator[FieldProblem]:
    if not spec.containers:
        yield FieldProblem(path=f"{path}.containers", message=_NO_CONTAINER)
    yield from spec_problems(spec, f"{path}.")


def spec_problems(spec: PodSpec, path: str = "") -> Iterator[FieldProblem]:
    """What is wrong with the fields that a spec has; `path` is what stands before their names."""
    yield from amounts_below_zero(spec, path)
    yield from _within_limits(spec.resources, f"{path}resources")
    for where, container in _containers(spec, path):
        yield from _within_limits(container.resources, f"{where}.resources")
        yield from _ports(container, where)
    for index, toleration in enumerate(spec.tolerations):
        yield from _toleration(toleration, f"{path}tolerations[{index}]")
    for index, constraint in enumerate(spec.topology_spread_constraints):
        yield from _spread(constraint, f"{path}topologySpreadConstraints[{index}]")
    yield from _affinity(spec.affinity, f"{path}affinity")


def amounts_below_zero(spec: PodSpec, path: str = "") -> Iterator[FieldProblem]:
    """Whatever a pod asks for that is less than nothing, and would give room to others."""
    for where, container in _containers(spec, path):
        yield from _amounts(container.resources.requests, f"{where}.resources.requests")
        yield from _amounts(container.resources.limits, f"{where}.resources.limits")
    yield from _amounts(spec.resources.requests, f"{path}resources.requests")
    yield from _amounts(spec.resources.limits, f"{path}resources.limits")
    yield from _amounts(spec.overhead, f"{path}overhead")


def _containers(spec: PodSpec, path: str) -> Iterator[tuple[str, Container]]:
    for name, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            yield f"{path}{name}[{index}]", container


def _ports(container: Container, path: str) -> Iterator[FieldProblem]:
    for index, port in enumerate(container.ports):
        where = f"{path}.ports[{index}]"
        for name, number in (("containerPort", port.container_port), ("hostPort", port.host_port)):
            if number:
                yield from _between(_PORTS, number, f"{where}.{name}")
        yield from _one_of(_PROTOCOLS, port.protocol or _PROTOCOLS[0], f"{where}.protocol")


def _amounts(amounts: Mapping[str, int], path: str) -> Iterator[FieldProblem]:
    for name, amount in amounts.items():
        if amount < 0:
            where = f"{path}[{name}]" if "." in name else f"{path}.{name}"
            yield FieldProblem(
                path=where, message=f"{resources.text(name, amount)} is less than 0; 0 or more is allowed"
            )


def _within_limits(asked: ResourceRequirements, path: str) -> Iterator[FieldProblem]:
    for name, amount in asked.requests.items():
        limit = asked.limits.get(name, amount)
        if 0 <= limit < amount:
            where = f"{path}.requests[{name}]" if "." in name else f"{path}.requests.{name}"
            message = f"{resources.text(name, amount)} is more than the limit of {resources.text(name, limit)}"
            yield FieldProblem(path=where, message=message)


def _toleration(toleration: Toleration, path: str) -> Iterator[FieldProblem]:
    if toleration.operator not in _NEWER_OPERATORS:
        yield from _one_of(_OPERATORS, toleration.operator or _OPERATORS[0], f"{path}.operator")
    if toleration.effect:
        yield from _one_of(EFFECTS, toleration.effect, f"{path}.effect")
    if toleration.operator == EXISTS and toleration.value:
        message = f"operator Exists takes no value, and here it is {toleration.value!r}"
        yield FieldProblem(path=f"{path}.value", message=message)
    elif not toleration.key and toleration.operator in ("", "Equal"):
        message = "without a key the operator must be Exists, which tolerates every taint"
        yield FieldProblem(path=f"{path}.operator", message=message, allowed=(EXISTS,))


def _spread(constraint: TopologySpreadConstraint, path: str) -> Iterator[FieldProblem]:
    yield from _at_least(1, constraint.max_skew, f"{path}.maxSkew")
    yield from _topology_key(constraint.topology_key, path)
    known = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
    yield from _one_of(known, constraint.when_unsatisfiable, f"{path}.whenUnsatisfiable")
    yield from _at_least(1, constraint.min_domains, f"{path}.minDomains")
    if constraint.min_domains is not None and constraint.when_unsatisfiable == SCHEDULE_ANYWAY:
        message = f"is {constraint.min_domains}, and goes only with whenUnsatisfiable: {DO_NOT_SCHEDULE}"
        yield FieldProblem(path=f"{path}.minDomains", message=message)
    yield from _one_of((HONOR, IGNORE), constraint.node_affinity_policy, f"{path}.nodeAffinityPolicy")
    yield from _one_of((HONOR, IGNORE), constraint.node_taints_policy, f"{path}.nodeTaintsPolicy")
    yield from _selector(constraint.label_selector, f"{path}.labelSelector")


def _affinity(affinity: Affinity, path: str) -> Iterator[FieldProblem]:
    for index, liked in enumerate(affinity.node_affinity.preferred):
        yield from _between(_WEIGHTS, liked.weight, f"{path}.nodeAffinity.{_PREFERRED}[{index}].weight")
    yield from _company(affinity.pod_affinity, f"{path}.podAffinity")
    yield from _company(affinity.pod_anti_affinity, f"{path}.podAntiAffinity")


def _company(affinity: PodAffinity, path: str) -> Iterator[FieldProblem]:
    for index, term in enumerate(affinity.required):
        yield from _term(term, f"{path}.{_REQUIRED}[{index}]")
    for index, liked in enumerate(affinity.preferred):
        where = f"{path}.{_PREFERRED}[{index}]"
        yield from _between(_WEIGHTS, liked.weight, f"{where}.weight")
        yield from _term(liked.pod_affinity_term, f"{where}.podAffinityTerm")


def _term(term: PodAffinityTerm, path: str) -> Iterator[FieldProblem]:
    yield from _topology_key(term.topology_key, path)
    yield from _selector(term.label_selector, f"{path}.labelSelector")
    yield from _selector(term.namespace_selector, f"{path}.namespaceSelector")


def _topology_key(key: str, path: str) -> Iterator[FieldProblem]:
    if not key:
        message = "is missing; it must be a label of nodes, like topology.kubernetes.io/zone"
        yield FieldProblem(path=f"{path}.topologyKey", message=message)


def _selector(selector: LabelSelector | None, path: str) -> Iterator[FieldProblem]:
    for index, expression in enumerate(selector.match_expressions if selector is not None else ()):
        where = f"{path}.matchExpressions[{index}].values"
        if expression.operator in (IN, NOT_IN) and not expression.values:
            yield FieldProblem(path=where, message=f"operator {expression.operator} needs at least one value")
        elif expression.operator in (EXISTS, DOES_NOT_EXIST) and expression.values:
            yield FieldProblem(path=where, message=f"operator {expression.operator} takes no values")


# -- numbers and words -----------------------------------------------------------------------------------------------------


def _at_least(least: int, number: int | None, path: str) -> Iterator[FieldProblem]:
    if number is not None and number < least:
        yield FieldProblem(path=path, message=f"{number} is less than {least}; {least} or more is allowed")


def _between(bounds: tuple[int, int], number: int, path: str) -> Iterator[FieldProblem]:
    if not bounds[0] <= number <= bounds[1]:
        yield FieldProblem(path=path, message=f"{number} is not between {bounds[0]} and {bounds[1]}")


def _one_of(known: Iterable[str], word: str, path: str) -> Iterator[FieldProblem]:
    allowed = tuple(known)
    if word not in allowed:
        message = f"{word!r} is not one of the allowed values"
        yield FieldProblem(path=path, message=message, allowed=allowed, nearest=nearest(word, allowed))
