"""May a pod be on a node? The rules of Kubernetes, put together for the pretend scheduler and for those who check it.

A second opinion on purpose: nothing here is shared with the engine that plans for the same rules.
`PodPredicates` is put once per pod and then answers for one node after the other.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from joiner.kube.client import key_of
from joiner.model.affinity import DO_NOT_SCHEDULE
from joiner.model.node import Node
from joiner.model.pod import Pod
from joiner.sim.scheduler.clusterindex import ClusterIndex, NodeEntry, PodGroup
from joiner.sim.scheduler.nodefit import (
    NOT_THE_NODE,
    PORT_TAKEN,
    is_chosen,
    local_refusals,
    ports_clash,
    shortages,
    untolerated,
)
from joiner.sim.scheduler.podtopology import Spread, groups_chosen, groups_meant, term_chooses
from joiner.sim.scheduler.volumefit import volume_refusals

LONELY: Final = "no pod of the required affinity near"
UNWELCOME: Final = "a pod that the anti-affinity forbids is near"
UNWANTED: Final = "a pod near forbids it by anti-affinity"

Near = list[tuple[str, Mapping[str, int]]]
"""Labels of nodes, each with the values of it that count and how many pods are there."""


class PodPredicates:
    """Where may this pod be? Put once; what takes a look at all pods is counted once, when it is first asked for."""

    def __init__(self, pod: Pod, places: ClusterIndex) -> None:
        self.pod = pod
        self.places = places
        self.requests, self.ports = places.needs_of(pod.spec)
        self._forbidden = self._anti_affinity()
        self._forbidding = self._inverse()

    @cached_property
    def _spreads(self) -> list[Spread]:
        hard = [
            each for each in self.pod.spec.topology_spread_constraints if each.when_unsatisfiable == DO_NOT_SCHEDULE
        ]
        keys = tuple(each.topology_key for each in hard)
        return [Spread(each, self.pod, self.places, keys) for each in hard]

    @cached_property
    def _needed(self) -> Near:
        """Per term: its label, and the domains that have pods of all terms."""
        terms = self.pod.spec.affinity.pod_affinity.required
        if not terms:
            return []
        groups = groups_meant(terms, self.pod, self.places)
        found: Near = [(term.topology_key, self._sum(groups, term.topology_key)) for term in terms]
        if not any(domains for _, domains in found) and all(
            term_chooses(term, self.pod, self.pod, self.places) for term in terms
        ):
            # The first of a kind that wants to be with its own: any place that has the labels will do.
            return [(key, _Everywhere()) for key, _ in found]
        return found

    def _sum(self, groups: Iterable[PodGroup], key: str) -> dict[str, int]:
        total: dict[str, int] = {}
        for group in groups:
            for value, count in group.domains(key, self.places.entries).items():
                total[value] = total.get(value, 0) + count
        return total

    def _anti_affinity(self) -> Near:
        return [
            (term.topology_key, self._sum(groups_meant((term,), self.pod, self.places), term.topology_key))
            for term in self.pod.spec.affinity.pod_anti_affinity.required
        ]

    def _inverse(self) -> Near:
        pod, places = self.pod, self.places
        groups = groups_chosen(
            places,
            ("disliked", pod.metadata.namespace, pod.metadata.labels),
            lambda group: any(term_chooses(term, group, pod, places) for term in group.dislikes),
        )
        return [
            (term.topology_key, group.domains(term.topology_key, places.entries))
            for group in groups
            for term in group.dislikes
            if term_chooses(term, group, pod, places)
        ]

    def anti_refusals(self, entry: NodeEntry) -> Iterator[str]:
        """Pods that may not be near one another, seen from both sides."""
        labels = entry.labels
        if any(key in labels and labels[key] in domains for key, domains in self._forbidden):
            yield UNWELCOME
        if any(key in labels and labels[key] in domains for key, domains in self._forbidding):
            yield UNWANTED

    def wide_refusals(self, entry: NodeEntry) -> Iterator[str]:
        """What takes more than one node to tell."""
        yield from volume_refusals(self.pod, entry, self.places)
        yield from self.anti_refusals(entry)
        labels = entry.labels
        if not all(key in labels and labels[key] in domains for key, domains in self._needed):
            yield LONELY
        for spread in self._spreads:
            yield from spread.refusals(entry)

    def refusals(self, entry: NodeEntry) -> Iterator[str]:
        """Everything that speaks against the node."""
        yield from local_refusals(self.pod, self.requests, self.ports, entry)
        yield from self.wide_refusals(entry)


class _Everywhere(dict[str, int]):
    def __contains__(self, value: object) -> bool:
        return True


def check_placement(pod: Pod, node: Node, state: ClusterIndex) -> list[str]:
    """Why a pod may not be where it is; empty when all is well.

    Only what holds for as long as the pod runs: being chosen, NoExecute taints, amounts, ports, anti-affinity, volumes. Taints
    that only keep newcomers away, affinity to pods that have since left and evenness do not count once a pod is bound.
    `state` may know the pod already; the node must be in it.
    """
    with state.without((key_of(pod),)):
        entry = state.entries.get(node.name)
        if entry is None or entry.node is None:
            return ["the node does not exist"]
        return list(_standing(PodPredicates(pod, state), entry))


def _standing(question: PodPredicates, entry: NodeEntry) -> Iterator[str]:
    pod, node = question.pod, entry.node
    assert node is not None
    for taint in untolerated(pod, node, ("NoExecute",)):
        yield f"taint {taint.key}:{taint.effect} not tolerated"
    if not is_chosen(pod, node):
        yield NOT_THE_NODE
    yield from shortages(question.requests, entry)
    if ports_clash(question.ports, entry):
        yield PORT_TAKEN
    yield from question.anti_refusals(entry)
    yield from volume_refusals(pod, entry, question.places)
