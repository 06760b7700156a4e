"""Claims while they are open: what a node to be bought may still be, and the pods that are counted on it."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from joiner.bitset import NO_UNITS, ReservationSet, UnitSet
from joiner.model import labels
from joiner.model.labels import HOSTNAME
from joiner.model.pod import ContainerPort
from joiner.requirements import Requirement, Requirements
from joiner.scheduling.nodes.template import Template
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.problem import Amounts
from joiner.scheduling.topology.group import AFFINITY, ANTI_AFFINITY, Group

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
"""Not a rule for pods: a claim that was opened at a price takes no pod that would make it dearer."""

NOWHERE: Final = "no reservation there"
"""What a claim that counts on a reservation says if there is none at all where topology wants the pod to be."""

SOLD_OUT: Final = "no machine left"
"""What is said where a provider has so many machines and no more, and plans have them all."""

UNDEFINED: Final = "undefined labels"

PASSING: Final = frozenset({TOPOLOGY, UNDEFINED})
"""Rules whose refusal may turn into a yes later in the run; every other one is final, as claims only ever narrow, and none
lets go of a reservation."""


class Refused(NamedTuple):
    """A claim does not take a pod: which rule said so."""

    rule: str
    detail: object = None


class Fitting(NamedTuple):
    """A claim takes a pod: what it would be afterwards."""

    requirements: Requirements
    units: UnitSet
    amounts: Amounts
    reserved: ReservationSet
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
        self.first_units = NO_UNITS
        """What it could be when it was opened: the largest of these counts against the pool's limits."""
        self.cost_max: float | None = None
        """What it may cost at most, if it was opened at a price."""
        self.waiting: dict[Group, int] = {}
        """Pods that others want to be near to, and that will count once the claim's domain is known.

        Spread does not wait: a pod that is counted without being bound by a constraint may as well come last.
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
    def needs_choice(self) -> bool:
        """Whether minValues ask for more than one value of some label."""
        return any(count > 1 for count in self.min_values.values())

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
        """What was joined with what, by identity: both are kept with the answer, so that no others get theirs."""
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


_RESERVED: Final = Requirements([Requirement(labels.CAPACITY_TYPE, (labels.RESERVED,))])


@lru_cache(maxsize=4096)
def _out_of_a_reservation(requirements: Requirements) -> Requirements:
    return requirements & _RESERVED


def record(claim: Claim, pod_class: PodClass, step: Step, reserved: bool, count: int = 1) -> None:
    """Tell every group that cares that pods of the class are on the claim, which may count on a reservation."""
    node = _out_of_a_reservation(claim.requirements) if reserved else claim.requirements
    for group in pod_class.counted:
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
