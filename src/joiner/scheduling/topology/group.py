"""Where pods may go because of where other pods are: spread, affinity, anti-affinity.

A *group* watches one label (its key) and counts, for each value (a domain), the pods that its selector chooses. Pods that own
a group are kept to the domains it allows; every pod that it chooses is counted, whatever placed it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, Literal

from joiner.bitset import NO_CLAIMS, ClaimSet
from joiner.model.affinity import HONOR, TopologySpreadConstraint
from joiner.model.labels import HOSTNAME
from joiner.model.selector import LabelExpression, LabelSelector
from joiner.model.taints import Taint, Toleration, kept_off
from joiner.requirements import Requirement, Requirements

SPREAD: Final = "spread"
AFFINITY: Final = "affinity"
ANTI_AFFINITY: Final = "anti-affinity"
Kind = Literal["spread", "affinity", "anti-affinity"]


class NodeFilter:
    """Which nodes count for a spread constraint: those the pod's own node rules would allow, if the policies say so."""

    def __init__(self, terms: tuple[Requirements, ...], tolerations: tuple[Toleration, ...] | None) -> None:
        self.terms = terms
        """One of these must match; none given means every node does."""
        self.tolerations = tolerations
        """Tolerations that taints are held against; nothing means that taints do not matter."""

    def matches(self, requirements: Requirements, taints: Iterable[Taint]) -> bool:
        """Whether a node with these labels and taints counts."""
        if self.tolerations is not None and kept_off(taints, self.tolerations):
            return False
        return not self.terms or any(requirements.compatible(term) for term in self.terms)

    def identity(self) -> tuple[object, ...]:
        """Equal for filters that let the same nodes through."""
        tolerated = None if self.tolerations is None else tuple(sorted(map(repr, self.tolerations)))
        return (frozenset(self.terms), tolerated)


EVERY_NODE: Final = NodeFilter((), None)


