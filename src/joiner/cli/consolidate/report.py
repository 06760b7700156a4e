"""Draws what consolidation would do, as tables or as data."""

from typing import Any, NamedTuple

from joiner.cli import inputs, output
from joiner.cli.findings import load
from joiner.cli.output import Table, TableColumn
from joiner.clock import SystemClock
from joiner.disruption.consolidation.payback import why
from joiner.disruption.decision import Move
from joiner.offline import instancetypes
from joiner.offline.files import Documents
from joiner.offline.report.consolidation import ConsolidationReport, consolidation_report
from joiner.offline.report.plan import PlanOptions
from joiner.scheduling.problem import Policy


class ReportOptions(NamedTuple):
    """What was asked for."""

    catalogue: str | None
    reservations: str | None
    horizon: str
    eviction_cost: str
    spot_to_spot: bool


def show(filenames: tuple[str, ...], live: Documents | None, options: ReportOptions, form: str) -> None:
    """Play it, and show what came of it."""
    horizon = inputs.duration("--horizon", options.horizon, positive=True)
    eviction_cost = inputs.duration("--eviction-cost", options.eviction_cost)
    manifests = instancetypes.stand_in(load(filenames, live), options.catalogue, options.reservations)
    report = consolidation_report(
        manifests,
        SystemClock().now(),
        PlanOptions(policy=Policy()),
        horizon=horizon,
        eviction_cost=eviction_cost,
        spot_to_spot=options.spot_to_spot,
    )
    for note in report.notes:
        output.echo(output.Cell("note", "yellow"), f": {note}", err=True)
    if form == output.TABLE:
        _draw(report)
    else:
        output.data(_as_data(report), form, "ConsolidationReport")


def _draw(report: ConsolidationReport) -> None:
    columns = (TableColumn("MOVE", right=True), TableColumn("NODES"), TableColumn("HOW"), TableColumn("WHY"))
    rows = tuple(
        (str(number), ", ".join(move.nodes), move.decision, why(move))
        for number, move in enumerate(report.moves, start=1)
    )
    if rows:
        output.table(Table(columns, rows))
    else:
        output.echo("no move pays: every node stays")
    output.echo("")
    pods = sum(len(each.pods) for move in report.moves for each in move.candidates)
    output.echo(
        f"{report.nodes_before} nodes at {report.before.bill:.4f} $/h → {report.nodes_after} at {report.after.bill:.4f} $/h,"
        f" {pods} evictions"
    )
    gap = report.gap
    if gap is not None:
        output.echo(
            f"no cluster for these pods costs less than {report.bound:.4f} $/h: the end is {gap:.1%} above that"
        )


def _as_data(report: ConsolidationReport) -> dict[str, Any]:
    return {
        "moves": [
            {
                "nodes": list(move.nodes),
                "decision": move.decision,
                "reason": move.reason,
                "buys": [{"nodePool": claim.nodepool, "instanceType": claim.options[0].name} for claim in move.claims],
                "evictions": sum(len(each.pods) for each in move.candidates),
                "saves": round(move.payback.saved, 6) if move.payback is not None else _freed(move),
                "costs": round(move.payback.cost, 6) if move.payback is not None else 0.0,
                "why": why(move),
            }
            for move in report.moves
        ],
        "stay": [
            {
                "node": name,
                "why": each.message,
                **({} if each.most == float("inf") else {"savesAtMost": round(each.most, 6)}),
            }
            for name, each in report.stay.items()
        ],
        "summary": {
            "nodesBefore": report.nodes_before,
            "nodesAfter": report.nodes_after,
            "hourlyBefore": round(report.before.bill, 6),
            "hourlyAfter": round(report.after.bill, 6),
            "bound": round(report.bound, 6),
        },
    }


def _freed(move: Move) -> float:
    return round(sum(each.price.bill for each in move.candidates), 6)
