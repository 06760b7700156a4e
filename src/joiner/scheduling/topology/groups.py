"""The topology groups of a run: who owns which, who is counted where, and what was there before."""

import math
from collections.abc import Iterable, Iterator, Mapping

from joiner.model.affinity import PodAffinityTerm, TopologySpreadConstraint
from joiner.model.labels import HOSTNAME
from joiner.model.pod import Pod
from joiner.model.podrules import is_terminal, is_terminating
from joiner.model.selector import LabelSelector
from joiner.model.taints import Taint, Toleration, kept_off
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.kept import Kept
from joiner.scheduling.problem import PoolOption, Problem
from joiner.scheduling.topology.group import (
    AFFINITY,
    ANTI_AFFINITY,
    SPREAD,
    Group,
    NodeFilter,
    selector_identity,
    selector_of,
    spread_filter,
)
from joiner.scheduling.topology.present import Labels, PresentPods


def seen_by_selectors(pods: Iterable[Pod]) -> frozenset[str]:
    """The names of labels that the selectors of pods look at: pods that differ in others only are alike to all of them."""
    found: set[str] = set()
    for spec in {id(pod.spec): pod.spec for pod in pods}.values():
        near, away = spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity
        terms = [*near.required, *away.required]
        terms += [liked.pod_affinity_term for liked in (*near.preferred, *away.preferred)]
        for term in terms:
            found.update(_looked_at(term.label_selector), term.match_label_keys, term.mismatch_label_keys)
        for constraint in spec.topology_spread_constraints:
            found.update(_looked_at(constraint.label_selector), constraint.match_label_keys)
    return frozenset(found)


