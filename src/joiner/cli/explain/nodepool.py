"""Draws which nodes of a pool will be replaced because they differ from it."""

from joiner.cli import output
from joiner.cli.findings import load
from joiner.cli.inputs import Given
from joiner.cli.output import Table, TableColumn
from joiner.clock import SystemClock
from joiner.offline import instancetypes
from joiner.offline.report.nodepool import NodePoolReport, nodepool_report

_SHOWN = 20


def show(name: str, given: Given, form: str) -> None:
    """Find out, and show."""
    manifests = instancetypes.stand_in(load(given.filenames, given.live), given.catalogue, given.reservations)
    report = nodepool_report(manifests, SystemClock().now(), name)
    for note in report.notes:
        output.echo(output.Cell("note", "yellow"), f": {note}", err=True)
    if form == output.TABLE:
        _draw(report)
        return
    content = {
        "nodePool": name,
        "nodes": report.nodes,
        "replaces": [
            {"node": node, "reason": why, "marked": node in report.marked} for node, why in report.drifted.items()
        ],
        "atATime": report.together,
        "rounds": report.rounds,
    }
    output.data(content, form, "NodePoolReport")


def _draw(report: NodePoolReport) -> None:
    name, count = report.pool.name, len(report.drifted)
    if not count:
        output.echo(f"NodePool {name} replaces none of its {report.nodes} nodes: each is what it would buy")
        return
    output.echo(output.Cell(f"NodePool {name} replaces {count} of its {report.nodes} nodes", "bold"))
    if report.rounds is None:
        output.echo("its budgets let none go now: they stay until that changes")
    else:
        times = "once" if report.rounds == 1 else f"{report.rounds} times"
        output.echo(f"its budgets let {report.together} go at a time if no other is away: at the least {times}")
    rows = [(node, why, "yes" if node in report.marked else "no") for node, why in report.drifted.items()]
    columns = (TableColumn("NODE"), TableColumn("WHY"), TableColumn("MARKED ALREADY"))
    output.table(Table(columns, tuple(rows[:_SHOWN])))
    if len(rows) > _SHOWN:
        output.echo(f"and {len(rows) - _SHOWN} more; -o json tells of each")
