"""Why a pod found no place: for every pool the funnel of its types through the rules, who said no, and to what."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from joiner.bitset import NO_UNITS, UnitSet
from joiner.model import quantity, resources
from joiner.model.labels import HOSTNAME
from joiner.model.requirement import EXISTS, IN, SelectorRequirement
from joiner.model.resources import CPU, NODES
from joiner.model.taints import untolerated
from joiner.scheduling.nodes import openclaim
from joiner.scheduling.nodes.openclaim import Claim, Fitting
from joiner.scheduling.nodes.template import Template
from joiner.scheduling.plan import ITSELF, RefusalReason
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.problem import PoolOption
from joiner.scheduling.report.funnel import closing, in_words, sieves
from joiner.scheduling.report.suggestions import Spelling, toleration_meant
from joiner.scheduling.report.topologyrefusal import Obstacle, narrowed
from joiner.scheduling.report.words import taint_text
from joiner.scheduling.topology.group import AFFINITY, ANTI_AFFINITY, Group

if TYPE_CHECKING:
    from joiner.scheduling.engine.firstfit import FirstFit

EVERY_POOL: Final = "NodePools"
"""Who says no where no pool was asked."""
_LABELS: Final = frozenset({openclaim.REQUIREMENTS, openclaim.UNDEFINED, openclaim.OFFERINGS})


def explained(run: "FirstFit", pod_class: PodClass, spelling: Spelling) -> tuple[RefusalReason, ...]:
    """What every pool had against pods of a class, after they gave up all their preferences."""
    step = pod_class.most_modest
    if step is None:
        return (_self_contradiction(pod_class),)
    asked = {template.name for template in run.templates}
    closed = tuple(_closed(spelling, option) for option in run.problem.pools if option.pool.name not in asked)
    return (*(_Inquiry(run, template, pod_class, step, spelling).reason() for template in run.templates), *closed) or (
        RefusalReason(rule=openclaim.OFFERINGS, object=EVERY_POOL, message="there is none that buys nodes for pods"),
    )


def _self_contradiction(pod_class: PodClass) -> RefusalReason:
    return RefusalReason(
        rule=openclaim.REQUIREMENTS,
        object=ITSELF,
        message=f"it contradicts itself: {'; '.join(dict.fromkeys(step.impossible for step in pod_class.steps))}",
        hint="remove one of the two",
    )


def _closed(spelling: Spelling, option: PoolOption) -> RefusalReason:
    """What keeps a pool from buying anything for any pod."""
    stages = tuple(closing(option))
    hints = (spelling.of_pool(option, each) for each in option.pool.spec.template.spec.requirements)
    return RefusalReason(
        rule=openclaim.OFFERINGS,
        object=f"NodePool {option.pool.name}",
        message=f"nothing that its requirements allow can be bought ({in_words(stages)})"
        if option.catalog.types
        else "there are no types for it",
        hint=next(filter(None, hints), ""),
        funnel=stages,
    )


class _Inquiry:
    """One pool and one class of pods that it does not take."""

    def __init__(
        self, run: "FirstFit", template: Template, pod_class: PodClass, step: Step, spelling: Spelling
    ) -> None:
        self._run, self._template, self._each, self._step = run, template, pod_class, step
        self._spelling = spelling
        self._sieves = tuple(sieves(run, template, pod_class, step))
        self._rule, self._detail = self._verdict()

    def reason(self) -> RefusalReason:
        """What the pool has against the pods."""
        rule = self._rule
        how = {
            openclaim.TAINTS: self._taints,
            openclaim.REQUIREMENTS: self._labels,
            openclaim.RESOURCES: self._too_small,
            openclaim.TOPOLOGY: self._topology,
            openclaim.LIMITS: self._limits,
            openclaim.MIN_VALUES: self._few_values,
        }.get(rule, self._plain)
        reason = how(rule)
        alternatives = self._each.pod.spec.affinity.node_affinity.required
        count = len(alternatives.node_selector_terms) if alternatives is not None else 0
        which = "the last" if self._step is self._each.steps[-1] else "one"
        message = f"by {which} of its {count} node-affinity terms: {reason.message}" if count > 1 else reason.message
        stock = self._template.stock
        heeded = [sieve for sieve in self._sieves if sieve.rule != openclaim.LIMITS or rule == openclaim.LIMITS]
        return RefusalReason(
            rule=rule,
            object=f"NodePool {self._template.name}",
            message=message,
            wanted=reason.wanted,
            had=reason.had,
            hint=reason.hint,
            funnel=tuple(sieve.stage(stock) for sieve in heeded),
        )

    def _verdict(self) -> tuple[str, object]:
        """The rule that says no in the end. Limits are to blame only where the pool would take the pod without them."""
        run, template = self._run, self._template
        found = run.openings.fitting(Claim(len(run.claims), template), self._each, self._step, new=True)
        if isinstance(found, Fitting):
            return (openclaim.LIMITS, found.units) if template.left else (openclaim.RESOURCES, None)
        # Whatever leaves no type is seen as a label or as size in the end, though a volume, a port or topology asked for it.
        last = [sieve for sieve in self._sieves if sieve.rule != openclaim.LIMITS][-1]
        if found.rule in _LABELS and last.units:
            return openclaim.REQUIREMENTS, found.detail
        seen = found.rule in _LABELS or found.rule == openclaim.RESOURCES
        return (last.rule if seen else found.rule), found.detail

    # -- one rule each ------------------------------------------------------------------------------------------------

    def _taints(self, rule: str) -> RefusalReason:
        taints = untolerated(self._template.taints, self._step.tolerations)
        named = ", ".join(map(taint_text, taints))
        hint = toleration_meant(taints[0], self._each.pod.spec.tolerations)
        return _told(rule, f"the pod does not tolerate {named}", "no taint that it does not tolerate", named, hint)

    def _labels(self, rule: str) -> RefusalReason:
        pool, pod = self._template.requirements, self._step.requirements
        undefined = pool.undefined(pod, self._run.vocabulary.well_known | pod.invented())
        conflicts = pool.conflicts(pod)
        problems = [f"the pool does not define the label {key}" for key in undefined]
        problems += [f"{pod[key]} is not possible with {pool[key]}" for key in conflicts]
        last = self._sieves[-1].after
        culprits = [*undefined, *conflicts] or [key for key in pod if str(pod[key]) == last]
        wanted = ", ".join(str(pod[key]) for key in culprits)
        had = ", ".join(str(pool[key]) for key in culprits if key in pool)
        return _told(rule, "; ".join(problems) or self._funnel(), wanted, had, self._meant(culprits))

    def _meant(self, keys: list[str]) -> str:
        """What was probably meant by labels that no node has."""
        hints = []
        for key in keys:
            requirement = self._step.requirements[key]
            if not requirement.complement and requirement.values:
                wanted = SelectorRequirement(key=key, operator=IN, values=tuple(sorted(requirement.values)))
                hints.append(self._spelling.hint(wanted))
        return "; ".join(hint for hint in hints if hint)

    def _too_small(self, rule: str) -> RefusalReason:
        units = next((sieve.units for sieve in reversed(self._sieves) if sieve.units), NO_UNITS)
        unknown = [
            name for name in self._asked() if not self._template.stock.capacity(name).largest(self._template.units)
        ]
        if unknown:
            hints = "; ".join(map(self._spelling.resource, unknown))
            asked = {name: amount for name, amount in self._asked().items() if name in unknown}
            return _told(rule, self._funnel(), _amounts(asked), _amounts(dict.fromkeys(asked, 0)), hints)
        miss = self._nearest_miss(units)
        if miss is None:
            return _told(rule, self._funnel())
        return _told(rule, self._funnel(), _amounts(miss.wanted), _amounts(miss.had), miss.said())

    def _asked(self) -> dict[str, int]:
        """What the pod asks for, daemons aside."""
        named = zip(self._run.names, self._each.amounts, strict=True)
        return {name: amount for name, amount in named if amount and name != resources.PODS}

    def _topology(self, rule: str) -> RefusalReason:
        for place in self._step.places:
            there = self._template.requirements & self._step.requirements & place
            found = narrowed(self._each, self._step, there)
            if isinstance(found, Obstacle):
                message = f"{found.says} leaves no place: it needs {found.wanted}, and there are {found.had}"
                return _told(rule, message, found.wanted, found.had, self._topology_hint(found.group))
        return _told(rule, self._funnel())

    def _topology_hint(self, group: Group) -> str:
        """What was probably meant by a label that no node has, or by a selector that chooses no pod."""
        mistyped = self._spelling.hint(SelectorRequirement(key=group.key, operator=EXISTS))
        if mistyped or group.kind != AFFINITY:
            return mistyped or self._unsettled(group)
        if group.key == HOSTNAME and group.occupied:
            return "where they are there is no room for it"
        return self._spelling.company(group.selector, group.namespaces)

    def _unsettled(self, group: Group) -> str:
        """Said where pods are kept away from domains in which no pod of the group may be in the end."""
        if group.kind != ANTI_AFFINITY or group.key == HOSTNAME:
            return ""
        for claim in self._run.claims:
            domain = claim.requirements.at(group.key)
            if (domain.complement or len(domain.values) > 1) and any(
                group in (*each.counted, *step.marks) for each, _, step in claim.parties
            ):
                return f"a new node that may still be launched in several of them counts in each ({group.key})"
        return ""

    def _limits(self, rule: str) -> RefusalReason:
        template = self._template
        units = UnitSet(self._detail) if isinstance(self._detail, int) else template.usable
        least = {
            name: quantity.MILLI if name == NODES else template.stock.capacity(name).smallest(units)
            for name in sorted(template.left)
        }
        binding = [name for name in least if least[name] > template.left[name]] or list(least)
        left = {name: max(0, template.left[name]) for name in binding}
        parts = [
            f"{name}: {resources.plain(name, left[name])} left"
            + (f", the smallest type that would do has {resources.plain(name, least[name])}" if name != NODES else "")
            for name in binding
        ]
        message = f"the limits of the pool leave no room ({'; '.join(parts)})"
        return _told(rule, message, _amounts({name: least[name] for name in binding}), _amounts(left))

    def _few_values(self, rule: str) -> RefusalReason:
        """minValues: which keys have too few values, and what took the others away."""
        template = self._template
        short: dict[str, int] = self._detail if isinstance(self._detail, dict) else {}
        least = {key: template.min_values[key] for key in short}
        parts = [f"{key} needs {least[key]} and has {left}" for key, left in short.items()]
        takers = [taker for key in short if (taker := self._taker(key, least[key]))]
        return _told(
            rule,
            f"minValues cannot be kept: {', '.join(parts)}",
            ", ".join(f"{key} {count}" for key, count in least.items()),
            ", ".join(f"{key} {count}" for key, count in short.items()),
            "; ".join(takers),
        )

    def _taker(self, key: str, least: int) -> str:
        """The rule after which a label has too few values."""
        flexible = self._run.flexible[self._template.name]
        for sieve in self._sieves:
            left = flexible.counts({key: least}, sieve.units, sieve.requirements)[key]
            if left < least:
                return f"{left} of {key} are left after {sieve.after}"
        return ""

    def _plain(self, rule: str) -> RefusalReason:
        if rule == openclaim.RESERVATIONS and self._detail == openclaim.SOLD_OUT:
            return _told(rule, "every machine that the provider has left is planned for, and nothing else is allowed")
        if rule == openclaim.RESERVATIONS and not self._run.policy.reserved_capacity:
            message = "nothing but reservations is allowed, and the feature gate ReservedCapacity is off"
            return _told(rule, message)
        if rule == openclaim.RESERVATIONS:
            return _told(rule, "every reservation that the pod could use is taken, and nothing else is allowed")
        if rule == openclaim.PORTS:
            return _told(rule, "its host ports are taken by daemons on every type")
        if not self._template.stock.units:
            return _told(rule, "the pool has no types")
        return self._labels(rule) if rule in _LABELS else _told(rule, self._funnel(), self._sieves[-1].after)

    # -- the funnel ---------------------------------------------------------------------------------------------------

    def _funnel(self) -> str:
        """How many types were left after each rule."""
        return in_words([sieve.stage(self._template.stock) for sieve in self._sieves])

    def _needed(self) -> Iterator[tuple[UnitSet, dict[str, int]]]:
        """Units on which the same daemons run, and what these and the pod ask for together."""
        for group in self._template.daemons:
            sums = map(int.__add__, self._each.amounts, group.amounts)
            yield group.units, {name: amount for name, amount in zip(self._run.names, sums, strict=True) if amount}

    def _nearest_miss(self, units: UnitSet) -> "_Miss | None":
        """The unit that comes nearest to having enough of everything at once."""
        stock, misses = self._template.stock, []
        for having, needed in self._needed():
            mine = units & having
            for number, unit in enumerate(stock.units):
                if mine >> number & 1:
                    has = stock.allocatable[number]
                    lacking = [name for name, amount in needed.items() if amount > has.get(name, 0)]
                    if lacking:
                        misses.append(_miss(unit.name, needed, has, lacking))
        return min(misses, default=None, key=lambda miss: (miss.ratio, len(miss.wanted), miss.instance_type))


_MILLION: Final = 1_000_000 * 1_000
"""No pod asks for so many thousandths of a core on purpose."""


class _Miss(NamedTuple):
    """A type that is not large enough, and by how much."""

    instance_type: str
    wanted: resources.Resources
    had: resources.Resources
    ratio: float

    def said(self) -> str:
        wanted, had = _amounts(self.wanted), _amounts(self.had)
        slip = "; m stands for thousandths of a cpu, M for millions" if self.wanted.get(CPU, 0) >= _MILLION else ""
        return f"the nearest is {self.instance_type}: pod and daemons ask for {wanted}, and there is {had}{slip}"


def _miss(name: str, needed: resources.Resources, has: resources.Resources, lacking: list[str]) -> _Miss:
    wanted = {each: needed[each] for each in sorted(lacking)}
    had = {each: has.get(each, 0) for each in wanted}
    return _Miss(name, wanted, had, max(wanted[each] / max(had[each], 1) for each in wanted))


def _amounts(amounts: resources.Resources) -> str:
    return ", ".join(f"{name} {resources.plain(name, amount)}" for name, amount in amounts.items())


def _told(rule: str, message: str, wanted: str = "", had: str = "", hint: str = "") -> RefusalReason:
    return RefusalReason(rule=rule, object="", message=message, wanted=wanted, had=had, hint=hint)
