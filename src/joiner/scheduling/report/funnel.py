"""The types of a pool through one rule after the other: how many each of them leaves for a pod."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from joiner.bitset import NO_UNITS, UnitSet
from joiner.catalog.units import Stock
from joiner.model import resources
from joiner.model.resources import PODS
from joiner.model.taints import untolerated
from joiner.requirements import DOES_NOT_EXIST, Requirements
from joiner.scheduling.nodes.openclaim import (
    LIMITS,
    OFFERINGS,
    PORTS,
    REQUIREMENTS,
    RESOURCES,
    TAINTS,
    TOPOLOGY,
    VOLUMES,
)
from joiner.scheduling.nodes.template import Template
from joiner.scheduling.plan import FunnelStage
from joiner.scheduling.pods.podclass import PodClass, Step
from joiner.scheduling.problem import Amounts, PoolOption
from joiner.scheduling.report.topologyrefusal import Obstacle, narrowed, said
from joiner.scheduling.report.words import taint_text

if TYPE_CHECKING:
    from joiner.scheduling.engine.firstfit import FirstFit

_SHOWN_PLACES: Final = 4


class Sieve(NamedTuple):
    """One rule, with the units it leaves and what a node must be by then."""

    rule: str
    after: str
    units: UnitSet
    requirements: Requirements

    def stage(self, stock: Stock) -> FunnelStage:
        """The sieve as it is told. A type that is several kinds of node counts once."""
        return FunnelStage(rule=self.rule, after=self.after, left=types(stock, self.units))


def types(stock: Stock, units: UnitSet) -> int:
    """How many types some units are."""
    if not stock.has_twins:
        return units.bit_count()
    return len({unit.name for number, unit in enumerate(stock.units) if units >> number & 1})


def in_words(stages: Sequence[FunnelStage]) -> str:
    """How many types were left after each rule."""
    first = stages[0].left
    return ", ".join(
        [f"{first} type{'' if first == 1 else 's'}", *(f"{stage.left} after {stage.after}" for stage in stages[1:])]
    )


def closing(option: PoolOption) -> Iterator[FunnelStage]:
    """The types that are for sale through the requirements of a pool, one after the other, down to none."""
    stock = option.catalog.market.stock
    wanted, left = Requirements(), types(stock, _sold(stock, Requirements()))
    yield FunnelStage(rule=OFFERINGS, after="what is for sale", left=left)
    for requirement in option.catalog.requirements.values():
        wanted = wanted & Requirements([requirement])
        fewer = types(stock, _sold(stock, wanted))
        if fewer < left:
            left = fewer
            yield FunnelStage(rule=REQUIREMENTS, after=str(requirement), left=left)


def sieves(run: "FirstFit", template: Template, pod_class: PodClass, step: Step) -> Iterator[Sieve]:
    """The pool's types through every rule that a new node must pass, until none is left."""
    units, wanted = template.usable, template.requirements
    yield Sieve(OFFERINGS, "what the pool can buy", units, wanted)
    if taints := untolerated(template.taints, step.tolerations):
        yield Sieve(TAINTS, f"taint {', '.join(map(taint_text, taints))}", NO_UNITS, wanted)
        return
    for sieve in (
        *_labels(run, template, step),
        *_places(run, template, pod_class, step),
        *_sizes(run, template, pod_class, step),
    ):
        left = units & sieve.units
        if left != units or sieve.rule == REQUIREMENTS:
            yield sieve._replace(units=left)
        units = left
        if not units:
            return


def _sold(stock: Stock, wanted: Requirements) -> UnitSet:
    found = stock.for_sale(wanted)
    for _, machines in stock.reserved(wanted):
        found |= machines
    return found & stock.described(wanted)


def _labels(run: "FirstFit", template: Template, step: Step) -> Iterator[Sieve]:
    wanted = template.requirements
    for requirement in step.requirements.values():
        only = run.joined.only(requirement)
        joined = run.joined.of(wanted, only)
        if joined is None:
            yield Sieve(REQUIREMENTS, str(requirement), NO_UNITS, wanted)
            return
        wanted = joined
        yield Sieve(REQUIREMENTS, str(requirement), _sold(template.stock, wanted), wanted)


def _places(run: "FirstFit", template: Template, pod_class: PodClass, step: Step) -> Iterator[Sieve]:
    """Where volumes can be reached, and where topology lets the pod go."""
    stock = template.stock
    wanted = run.joined.of(template.requirements, step.requirements)
    if wanted is None:
        return
    reached = topology = NO_UNITS
    told = ""
    for place in step.places:
        there = run.joined.of(wanted, place)
        if there is None:
            continue
        reached |= _sold(stock, there)
        left = narrowed(pod_class, step, there)
        if isinstance(left, Obstacle):
            told = told or left.says
        else:
            topology |= _sold(stock, left)
            told = _choice(step, pod_class, left)
    if pod_class.volumes.places != (Requirements(),):
        apart = [key for place in step.places for key, asked in place.items() if asked.operator == DOES_NOT_EXIST]
        places = " or ".join(str(place) or "anywhere" for place in step.places[:_SHOWN_PLACES])
        where = f"which differ in {apart[0]}" if apart else f"which can be reached with {places}"
        yield Sieve(VOLUMES, f"its volumes, {where}", reached, wanted)
    if step.groups or pod_class.kept_out:
        yield Sieve(TOPOLOGY, told or "spread and affinity", topology, wanted)


def _choice(step: Step, pod_class: PodClass, left: Requirements) -> str:
    """The constraints, and where they would have the pod: it did not ask for that place itself."""
    groups = [*((group, False) for group, _ in step.groups), *((group, True) for group in pod_class.kept_out)]
    who = said(*groups[0]) if len(groups) == 1 else "spread and affinity"
    where = ", ".join(str(left[key]) for key in dict.fromkeys(group.key for group, _ in groups) if key in left)
    return f"{who} (now: {where})" if where else who


def _sizes(run: "FirstFit", template: Template, pod_class: PodClass, step: Step) -> Iterator[Sieve]:
    wanted = template.requirements
    for number, name in enumerate(run.names):
        if pod_class.amounts[number] and name != PODS:
            alone = tuple(amount if at == number else 0 for at, amount in enumerate(pod_class.amounts))
            amount = resources.plain(name, pod_class.amounts[number])
            yield Sieve(RESOURCES, f"{name} {amount}", large_enough(template, alone), wanted)
    free = NO_UNITS
    for group in template.daemons:
        if not any(port.conflicts(other) for port in pod_class.ports for other in group.ports):
            free |= group.units
    yield Sieve(PORTS, "host ports that no daemon has", free, wanted)
    yield Sieve(RESOURCES, "all requests together", large_enough(template, pod_class.amounts), wanted)
    units = template.stock.everyone
    for driver, volumes in pod_class.volumes.attachments.items():
        for number, unit in enumerate(template.stock.units):
            if unit.volume_limits.get(driver, len(volumes)) < len(volumes):
                units &= ~UnitSet(1 << number)
    yield Sieve(VOLUMES, "volumes that can be attached", units, wanted)
    if template.left:
        yield Sieve(LIMITS, "what the limits of the pool leave", template.within_limits(), wanted)


def large_enough(template: Template, amounts: Amounts) -> UnitSet:
    """Units that hold these amounts beside their daemons."""
    found = NO_UNITS
    for group in template.daemons:
        # A resource that is not asked for is no obstacle, even where daemons ask for more of it than there is.
        needed = tuple(own + (more if own else 0) for own, more in zip(amounts, group.amounts, strict=True))
        found |= group.units & template.fits.large_enough(needed)
    return found
