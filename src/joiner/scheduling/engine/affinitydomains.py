"""Where pods that stay together are best bought: the first of them decides for all, so it had better know what all will cost."""

import math
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from joiner.model.labels import HOSTNAME
from joiner.model.taints import Toleration, untolerated
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.engine.pricing import rounded
from joiner.scheduling.nodes.nodekinds import KindTable, how_many
from joiner.scheduling.nodes.openclaim import RequirementCache
from joiner.scheduling.nodes.template import Template
from joiner.scheduling.pods.podclass import PodClass
from joiner.scheduling.problem import Amounts
from joiner.scheduling.topology.group import AFFINITY, Group

_DOMAINS_MOST: Final = 32
"""Where there are more domains than that to choose between, what they cost on average has to do."""

_Wish = tuple[Requirements, tuple[Toleration, ...]]


class AffinityDomainRanking:
    """Ranks the domains of affinity groups by what their pods cost there when they share nodes."""

    def __init__(
        self, templates: list[Template], kinds: KindTable, joined: RequirementCache, waiting: Mapping[int, int]
    ) -> None:
        self._templates = templates
        self._kinds = kinds
        self._joined = joined
        self._waiting = waiting
        self._known: dict[tuple[_Wish, Amounts, int, Requirement], float] = {}

    def rank(self, classes: Iterable[PodClass]) -> None:
        """Rank the domains of every group that is nowhere yet, and that one of its own pods begins."""
        owners: dict[Group, list[PodClass]] = {}
        begun: set[Group] = set()
        for each in classes:
            for group, chosen in each.steps[0].groups:
                if group.kind == AFFINITY and group.key != HOSTNAME:
                    owners.setdefault(group, []).append(each)
                    if chosen:
                        begun.add(group)
        for group in owners:
            if group in begun and len(group.domains) <= _DOMAINS_MOST and not any(group.domains.values()):
                self._rank(group, owners[group])

    def _rank(self, group: Group, owners: list[PodClass]) -> None:
        """Best is where most of them can be; of those domains, where they cost least."""
        before, together = group.ranks, sum(self._waiting[each.number] for each in owners)
        merits: dict[str, tuple[int, float]] = {}
        for domain in group.domains:
            there = Requirement(group.key, (domain,))
            shares = [(self._waiting[each.number], self._share(each, together, there)) for each in owners]
            out = sum(count for count, share in shares if share == math.inf)
            merits[domain] = (out, rounded(sum(count * share for count, share in shares if share < math.inf)))
        ordered = sorted(merits, key=lambda domain: (merits[domain], before.get(domain, len(before)), domain))
        group.ranks = {domain: rank for rank, domain in enumerate(ordered)}

    def _share(self, pod_class: PodClass, together: int, there: Requirement) -> float:
        """What a pod of the class pays at the least in a domain, whichever of its alternatives it takes."""
        wishes: dict[_Wish, None] = {
            (step.strict, step.tolerations): None for step in pod_class.steps if not step.impossible
        }
        return min((self._share_of(wish, pod_class.amounts, together, there) for wish in wishes), default=math.inf)

    def _share_of(self, wish: _Wish, amounts: Amounts, together: int, there: Requirement) -> float:
        key = (wish, amounts, together, there)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._in_first_pool(wish, amounts, together, there)
        return found

    def _in_first_pool(self, wish: _Wish, amounts: Amounts, together: int, there: Requirement) -> float:
        """The smallest share of a node's price, in the first pool that takes the pod; infinite where none does."""
        requirements, tolerations = wish
        for template in self._templates:
            if not template.usable & template.within_limits():
                continue
            joined = self._joined.of(template.requirements, requirements)
            pinned = self._joined.of(joined, self._joined.only(there)) if joined is not None else None
            if pinned is None or untolerated(template.taints, tolerations):
                continue
            kinds = self._kinds.all(template, pinned)
            fitting = how_many(kinds.room, np.array(amounts, np.float64))
            possible = fitting >= 1
            if possible.any():
                return float(np.min(kinds.costs[possible] / np.minimum(fitting[possible], together)))
        return math.inf
