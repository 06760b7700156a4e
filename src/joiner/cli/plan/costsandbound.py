"""What `--costs` and `--bound` add to the tables of a plan: prices of wishes, the lower bound, the planners that were tried."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from joiner.cli import output
from joiner.cli.plan.tables import BY_NAME, cost_text, money, section
from joiner.offline.report.plan import PlanReport
from joiner.scheduling.bound.lowerbound import Bound, placed
from joiner.scheduling.reporter import Attempt
from joiner.scheduling.whatif.alternatives import Cost

_NOTHING: Final = 1e-9

PLANNERS: Final[Mapping[str, str]] = {
    "first-fit": "each pod, the largest first, on the first node that takes it, as Karpenter plans",
    "guarded": "each pod on the open node that it makes dearer by least, unless a node of its own costs less",
    "worth": "whole nodes are bought by price for each unit of what pods ask for",
    "repriced": "the same, with pods priced by a linear programme over all of them",
    "rounded": "the solution of that linear programme, rounded to whole nodes",
}
"""The first word of a planner's name, and what it does. The rest of the name is how it differs: docs/guide/planning.md."""


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
    names = ("PLANNER", "OUTCOME", "NODES", "$/h", "LEFT OVER", "WHAT IT DOES")
    told: set[str] = set()
    rows: list[tuple[str, ...]] = []
    for each in view.attempts:
        word = re.split("[, ]", each.planner)[0]
        what = "" if word in told else PLANNERS.get(word, "")
        told.add(word)
        rows.append((each.planner, each.outcome, *(("", "", "") if each.given_up else _came_to(each)), what))
    columns = tuple(output.TableColumn(name, right=name in ("NODES", "$/h", "LEFT OVER")) for name in names)
    return output.Table(columns, tuple(rows), spare=("WHAT IT DOES", "LEFT OVER"))


def _came_to(attempt: Attempt) -> tuple[str, str, str]:
    return str(attempt.nodes), money(attempt.price), str(attempt.left_over)


def _pool_costs(view: PlanReport) -> output.Table:
    """What demands of NodePools cost, the dearest first. What costs nothing is not shown."""
    shown = [each for each in view.pool_costs if each.hourly is None or abs(each.hourly) > _NOTHING]
    ordered = sorted(shown, key=lambda each: (-(each.hourly or 0.0), each.constraint.object, each.constraint.field))
    rows = tuple(
        (each.constraint.object.removeprefix("NodePool "), each.constraint.says, cost_text(each.hourly))
        for each in ordered
    )
    columns = (output.TableColumn("NODEPOOL"), output.TableColumn("DEMANDS"), output.TableColumn("$/h", right=True))
    return output.Table(columns, rows)


def draw_costs(view: PlanReport) -> None:
    """What preferences, spread and affinity cost."""
    found = view.costs or ()
    section("What wishes cost", _costs(view, found))
    if not found:
        output.echo("\nNo pod has a preference, a spread constraint or an affinity that could cost anything")
    section("What NodePools demand, and what that costs", _pool_costs(view))
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
    far += ", both without the nodes of static NodePools" if view.static else ""
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
