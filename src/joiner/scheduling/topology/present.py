"""The pods that are there already, counted by what selectors see of them and by node."""

from collections.abc import Iterable, Iterator, Mapping

from joiner.model.pod import Pod
from joiner.model.podrules import is_terminal, is_terminating
from joiner.scheduling.topology.group import Group

Labels = tuple[str, tuple[tuple[str, str], ...]]
"""Namespace and labels of pods that are alike to every selector."""


def labels_of(pod: Pod, seen: frozenset[str]) -> Labels:
    """What selectors see of a pod, which are labels of these names."""
    return pod.metadata.namespace, tuple(sorted([each for each in pod.metadata.labels.items() if each[0] in seen]))


class PresentPods:
    """Counts of pods, which follow from one question to the next."""

    def __init__(self, seen: frozenset[str]) -> None:
        self._seen = seen
        self._counted: dict[int, Pod] = {}
        """By identity, the pods that are counted or would be if they were not at their end."""
        self._counts: dict[Labels, dict[str, int]] = {}
        self._by_label: dict[tuple[str, str], dict[Labels, None]] = {}

    def follow(self, pods: Iterable[Pod]) -> None:
        """From now on these pods are there, and no others."""
        now = {id(pod): pod for pod in pods}
        for gone in self._counted.keys() - now.keys():
            self._count(self._counted[gone], -1)
        for come in [one for one in now if one not in self._counted]:
            self._count(now[come], 1)
        self._counted = now

    def _count(self, pod: Pod, change: int) -> None:
        if is_terminal(pod) or is_terminating(pod):
            return
        labels, node = labels_of(pod, self._seen), pod.spec.node_name
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = {}
            for label in labels[1]:
                self._by_label.setdefault(label, {})[labels] = None
        counts[node] = counts.get(node, 0) + change
        if not counts[node]:
            del counts[node]

    def chosen(self, group: Group) -> Iterator[Mapping[str, int]]:
        """Node to the number of pods there that the group counts, for each sort of pod it chooses."""
        demanded = group.selector.match_labels if group.selector is not None else {}
        label = min(demanded.items(), default=None)
        for namespace, labels in self._counts if label is None else self._by_label.get(label, ()):
            if group.chooses(namespace, dict(labels)):
                yield self._counts[namespace, labels]
