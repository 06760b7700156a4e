"""The placement rules on claims: whether one more pod can go to a node that is to be bought, and what the node may be then."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from joiner.bitset import NO_RESERVATIONS, NO_UNITS, ReservationSet, UnitSet
from joiner.catalog.units import Terms
from joiner.model import labels
from joiner.model.labels import HOSTNAME
from joiner.model.taints import untolerated
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.nodes.launchterms import LaunchTermsTable
from joiner.scheduling.nodes.minvalues import Flexibility
from joiner.scheduling.nodes.openclaim import (
    MIN_VALUES,
    NOWHERE,
    OFFERINGS,
    PORTS,
    PRICE,
    REQUIREMENTS,
    RESERVATIONS,
    RESOURCES,
    SOLD_OUT,
    TAINTS,
    TOPOLOGY,
    UNDEFINED,
    VOLUMES,
    Claim,
    Fitting,
    Refused,
    RequirementCache,
)
from joiner.scheduling.nodes.reservations import Reservations
from joiner.scheduling.nodes.template import Template
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.problem import Amounts
from joiner.scheduling.topology.group import AFFINITY, SPREAD, Group

_DOMAINS_TRIED: Final = 32
"""How many choices of domains are tried for a claim before a pod is refused."""

_VOLUMES_ELSEWHERE: Final = Refused(VOLUMES)
_ANY_HOST: Final = Requirement(HOSTNAME, complement=True)
_NOT_RESERVED: Final = Requirements([Requirement(labels.CAPACITY_TYPE, (labels.RESERVED,), complement=True)])


class PlacementRules:
    """Answers whether a claim, open or new, takes a pod."""

    def __init__(
        self,
        joined: RequirementCache,
        reservations: Reservations,
        flexible: Mapping[str, Flexibility],
        launch_terms: Mapping[str, LaunchTermsTable],
        *,
        best_effort: bool,
    ) -> None:
        self._joined = joined
        self._reservations = reservations
        self._flexible = flexible
        self._launch_terms = launch_terms
        self._best_effort = best_effort
        self.market_first: frozenset[int] = frozenset()
        """The classes that leave reservations to others as long as there is something to buy for them."""
        self._tolerated: dict[tuple[int, int], bool] = {}
        self._usable: dict[tuple[int, UnitSet], ReservationSet] = {}
        self._machines: dict[tuple[int, ReservationSet], UnitSet] = {}

    def tolerates(self, template: Template, step: Step) -> bool:
        """Whether the pod puts up with the taints of the pool."""
        if not template.taints:
            return True
        key = (id(template), id(step))
        if key not in self._tolerated:
            self._tolerated[key] = not untolerated(template.taints, step.tolerations)
        return self._tolerated[key]

    def fitting(self, claim: Claim, pod_class: PodClass, step: Step, *, new: bool, count: int = 1) -> Fitting | Refused:
        """What the claim would be with so many more pods of the class, or which rule forbids it.

        More than one at a time can only be asked for pods that bring no ports or volumes, and for no more than any group allows.
        """
        if not self.tolerates(claim.template, step):
            return Refused(TAINTS)
        joined = self._joined.of(claim.requirements, step.requirements)
        if joined is None:
            # A label that nothing defines yet may come with another pod; a contradiction stays one.
            contradicts = claim.requirements.conflicts(step.requirements)
            return Refused(REQUIREMENTS if contradicts else UNDEFINED)
        if pod_class.ports and any(port.conflicts(other) for port in pod_class.ports for other in claim.ports):
            return Refused(PORTS)
        more = pod_class.amounts if count == 1 else tuple([amount * count for amount in pod_class.amounts])
        amounts = tuple(map(int.__add__, claim.amounts, more)) if claim.amounts else more
        refused = _VOLUMES_ELSEWHERE
        for place in step.places:
            placed = self._joined.of(joined, place)
            if placed is None:
                continue
            meets = step.groups or pod_class.kept_out
            narrowed = self._narrowed(claim, pod_class, step, placed) if meets else placed
            if narrowed is None:
                refused = Refused(TOPOLOGY)
                continue
            found = self._bought(claim, pod_class, narrowed, amounts, new=new)
            if isinstance(found, Fitting):
                return found
            if not step.final and claim.cost_max is None:
                found = self._elsewhere(claim, pod_class, step, placed, narrowed, amounts, found, new=new)
            if isinstance(found, Fitting):
                return found
            refused = found
        return refused

    def _elsewhere(
        self,
        claim: Claim,
        pod_class: PodClass,
        step: Step,
        placed: Requirements,
        narrowed: Requirements,
        amounts: Amounts,
        refused: Refused,
        *,
        new: bool,
    ) -> Fitting | Refused:
        """The claim in the next best domain, where it cannot be bought in the one that topology would rather have.

        A claim that is open already is no reason to leave the emptiest domain, though another may be as empty; nor is a spread
        that the pod need not keep. And a claim that is open is none to begin a group somewhere else, unless nothing of what it
        can be is where the group would rather begin.
        """
        if not new and not claim.units & claim.template.large_enough(amounts, pod_class.ports):
            return refused  # it has no room anywhere
        movable = (AFFINITY, SPREAD) if new or refused.rule in (REQUIREMENTS, RESERVATIONS) else (SPREAD,)
        most = _crowd(step, narrowed, soft=new)
        for other in self._others(claim, pod_class, step, placed, narrowed, movable):
            if _crowd(step, other, soft=new) <= most:
                found = self._bought(claim, pod_class, other, amounts, new=new)
                if isinstance(found, Fitting):
                    return found
        return refused

    def cost(self, claim: Claim, found: Fitting) -> float:
        """What a claim would cost at best; nothing where it counts on what is paid for."""
        counted = bool(found.reserved) and bool(claim.template.stock.counted(found.requirements))
        best = claim.template.stock.prices(found.requirements, reserved=counted).first(found.units)
        return 0.0 if (found.reserved and not counted) or best is None else best.offering.cost

    def together(
        self, claim: Claim, pod_class: PodClass, requirements: Requirements, amounts: Amounts
    ) -> Fitting | Refused:
        """What an open claim would be under narrower requirements with pods that bring nothing but amounts, one of them this."""
        return self._bought(claim, pod_class, requirements, amounts, new=False)

    def can_cost(self, claim: Claim, requirements: Requirements, most: float) -> bool:
        """Whether an open claim could cost no more than so much under narrower requirements, if nothing more is put on it."""
        stock = claim.template.stock
        return bool(claim.units & (stock.prices(requirements).at_most(most) | stock.terms(requirements).machines))

    def _others(
        self,
        claim: Claim,
        pod_class: PodClass,
        step: Step,
        placed: Requirements,
        narrowed: Requirements,
        movable: tuple[str, ...],
    ) -> Iterator[Requirements]:
        """What topology leaves if it may not be where it would rather be, domain after domain."""
        tried = [(placed, narrowed)]
        groups = (*pod_class.kept_out, *(group for group, _ in step.groups))
        for before, there in tried:
            for group in groups:
                picked = there.at(group.key)
                moves = group.pins or group.pins_all or group.kind in movable
                if not moves or picked.complement or before.at(group.key) == picked:
                    continue
                rest = self._joined.but(before, picked)
                other = self._narrowed(claim, pod_class, step, rest)
                if other is not None and len(tried) <= _DOMAINS_TRIED:
                    yield other
                    tried.append((rest, other))

    def _narrowed(
        self, claim: Claim, pod_class: PodClass, step: Step, requirements: Requirements
    ) -> Requirements | None:
        """The requirements that topology leaves, group after group: who rules domains out comes before who picks one."""
        groups = (
            (*((group, False) for group in pod_class.kept_out), *step.groups) if pod_class.kept_out else step.groups
        )
        for group, chosen in groups:
            narrower = self._by_group(claim, step, group, chosen, requirements)
            if narrower is None:
                return None
            requirements = narrower
        for group, chosen in groups:
            if group.pins or group.pins_all:
                node = requirements.at(group.key)
                settled = group.settled(node, chosen)
                if settled is not node:
                    requirements = self._joined.of(requirements, self._joined.only(settled)) or requirements
        return requirements

    def _by_group(
        self, claim: Claim, step: Step, group: Group, chosen: bool, requirements: Requirements
    ) -> Requirements | None:
        if group.key == HOSTNAME and group.kind != AFFINITY:
            return None if group.is_full(claim.host, chosen) else requirements
        if group.key == HOSTNAME:
            return requirements if group.narrowed(_ANY_HOST, claim.at_host, chosen) is not None else None
        node = requirements.at(group.key)
        answer = group.narrowed(step.strict.at(group.key), node, chosen)
        if answer is None:
            return None
        if answer == node:
            return requirements
        return self._joined.of(requirements, self._joined.only(answer))

    def _bought(
        self, claim: Claim, pod_class: PodClass, requirements: Requirements, amounts: Amounts, *, new: bool
    ) -> Fitting | Refused:
        template = claim.template
        stock = template.stock
        terms = stock.terms(requirements)
        described = claim.units & terms.described
        if not described:
            return Refused(REQUIREMENTS)
        units = described & template.large_enough(amounts, pod_class.ports)
        if not units:
            return Refused(RESOURCES)
        if template.has_exotic:
            units = stock.preferred(units, stock.available(requirements))
        # What an open claim may be has passed its price already, and the price is never lowered.
        if claim.cost_max is not None and (new or requirements is not claim.requirements):
            units &= stock.prices(requirements).at_most(claim.cost_max) | terms.machines
            if not units:
                return Refused(PRICE)
        if pod_class.volumes.attachments:
            units = self._attachable(claim, pod_class, units)
            if not units:
                return Refused(VOLUMES)
        modest = pod_class.number in self.market_first and self._reservations.holds(claim.number) is None
        found = self._reserved(claim, units, terms, requirements, amounts, new=new, modest=modest)
        if modest and isinstance(found, Refused):  # a reservation is left to others, but not for a lighter pool
            found = self._reserved(claim, units, terms, requirements, amounts, new=new, modest=False)
        return found

    def has_room(self, claim: Claim, pod_class: PodClass, step: Step) -> bool:
        """Whether a claim would take one more pod like this one if topology had no say."""
        joined = self._joined.of(claim.requirements, step.requirements)
        amounts = tuple(map(int.__add__, claim.amounts, pod_class.amounts))
        return joined is not None and isinstance(self._bought(claim, pod_class, joined, amounts, new=False), Fitting)

    def could_take(self, template: Template, pod_class: PodClass, step: Step) -> bool:
        """Whether a claim of the pool could take the pod if it came first and topology had no say."""
        if not self.tolerates(template, step):
            return False
        joined = self._joined.of(template.requirements, step.requirements)
        if joined is None:
            return not template.requirements.conflicts(step.requirements)  # the label may come with another pod
        units = template.usable & template.within_limits() & template.large_enough(pod_class.amounts, pod_class.ports)
        return any(self._could_be_at(template, joined, place, units) for place in step.places)

    def _could_be_at(self, template: Template, joined: Requirements, place: Requirements, units: UnitSet) -> bool:
        placed = self._joined.of(joined, place)
        if placed is None:
            return not joined.conflicts(place)
        terms = template.stock.terms(placed)
        return bool(units & terms.described & template.stock.available(placed))

    def _attachable(self, claim: Claim, pod_class: PodClass, units: UnitSet) -> UnitSet:
        more = pod_class.volumes.attachments
        together = {driver: claim.attached.get(driver, frozenset()) | volumes for driver, volumes in more.items()}
        return self._attachable_to(claim.template, together, units)

    def _attachable_to(self, template: Template, attached: Mapping[str, frozenset[str]], units: UnitSet) -> UnitSet:
        """The units that can attach so many volumes of each driver."""
        for driver, volumes in attached.items():
            count = len(volumes)
            for number, unit in enumerate(template.stock.units):
                if units >> number & 1 and unit.volume_limits.get(driver, count) < count:
                    units &= ~UnitSet(1 << number)
        return units

    def _reserved(
        self,
        claim: Claim,
        units: UnitSet,
        terms: Terms,
        requirements: Requirements,
        amounts: Amounts,
        *,
        new: bool,
        modest: bool,
    ) -> Fitting | Refused:
        for_sale = units & terms.for_sale
        machines = units & terms.machines
        usable = self._having(terms, machines) if machines and not (modest and for_sale) else NO_RESERVATIONS
        if usable and self._reservations.can_hold(claim.number, usable):
            for_sale |= machines
        elif terms.counted and (sold := self._counted(claim, units, terms, requirements, amounts, for_sale, new=new)):
            return sold
        elif (usable and not for_sale) or (not new and self._reservations.holds(claim.number) is not None):
            return Refused(RESERVATIONS, NOWHERE if not terms.reserved else None)
        else:
            usable = NO_RESERVATIONS
            if machines and for_sale and claim.cost_max is not None:
                for_sale &= claim.template.stock.prices(requirements).at_most(claim.cost_max)
                if not for_sale:
                    return Refused(PRICE)
        if not for_sale:
            return Refused(OFFERINGS)
        found = Fitting(requirements, for_sale, amounts, usable, claim.min_values)
        return self._flexible_enough(claim, for_sale, found, new) if claim.min_values else found

    def _counted(
        self,
        claim: Claim,
        units: UnitSet,
        terms: Terms,
        requirements: Requirements,
        amounts: Amounts,
        for_sale: UnitSet,
        *,
        new: bool,
    ) -> Fitting | Refused | None:
        """The claim as one of the machines that the provider has so many of; None where it is bought or reserved otherwise.

        It is told which of them, unless minValues ask for a choice: then it is one of these only where nothing else will do.
        """
        held, stock = self._reservations.holds(claim.number), claim.template.stock
        if not new and (held is None or held not in stock.counted_names):
            return None
        if claim.needs_choice:
            if (held is None and for_sale and not self.short(claim, for_sale, requirements)) or stock.has_twins:
                return None
            units &= ~terms.for_sale  # types that can be had otherwise might be launched otherwise
            for_sale = NO_UNITS
        having = [(name, there & units) for name, there in terms.counted if there & units]
        usable = self._reservations.those(name for name, _ in having)
        found = NO_UNITS
        for _, there in having:
            found |= there
        if usable and self._reservations.can_hold(claim.number, usable):
            other = stock.prices(requirements).first(for_sale)
            best = stock.prices(requirements & _NOT_RESERVED, reserved=True).first(found)
            if held is not None or other is None or (best is not None and best.offering.cost < other.offering.cost):
                made = Fitting(requirements, found, amounts, usable, claim.min_values)
                return self._flexible_enough(claim, found, made, new) if claim.needs_choice else made
        if held is not None or not for_sale:
            return Refused(RESERVATIONS, SOLD_OUT) if usable else None
        return None

    def _having(self, terms: Terms, machines: UnitSet) -> ReservationSet:
        """The reservations that can be used and have some of the machines."""
        key = (id(terms.reserved), machines)
        found = self._usable.get(key)
        if found is None:
            having = (name for name, units in terms.reserved if units & machines)
            found = self._usable[key] = self._reservations.those(having)
        return found

    def reservable(self, claim: Claim) -> ReservationSet:
        """The reservations that a claim could have one of as it stands, though it was opened without."""
        terms = claim.template.stock.terms(claim.requirements)
        usable = self._having(terms, claim.units & terms.machines)
        return usable if usable and self._reservations.can_hold(claim.number, usable) else NO_RESERVATIONS

    def to_be_had(self, claim: Claim) -> UnitSet:
        """The units that an open claim may still end up as; one that counts on a reservation never goes back to the market."""
        if self._reservations.holds(claim.number) is None:
            return claim.units
        terms = claim.template.stock.terms(claim.requirements)
        usable = terms.counted or terms.reserved
        within_reach = self._reservations.within_reach(claim.number)
        key = (id(usable), within_reach)
        found = self._machines.get(key)
        if found is None:
            found = NO_UNITS
            for name, units in usable:
                if self._reservations.those((name,)) & within_reach:
                    found |= units
            self._machines[key] = found
        return found & claim.units

    def _flexible_enough(self, claim: Claim, units: UnitSet, found: Fitting, new: bool) -> Fitting | Refused:
        short = self.short(claim, units, found.requirements, self._reservations.names(found.reserved))
        if not short:
            return found
        if self._best_effort and new:
            return found._replace(min_values={**claim.min_values, **short})
        return Refused(MIN_VALUES, short)

    def short(
        self, claim: Claim, units: UnitSet, requirements: Requirements, reservable: Collection[str] = ()
    ) -> Mapping[str, int]:
        """The labels of which a claim would leave fewer values than its minValues ask for, with the number that is left.

        What counts is what can be launched once the claim is written; with a reservation, everything it could be without.
        """
        template = claim.template
        if reservable or not template.stock.varies:
            return self._flexible[template.name].missing(claim.min_values, units, requirements, reservable)
        terms = self._launch_terms[template.name].of(requirements, units, claim.min_values)
        return terms.short if terms is not None else dict.fromkeys(claim.min_values, 0)

    def widen(self, claim: Claim) -> None:
        """Let the claim be every unit that would do as it stands, also those that are dearer than it was opened at."""
        template, stock = claim.template, claim.template.stock
        terms = stock.terms(claim.requirements)
        large = template.large_enough(claim.amounts, claim.ports)
        units = template.usable & terms.described & terms.for_sale & large
        if template.has_exotic:
            units = stock.preferred(units | claim.units, terms.for_sale) & units
        for name in template.left:
            counted = stock.capacity(name).largest(claim.first_units)
            units &= ~stock.capacity(name).more_than(counted)
        claim.units |= self._attachable_to(template, claim.attached, units)
        if claim.min_values != template.min_values:
            claim.min_values = template.min_values
            claim.min_values = {**template.min_values, **self.short(claim, claim.units, claim.requirements)}


def _crowd(step: Step, requirements: Requirements, *, soft: bool = False) -> int:
    """How many pods there are already where a pod is to be spread to, or would rather be."""
    return sum(
        group.domains.get(requirements.at(group.key).any() or "", 0)
        for group, chosen in step.groups
        if chosen and group.kind == SPREAD and group.key != HOSTNAME and (group in step.soft or not soft)
    )
