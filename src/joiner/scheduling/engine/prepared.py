"""`PreparedProblem`: pod classes, topology groups, pool templates, nodes and queue orders, computed once per problem.

All runs share it; what a run changes is copied for it.
"""

import re
from collections import Counter
from collections.abc import Sequence
from copy import copy
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from joiner.model.labels import HOSTNAME
from joiner.model.pod import Pod
from joiner.model.resources import CPU, MEMORY, PODS
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.engine.affinitydomains import AffinityDomainRanking
from joiner.scheduling.kept import Kept
from joiner.scheduling.nodes.existingnode import OpenNode
from joiner.scheduling.nodes.launchterms import LaunchTermsTable
from joiner.scheduling.nodes.minvalues import Flexibility
from joiner.scheduling.nodes.nodekinds import KindTable
from joiner.scheduling.nodes.openclaim import RequirementCache
from joiner.scheduling.nodes.placementrules import PlacementRules
from joiner.scheduling.nodes.template import Template
from joiner.scheduling.plan import Refusal
from joiner.scheduling.pods.eligibility import refusal
from joiner.scheduling.pods.podclass import PodClass, at_a_glance, classify, prepare
from joiner.scheduling.pods.volumetopology import VolumeIndex
from joiner.scheduling.problem import Problem
from joiner.scheduling.topology.group import ANTI_AFFINITY, Group
from joiner.scheduling.topology.groups import Domains, Groups, seen_by_selectors

_NUMBERS: Final = re.compile("[0-9]+")
_DIGITS: Final = 10
_LONG_AGO: Final = datetime(1, 1, 1, tzinfo=UTC)