class Group:
    """One label, one selector, and how many chosen pods lie in each domain."""

    def __init__(
        self,
        kind: Kind,
        key: str,
        namespaces: frozenset[str],
        selector: LabelSelector | None,
        max_skew: int = 0,
        min_domains: int | None = None,
        node_filter: NodeFilter = EVERY_NODE,
    ) -> None:
        self.kind = kind
        self.key = key
        self.namespaces = namespaces
        self.selector = selector
        self.max_skew = max_skew
        self.min_domains = min_domains
        self.node_filter = node_filter
        self.domains: dict[str, int] = {}
        self.beyond: frozenset[str] = frozenset()
        """Domains that no owner of the group can reach, so that a pod that it keeps out elsewhere may be there."""
        self.occupied = False
        """Whether any domain has a pod."""
        self.ranks: Mapping[str, int] = {}
        """Where several domains are as good, the one with the smaller rank is taken: the cheaper one."""
        self.pins = False
        """Whether anti-affinity settles at once for one domain for those it counts, because others of them need the rest."""
        self.pins_all = False
        """Whether it does so for every pod it concerns."""
        self.hosts: list[ClaimSet] = []
        """For groups by host: `hosts[n]` is the set of open claims with more than n pods that count."""
        self._answers: dict[tuple[Requirement, Requirement, bool], Requirement | None] = {}
        self._forbidden: dict[tuple[Requirement, bool], tuple[str, ...]] = {}

    def fresh(self) -> "Group":
        """The same group with the same counts, for another run to go on counting."""
        made = Group(
            self.kind, self.key, self.namespaces, self.selector, self.max_skew, self.min_domains, self.node_filter
        )
        made.domains, made.occupied = dict(self.domains), self.occupied
        made.ranks, made.pins, made.pins_all, made.beyond = self.ranks, self.pins, self.pins_all, self.beyond
        return made

    def chooses(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod is one of those that are counted."""
        return namespace in self.namespaces and self.selector is not None and self.selector.matches(labels)

    def register(self, domain: str) -> None:
        """A domain that exists, whether or not a pod is there."""
        if domain not in self.domains:
            self.domains[domain] = 0
            self._moved()

    def record(self, domain: str, count: int = 1) -> None:
        """Pods that came to a domain."""
        self.domains[domain] = self.domains.get(domain, 0) + count
        self.occupied = True
        self._moved()

    def record_host(self, claim: int, domain: str, count: int = 1) -> None:
        """Pods that came to an open claim, whose number stands for its host."""
        before = self.domains.get(domain, 0)
        self.record(domain, count)
        while len(self.hosts) < before + count:
            self.hosts.append(NO_CLAIMS)
        for number in range(before, before + count):
            self.hosts[number] |= ClaimSet(1 << claim)

    def full_hosts(self, chosen: bool) -> ClaimSet:
        """Open claims that cannot take another pod of the group: a quick answer for groups by host."""
        most = self.max_skew - (1 if chosen else 0) if self.kind == SPREAD else 0
        if most < 0:
            return ~NO_CLAIMS
        return self.hosts[most] if most < len(self.hosts) else NO_CLAIMS

    def is_full(self, host: str, chosen: bool) -> bool:
        """Whether a host cannot take another pod of a group by host."""
        if self.kind == AFFINITY:
            return False
        most = self.max_skew - (1 if chosen else 0) if self.kind == SPREAD else 0
        return self.domains.get(host, 0) > most

    def room_on_host(self, domain: str) -> int | None:
        """How many more pods that count a host takes; nothing where any number will do."""
        if self.kind == AFFINITY:
            return None
        most = self.max_skew if self.kind == SPREAD else 1
        return max(0, most - self.domains.get(domain, 0))

    def _moved(self) -> None:
        if self._answers:
            self._answers = {}
        if self._forbidden:
            self._forbidden = {}

    def forbidden(self, pod: Requirement, chosen: bool) -> tuple[str, ...]:
        """Domains that no node can lie in and take the pod: a quick answer that rules out many nodes at once."""
        question = (pod, chosen)
        found = self._forbidden.get(question)
        if found is None:
            found = self._forbidden[question] = tuple(self._closed(pod, chosen))
        return found

    def _closed(self, pod: Requirement, chosen: bool) -> Iterator[str]:
        if self.kind == SPREAD and self.key != HOSTNAME:
            most = self.least(pod) + self.max_skew - (1 if chosen else 0)
            yield from (domain for domain in sorted(self.domains) if self.domains[domain] > most or not pod.has(domain))
            return
        for domain in sorted(self.domains):
            if self._narrowed(pod, _only(self.key, domain), chosen) is None:
                yield domain

    def narrowed(self, pod: Requirement, node: Requirement, chosen: bool) -> Requirement | None:
        """The domains that are left for a pod of the group on a node; nothing if none is.

        `pod` is what the pod itself demands of the label, `node` what the node may be, `chosen` whether the pod counts.
        """
        if self.key == HOSTNAME:
            return self._narrowed(pod, node, chosen)
        question = (pod, node, chosen)
        if question not in self._answers:
            self._answers[question] = self._narrowed(pod, node, chosen)
        return self._answers[question]

    def _narrowed(self, pod: Requirement, node: Requirement, chosen: bool) -> Requirement | None:
        if self.kind == SPREAD:
            return self._spread(pod, node, 1 if chosen else 0)
        if self.kind == AFFINITY:
            return self._affinity(pod, node, chosen)
        return self._anti_affinity(pod, node)

    def _spread(self, pod: Requirement, node: Requirement, extra: int) -> Requirement | None:
        least = self.least(pod)
        if self.key == HOSTNAME and not node.complement and len(node.values) == 1:
            (domain,) = node.values
            return node if self.domains.get(domain, 0) + extra - least <= self.max_skew else None
        best: tuple[int, int, str] | None = None
        for domain in self._possible(node):
            count = self.domains.get(domain, 0)
            if count + extra - least <= self.max_skew and pod.has(domain):
                best = min(best or (count, self._rank(domain), domain), (count, self._rank(domain), domain))
        return None if best is None else Requirement(self.key, (best[2],))

    def _rank(self, domain: str) -> int:
        return self.ranks.get(domain, len(self.ranks))

    def least(self, pod: Requirement) -> int:
        """The count of the emptiest domain that the pod could go to."""
        if self.key == HOSTNAME:
            return 0  # a new node is always possible, and it is empty
        counts = [count for domain, count in self.domains.items() if pod.has(domain)]
        if self.min_domains is not None and len(counts) < self.min_domains:
            return 0
        return min(counts, default=0)

    def _affinity(self, pod: Requirement, node: Requirement, chosen: bool) -> Requirement | None:
        occupied = [domain for domain in self._possible(node) if self.domains.get(domain, 0) and pod.has(domain)]
        if occupied:
            return Requirement(self.key, occupied)
        anywhere = any(count and pod.has(domain) for domain, count in self.domains.items())
        if not chosen or anywhere:
            return None
        open_to = [(self._rank(domain), domain) for domain in self._possible(node) if pod.has(domain)]
        return Requirement(self.key, (min(open_to)[1],)) if open_to else None

    def _anti_affinity(self, pod: Requirement, node: Requirement) -> Requirement | None:
        # A domain that the group has never heard of has no pod in it.
        possible = sorted(node.values)
        if node.complement:
            possible = [*self._possible(node), *sorted(filter(node.has, self.beyond - self.domains.keys()))]
        free = [domain for domain in possible if not self.domains.get(domain, 0) and pod.has(domain)]
        return Requirement(self.key, free) if free else None

    def settled(self, node: Requirement, chosen: bool) -> Requirement:
        """The domain that a pod settles for where no other constraint chooses: one that may be in several is in all of them."""
        if node.complement or len(node.values) == 1 or not (self.pins_all or (self.pins and chosen)):
            return node
        return Requirement(self.key, (min(node.values, key=lambda domain: (self._rank(domain), domain)),))

    def _possible(self, node: Requirement) -> Iterable[str]:
        """The domains a node may lie in; a host without pods of the group is an empty one."""
        if not node.complement:
            known = node.values if self.key == HOSTNAME else node.values & self.domains.keys()
            return sorted(known)
        return (domain for domain in sorted(self.domains) if node.has(domain))


@lru_cache(maxsize=4096)
def _only(key: str, domain: str) -> Requirement:
    return Requirement(key, (domain,))


def selector_of(
    selector: LabelSelector | None, labels: Mapping[str, str], keys: Iterable[str], apart: Iterable[str] = ()
) -> LabelSelector | None:
    """The selector with the pod's own values for `matchLabelKeys` (and not those of `mismatchLabelKeys`)."""
    if selector is None:
        return None
    more = [LabelExpression(key=key, operator="In", values=(labels[key],)) for key in keys if key in labels]
    more += [LabelExpression(key=key, operator="NotIn", values=(labels[key],)) for key in apart if key in labels]
    if not more:
        return selector
    return LabelSelector(match_labels=selector.match_labels, match_expressions=(*selector.match_expressions, *more))


def selector_identity(selector: LabelSelector | None) -> object:
    """Equal for selectors that say the same."""
    if selector is None:
        return None
    said = sorted((e.key, e.operator, tuple(sorted(e.values))) for e in selector.match_expressions)
    return (tuple(sorted(selector.match_labels.items())), tuple(said))


def spread_filter(
    constraint: TopologySpreadConstraint, terms: tuple[Requirements, ...], tolerations: tuple[Toleration, ...]
) -> NodeFilter:
    """The nodes that count for a spread constraint of a pod with these node rules."""
    return NodeFilter(
        terms if constraint.node_affinity_policy == HONOR else (),
        tolerations if constraint.node_taints_policy == HONOR else None,
    )
