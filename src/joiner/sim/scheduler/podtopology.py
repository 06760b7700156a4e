"""Which pods an affinity term or a spread constraint means, and how many of them are where."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from joiner.model.affinity import HONOR, PodAffinityTerm, TopologySpreadConstraint
from joiner.model.pod import Pod
from joiner.sim.scheduler.clusterindex import ClusterIndex, NodeEntry, PodGroup, signature
from joiner.sim.scheduler.nodefit import is_chosen, untolerated

UNEVEN: Final = "spread would be uneven"
NO_DOMAIN: Final = "spread label missing"


def term_chooses(term: PodAffinityTerm, owner: Pod | PodGroup, other: Pod | PodGroup, places: ClusterIndex) -> bool:
    """Whether the affinity term of one pod means the other."""
    mine, theirs = _labels(owner), _labels(other)
    if term.label_selector is None or not term.label_selector.matches(theirs):
        return False
    if any(key in mine and theirs.get(key) != mine[key] for key in term.match_label_keys):
        return False
    if any(key in mine and theirs.get(key) == mine[key] for key in term.mismatch_label_keys):
        return False
    return _in_namespaces(term, _namespace(owner), _namespace(other), places)


def _labels(of: Pod | PodGroup) -> Mapping[str, str]:
    return of.metadata.labels if isinstance(of, Pod) else of.labels


def _namespace(of: Pod | PodGroup) -> str:
    return of.metadata.namespace if isinstance(of, Pod) else of.namespace


def _in_namespaces(term: PodAffinityTerm, own: str, other: str, places: ClusterIndex) -> bool:
    if not term.namespaces and term.namespace_selector is None:
        return own == other
    if other in term.namespaces:
        return True
    known = places.namespaces.get(other, {"kubernetes.io/metadata.name": other})
    return term.namespace_selector is not None and term.namespace_selector.matches(known)


def spread_chooses(constraint: TopologySpreadConstraint, pod: Pod, other: Pod | PodGroup) -> bool:
    """Whether the other pod is counted by a spread constraint of the pod."""
    mine, theirs = pod.metadata.labels, _labels(other)
    return (
        constraint.label_selector is not None
        and pod.metadata.namespace == _namespace(other)
        and constraint.label_selector.matches(theirs)
        and all(theirs.get(key) == mine[key] for key in constraint.match_label_keys if key in mine)
    )


def groups_chosen(
    places: ClusterIndex, question: tuple[object, ...], chooses: Callable[[PodGroup], bool]
) -> list[PodGroup]:
    """The groups of pods that are chosen. Asked with equal questions, `chooses` must choose alike."""
    return places.remember(
        places.group_changes,
        signature(question),
        lambda: [group for group in places.groups.values() if chooses(group)],
    )


def groups_meant(terms: tuple[PodAffinityTerm, ...], pod: Pod, places: ClusterIndex) -> list[PodGroup]:
    """The groups that all of these affinity terms of the pod mean."""
    return groups_chosen(
        places,
        ("terms", terms, pod.metadata.namespace, pod.metadata.labels),
        lambda group: all(term_chooses(term, pod, group, places) for term in terms),
    )


class Spread:
    """One hard spread constraint, with the pods counted that are there now."""

    def __init__(
        self, constraint: TopologySpreadConstraint, pod: Pod, places: ClusterIndex, keys: tuple[str, ...]
    ) -> None:
        self.key = constraint.topology_key
        self._skew = constraint.max_skew
        self._self = int(spread_chooses(constraint, pod, pod))
        eligible = _eligible(constraint, pod, places, keys)
        self.counts: dict[str, int] = dict.fromkeys(eligible.values(), 0)
        """Value of the label, on nodes that the pod could use, to how many pods there count."""
        for group in groups_chosen(
            places,
            (constraint, pod.metadata.namespace, pod.metadata.labels),
            lambda group: not group.leaving and spread_chooses(constraint, pod, group),
        ):
            for name, count in group.nodes.items():
                if name in eligible:
                    self.counts[eligible[name]] += count
        enough = len(self.counts) >= (constraint.min_domains or 1)
        self._least = min(self.counts.values(), default=0) if enough else 0

    def refusals(self, entry: NodeEntry) -> Iterator[str]:
        """Why one more pod in the domain of the node would be too many."""
        value = entry.labels.get(self.key)
        if value is None:
            yield NO_DOMAIN
        elif self.counts.get(value, 0) + self._self - self._least > self._skew:
            yield UNEVEN


def _eligible(
    constraint: TopologySpreadConstraint, pod: Pod, places: ClusterIndex, keys: tuple[str, ...]
) -> Mapping[str, str]:
    """Node to domain, of the nodes over which the pods are spread."""
    affinity = pod.spec.affinity.node_affinity.required
    question = signature(constraint, keys, pod.spec.node_selector, affinity, pod.spec.tolerations)
    return places.remember(
        places.node_changes,
        question,
        lambda: {
            entry.name: entry.labels[constraint.topology_key]
            for entry in places.nodes()
            if counts_for(entry, constraint, pod, keys)
        },
    )


def counts_for(entry: NodeEntry, constraint: TopologySpreadConstraint, pod: Pod, keys: tuple[str, ...]) -> bool:
    """Whether the node is one of those over which the pods are spread."""
    node = entry.node
    if node is None or any(key not in node.metadata.labels for key in keys):
        return False
    if constraint.node_affinity_policy == HONOR and not is_chosen(pod, node):
        return False
    return constraint.node_taints_policy != HONOR or not any(untolerated(pod, node, ("NoSchedule", "NoExecute")))
