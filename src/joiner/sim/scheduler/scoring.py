"""Which of the nodes that would do is the best one for a pod, found without asking all of them each time.

The order, first difference decides: fewest PreferNoSchedule taints that the pod does not tolerate; most weight of preferred
affinity; fewest pods of its soft spread constraints near; least in use; name.
What a node and its own pods say is kept per class of like pods and asked again only for nodes that something happened to. Where
other nodes have a say, the first nodes of that order are looked at, as many as `SAMPLE`, and no more.
"""

from collections.abc import Generator
from heapq import heappop, heappush
from typing import Final

from joiner.model.affinity import SCHEDULE_ANYWAY, PodAffinityTerm
from joiner.model.pod import Pod
from joiner.sim.scheduler.clusterindex import Amounts, ClusterIndex, NodeEntry, signature
from joiner.sim.scheduler.nodefit import local_refusals, term_matches, untolerated
from joiner.sim.scheduler.podtopology import Spread, groups_meant
from joiner.sim.scheduler.predicates import PodPredicates

SAMPLE: Final = 100
"""How many nodes are compared where comparing takes a look at other nodes."""
VIEWS_MOST: Final = 128

Rank = tuple[int, int, int, str]
"""Taints, affinity, use and name: less is better."""


def class_signature(pod: Pod) -> bytes:
    """Equal for pods that every node treats alike, but for their volumes."""
    spec = pod.spec
    return signature(
        pod.metadata.namespace,
        pod.metadata.labels,
        spec.containers,
        spec.init_containers,
        spec.resources,
        spec.overhead,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
    )


class ScoringView:
    """The nodes of a cluster as one class of pods sees them."""

    def __init__(self, pod: Pod, places: ClusterIndex) -> None:
        self._pod = pod
        self._places = places
        self._requests, self._ports = places.needs_of(pod.spec)
        self._epoch = -1
        self._position = 0
        self._ranks: dict[str, Rank] = {}
        self._heap: list[Rank] = []
        self.refused: dict[str, tuple[str, ...]] = {}
        """Node to why it or its own pods will not have the pod."""

    def catch_up(self) -> None:
        """Look again at the nodes that something happened to."""
        places = self._places
        if self._epoch != places.epoch:
            self._ranks.clear()
            self._heap.clear()
            self.refused.clear()
            names = dict.fromkeys(places.entries)
        else:
            names = dict.fromkeys(places.log[self._position :])
        self._epoch, self._position = places.epoch, len(places.log)
        for name in names:
            self._look_at(name, places.entries.get(name))

    def _look_at(self, name: str, entry: NodeEntry | None) -> None:
        if entry is None or entry.node is None:
            self._ranks.pop(name, None)
            self.refused.pop(name, None)
            return
        why = tuple(local_refusals(self._pod, self._requests, self._ports, entry))
        if why:
            self.refused[name] = why
            self._ranks.pop(name, None)
            return
        self.refused.pop(name, None)
        rank = self._rank(entry)
        if self._ranks.get(name) != rank:
            self._ranks[name] = rank
            heappush(self._heap, rank)

    def _rank(self, entry: NodeEntry) -> Rank:
        node = entry.node
        assert node is not None
        taints = sum(1 for _ in untolerated(self._pod, node, ("PreferNoSchedule",)))
        preferred = self._pod.spec.affinity.node_affinity.preferred
        liked = sum(each.weight for each in preferred if term_matches(each.preference, node))
        return (taints, -liked, _use(self._requests, entry), entry.name)

    def best_first(self) -> Generator[Rank, None, None]:
        """The nodes that would do, as far as they and their own pods are concerned."""
        taken: list[Rank] = []
        try:
            while self._heap:
                rank = heappop(self._heap)
                if self._ranks.get(rank[3]) == rank and (not taken or taken[-1] != rank):
                    taken.append(rank)
                    yield rank
        finally:
            for rank in taken:
                heappush(self._heap, rank)


def _use(requests: Amounts, entry: NodeEntry) -> int:
    """How much of cpu and memory would be in use, in hundredths of a percent of both together."""
    assert entry.node is not None
    has = entry.node.status.allocatable
    use = 0
    for name in ("cpu", "memory"):
        amount = has.get(name, 0)
        if amount:
            use += 10_000 * (entry.used.get(name, 0) + requests.get(name, 0)) // amount
    return use


class Views:
    """The views of the classes that were asked for last."""

    def __init__(self, places: ClusterIndex) -> None:
        self._places = places
        self._views: dict[bytes, ScoringView] = {}

    def of(self, pod: Pod, key: bytes) -> ScoringView:
        """The view of the pod's class, caught up."""
        view = self._views.pop(key, None)
        if view is None:
            view = ScoringView(pod, self._places)
            if len(self._views) >= VIEWS_MOST:
                del self._views[next(iter(self._views))]
        self._views[key] = view
        view.catch_up()
        return view


class PodWeights:
    """What the pod would like of other pods, counted once."""

    def __init__(self, pod: Pod, places: ClusterIndex) -> None:
        affinity = pod.spec.affinity
        self._near = [
            (sign * each.weight, each.pod_affinity_term.topology_key, _counts(each.pod_affinity_term, pod, places))
            for sign, wishes in ((1, affinity.pod_affinity.preferred), (-1, affinity.pod_anti_affinity.preferred))
            for each in wishes
        ]
        soft = [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == SCHEDULE_ANYWAY]
        self._spreads = [Spread(each, pod, places, (each.topology_key,)) for each in soft]

    def __bool__(self) -> bool:
        return bool(self._near or self._spreads)

    def rank(self, rank: Rank, entry: NodeEntry) -> tuple[int, int, int, int, str]:
        """The rank of the node with what other pods add to it."""
        labels = entry.labels
        near = sum(weight * counts.get(labels.get(key, ""), 0) for weight, key, counts in self._near)
        crowd = sum(spread.counts.get(labels.get(spread.key, ""), 0) for spread in self._spreads)
        return (rank[0], rank[1] - near, crowd, rank[2], rank[3])


def _counts(term: PodAffinityTerm, pod: Pod, places: ClusterIndex) -> dict[str, int]:
    total: dict[str, int] = {}
    for group in groups_meant((term,), pod, places):
        for value, count in group.domains(term.topology_key, places.entries).items():
            total[value] = total.get(value, 0) + count
    return total


def choose(
    question: PodPredicates, view: ScoringView, wishes: PodWeights
) -> tuple[str | None, dict[str, tuple[str, ...]]]:
    """The best node; or none, and why each will not do that would if it were alone."""
    refused: dict[str, tuple[str, ...]] = {}
    good: list[tuple[Rank, NodeEntry]] = []
    nodes = view.best_first()
    for rank in nodes:
        entry = question.places.entries[rank[3]]
        why = tuple(question.wide_refusals(entry))
        if why:
            refused[entry.name] = why
            continue
        good.append((rank, entry))
        if not wishes or len(good) >= SAMPLE:
            break
    nodes.close()
    if not good:
        return None, refused
    best = min(wishes.rank(rank, entry) for rank, entry in good)
    return best[4], {}
