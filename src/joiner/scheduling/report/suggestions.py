"""Suggestions for labels and resources that no node has: what was probably meant."""

from collections.abc import Iterable
from typing import Final

from joiner.admission.problem import nearest
from joiner.catalog.market import InstanceType
from joiner.model.labels import HOSTNAME
from joiner.model.requirement import DOES_NOT_EXIST, IN, SelectorRequirement
from joiner.model.selector import LabelSelector
from joiner.model.taints import Taint, Toleration
from joiner.requirements import Requirements, similar_key
from joiner.scheduling.problem import PoolOption, Problem
from joiner.scheduling.report.words import taint_text

_SHOWN_VALUES: Final = 6
_MISTAKES_MAX: Final = 100


class Spelling:
    """Every label and value that some node has or could have; looked up label by label, as questions come."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._values: dict[str, frozenset[str]] = {}
        self._pods: dict[tuple[str, str], set[str]] | None = None
        """Labels of pods, with their values, to the namespaces in which some pod has them."""
        self._resources: frozenset[str] | None = None
        self._hints: dict[tuple[str, str, tuple[str, ...]], str] = {}

    def hint(self, wanted: SelectorRequirement) -> str:
        """What was probably meant; empty when the label and some value of it are known.

        Only so many different mistakes are thought about: it takes long to compare every word with every other.
        """
        question = (wanted.key, wanted.operator, wanted.values)
        found = self._hints.get(question)
        if found is None:
            found = self._hint(wanted) if len(self._hints) < _MISTAKES_MAX else ""
            self._hints[question] = found
        return found

    def _hint(self, wanted: SelectorRequirement) -> str:
        if wanted.operator == DOES_NOT_EXIST:
            return ""
        return self._among(wanted, self.values(self._problem.vocabulary.normal_key(wanted.key)))

    def of_pool(self, option: PoolOption, wanted: SelectorRequirement) -> str:
        """What was probably meant by a pool that asks for what none of its types has."""
        key = self._problem.vocabulary.normal_key(wanted.key)
        if key in option.pool.spec.template.metadata.labels or key not in self._problem.vocabulary.well_known:
            return ""
        return self._among(wanted, frozenset(value for each in option.catalog.types for value in _had(each, key)))

    def _among(self, wanted: SelectorRequirement, known: frozenset[str]) -> str:
        key = self._problem.vocabulary.normal_key(wanted.key)
        if not known and key != HOSTNAME:
            near = similar_key(key, (name for name in self._keys() if name != key))
            return f"no node has a label {wanted.key}" + (f"; did you mean {near}?" if near else "")
        meant = [self._problem.vocabulary.normal_value(key, value) for value in wanted.values]
        if wanted.operator != IN or not meant or not known.isdisjoint(meant):
            return ""
        near = nearest(meant[0], known)
        offered = f"; there is {', '.join(sorted(known))}" if 0 < len(known) <= _SHOWN_VALUES else ""
        return f"{wanted.key} is nowhere {meant[0]}" + (f"; did you mean {near}?" if near else offered)

    def company(self, selector: LabelSelector | None, namespaces: frozenset[str]) -> str:
        """What was probably meant by a selector that chooses no pod at all; empty when it chooses some."""
        if selector is None or not selector.match_labels:
            return ""
        if self._pods is None:
            self._pods = {}
            for pod in (*self._problem.pods, *self._problem.bound):
                for label in pod.metadata.labels.items():
                    self._pods.setdefault(label, set()).add(pod.metadata.namespace)
        for key, value in sorted(selector.match_labels.items()):
            if (key, value) not in self._pods:
                near = nearest(value, (known for name, known in self._pods if name == key))
                return f"no pod has the label {key}={value}" + (f"; did you mean {key}={near}?" if near else "")
        there = set.intersection(*(self._pods[label] for label in selector.match_labels.items()))
        if there and there.isdisjoint(namespaces):
            looked, there_are = (", ".join(sorted(names)[:_SHOWN_VALUES]) or "none" for names in (namespaces, there))
            return f"such pods are in namespace {there_are}, and the term looks in {looked}"
        return ""

    def resource(self, name: str) -> str:
        """What was probably meant by a resource that no type of a pool has."""
        if self.has(name):
            return f"no type of the pool has {name}"
        # Devices of another vendor are never what was meant.
        domain = name.rpartition("/")[0]
        near = nearest(
            name, (each for each in self._known_resources() if nearest(domain, [each.rpartition("/")[0]], 0.8))
        )
        return f"no type has {name}" + (f"; did you mean {near}?" if near else "")

    def has(self, name: str) -> bool:
        """Whether some type or node has anything of a resource."""
        return name in self._known_resources()

    def _known_resources(self) -> frozenset[str]:
        if self._resources is None:
            types = [each for option in self._problem.pools for each in option.catalog.types]
            more = (offering.capacity for each in types for offering in each.offerings)
            there = (node.allocatable for node in self._problem.nodes)
            amounts = (*(each.capacity for each in types), *more, *there)
            self._resources = frozenset(name for each in amounts for name, amount in each.items() if amount)
        return self._resources

    def values(self, key: str) -> frozenset[str]:
        """The values that a label has on nodes that are there, or could have on new ones."""
        found = self._values.get(key)
        if found is None:
            there = (node.labels[key] for node in self._problem.nodes if key in node.labels)
            named = (node.name for node in self._problem.nodes if key == HOSTNAME)
            values = {*named, *there, *(value for option in self._problem.pools for value in _offered(option, key))}
            found = self._values[key] = frozenset(values)
        return found

    def _keys(self) -> Iterable[str]:
        own = {key for option in self._problem.pools for key in option.catalog.requirements}
        there = {key for node in self._problem.nodes for key in node.labels}
        return (*sorted(self._problem.vocabulary.well_known), *sorted({HOSTNAME} | own | there))


def _offered(option: PoolOption, key: str) -> Iterable[str]:
    yield from _listed(option.catalog.requirements, key)
    for each in option.catalog.types:
        yield from _had(each, key)


def _had(instance_type: InstanceType, key: str) -> Iterable[str]:
    yield from _listed(instance_type.requirements, key)
    for offering in instance_type.offerings:
        yield from _listed(offering.requirements, key)


def toleration_meant(taint: Taint, tolerations: Iterable[Toleration]) -> str:
    """Which toleration was probably meant for a taint that it does not match."""
    by_key = {each.key: each for each in tolerations if each.key}
    near = taint.key if taint.key in by_key else nearest(taint.key, by_key)
    if near is None:
        return ""
    meant = by_key[near]
    written = f"{meant.key}{'=' + meant.value if meant.value else ''}:{meant.effect or 'any effect'}"
    return f"it tolerates {written}; was {taint_text(taint)} meant?"


def _listed(requirements: Requirements, key: str) -> Iterable[str]:
    found = requirements.get(key)
    return found.values if found is not None and not found.complement else ()
