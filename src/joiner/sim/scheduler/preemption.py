"""Whom a pod of higher priority may push off a node.

One node is chosen: that whose most important victim is least important, then the one with fewest victims, then by name. Victims
are kept to the fewest that will do, the least important going first. Disruption budgets have no say, as in the last resort of the
real scheduler.
"""

from typing import Final, NamedTuple

from joiner.kube.client import Key, key_of
from joiner.model.pod import Pod
from joiner.sim.scheduler.clusterindex import Amounts, ClusterIndex, NodeEntry, PodEntry, requests_of
from joiner.sim.scheduler.nodefit import static_refusals
from joiner.sim.scheduler.predicates import PodPredicates

NEVER: Final = "Never"
NODES_MOST: Final = 100
"""How many nodes that could be made free are compared, by name."""


class Eviction(NamedTuple):
    """The node that is made free, and who has to go."""

    node: str
    victims: tuple[Pod, ...]


def preempt(pod: Pod, places: ClusterIndex) -> Eviction | None:
    """The pods that should go so that this one can come; nothing when it would not help."""
    priority = pod.spec.priority or 0
    lowest = places.lowest_priority()
    if lowest is None or lowest >= priority or pod.spec.preemption_policy == NEVER:
        return None
    wanted = requests_of(pod.spec)
    found: list[tuple[int, int, str, tuple[PodEntry, ...]]] = []
    for entry in sorted(places.nodes(), key=lambda each: each.name):
        victims = _victims(pod, wanted, entry, places, priority)
        if victims:
            found.append((max(each.priority for each in victims), len(victims), entry.name, victims))
            if len(found) >= NODES_MOST:
                break
    if not found:
        return None
    _, _, node, chosen = min(found, key=lambda each: each[:3])
    return Eviction(node, tuple(each.pod for each in chosen))


def is_under_way(eviction: Eviction, places: ClusterIndex) -> bool:
    """Whether a pod that was asked to leave is still there."""
    there = (places.pods.get(key_of(victim)) for victim in eviction.victims)
    uids = [victim.metadata.uid for victim in eviction.victims]
    return any(each is not None and each.pod.metadata.uid == uid for each, uid in zip(there, uids, strict=True))


def _victims(pod: Pod, wanted: Amounts, entry: NodeEntry, places: ClusterIndex, priority: int) -> tuple[PodEntry, ...]:
    assert entry.node is not None
    lower = [each for each in entry.pods.values() if each.priority < priority]
    if not lower or any(static_refusals(pod, entry.node)):
        return ()
    has = entry.node.status.allocatable
    least = {name: entry.used.get(name, 0) - sum(each.requests.get(name, 0) for each in lower) for name in wanted}
    if any(amount and least[name] + amount > has.get(name, 0) for name, amount in wanted.items()):
        return ()
    return _fewest(pod, entry, places, sorted(lower, key=lambda each: (-each.priority, key_of(each.pod))))


def _fewest(pod: Pod, entry: NodeEntry, places: ClusterIndex, lower: list[PodEntry]) -> tuple[PodEntry, ...]:
    """The fewest that must leave: all who may are taken away, then brought back one by one, the most important first."""
    victims: list[PodEntry] = []
    keys: list[Key] = [key_of(each.pod) for each in lower]
    with places.without(keys):
        if any(PodPredicates(pod, places).refusals(entry)):
            return ()
        for key, each in zip(keys, lower, strict=True):
            places.put_pod(each.pod)
            if any(PodPredicates(pod, places).refusals(entry)):
                places.drop_pod(key)
                victims.append(each)
    return tuple(victims)
