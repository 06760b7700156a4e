"""Where pods that stay together are best bought: the first of them decides for all, so it had better know what all will cost."""

from collections.abc import Iterable, Mapping

import numpy as np

from joiner.model.labels import HOSTNAME
from joiner.model.taints import untolerated
from joiner.requirements import Requirement
from joiner.scheduling.claims import Joined
from joiner.scheduling.classes import PodClass
from joiner.scheduling.kinds import KindTable, how_many
from joiner.scheduling.template import Template
from joiner.scheduling.topology import AFFINITY, Group


class Company:
    """Ranks the domains of affinity groups by what a pod of the group costs there when it shares nodes with the others."""

    def __init__(self, templates: list[Template], kinds: KindTable, joined: Joined, waiting: Mapping[int, int]) -> None:
        self._templates = templates
        self._kinds = kinds
        self._joined = joined
        self._waiting = waiting

    def rank(self, groups: Iterable[Group], classes: Iterable[PodClass]) -> None:
        """Rank the domains of every group that is nowhere yet, and that its own pods begin."""
        owners: dict[Group, list[PodClass]] = {}
        for each in classes:
            for group, chosen in each.steps[0].groups:
                if chosen and group.kind == AFFINITY and group.key != HOSTNAME:
                    owners.setdefault(group, []).append(each)
        for group in groups:
            if group in owners and not any(group.domains.values()):
                costs = {domain: self._cost(group, domain, owners[group]) for domain in group.domains}
                before = group.ranks
                ordered = sorted(costs, key=lambda domain: (costs[domain], before.get(domain, len(before)), domain))
                group.ranks = {domain: rank for rank, domain in enumerate(ordered)}

    def _cost(self, group: Group, domain: str, owners: list[PodClass]) -> float:
        """What all pods of the group cost in a domain; infinite if one of them cannot be there."""
        there = Requirement(group.key, (domain,))
        return float(f"{sum(self._waiting[each.number] * self._worth(each, there) for each in owners):.9g}")

    def _worth(self, each: PodClass, there: Requirement) -> float:
        """The smallest share of a node's price for a pod of the class: in the first pool that takes it."""
        step = each.steps[0]
        for template in self._templates:
            joined = self._joined.of(template.requirements, step.requirements)
            pinned = self._joined.of(joined, self._joined.only(there)) if joined is not None else None
            if pinned is None or untolerated(template.taints, step.tolerations):
                continue
            kinds = self._kinds.of(template, pinned)
            fitting = how_many(kinds.room, np.array(each.amounts, np.float64))
            possible = fitting >= 1
            if possible.any():
                together = np.minimum(fitting[possible], self._waiting[each.number])
                return float(np.min(kinds.costs[possible] / together))
        return float("inf")
