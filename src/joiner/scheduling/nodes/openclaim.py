"""Claims while they are open: what a node to be bought may still be, and whether one more pod can go there."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from joiner.catalog.units import Terms
from joiner.model import labels
from joiner.model.labels import HOSTNAME
from joiner.model.pod import ContainerPort
from joiner.model.taints import untolerated
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.nodes.minvalues import Flexibility
from joiner.scheduling.nodes.reservations import Reservations
from joiner.scheduling.nodes.template import Template
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.problem import Amounts
from joiner.scheduling.topology.group import AFFINITY, ANTI_AFFINITY, SPREAD, Group

TAINTS: Final = "taints"
REQUIREMENTS: Final = "requirements"
VOLUMES: Final = "volumes"
TOPOLOGY: Final = "topology"
PORTS: Final = "ports"
RESOURCES: Final = "resources"
OFFERINGS: Final = "offerings"
RESERVATIONS: Final = "reservations"
MIN_VALUES: Final = "min-values"
LIMITS: Final = "limits"
PRICE: Final = "price"
"""Not a rule for pods: a claim that was opened at a price takes nobody who would make it dearer."""

NOWHERE: Final = "no reservation there"
"""What a claim that counts on a reservation says if there is none at all where topology wants the pod to be."""

UNDEFINED: Final = "undefined labels"

PASSING: Final = frozenset({TOPOLOGY, UNDEFINED})
"""Rules whose refusal may turn into a yes later in the run; every other one is final, as claims only ever narrow, and none
lets go of a reservation."""


_DOMAINS_TRIED: Final = 32
"""How many choices of domains are tried for a claim before a pod is refused."""


class Refused(NamedTuple):
    """A claim does not take a pod: which rule said so."""

    rule: str
    detail: object = None


_VOLUMES_ELSEWHERE: Final = Refused(VOLUMES)


class Fitting(NamedTuple):
    """A claim takes a pod: what it would be afterwards."""

    requirements: Requirements
    units: int
    amounts: Amounts
    reserved: int
    """The reservations it counts on: one of them."""
    min_values: Mapping[str, int]


PlacedPods = tuple[PodClass, list[int], Step]
"""Pods that came at once: their class, their positions, and what they asked for when they came."""


class Claim:
    """A node to be bought, open for more pods."""

    def __init__(self, number: int, template: Template) -> None:
        self.number = number
        self.template = template
        self.host = f"new node {number + 1}"
        self.requirements = template.requirements
        self.units = template.usable
        self.amounts: Amounts = ()
        self.parties: list[PlacedPods] = []
        """Who is on it."""
        self.size = 0
        """How many pods that are."""
        self.ports: list[ContainerPort] = []
        self.attached: dict[str, frozenset[str]] = {}
        self.min_values: Mapping[str, int] = template.min_values
        self.first_units = 0
        """What it could be when it was opened: the largest of these counts against the pool's limits."""
        self.cost_max: float | None = None
        """What it may cost at most, if somebody set a price when it was opened."""
        self.waiting: dict[Group, int] = {}
        """Pods that others want to be near to, and that will count once the claim's domain is known.

        Spread does not wait: whoever is counted without being bound by a constraint may as well come last.
        """

    def likeness(self) -> tuple[object, ...]:
        """Equal for claims that may be the same and hold as much, at the same price: they differ in their host alone."""
        return (id(self.template), id(self.requirements), self.units, self.amounts, self.cost_max, id(self.min_values))

    def take(self, parties: Sequence[PlacedPods]) -> None:
        """More pods."""
        self.parties += parties
        for _, positions, _ in parties:
            self.size += len(positions)

    @property
    def positions(self) -> list[int]:
        """The positions of the pods on it."""
        return [position for _, positions, _ in self.parties for position in positions]

    @property
    def at_host(self) -> Requirement:
        """The claim's host as a requirement."""
        return Requirement(HOSTNAME, (self.host,))


