"""A `PlanReport` as tables: what is bought, where pods go, and what keeps the others out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from joiner.catalog.explain import place, price_text
from joiner.cli import output
from joiner.model import resources
from joiner.model.resources import CPU, MEMORY
from joiner.offline.planreport import PlanReport
from joiner.offline.problem import short
from joiner.scheduling.bound.lowerbound import Bound, placed
from joiner.scheduling.plan import Plan, PlannedClaim
from joiner.scheduling.reporter import Attempt
from joiner.scheduling.whatif.alternatives import Cost

HOURS_A_MONTH: Final = 730
BY_NAME: Final = "NodePools of equal weight are asked by name, the last in the alphabet first"
_SHOWN_PLACES: Final = 4
_SHOWN_WORKLOADS: Final = 3


def draw(view: PlanReport) -> None:
    """The whole plan, for people."""
    output.echo(output.Cell(_headline(view), "bold"))
    for line in view.prices:
        output.echo(f"  prices: {line}")
    section("What would be bought", _bought(view))
    section("Where pods would go", _places(view))
    section("What was given up", _given_up(view))
    section("What is left over, and why", _left_over(view))
    for number, line in enumerate(_remedies(view)):
        output.echo(f"{'' if number else chr(10)}{line}")
    if view.plan.not_attempted:
        left = len(view.plan.not_attempted)
        output.echo(
            f"\n{left} {'pod was' if left == 1 else 'pods were'} not tried: the effort was spent before their turn"
        )


def _headline(view: PlanReport) -> str:
    plan = view.plan
    new = sum(len(claim.pods) for claim in plan.claims)
    old = sum(map(len, plan.placements.values()))
    places = [text for count, text in ((new, f"{new} on new nodes"), (old, f"{old} on existing nodes")) if count]
    left = len(plan.refusals) + len(plan.not_attempted)
    parts = [
        f"{counted(len(plan.claims), 'node')} to buy at {money(plan.price)} $/h"
        f" ({plan.price * HOURS_A_MONTH:,.2f} $ a month of {HOURS_A_MONTH} hours)",
        f"{new + old} of {counted(len(view.question.problem.pods), 'pod')} placed"
        + (f": {', '.join(places)}" if places else ""),
    ]
    more = ((left, f"{left} left over"), (view.spare, f"{view.spare} of the pods only keep room for a CapacityBuffer"))
    return "; ".join([*parts, *(text for count, text in more if count)])


def money(price: float) -> str:
    """A sum of prices, with as many digits as mean something."""
    return f"{price:,.2f}" if price >= 1000 else f"{price:.6g}"


def counted(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def section(title: str, table: output.Table) -> None:
    """A table under a headline, if there is anything in it."""
    if table.rows:
        output.echo(output.Cell(f"\n{title}", "bold"))
        output.table(table)


def _bought(view: PlanReport) -> output.Table:
    """Nodes of one kind are one row."""
    names = ("NODES", "NODEPOOL", "TYPE", "BOUGHT AS", "$/h EACH", "$/h", "PODS", "CPU", "MEMORY", "RUNNER-UP")
    left = ("NODEPOOL", "TYPE", "BOUGHT AS", "RUNNER-UP")
    groups: dict[tuple[str, str, str], list[PlannedClaim]] = {}
    for claim in view.plan.claims:
        first = claim.options[0]
        groups.setdefault((claim.nodepool, first.name, place(first.offering)), []).append(claim)
    rows = tuple(
        (
            str(len(claims)),
            *kind,
            price_text(claims[0].price),
            money(sum(claim.price for claim in claims)),
            str(sum(len(claim.pods) for claim in claims)),
            _filled(view, claims, CPU),
            _filled(view, claims, MEMORY),
            _runner_up(claims[0]),
        )
        for kind, claims in sorted(groups.items(), key=lambda item: (-sum(c.price for c in item[1]), item[0]))
    )
    return output.Table(tuple(output.TableColumn(name, right=name not in left) for name in names), rows)


def _runner_up(claim: PlannedClaim) -> str:
    """What would be bought otherwise, and how much dearer that is."""
    second = claim.runner_up
    return "none" if second is None else f"{second.name} +{money(second.offering.cost - claim.price)}"


def _filled(view: PlanReport, claims: Iterable[PlannedClaim], name: str) -> str:
    """What is asked for, and which part of what is there that is."""
    asked = there = 0
    for claim in claims:
        asked += claim.requests.get(name, 0)
        there += view.allocatable(claim).get(name, 0)
    share = f" {asked * 100 // there}%" if there else ""
    unit = "Gi" if resources.is_bytes(name) else ""
    amounts = (resources.plain(name, amount, digits=2).removesuffix(unit) for amount in (asked, there))
    return f"{'/'.join(amounts)}{unit}{share}"


def _places(view: PlanReport) -> output.Table:
    where: dict[str, Counter[str]] = {}
    for pod, target in _targets(view.plan):
        where.setdefault(view.workload(pod), Counter())[target] += 1
    rows = tuple((workload, str(sum(counts.values())), _listed(counts)) for workload, counts in sorted(where.items()))
    return output.Table(
        (output.TableColumn("WORKLOAD"), output.TableColumn("PODS", right=True), output.TableColumn("WHERE")), rows
    )


def _given_up(view: PlanReport) -> output.Table:
    """Wishes that were not kept; who gave up the same is one row."""
    who: dict[str, Counter[str]] = {}
    for each in view.plan.given_up:
        for wish in each.wishes:
            who.setdefault(wish, Counter()).update(map(view.workload, each.pods))
    rows = tuple((_workloads(pods), str(pods.total()), wish) for wish, pods in sorted(who.items()))
    return output.Table(
        (output.TableColumn("WORKLOAD"), output.TableColumn("PODS", right=True), output.TableColumn("WISH")), rows
    )


def _targets(plan: Plan) -> Iterator[tuple[str, str]]:
    for name, pods in sorted(plan.placements.items()):
        yield from ((pod, f"node {name}") for pod in pods)
    for claim in plan.claims:
        first = claim.options[0]
        yield from ((pod, f"new {first.name} {place(first.offering)}") for pod in claim.pods)


def _listed(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"{count} on {target}" for target, count in ordered[:_SHOWN_PLACES]]
    rest = ordered[_SHOWN_PLACES:]
    if rest:
        parts.append(f"{sum(count for _, count in rest)} on {counted(len(rest), 'other kind')} of node")
    return "; ".join(parts)


def _left_over(view: PlanReport) -> output.Table:
    """Pods that are refused for the same reasons are one row."""
    rows = tuple(
        (_workloads(Counter(map(view.workload, row.pods))), str(len(row.pods)), row.why) for row in view.left_over
    )
    return output.Table(
        (output.TableColumn("WORKLOAD"), output.TableColumn("PODS", right=True), output.TableColumn("WHY")), rows
    )


def _workloads(counts: Mapping[str, int]) -> str:
    names = sorted(counts)
    more = f" and {len(names) - _SHOWN_WORKLOADS} more" if len(names) > _SHOWN_WORKLOADS else ""
    return ", ".join(names[:_SHOWN_WORKLOADS]) + more


def _remedies(view: PlanReport) -> Iterator[str]:
    """What would let a pod of each row in, and how to ask about the others."""
    for row in view.left_over:
        if row.remedies:
            without = ", or without ".join(map(str, row.remedies))
            yield f"{view.workload(row.pod)} would have a place without {without}"
    open_rows = [row for row in view.left_over if not row.remedies] or view.left_over
    for row in open_rows[:1]:
        yield f"--explain POD tells more of a pod, for instance --explain {short(row.pods[0])}"


def _costs(view: PlanReport, found: Iterable[Cost]) -> output.Table:
    """What wishes cost, the dearest first."""
    ordered = sorted(found, key=lambda cost: (-(cost.hourly or 0.0), cost.pod, cost.constraint.field))
    rows = tuple(
        (view.workload(each.pod), str(each.pods), each.constraint.says, cost_text(each.hourly)) for each in ordered
    )
    columns = (
        output.TableColumn("WORKLOAD"), output.TableColumn("PODS", right=True), output.TableColumn("WISH"),
        output.TableColumn("$/h", right=True),
    )  # fmt: skip
    return output.Table(columns, rows)


def attempts_table(view: PlanReport) -> output.Table:
    """What came of each way of planning, in the order in which they were tried."""
    names = ("PLANNER", "OUTCOME", "NODES", "$/h", "LEFT OVER")
    rows = tuple(
        (each.planner, each.outcome, *(("", "", "") if each.given_up else _came_to(each))) for each in view.attempts
    )
    return output.Table(tuple(output.TableColumn(name, right=name not in names[:2]) for name in names), rows)


def _came_to(attempt: Attempt) -> tuple[str, str, str]:
    return str(attempt.nodes), money(attempt.price), str(attempt.left_over)


def cost_text(hourly: float | None) -> str:
    """What a wish costs. Plans that place different pods cannot be compared."""
    return "places other pods" if hourly is None else money(hourly)


def draw_costs(view: PlanReport) -> None:
    """What preferences, spread and affinity cost."""
    found = view.costs or ()
    section("What wishes cost", _costs(view, found))
    if not found:
        output.echo("\nNo pod has a preference, a spread constraint or an affinity that could cost anything")
    if view.costs_not_priced:
        output.echo(
            f"and {view.costs_not_priced} more that were not looked at; --explain POD --costs does so for one pod"
        )


def draw_bound(view: PlanReport, least: Bound) -> None:
    """How far the plan is from the lower bound, and what each way of planning came to."""
    plan = view.plan
    if not placed(plan):
        output.echo("\nNo pod is placed, so there is no price to compare with a bound.")
        return
    gap = least.gap(plan.price)
    far = "" if gap is None else f"; this plan is {gap:.1%} above that"
    placing = "that places the same pods " if plan.refusals or plan.not_attempted else ""
    output.echo("\n", output.Cell(f"No plan {placing}costs less than {money(least.price)} $/h{far}", "bold"))
    if least.dropped:
        output.echo(f"  not counted, so the true least may be higher: {', '.join(least.dropped)}")
    for line in why_far(view, least):
        output.echo(f"  {line}")
    if least.method == "climb" and not least.exact:
        output.echo("  found without a solver; pip install 'joiner[optimize]' may find a higher one")


def why_far(view: PlanReport, least: Bound) -> Iterator[str]:
    """What decides before prices do, where the plan is far from the bound."""
    for cheaper in view.cheaper_without:
        gap = least.gap(cheaper.price)
        priced = f"{money(cheaper.price)} $/h" + ("" if gap is None else f", {gap:.1%} above the bound")
        if cheaper.what == "order":
            told = f"NodePools are asked by weight, the highest first; {BY_NAME}"
            yield f"{told}; with {cheaper.nodepool} asked first a plan costs {priced}"
        else:
            what = {"preferences": "preferences", "spread": "topology spread"}[cheaper.what]
            yield f"without {what} a plan costs {priced}"
