"""What a node and the pods on it say to one more pod. Nothing of this takes a look at another node."""

from collections.abc import Iterable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Final

from joiner.model.affinity import NodeSelectorTerm
from joiner.model.node import Node
from joiner.model.pod import ContainerPort, Pod
from joiner.model.requirement import SelectorRequirement
from joiner.model.taints import Taint
from joiner.sim.scheduler.clusterindex import Amounts, NodeEntry

CORDONED: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")

NOT_THE_NODE: Final = "not chosen by node selector or affinity"
PORT_TAKEN: Final = "host port taken"
TOO_MANY_PODS: Final = "too many pods"

_ORDER: Final = {"Gt": gt, "Lt": lt, "Gte": ge, "Lte": le}


def matches(requirement: SelectorRequirement, values: Mapping[str, str]) -> bool:
    """Whether labels satisfy one expression of a node selector term."""
    value = values.get(requirement.key)
    operator = requirement.operator
    if operator in _ORDER:
        return value is not None and _is_number(value) and _ORDER[operator](int(value), int(requirement.values[0]))
    if operator == "In":
        return value is not None and value in requirement.values
    if operator == "NotIn":
        return value is None or value not in requirement.values
    return (value is not None) == (operator == "Exists")


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit()


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether a node is chosen by the term; one that says nothing chooses none."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.name}
    return all(matches(each, node.metadata.labels) for each in term.match_expressions) and all(
        matches(each, fields) for each in term.match_fields
    )


def is_chosen(pod: Pod, node: Node) -> bool:
    """Whether node selector and required node affinity let the pod onto the node."""
    if any(node.metadata.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    required = pod.spec.affinity.node_affinity.required
    return required is None or any(term_matches(term, node) for term in required.node_selector_terms)


def untolerated(pod: Pod, node: Node, effects: Iterable[str]) -> Iterator[Taint]:
    """The taints of these effects that the pod does not tolerate, and being cordoned as one of them."""
    taints = (*node.spec.taints, CORDONED) if node.spec.unschedulable else node.spec.taints
    for taint in taints:
        if taint.effect in effects and not any(each.tolerates(taint) for each in pod.spec.tolerations):
            yield taint


def named_nodes(pod: Pod) -> tuple[str, ...] | None:
    """The only nodes that can do, where every term of the affinity gives names; nothing when any node might."""
    required = pod.spec.affinity.node_affinity.required
    if required is None:
        return None
    names: list[str] = []
    for term in required.node_selector_terms:
        given = [each.values for each in term.match_fields if each.operator == "In"]
        if not given:
            return None
        names.extend(given[0])
    return tuple(dict.fromkeys(names))


def static_refusals(pod: Pod, node: Node) -> Iterator[str]:
    """Why the node is not for the pod, whatever other pods are there."""
    taint = next(untolerated(pod, node, ("NoSchedule", "NoExecute")), None)
    if taint is not None:
        yield f"taint {taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect} not tolerated"
    if not is_chosen(pod, node):
        yield NOT_THE_NODE


def shortages(wanted: Amounts, entry: NodeEntry) -> Iterator[str]:
    """What there is too little of."""
    assert entry.node is not None
    has = entry.node.status.allocatable
    for name, amount in wanted.items():
        if amount and entry.used.get(name, 0) + amount > has.get(name, 0):
            yield TOO_MANY_PODS if name == "pods" else f"insufficient {name}"


def ports_clash(ports: tuple[ContainerPort, ...], entry: NodeEntry) -> bool:
    """Whether a pod on the node has one of the ports."""
    return any(
        mine.conflicts(theirs)
        for pod_entry in entry.with_ports.values()
        for theirs in pod_entry.ports
        for mine in ports
    )


def local_refusals(pod: Pod, requests: Amounts, ports: tuple[ContainerPort, ...], entry: NodeEntry) -> Iterator[str]:
    """What the node and its own pods say against a pod that takes that much."""
    assert entry.node is not None
    yield from static_refusals(pod, entry.node)
    yield from shortages(requests, entry)
    if ports and ports_clash(ports, entry):
        yield PORT_TAKEN