class RequirementCache:
    """Intersections of requirements, each pair joined once. Equal results are one object: tables find them at a glance."""

    def __init__(self, well_known: frozenset[str]) -> None:
        self._well_known = well_known
        self._known: dict[tuple[int, int], tuple[Requirements | None, Requirements, Requirements]] = {}
        """Who was joined with whom, by identity: both are kept with the answer, so that nobody else gets theirs."""
        self._less: dict[tuple[int, int], tuple[Requirements, Requirements, Requirement]] = {}
        """The same for what is left without some values."""
        self._same: dict[Requirements, Requirements] = {}
        self._only: dict[Requirement, Requirements] = {}

    def the(self, requirements: Requirements) -> Requirements:
        """The one object that stands for all equal ones."""
        return self._same.setdefault(requirements, requirements)

    def only(self, requirement: Requirement) -> Requirements:
        """A set with nothing but one requirement."""
        found = self._only.get(requirement)
        if found is None:
            found = self._only[requirement] = self.the(Requirements([requirement]))
        return found

    def of(self, own: Requirements, wanted: Requirements) -> Requirements | None:
        """What both allow; nothing when they cannot agree."""
        known = self._known.get((id(own), id(wanted)))
        if known is None:
            joined = self._join(own, wanted)
            self._known[id(own), id(wanted)] = (joined, own, wanted)
            return joined
        return known[0]

    def but(self, own: Requirements, picked: Requirement) -> Requirements:
        """What is left without the values of a label that were picked."""
        known = self._less.get((id(own), id(picked)))
        if known is None:
            rest = self.the(own & Requirements([Requirement(picked.key, picked.values, complement=True)]))
            known = self._less[id(own), id(picked)] = (rest, own, picked)
        return known[0]

    def _join(self, own: Requirements, wanted: Requirements) -> Requirements | None:
        if not wanted:
            return own
        return self.the(own & wanted) if own.compatible(wanted, self._well_known | wanted.invented()) else None


