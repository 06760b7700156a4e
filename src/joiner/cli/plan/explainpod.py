"""A `PodReport` as text: where a pod goes and why that node is bought, or what keeps it out."""

from collections.abc import Iterator, Sequence
from typing import Final

from joiner.catalog.explain import bill_text, place, price_text
from joiner.catalog.market import Option
from joiner.cli import output
from joiner.cli.plan.tables import BY_NAME, cost_text, counted, money
from joiner.model import resources
from joiner.offline.problem import short
from joiner.offline.report.plan import PlanReport
from joiner.offline.report.pod import PodReport
from joiner.scheduling.plan import PlannedClaim, Refusal, RefusalReason
from joiner.scheduling.whatif.alternatives import PurchaseReasons, Rival
from joiner.scheduling.whatif.blockers import LiftedVerdict

_SHOWN_OPTIONS: Final = 10
_SHOWN_NODES: Final = 10
_SHOWN_FUNNELS: Final = 3
_SHOWN_HEEDED: Final = 3


def draw(view: PlanReport, story: PodReport) -> None:
    """Tell of a single pod."""
    for line in _told(view, story):
        output.echo(line)


def _told(view: PlanReport, story: PodReport) -> Iterator[str | output.Cell]:
    own, workload = f"Pod {short(story.pod)}", view.workload(story.pod)
    subject = own if workload == own else f"{own} ({workload})"
    if story.node:
        yield output.Cell(f"{subject} goes to node {story.node}, which is there already", "bold")
    elif story.claim is not None and story.purchase is not None:
        yield from _bought(view, subject, story.claim, story.purchase)
    elif story.refusal is not None:
        yield output.Cell(f"{subject} {'was never tried' if story.refusal.ignored else 'finds no place'}", "bold")
        yield from _table(("WHO", "RULE", "WHY"), [(r.object, r.rule, str(r)) for r in story.refusal.reasons])
        yield from _funnels(story.refusal)
    else:
        yield output.Cell(f"{subject} was not tried: the effort was spent before its turn", "bold")
    if story.given_up:
        yield f"it gave up: {'; '.join(story.given_up)}"
    yield from _nodes(story.nodes)
    if story.verdict is not None:
        yield from _remedy(story.verdict)
    if story.costs:
        yield output.Cell("\nWhat its wishes cost", "bold")
        rows = [(each.constraint.says, cost_text(each.hourly)) for each in story.costs]
        yield from _table(("WISH", "$/h"), rows)
    yield f"\nthe plan is by {view.plan.planner}; the search for a better one ended: {view.plan.ended}"