def _looked_at(selector: LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        yield from selector.match_labels
        yield from (each.key for each in selector.match_expressions)


class _Place:
    """A node where pods are counted."""

    def __init__(self, name: str, labels: Mapping[str, str], taints: tuple[Taint, ...]) -> None:
        self.labels = labels if HOSTNAME in labels else {**labels, HOSTNAME: name}
        self.requirements = Requirements.of_labels(self.labels)
        self.taints = taints


class Groups:
    """Every group of a run, made as pods ask for them and filled with what is known at the start."""

    def __init__(
        self, problem: Problem, batch: frozenset[str], universe: "Domains", seen: frozenset[str], kept: Kept
    ) -> None:
        self._namespaces = problem.namespaces
        places = kept.each("places", problem.nodes, lambda node: _Place(node.name, node.labels, node.taints))
        self._places = {node.name: place for node, place in zip(problem.nodes, places, strict=True)}
        gone = {name: _Place(name, labels, ()) for name, labels in problem.bound_nodes.items()}
        self._present = kept.state("present", seen, lambda: PresentPods(seen))
        self._present.follow([pod for pod in problem.bound if pod.metadata.uid not in batch])
        self._everywhere = {**gone, **self._places}
        self._universe = universe
        self._asked: dict[tuple[int, int, str, bool], Group] = {}
        self._groups: dict[object, Group] = {}
        self._inverse: dict[object, Group] = {}
        self._counted: dict[Labels, tuple[Group, ...]] = {}
        self._kept_out: dict[Labels, tuple[Group, ...]] = {}
        self._counting: _Choosers | None = None
        self._keeping: _Choosers | None = None
        for pod in problem.bound:
            if pod.spec.affinity.pod_anti_affinity.required and pod.metadata.uid not in batch:
                self._keep_away_from(pod)

    def _keep_away_from(self, pod: Pod) -> None:
        place = self._everywhere.get(pod.spec.node_name)
        if place is None or is_terminal(pod) or is_terminating(pod):
            return
        for group in self.marks(pod, pod.spec.affinity.pod_anti_affinity.required):
            domain = place.labels.get(group.key)
            if domain is not None:
                group.record(domain)

    # -- groups that pods own -----------------------------------------------------------------------------------------

    def spread(
        self,
        pod: Pod,
        constraint: TopologySpreadConstraint,
        terms: tuple[Requirements, ...],
        tolerations: tuple[Toleration, ...],
    ) -> Group:
        """The group of a spread constraint."""
        selector = selector_of(constraint.label_selector, pod.metadata.labels, constraint.match_label_keys)
        node_filter = spread_filter(constraint, terms, tolerations)
        namespace = pod.metadata.namespace
        identity = (
            SPREAD, constraint.topology_key, namespace, selector_identity(selector), constraint.max_skew,
            constraint.min_domains, node_filter.identity(),
        )  # fmt: skip
        known = self._groups.get(identity)
        if known is None:
            known = Group(
                SPREAD,
                constraint.topology_key,
                frozenset({namespace}),
                selector,
                max_skew=constraint.max_skew,
                min_domains=constraint.min_domains,
                node_filter=node_filter,
            )
            self._fill(known, node_filter.tolerations)
            self._groups[identity] = known
        return known

    def near(self, pod: Pod, terms: Iterable[PodAffinityTerm]) -> tuple[Group, ...]:
        """The groups of affinity terms."""
        return tuple(self._term(pod, term, AFFINITY, self._groups) for term in terms)

    def away(self, pod: Pod, terms: Iterable[PodAffinityTerm]) -> tuple[Group, ...]:
        """The groups of anti-affinity terms: where the pods are that the owner stays away from."""
        return tuple(self._term(pod, term, ANTI_AFFINITY, self._groups) for term in terms)

    def marks(self, pod: Pod, terms: Iterable[PodAffinityTerm]) -> tuple[Group, ...]:
        """The inverse groups of anti-affinity terms: where the *owners* are, whom the chosen pods stay away from."""
        return tuple(self._term(pod, term, ANTI_AFFINITY, self._inverse) for term in terms)

    def _term(self, pod: Pod, term: PodAffinityTerm, kind: str, table: dict[object, Group]) -> Group:
        # The steps of a pod ask for the same terms again and again; both objects outlive the run.
        question = (id(pod), id(term), kind, table is self._inverse)
        found = self._asked.get(question)
        if found is None:
            found = self._asked[question] = self._made(pod, term, kind, table)
        return found

    def _made(self, pod: Pod, term: PodAffinityTerm, kind: str, table: dict[object, Group]) -> Group:
        selector = selector_of(
            term.label_selector, pod.metadata.labels, term.match_label_keys, term.mismatch_label_keys
        )
        namespaces = self._meant(pod, term)
        reachable = self._universe.reachable(term.topology_key, pod.spec.tolerations)
        identity = (kind, term.topology_key, namespaces, selector_identity(selector), reachable)
        known = table.get(identity)
        if known is None:
            known = Group(kind, term.topology_key, namespaces, selector)  # type: ignore[arg-type]
            self._fill(known, pod.spec.tolerations, counting=table is self._groups)
            if table is self._inverse:
                known.beyond = frozenset(self._universe.domains(term.topology_key)) - known.domains.keys()
            table[identity] = known
        return known

    def _meant(self, pod: Pod, term: PodAffinityTerm) -> frozenset[str]:
        if not term.namespaces and term.namespace_selector is None:
            return frozenset({pod.metadata.namespace})
        selector = term.namespace_selector
        chosen = [
            name for name, labels in self._namespaces.items() if selector is not None and selector.matches(labels)
        ]
        return frozenset({*term.namespaces, *chosen})

    # -- what is known at the start -----------------------------------------------------------------------------------

    def _fill(self, group: Group, tolerations: tuple[Toleration, ...] | None, counting: bool = True) -> None:
        group.ranks = self._universe.ranks(group.key)
        for domain, taint_sets in self._universe.domains(group.key).items():
            if tolerations is None or any(not kept_off(taints, tolerations) for taints in taint_sets):
                group.register(domain)
        for place in self._places.values():
            where = place.labels.get(group.key)
            if where is not None and group.node_filter.matches(place.requirements, place.taints):
                group.register(where)
        if counting:
            self._count_present(group, group.node_filter)

    def _count_present(self, group: Group, node_filter: NodeFilter) -> None:
        for counts in self._present.chosen(group):
            for name, count in counts.items():
                place = self._everywhere.get(name)
                if place is None or not node_filter.matches(place.requirements, place.taints):
                    continue
                if (where := place.labels.get(group.key)) is not None:
                    group.record(where, count)

    def all(self) -> tuple[Group, ...]:
        """Every group there is."""
        return (*self._groups.values(), *self._inverse.values())

    def keys(self) -> tuple[str, ...]:
        """The labels that groups watch, but for the host."""
        return tuple(sorted({group.key for group in self.all()} - {HOSTNAME}))

    # -- who is counted -----------------------------------------------------------------------------------------------

    def counted(self, labels: Labels) -> tuple[Group, ...]:
        """The groups that count pods with these labels. To be asked only once all groups are made."""
        found = self._counted.get(labels)
        if found is None:
            if self._counting is None:
                self._counting = _Choosers(self._groups.values())
            found = self._counted[labels] = self._counting.of(labels)
        return found

    def kept_out(self, labels: Labels) -> tuple[Group, ...]:
        """The inverse groups that choose pods with these labels."""
        found = self._kept_out.get(labels)
        if found is None:
            if self._keeping is None:
                self._keeping = _Choosers(self._inverse.values())
            found = self._kept_out[labels] = self._keeping.of(labels)
        return found


class _Choosers:
    """Groups by a label that they demand of the pods they choose, so that few have to be asked."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self._by_label: dict[tuple[str, str] | None, list[tuple[int, Group]]] = {}
        for number, group in enumerate(groups):
            demanded = group.selector.match_labels if group.selector is not None else {}
            self._by_label.setdefault(min(demanded.items(), default=None), []).append((number, group))

    def of(self, labels: Labels) -> tuple[Group, ...]:
        """The groups that choose pods with these labels, in their order."""
        namespace, plain = labels[0], dict(labels[1])
        asked = [each for label in (None, *labels[1]) for each in self._by_label.get(label, ())]
        chosen = [(number, group) for number, group in asked if group.chooses(namespace, plain)]
        return tuple(group for _, group in sorted(chosen, key=lambda pair: pair[0]))


class Domains:
    """The values that new nodes could have for a label, each with the taints of the pools that offer it."""

    def __init__(self, problem: Problem) -> None:
        self._pools = problem.pools
        self._known: dict[str, dict[str, list[tuple[Taint, ...]]]] = {}
        self._ranks: dict[str, dict[str, int]] = {}

    def domains(self, key: str) -> dict[str, list[tuple[Taint, ...]]]:
        """Value to taint sets; computed once for each label that is asked for."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = {}
            asked = [mine for option in self._pools if (mine := option.catalog.requirements.get(key)) is not None]
            named = frozenset(value for mine in asked for value in mine.values)
            for option in self._pools:
                for value in sorted(_values(option, key, named)):
                    found.setdefault(value, []).append(option.pool.spec.template.spec.taints)
        return found

    def reachable(self, key: str, tolerations: tuple[Toleration, ...]) -> frozenset[str]:
        """The domains that a pod with these tolerations could go to on new nodes."""
        return frozenset(
            domain
            for domain, taint_sets in self.domains(key).items()
            if any(not kept_off(taints, tolerations) for taints in taint_sets)
        )

    def ranks(self, key: str) -> dict[str, int]:
        """Domains from the cheapest to the dearest; those that cost the same by name."""
        found = self._ranks.get(key)
        if found is None:
            costs = {
                domain: min((_cost(option, key, domain) for option in self._pools), default=math.inf)
                for domain in self.domains(key)
            }
            ordered = sorted(costs, key=lambda domain: (costs[domain], domain))
            found = self._ranks[key] = {domain: rank for rank, domain in enumerate(ordered)}
        return found


def _cost(option: PoolOption, key: str, domain: str) -> float:
    """What the pool's types cost on average in a domain; infinite where nothing can be bought."""
    pool = option.catalog.requirements
    pinned = pool & Requirements([Requirement(key, (domain,))])
    stock = option.catalog.market.stock
    _, costs = stock.prices(pinned).columns(stock.described(pinned))
    return round(math.fsum(costs) / len(costs), 9) if len(costs) else math.inf


def _values(option: PoolOption, key: str, named: frozenset[str]) -> set[str]:
    """What nodes of the pool may have for a label.

    Where types say nothing of it, a pool that leaves it open may give it any value that some pool names.
    """
    own = option.catalog.requirements
    mine = own.get(key)
    index = option.catalog.index
    offered = index.labels.values(key, index.described(own))
    if mine is None:
        return offered
    values = offered | mine.values if offered or not mine.complement else named
    return {value for value in values if mine.has(value)}
