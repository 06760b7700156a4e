"""Why a pod found no place: for every pool the funnel of its types through the rules, and who said no."""

from typing import TYPE_CHECKING

from joiner.model import quantity, resources
from joiner.model.taints import untolerated
from joiner.requirements import Requirements
from joiner.scheduling import claims
from joiner.scheduling.claims import Claim, Fitting, Refused
from joiner.scheduling.classes import PodClass, Step
from joiner.scheduling.plan import Reason
from joiner.scheduling.template import Template

if TYPE_CHECKING:
    from joiner.scheduling.run import Run


def explained(run: "Run", each: PodClass) -> tuple[Reason, ...]:
    """What every pool had against pods of a class, after they gave up all their preferences."""
    step = each.steps[-1]
    if not run.templates:
        return (Reason(rule=claims.OFFERINGS, object="NodePools", message="no pool has a type that can be bought"),)
    return tuple(_reason(run, template, each, step) for template in run.templates)


def _reason(run: "Run", template: Template, each: PodClass, step: Step) -> Reason:
    claim = Claim(len(run.claims), template)
    found = run.opened(claim, each, step)
    rule = found.rule if isinstance(found, Refused) else claims.RESOURCES
    if template.left and rule != claims.LIMITS:
        unlimited = run.openings.fitting(Claim(len(run.claims), template), each, step, new=True)
        if isinstance(unlimited, Fitting):
            return Reason(
                rule=claims.LIMITS, object=f"NodePool {template.name}", message=_over(template, unlimited.units)
            )
    return Reason(
        rule=rule, object=f"NodePool {template.name}", message=_message(run, template, each, step, rule, found)
    )


def _message(run: "Run", template: Template, each: PodClass, step: Step, rule: str, found: object) -> str:
    stock = template.stock
    if rule == claims.TAINTS:
        keeping = untolerated(template.taints, step.tolerations)
        named = ", ".join(f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}" for taint in keeping)
        return f"the pod does not tolerate {named}"
    if rule == claims.LIMITS:
        return _over(template, template.usable)
    if rule == claims.REQUIREMENTS:
        problems = template.requirements.problems(step.requirements, run.vocabulary.well_known)
        return "; ".join(problems) or _funnel(run, template, each, step)
    if rule == claims.MIN_VALUES and isinstance(found, Refused) and isinstance(found.detail, dict):
        short = ", ".join(
            f"{key} needs {template.min_values[key]} and has {left}" for key, left in found.detail.items()
        )
        return f"minValues cannot be kept: {short}"
    if rule == claims.TOPOLOGY:
        return "no domain is left that spread, affinity and anti-affinity allow"
    if rule == claims.RESERVATIONS:
        return "every reservation that the pod could use is taken, and nothing else is allowed"
    if rule == claims.PORTS:
        return "its host ports are taken by daemons on every type"
    if not stock.units:
        return "the pool has no types"
    return _funnel(run, template, each, step)


def _over(template: Template, units: int) -> str:
    """What the limits of a pool leave, and what the smallest of some types would take."""
    parts: list[str] = []
    for name, left in sorted(template.left.items()):
        takes = quantity.MILLI if name == resources.NODES else template.stock.capacity(name).smallest(units)
        parts.append(
            f"{name}: {resources.text(name, max(0, left))} left, the smallest type that would do has"
            f" {resources.text(name, takes)}"
        )
    return f"the limits of the pool leave no room ({'; '.join(parts)})"


def _funnel(run: "Run", template: Template, each: PodClass, step: Step) -> str:
    """How many types were left after each rule, and what the nearest of the last ones lacks."""
    stock = template.stock
    wanted = template.requirements & step.requirements
    described = template.usable & stock.described(wanted)
    for_sale = described & stock.for_sale(wanted)
    large = 0
    for group in template.daemons:
        large |= group.units & template.fits.large_enough(tuple(map(int.__add__, each.amounts, group.amounts)))
    counts = (
        f"{template.usable.bit_count()} types of the pool",
        f"{described.bit_count()} match {_shown(step.requirements)}",
        f"{for_sale.bit_count()} can be bought there",
        f"{(for_sale & large).bit_count()} are large enough",
    )
    missing = _nearest_miss(run, template, each, for_sale) if for_sale and not for_sale & large else ""
    return ", ".join(counts) + missing


def _nearest_miss(run: "Run", template: Template, each: PodClass, units: int) -> str:
    """The type that comes nearest to holding the pod, and what it lacks."""
    best: tuple[float, str, str] | None = None
    for group in template.daemons:
        wanted = dict(zip(run.names, map(int.__add__, each.amounts, group.amounts), strict=True))
        for number, unit in enumerate(template.stock.units):
            if not (units & group.units) >> number & 1:
                continue
            has = template.stock.allocatable[number]
            lacking = {name: amount for name, amount in wanted.items() if amount > has.get(name, 0)}
            worst = max((amount / max(has.get(name, 0), 1) for name, amount in lacking.items()), default=0.0)
            words = ", ".join(
                f"{name} {resources.text(name, amount)} of {resources.text(name, has.get(name, 0))}"
                for name, amount in sorted(lacking.items())
            )
            best = min(best or (worst, unit.name, words), (worst, unit.name, words))
    if best is None or not best[2]:
        return ""
    return f"; the nearest is {best[1]}, where pod and daemons ask for {best[2]}"


def _shown(requirements: Requirements) -> str:
    return str(requirements) or "the pod"