def _table(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[str]:
    columns = tuple(output.TableColumn(name, right=name in ("$/h", "TYPES", "NODES", "WEIGHT")) for name in names)
    return output.plain(output.Table(columns, tuple(rows)))


def _funnels(refusal: Refusal) -> Iterator[str | output.Cell]:
    """The types of each pool through the rules; pools of which all is said already are left out."""
    long = [reason for reason in refusal.reasons if len(reason.funnel) > 1]
    for reason in long[:_SHOWN_FUNNELS]:
        yield output.Cell(f"\nTypes of {reason.object} that are left", "bold")
        yield from _table(("TYPES", "AFTER"), [(str(stage.left), stage.after) for stage in reason.funnel])
    if len(long) > _SHOWN_FUNNELS:
        yield f"and {counted(len(long) - _SHOWN_FUNNELS, 'pool')} more; -o json tells of all"


def _nodes(reasons: Sequence[RefusalReason]) -> Iterator[str | output.Cell]:
    """Nodes with the same objection are one row."""
    if not reasons:
        return
    groups: dict[tuple[str, str], list[str]] = {}
    for reason in reasons:
        groups.setdefault((reason.rule, reason.message), []).append(reason.object.removeprefix("Node "))
    yield output.Cell("\nWhy not a node that is there", "bold")
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [
        (str(len(names)), rule, message, ", ".join(names[:2]) + (" …" if len(names) > 2 else ""))
        for (rule, message), names in ordered[:_SHOWN_NODES]
    ]
    yield from _table(("NODES", "RULE", "WHY", "WHICH"), rows)
    rest = ordered[_SHOWN_NODES:]
    if rest:
        yield f"and {counted(sum(len(names) for _, names in rest), 'node')} more; -o json tells of each"


_NOT_ALL: Final = "; not all of its constraints were tried, as there are very many"


def _remedy(verdict: LiftedVerdict) -> Iterator[str | output.Cell]:
    if not verdict.blames:
        yield "\nNo single change was found that would let it in" + (_NOT_ALL if verdict.cut_short else "") + "."
        return
    many = len(verdict.blames) > 1
    single = len(verdict.blames[0].constraints) == 1
    title = "What would let it in" + (", each on its own" if many and single else "") + ("" if single else ", together")
    yield output.Cell(f"\n{title}", "bold")
    rows = [
        (each.object, each.says, each.change + (f": {blamed.hint}" if blamed.hint and number == 0 else ""))
        for blamed in verdict.blames
        for number, each in enumerate(blamed.constraints)
    ]
    yield from _table(("WHO", "SAYS", "CHANGE"), rows)
    how = "with the other pods where the plan has them" if verdict.on_the_plan else "by planning again without it"
    yield f"found out {how}" + (_NOT_ALL if verdict.cut_short else "")


def _bought(view: PlanReport, subject: str, claim: PlannedClaim, why: PurchaseReasons) -> Iterator[str | output.Cell]:
    first = claim.options[0]
    yield output.Cell(f"{subject} goes to a new node of NodePool {claim.nodepool}", "bold")
    yield f"  bought as:   {first.name} {place(first.offering)} at {_price(first)}"
    yield f"  why this:    {_why_type(claim, why)}"
    yield f"  runner-up:   {_runner_up(claim, why.runner_up)}"
    yield f"  why there:   {_why_pool(claim, why)}"
    yield f"  shared with: {counted(len(claim.pods) - 1, 'other pod')}"
    there = view.allocatable(claim.nodepool, first)
    amounts = ", ".join(
        f"{name} {resources.plain(name, amount)} of {resources.plain(name, there.get(name, 0))}"
        for name, amount in sorted(claim.requests.items())
    )
    yield f"  asked for:   {amounts}"
    yield f"  must be:     {claim.requirements}"
    if note := _min_values(claim):
        yield f"  minValues:   {note}"
    if why.rivals:
        yield output.Cell("\nWhat other pools would have asked for the same pods", "bold")
        yield from _table(("NODEPOOL", "WEIGHT", "$/h", "WHY NOT"), [_rival(each) for each in why.rivals])
    options = claim.options[:_SHOWN_OPTIONS]
    yield output.Cell(f"\nTypes that would do ({len(claim.options)}), cheapest first", "bold")
    rows = [(each.name, place(each.offering), bill_text(each.offering)) for each in options]
    yield from _table(("TYPE", "BOUGHT AS", "$/h"), rows)


def _price(option: Option) -> str:
    text = bill_text(option.offering)
    return "no further cost: its reservation is paid" if option.offering.prepaid else f"{text} $/h"


def _why_type(claim: PlannedClaim, why: PurchaseReasons) -> str:
    if claim.reservations:
        return f"reservation {claim.reservations[0]} is paid for already"
    told = [f"the cheapest of {counted(why.types, 'type')} that would do"]
    if why.cheaper:
        parts = ", ".join(f"{count} {reason}" for reason, count in why.cheaper.items())
        told.append(f"{counted(sum(why.cheaper.values()), 'type')} of the pool cost less: {parts}")
    told += [
        f"the {each.says} of Pod {short(each.pod)} excludes what costs {price_text(each.price)} $/h"
        for each in why.heeded[:_SHOWN_HEEDED]
    ]
    return "; ".join(told)


def _runner_up(claim: PlannedClaim, second: Option | None) -> str:
    if second is None:
        return "none; no other type would do"
    return f"{second.name} {place(second.offering)}, {money(second.offering.bill - claim.options[0].offering.bill)} $/h more"


def _why_pool(claim: PlannedClaim, why: PurchaseReasons) -> str:
    able = [rival for rival in why.rivals if rival.price is not None]
    if not why.rivals:
        return "there is no other NodePool"
    if not able:
        return "no other NodePool takes these pods"
    before = [rival for rival in able if (rival.weight, rival.nodepool) > (why.weight, claim.nodepool)]
    if before:
        first = before[0]
        return (
            f"NodePool {first.nodepool} is asked before it and would take these pods alone, at {money(first.price or 0.0)}"
            " $/h; all pods together decide"
        )
    if all(rival.weight < why.weight for rival in able):
        return f"its weight of {why.weight} goes before the others that would do"
    best = min(able, key=lambda rival: (rival.price or 0.0, rival.nodepool))
    difference = claim.price - (best.price or 0.0)
    cheaper = f"; NodePool {best.nodepool} would cost {money(difference)} $/h less, but is asked later"
    return f"{BY_NAME}, and its name is the last of those that would do{cheaper if difference > 0 else ''}"


def _min_values(claim: PlannedClaim) -> str:
    if claim.min_values_relaxed:
        return "lowered to what there is, as the policy BestEffort allows"
    if claim.reservations and any(each.min_values is not None for each in claim.requirements.values()):
        return "counted before the reservation was chosen: what is paid for needs no alternatives"
    return ""


def _rival(rival: Rival) -> tuple[str, str, str, str]:
    return (rival.nodepool, str(rival.weight), "" if rival.price is None else money(rival.price), rival.reason)