class PlacementRules:
    """Answers whether a claim, open or new, takes a pod."""

    def __init__(
        self,
        joined: RequirementCache,
        reservations: Reservations,
        flexible: Mapping[str, Flexibility],
        *,
        best_effort: bool,
        by_price: bool,
    ) -> None:
        self._joined = joined
        self._reservations = reservations
        self._flexible = flexible
        self._best_effort = best_effort
        self._by_price = by_price
        self.market_first: frozenset[int] = frozenset()
        """The classes that leave reservations to others as long as there is something to buy for them."""
        self._tolerated: dict[tuple[int, int], bool] = {}
        self._usable: dict[tuple[int, int], int] = {}
        self._machines: dict[tuple[int, int], int] = {}

    def tolerates(self, template: Template, step: Step) -> bool:
        """Whether the pod puts up with the taints of the pool."""
        if not template.taints:
            return True
        key = (id(template), id(step))
        if key not in self._tolerated:
            self._tolerated[key] = not untolerated(template.taints, step.tolerations)
        return self._tolerated[key]

    def fitting(self, claim: Claim, each: PodClass, step: Step, *, new: bool, count: int = 1) -> Fitting | Refused:
        """What the claim would be with so many more pods of the class, or which rule forbids it.

        More than one at a time can only be asked for pods that bring no ports or volumes, and for no more than any group allows.
        """
        if not self.tolerates(claim.template, step):
            return Refused(TAINTS)
        joined = self._joined.of(claim.requirements, step.requirements)
        if joined is None:
            # A label that nobody defines yet may come with another pod; a contradiction stays one.
            contradicts = claim.requirements.conflicts(step.requirements)
            return Refused(REQUIREMENTS if contradicts else UNDEFINED)
        if each.ports and any(port.conflicts(other) for port in each.ports for other in claim.ports):
            return Refused(PORTS)
        more = each.amounts if count == 1 else tuple([amount * count for amount in each.amounts])
        amounts = tuple(map(int.__add__, claim.amounts, more)) if claim.amounts else more
        refused = _VOLUMES_ELSEWHERE
        for place in step.places:
            placed = self._joined.of(joined, place)
            if placed is None:
                continue
            meets = step.groups or each.kept_out
            narrowed = self._narrowed(claim, each, step, placed) if meets else placed
            if narrowed is None:
                refused = Refused(TOPOLOGY)
                continue
            found = self._bought(claim, each, narrowed, amounts, new=new)
            if isinstance(found, Fitting):
                if new and self._by_price and not step.final:
                    return self._cheapest(claim, each, step, placed, found)
                return found
            if not step.final and claim.cost_max is None:
                found = self._elsewhere(claim, each, step, placed, narrowed, amounts, found, new=new)
            if isinstance(found, Fitting):
                return found
            refused = found
        return refused

    def _elsewhere(
        self,
        claim: Claim,
        each: PodClass,
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
        if not new and not claim.units & claim.template.large_enough(amounts, each.ports):
            return refused  # it has no room anywhere
        movable = (AFFINITY, SPREAD) if new or refused.rule in (REQUIREMENTS, RESERVATIONS) else (SPREAD,)
        most = _crowd(step, narrowed, soft=new)
        for other in self._others(claim, each, step, placed, narrowed, movable):
            if _crowd(step, other, soft=new) <= most:
                found = self._bought(claim, each, other, amounts, new=new)
                if isinstance(found, Fitting):
                    return found
        return refused

    def _cheapest(self, claim: Claim, each: PodClass, step: Step, placed: Requirements, found: Fitting) -> Fitting:
        """A new claim in the domain where it costs least, of those that topology likes as much as the first."""
        best, cost, crowd = found, self.cost(claim, found), _crowd(step, found.requirements)
        for other in self._others(claim, each, step, placed, found.requirements, (AFFINITY, SPREAD)):
            there = self._bought(claim, each, other, found.amounts, new=True)
            if isinstance(there, Fitting) and _crowd(step, other) <= crowd and self.cost(claim, there) < cost:
                best, cost = there, self.cost(claim, there)
        return best

    def cost(self, claim: Claim, found: Fitting) -> float:
        """What a claim would cost at best; nothing where it counts on what is paid for."""
        best = claim.template.stock.prices(found.requirements).first(found.units)
        return 0.0 if found.reserved or best is None else best.offering.cost

    def together(self, claim: Claim, each: PodClass, requirements: Requirements, amounts: Amounts) -> Fitting | Refused:
        """What an open claim would be under narrower requirements with pods that bring nothing but amounts, one of them this."""
        return self._bought(claim, each, requirements, amounts, new=False)

    def can_cost(self, claim: Claim, requirements: Requirements, most: float) -> bool:
        """Whether an open claim could cost no more than so much under narrower requirements, if nothing more is put on it."""
        stock = claim.template.stock
        return bool(claim.units & (stock.prices(requirements).at_most(most) | stock.terms(requirements).machines))

    def _others(
        self,
        claim: Claim,
        each: PodClass,
        step: Step,
        placed: Requirements,
        narrowed: Requirements,
        movable: tuple[str, ...],
    ) -> Iterator[Requirements]:
        """What topology leaves if it may not be where it would rather be, domain after domain."""
        tried = [(placed, narrowed)]
        groups = (*each.kept_out, *(group for group, _ in step.groups))
        for before, there in tried:
            for group in groups:
                picked = there.at(group.key)
                moves = group.pins or group.pins_all or group.kind in movable
                if not moves or picked.complement or before.at(group.key) == picked:
                    continue
                rest = self._joined.but(before, picked)
                other = self._narrowed(claim, each, step, rest)
                if other is not None and len(tried) <= _DOMAINS_TRIED:
                    yield other
                    tried.append((rest, other))

    def _narrowed(self, claim: Claim, each: PodClass, step: Step, requirements: Requirements) -> Requirements | None:
        """The requirements that topology leaves, group after group: who rules domains out comes before who picks one."""
        groups = (*((group, False) for group in each.kept_out), *step.groups) if each.kept_out else step.groups
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
        self, claim: Claim, each: PodClass, requirements: Requirements, amounts: Amounts, *, new: bool
    ) -> Fitting | Refused:
        template = claim.template
        stock = template.stock
        terms = stock.terms(requirements)
        described = claim.units & terms.described
        if not described:
            return Refused(REQUIREMENTS)
        units = described & template.large_enough(amounts, each.ports)
        if not units:
            return Refused(RESOURCES)
        # What an open claim may be has passed its price already, and the price is never lowered.
        if claim.cost_max is not None and (new or requirements is not claim.requirements):
            units &= stock.prices(requirements).at_most(claim.cost_max) | terms.machines
            if not units:
                return Refused(PRICE)
        if each.volumes.attachments:
            units = self._attachable(claim, each, units)
            if not units:
                return Refused(VOLUMES)
        modest = each.number in self.market_first and self._reservations.holds(claim.number) is None
        return self._reserved(claim, units, terms, requirements, amounts, new=new, modest=modest)

    def has_room(self, claim: Claim, each: PodClass, step: Step) -> bool:
        """Whether a claim would take one more pod like this one if topology had no say."""
        joined = self._joined.of(claim.requirements, step.requirements)
        amounts = tuple(map(int.__add__, claim.amounts, each.amounts))
        return joined is not None and isinstance(self._bought(claim, each, joined, amounts, new=False), Fitting)

    def could_take(self, template: Template, each: PodClass, step: Step) -> bool:
        """Whether a claim of the pool could take the pod if it came first and topology had no say."""
        if not self.tolerates(template, step):
            return False
        joined = self._joined.of(template.requirements, step.requirements)
        if joined is None:
            return not template.requirements.conflicts(step.requirements)  # the label may come with another pod
        units = template.usable & template.within_limits() & template.large_enough(each.amounts, each.ports)
        return any(self._could_be_at(template, joined, place, units) for place in step.places)

    def _could_be_at(self, template: Template, joined: Requirements, place: Requirements, units: int) -> bool:
        placed = self._joined.of(joined, place)
        if placed is None:
            return not joined.conflicts(place)
        terms = template.stock.terms(placed)
        return bool(units & terms.described & (terms.for_sale | terms.machines))

    def _attachable(self, claim: Claim, each: PodClass, units: int) -> int:
        more = each.volumes.attachments
        together = {driver: claim.attached.get(driver, frozenset()) | volumes for driver, volumes in more.items()}
        return self._attachable_to(claim.template, together, units)

    def _attachable_to(self, template: Template, attached: Mapping[str, frozenset[str]], units: int) -> int:
        """The units that can attach so many volumes of each driver."""
        for driver, volumes in attached.items():
            count = len(volumes)
            for number, unit in enumerate(template.stock.units):
                if units >> number & 1 and unit.volume_limits.get(driver, count) < count:
                    units &= ~(1 << number)
        return units

    def _reserved(
        self,
        claim: Claim,
        units: int,
        terms: Terms,
        requirements: Requirements,
        amounts: Amounts,
        *,
        new: bool,
        modest: bool,
    ) -> Fitting | Refused:
        for_sale = units & terms.for_sale
        machines = units & terms.machines
        usable = self._having(terms, machines) if machines and not (modest and for_sale) else 0
        if usable and self._reservations.can_hold(claim.number, usable):
            for_sale |= machines
        elif (usable and not for_sale) or (not new and self._reservations.holds(claim.number) is not None):
            return Refused(RESERVATIONS, NOWHERE if not terms.reserved else None)
        else:
            usable = 0
            if machines and for_sale and claim.cost_max is not None:
                for_sale &= claim.template.stock.prices(requirements).at_most(claim.cost_max)
                if not for_sale:
                    return Refused(PRICE)
        if not for_sale:
            return Refused(OFFERINGS)
        found = Fitting(requirements, for_sale, amounts, usable, claim.min_values)
        return self._flexible_enough(claim, for_sale, found, new) if claim.min_values else found

    def _having(self, terms: Terms, machines: int) -> int:
        """The reservations that can be used and have some of the machines."""
        key = (id(terms.reserved), machines)
        found = self._usable.get(key)
        if found is None:
            having = (name for name, units in terms.reserved if units & machines)
            found = self._usable[key] = self._reservations.those(having)
        return found

    def reservable(self, claim: Claim) -> int:
        """The reservations that a claim could have one of as it stands, though it was opened without."""
        terms = claim.template.stock.terms(claim.requirements)
        usable = self._having(terms, claim.units & terms.machines)
        return usable if usable and self._reservations.can_hold(claim.number, usable) else 0

    def to_be_had(self, claim: Claim) -> int:
        """The units that an open claim may still end up as; one that counts on a reservation never goes back to the market."""
        if self._reservations.holds(claim.number) is None:
            return claim.units
        usable = claim.template.stock.terms(claim.requirements).reserved
        within_reach = self._reservations.within_reach(claim.number)
        key = (id(usable), within_reach)
        found = self._machines.get(key)
        if found is None:
            found = 0
            for name, units in usable:
                if self._reservations.those((name,)) & within_reach:
                    found |= units
            self._machines[key] = found
        return found & claim.units

    def _flexible_enough(self, claim: Claim, units: int, found: Fitting, new: bool) -> Fitting | Refused:
        reserved = self._reservations.names(found.reserved)
        short = self._flexible[claim.template.name].missing(claim.min_values, units, found.requirements, reserved)
        if not short:
            return found
        if self._best_effort and new:
            return found._replace(min_values={**claim.min_values, **short})
        return Refused(MIN_VALUES, short)

    def widen(self, claim: Claim) -> None:
        """Let the claim be every unit that would do as it stands, also those that are dearer than it was opened at."""
        template, stock = claim.template, claim.template.stock
        terms = stock.terms(claim.requirements)
        large = template.large_enough(claim.amounts, claim.ports)
        units = template.usable & terms.described & terms.for_sale & large
        for name in template.left:
            counted = stock.capacity(name).largest(claim.first_units)
            units &= ~stock.capacity(name).more_than(counted)
        claim.units |= self._attachable_to(template, claim.attached, units)
        if claim.min_values != template.min_values:
            flexible = self._flexible[template.name]
            short = flexible.missing(template.min_values, claim.units, claim.requirements)
            claim.min_values = {**template.min_values, **short}


