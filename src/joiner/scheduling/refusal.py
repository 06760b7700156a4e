"""Why a pod found no place: for every pool the funnel of its types through the rules, and who said no."""

from typing import TYPE_CHECKING

from joiner.model.taints import untolerated
from joiner.requirements import Requirements
from joiner.scheduling import claims
from joiner.scheduling.claims import Claim, Refused
from joiner.scheduling.classes import PodClass, Step
from joiner.scheduling.plan import Reason, Refusal
from joiner.scheduling.template import Template

if TYPE_CHECKING:
    from joiner.scheduling.run import Run


def explained(run: "Run", each: PodClass, key: str) -> Refusal:
    """What every pool had against the pod, after it gave up all its preferences."""
    step = each.steps[-1]
    reasons = [_reason(run, template, each, step) for template in run.templates]
    if not run.templates:
        reasons.append(
            Reason(rule=claims.OFFERINGS, object="NodePools", message="no pool has a type that can be bought")
        )
    return Refusal(pod=key, reasons=tuple(reasons))


def _reason(run: "Run", template: Template, each: PodClass, step: Step) -> Reason:
    claim = Claim(len(run.claims), template)
    found = run.opened(claim, each, step)
    rule = found.rule if isinstance(found, Refused) else claims.RESOURCES
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
        left = ", ".join(f"{name}" for name in sorted(template.left))
        return f"the limits of the pool ({left}) leave room for none of its types"
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


def _funnel(run: "Run", template: Template, each: PodClass, step: Step) -> str:
    """How many types were left after each rule."""
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
    return ", ".join(counts)


def _shown(requirements: Requirements) -> str:
    return str(requirements) or "the pod"