class PreparedProblem:
    """The problem, prepared. Nothing on it changes an answer, and no run changes anything on it."""

    def __init__(self, problem: Problem, kept: Kept | None = None) -> None:
        self._problem = problem
        self._kept = Kept() if kept is None else kept
        self.joined = RequirementCache(problem.vocabulary.well_known)
        volume_index = VolumeIndex(problem.storage, problem.vocabulary)
        keeping_away = [pod for pod in problem.bound if pod.spec.affinity.pod_anti_affinity.required]
        written, looks = at_a_glance(problem.pods)
        self._seen = seen_by_selectors((*written, *keeping_away))
        self.classes, numbers = classify(written, volume_index, self._seen)
        self.numbers = [numbers[look] for look in looks]
        """For each pod the number of its class."""
        self._members = Counter(self.numbers)
        self.names = _resource_names([each.pod for each in self.classes], problem.daemons)
        self.kinds = KindTable(self.joined, self.names)
        for each in self.classes:
            each.measure(self.names)
        self._templates = self._usable_templates()
        self.flexible = {template.name: Flexibility(template.stock) for template in self._templates}
        self.launch_terms = {
            template.name: LaunchTermsTable(template.stock, self.flexible[template.name], problem.vocabulary.well_known)
            for template in self._templates
        }
        self.ignored = self._not_for_us()
        # Also of pools that have nothing to sell: nodes that are there may have come from one.
        taints = [taint for option in problem.pools for taint in option.pool.spec.template.spec.taints]
        self.disliked = any(taint.effect == "PreferNoSchedule" for taint in taints)
        """Whether some pool has a taint that only asks to be avoided."""
        groups = self._prepared()
        self._groups = groups.all()
        self.watched = groups.keys()
        """The labels that groups watch, but for the host."""
        for template in self._templates:
            if template.has_exotic and self._can_do_without_exotic(template):
                template.without_exotic()
        self._nodes = self._open_nodes()
        self._left = np.array([node.left for node in self._nodes], np.float64).reshape(-1, len(self.names)).T.copy()
        self._nodes_in: dict[str, dict[str, npt.NDArray[np.bool_]]] = {}
        self._agreeing: dict[Requirements, npt.NDArray[np.bool_]] = {}
        self._queues: dict[tuple[bool, bool], list[int]] = {}
        self._best_weights: dict[int, int] | None = None
        self.relaxed: dict[object, Any] = {}
        """Linear relaxations and their solutions, by what was asked: planners share them."""
        self.first_choices: dict[tuple[int, Requirements, int], tuple[int, Requirements] | None] = {}
        """Class, requirements and number of groups to the pool of a first claim for a pod, and what that claim must be."""

    def _can_do_without_exotic(self, template: Template) -> bool:
        """Whether each pod that the pool could take has a type there that is no machine for special work."""
        stock = template.stock
        for each in self.classes:
            large = template.usable & template.large_enough(each.amounts, each.ports)
            for step in each.steps if each.number not in self.ignored else ():
                joined = self.joined.of(template.requirements, step.requirements)
                for place in step.places:
                    placed = self.joined.of(joined, place) if joined is not None else None
                    if placed is not None:
                        units = large & stock.described(placed) & stock.available(placed)
                        if units and not units & stock.generic:
                            return False
        return bool(template.usable & stock.generic)

    def without_limits(self) -> "PreparedProblem":
        """The same problem without the limits of its pools."""
        made = copy(self)
        made._templates = self.templates()
        for template in made._templates:
            template.left = {}
        made._best_weights, made.relaxed, made.first_choices = None, {}, {}
        return made

    # -- for a run ----------------------------------------------------------------------------------------------------

    def cast(self) -> tuple[list[PodClass], list[PodClass]]:
        """The classes with no pod placed yet, in order of number, and for each pod the class it belongs to."""
        fresh: dict[Group, Group] = {group: group.fresh() for group in self._groups}
        classes = [each.fresh(fresh) for each in self.classes]
        return classes, list(map(classes.__getitem__, self.numbers))

    def templates(self) -> list[Template]:
        """The pools that can buy anything, by weight, with all that their limits allow."""
        return [template.fresh() for template in self._templates]

    def nodes(self) -> list[OpenNode]:
        """The nodes that are there, those that are ready first. Who puts pods on one takes a fresh one for it first."""
        return list(self._nodes)

    def left(self) -> npt.NDArray[np.float64]:
        """What is left on each of them, a row for each resource: nearly, and the order between any two amounts holds."""
        return self._left.copy()

    def nodes_in(self, key: str) -> dict[str, npt.NDArray[np.bool_]]:
        """Which of them have which value of a label."""
        found = self._nodes_in.get(key)
        if found is None:
            found = self._nodes_in[key] = {}
            for node in self._nodes:
                for value in node.requirements.at(key).values:
                    found.setdefault(value, np.zeros(len(self._nodes), np.bool_))[node.number] = True
        return found

    def domains(self) -> list[tuple[str, str]]:
        """Labels that groups watch, but for the host, with the values there are to choose between."""
        found: dict[str, set[str]] = {}
        for group in self._groups:
            if group.key != HOSTNAME:
                found.setdefault(group.key, set()).update(group.domains)
        return [(key, domain) for key in sorted(found) if len(found[key]) > 1 for domain in sorted(found[key])]

    def nodes_agreeing(self, requirements: Requirements) -> npt.NDArray[np.bool_]:
        """Which of them have the labels that are asked for: each requirement is put to each value once, not to each node."""
        found = self._agreeing.get(requirements)
        if found is None:
            found = np.ones(len(self._nodes), np.bool_)
            for key, wanted in requirements.items():
                labelled = np.zeros(len(self._nodes), np.bool_)
                for value, there in self.nodes_in(key).items():
                    labelled |= there
                    if not Requirement(key, (value,)).agrees(wanted):
                        found &= ~there
                if not wanted.allows_absence:
                    found &= labelled
            self._agreeing[requirements] = found
        return found

    def best_weights(self, openings: PlacementRules) -> dict[int, int]:
        """Class to the weight of the heaviest pool that would take its pods as they wish to be, if they came first."""
        if self._best_weights is None:
            self._best_weights = {}
            several = len({template.weight for template in self._templates}) > 1
            for each in self.classes if several else ():
                for step in each.steps:
                    sellers = [one.weight for one in self._templates if openings.could_take(one, each, step)]
                    if sellers and not step.impossible:
                        self._best_weights[each.number] = max(sellers)
                        break
        return self._best_weights

    def queue(self, by_priority: bool, in_turn: bool) -> list[int]:
        """The pods in the order in which they are tried: largest first, then those that volumes hold, then the oldest.

        Important ones come before all others if asked. Pods of one size and age come class by class, or each in its turn: by
        UID, or by name where they have none.
        """
        key = (by_priority, in_turn)
        if key not in self._queues:
            self._queues[key] = self._ordered(by_priority, in_turn)
        return self._queues[key]

    @cached_property
    def keys(self) -> list[str]:
        """What the pods are called."""
        return [meta.namespace + "/" + meta.name for meta in [pod.metadata for pod in self._problem.pods]]

    # -- worked out once ----------------------------------------------------------------------------------------------

    def _usable_templates(self) -> list[Template]:
        problem = self._problem
        ordered = sorted(problem.pools, key=lambda option: option.pool.name, reverse=True)
        ordered.sort(key=lambda option: -option.pool.spec.weight)
        templates = [
            Template(option, option.catalog.market.stock, problem.daemons, self.names, problem.vocabulary)
            for option in ordered
        ]
        return [template for template in templates if template.usable]

    def _not_for_us(self) -> dict[int, Refusal]:
        vocabulary = self._problem.vocabulary
        found = {
            each.number: refusal(each.pod.key, each.pod, each.volumes.problem, vocabulary) for each in self.classes
        }
        return {number: why for number, why in found.items() if why is not None}

    def _prepared(self) -> Groups:
        """Work out the steps of every class, and the groups that concern it."""
        problem = self._problem
        batch = (
            frozenset(pod.metadata.uid for pod in problem.pods if pod.metadata.uid) if problem.bound else frozenset()
        )
        groups = Groups(problem, batch, Domains(problem), self._seen, self._kept)
        wanted = [each for each in self.classes if each.number not in self.ignored]
        for each in wanted:
            prepare(each, groups, problem.vocabulary, problem.policy.preferences == "Respect", self.disliked)
        for each in wanted:
            each.counted = groups.counted(each.labels)
            each.kept_out = groups.kept_out(each.labels)
            for step in each.steps:
                step.requirements, step.strict = self.joined.the(step.requirements), self.joined.the(step.strict)
                narrowing = (*(group for group, _ in step.groups), *each.kept_out)
                step.final = all(group.key == HOSTNAME for group in narrowing)
        self._pin(wanted)
        AffinityDomainRanking(self._templates, self.kinds, self.joined, self._members).rank(wanted)
        return groups

    def _pin(self, wanted: list[PodClass]) -> None:
        """Pods that must keep apart settle for a domain each: one that may still be in any of several is in all of them."""
        members = Counter[Group]()
        for each in wanted:
            modest = each.most_modest
            for group, chosen in modest.groups if modest is not None else ():
                if chosen and group.kind == ANTI_AFFINITY and group.key != HOSTNAME:
                    members[group] += self._members[each.number]
        for group, count in members.items():
            group.pins = count > 1

    def _open_nodes(self) -> list[OpenNode]:
        problem = self._problem
        ordered = sorted(problem.nodes, key=lambda node: (not node.initialized, node.name))
        alike = (problem.daemons, self.names, problem.vocabulary)
        made = self._kept.state("nodes", alike, Kept).each(
            "nodes", ordered, lambda node: OpenNode(node, problem.daemons, self.names, problem.vocabulary)
        )
        return [node.at(number) for number, node in enumerate(made)]

    @cached_property
    def by_name(self) -> list[int]:
        """The pods each in its turn, by name whatever their UIDs are: as they would be if they were written in order."""
        return self._ordered(False, True, by_name=True)

    def _ordered(self, by_priority: bool, in_turn: bool, *, by_name: bool = False) -> list[int]:
        pods, numbers = self._problem.pods, self.numbers
        cpu, memory = self.names.index(CPU), self.names.index(MEMORY)
        sizes = [(-each.amounts[cpu], -each.amounts[memory], in_turn or not each.held) for each in self.classes]
        rank = {size: number for number, size in enumerate(sorted(set(sizes)))}
        ranks = [rank[size] for size in sizes]

        # What counts least is sorted by first: later sorts leave it as it is where they see no difference.
        named = [pod.metadata for pod in pods]
        uids = ["" if by_name else meta.uid for meta in named]
        turns = [uid or f"{natural(meta.name)}/{meta.namespace}" for uid, meta in zip(uids, named, strict=True)]
        order = sorted(range(len(pods)), key=turns.__getitem__)
        born = [meta.creation_timestamp or _LONG_AGO for meta in named]
        keys: list[Sequence[Any]] = [] if in_turn else [numbers]
        if any(each != born[0] for each in born):
            keys.append(born)
        keys.append([ranks[number] for number in numbers])
        if by_priority:
            keys.append([-(pod.spec.priority or 0) for pod in pods])
        for key in keys:
            order.sort(key=key.__getitem__)
        return order


def natural(name: str) -> str:
    """A name so that the tenth comes after the second."""
    return _NUMBERS.sub(lambda found: found[0].zfill(_DIGITS), name)


def _resource_names(pods: list[Pod], daemons: tuple[Pod, ...]) -> tuple[str, ...]:
    """Every resource that some pod asks for, in order of name."""
    names = {CPU, MEMORY, PODS}
    for pod in (*pods, *daemons):
        for containers in (pod.spec.containers, pod.spec.init_containers):
            for container in containers:
                names.update(container.resources.requests)
        names.update(pod.spec.overhead)
        names.update(pod.spec.resources.requests)
    return tuple(sorted(names))