def _crowd(step: Step, requirements: Requirements, *, soft: bool = False) -> int:
    """How many pods there are already where a pod is to be spread to, or would rather be."""
    return sum(
        group.domains.get(requirements.at(group.key).any() or "", 0)
        for group, chosen in step.groups
        if chosen and group.kind == SPREAD and group.key != HOSTNAME and (group in step.soft or not soft)
    )


_ANY_HOST: Final = Requirement(HOSTNAME, complement=True)


_RESERVED: Final = Requirements([Requirement(labels.CAPACITY_TYPE, (labels.RESERVED,))])


@lru_cache(maxsize=4096)
def _out_of_a_reservation(requirements: Requirements) -> Requirements:
    return requirements & _RESERVED


def record(claim: Claim, each: PodClass, step: Step, reserved: bool, count: int = 1) -> None:
    """Tell every group that cares that pods of the class are on the claim, which may count on a reservation."""
    node = _out_of_a_reservation(claim.requirements) if reserved else claim.requirements
    for group in each.counted:
        if not group.node_filter.matches(node, claim.template.taints):
            continue
        if group.key == HOSTNAME:
            group.record_host(claim.number, claim.host, count)
            continue
        domain = claim.requirements.at(group.key)
        if group.kind == ANTI_AFFINITY:
            _everywhere(group, domain, count)
        elif not domain.complement and len(domain.values) == 1:
            group.record(min(domain.values), count)
        elif group.kind == AFFINITY:
            claim.waiting[group] = claim.waiting.get(group, 0) + count
    for group in step.marks:
        if group.key == HOSTNAME:
            group.record_host(claim.number, claim.host, count)
        else:
            _everywhere(group, claim.requirements.at(group.key), count)


def _everywhere(group: Group, domain: Requirement, count: int) -> None:
    """As long as a pod may be in any of several domains, it is in all of them."""
    values = (
        sorted(domain.values) if not domain.complement else [name for name in sorted(group.domains) if domain.has(name)]
    )
    for value in values:
        group.record(value, count)


def settle_waiting(claim: Claim) -> None:
    """Count the pods that waited for the claim's domain to be known, where it now is."""
    for group in list(claim.waiting):
        domain = claim.requirements.at(group.key)
        if not domain.complement and len(domain.values) == 1:
            group.record(min(domain.values), claim.waiting.pop(group))
