"""Spread, decided beforehand: how many pods go to each domain, so that claims can be filled one at a time."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

from joiner.model.labels import HOSTNAME
from joiner.requirements import Requirement
from joiner.scheduling.engine.pricing import on_the_market
from joiner.scheduling.planners.podsizes import Share
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.topology.group import SPREAD, Group

if TYPE_CHECKING:
    from joiner.scheduling.engine.firstfit import FirstFit


class Spreading:
    """Decides beforehand how many pods of a spread class go to each domain, so that claims can be filled one at a time.

    A claim that is filled to the brim in one zone would be out of balance until the next zone has its share. Where every pod
    that a group counts is bound by it, the end is known: counts that are as even as can be.
    """

    def __init__(self, run: "FirstFit", members: Mapping[int, Sequence[int]]) -> None:
        self._run = run
        self._counts: dict[Group, dict[str, int]] = {}
        self._before: dict[Group, dict[str, int]] = {}
        self._decided: list[tuple[Group, Requirement]] = []
        self._owners: dict[Group, bool] = {}
        self.left: list[int] = []
        """Pods that would bring their group out of balance wherever they went."""
        for each in run.classes:
            if each.number in run.ignored:
                continue
            own = {group for group, chosen in each.steps[0].groups if chosen}
            for group in each.counted:
                self._owners[group] = self._owners.get(group, True) and group in own
        self._coming: Counter[tuple[Group, str | None]] = Counter()
        """How many pods of a group are still to be given a domain: those that volumes hold in one, and those that are free."""
        for each in run.classes:
            if each.number in members and (spread := self._decidable(each)) is not None:
                self._coming[spread, _held_in(each, spread)] += len(members[each.number])

    def _decidable(self, pod_class: PodClass) -> Group | None:
        """The group that pods of a class are spread by, if nothing else has a say in the domain they go to."""
        groups = [(group, chosen) for group, chosen in pod_class.steps[0].groups if group.key != HOSTNAME]
        if len(groups) != 1:
            return None
        group, chosen = groups[0]
        return group if group.kind == SPREAD and chosen and self._owners.get(group) else None

    def shares(self, pod_class: PodClass, positions: list[int]) -> Iterator[Share]:
        """The pods of a class by the domain they are meant for; in one piece where nothing has to be decided."""
        step = pod_class.steps[0]
        group = self._decidable(pod_class)
        if group is None:
            yield Share(pod_class, step, positions)
            return
        self._decided.append((group, step.strict.at(group.key)))
        for domain, members in self._apportioned(group, step, pod_class, positions).items():
            there = self._run.joined.only(Requirement(group.key, (domain,)))
            # The pod takes the label for granted: that only the pool speaks of it is no contradiction.
            narrowed, strict = (self._run.joined.the(asked & there) for asked in (step.requirements, step.strict))
            rest = tuple((other, counted) for other, counted in step.groups if other is not group)
            pinned = Step(narrowed, strict, step.tolerations, rest, step.marks, step.places)
            pinned.final = all(other.key == HOSTNAME for other, _ in rest) and step.final
            yield Share(pod_class, pinned, members)

    def balanced(self) -> bool:
        """Whether the end is what was decided: pods that found no place may have left a group out of balance."""
        return all(
            count - group.least(pod) <= group.max_skew
            for group, pod in self._decided
            for domain, count in group.domains.items()
            if pod.has(domain) and count > self._before[group].get(domain, 0)
        )

    def _apportioned(self, group: Group, step: Step, pod_class: PodClass, positions: list[int]) -> dict[str, list[int]]:
        """Domain to pods: each pod goes to the emptiest domain that can be bought; of two that are equal to the one where a
        heavier pool sells, then to the cheaper one.
        """
        counts = self._counts.setdefault(group, dict(group.domains))
        self._before.setdefault(group, dict(group.domains))
        pod = step.strict.at(group.key)
        reachable = [domain for domain in counts if pod.has(domain)]
        costs = {
            domain: cost for domain in reachable if (cost := self._cost(group, step, pod_class, domain)) is not None
        }
        meant: dict[str, list[int]] = {}
        self._coming[group, _held_in(pod_class, group)] -= len(positions)
        few = group.min_domains is not None and len(reachable) < group.min_domains
        patient = pod_class.held and not few
        never = min((counts[domain] for domain in reachable if domain not in costs), default=math.inf)
        if costs and not few and never == math.inf and group.max_skew > 0:
            return dealt(positions, sorted(costs, key=lambda domain: (costs[domain], domain)), counts)
        emptiest = [(counts[domain], cost, domain) for domain, cost in costs.items()]
        heapify(emptiest)
        while positions and emptiest:
            count, cost, best = emptiest[0]
            least, level = 0 if few else min(never, count), count + 1 - group.max_skew
            if level > least and not (patient and self._made_up_for(group, level, reachable)):
                break
            counts[best] += 1
            heapreplace(emptiest, (count + 1, cost, best))
            meant.setdefault(best, []).append(positions.pop())
        self.left.extend(positions)
        return {domain: members[::-1] for domain, members in meant.items()}

    def _made_up_for(self, group: Group, level: int, domains: list[str]) -> bool:
        """Whether the pods that are still to come can fill every domain up to a level."""
        gaps = (level - self._counts[group][domain] - self._coming[group, domain] for domain in domains)
        return sum(gap for gap in gaps if gap > 0) <= self._coming[group, None]

    def _cost(self, group: Group, step: Step, pod_class: PodClass, domain: str) -> tuple[int, float] | None:
        """What the smallest new node for a pod would cost in a domain, and before that how light its pool is; nothing if there
        can be none.
        """
        there = self._run.joined.only(Requirement(group.key, (domain,)))
        for template in self._run.templates:
            joined = self._run.joined.of(template.requirements, step.requirements)
            narrowed = self._run.joined.of(joined, there) if joined is not None else None
            if narrowed is None or not self._run.openings.tolerates(template, step):
                continue
            for place in step.places:
                placed = self._run.joined.of(narrowed, place)
                if placed is None:
                    continue
                units = (
                    template.usable & template.stock.described(placed) & template.fits.large_enough(pod_class.amounts)
                )
                cost = on_the_market(self._run, template, placed, units)
                if cost < math.inf:
                    return -template.weight, cost
        return None


def dealt(positions: list[int], domains: list[str], counts: dict[str, int]) -> dict[str, list[int]]:
    """The same where every domain can be bought: always the emptiest, so that all are filled up level by level."""
    meant: dict[str, list[int]] = {}
    while positions:
        level = min(counts[domain] for domain in domains)
        lowest = [domain for domain in domains if counts[domain] == level]
        higher = min((counts[domain] for domain in domains if counts[domain] > level), default=math.inf)
        count = int(min(len(positions), (higher - level) * len(lowest)))
        some = positions[: -count - 1 : -1]
        del positions[-count:]
        for number, domain in enumerate(lowest[:count]):
            members = some[number :: len(lowest)]
            meant.setdefault(domain, []).extend(members)
            counts[domain] += len(members)
    return {domain: members[::-1] for domain, members in meant.items()}


def _held_in(pod_class: PodClass, group: Group) -> str | None:
    """The one domain of a group that volumes hold a class in."""
    asked = [place.at(group.key) for place in pod_class.volumes.places]
    domains = {domain for one in asked for domain in one.values}
    return domains.pop() if len(domains) == 1 and not any(one.complement for one in asked) else None
