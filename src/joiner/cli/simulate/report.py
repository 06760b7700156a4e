"""Draws the summary of a story: as data (`-o json`) and as text."""

from typing import Any

import click

from joiner.cli import output
from joiner.cli.output import Cell, Table, TableColumn
from joiner.model import labels
from joiner.sim.story.phrases import clock_time, counted, wait
from joiner.sim.story.report.missingpods import Missing
from joiner.sim.story.report.summary import Summary, Verdict, quantile


def data(summary: Summary) -> dict[str, Any]:
    """Everything there is to say, for programs. Moments are seconds since the story began."""
    return {
        "story": summary.title,
        "seed": summary.seed,
        "seconds": summary.seconds,
        "true": summary.true,
        "verdicts": [
            {"text": verdict.text, "holds": verdict.holds, "detail": verdict.detail, "firstSo": _rounded(verdict.first)}
            for verdict in summary.verdicts
        ],
        "told": [{"at": round(at, 3), "text": text} for at, text in summary.told],
        "costs": [
            {
                "nodepool": bill.pool,
                "capacityType": bill.capacity_type,
                "machines": bill.machines,
                "hours": round(bill.hours, 4),
                "dollars": round(bill.dollars, 6),
            }
            for bill in summary.costs
        ],
        "dollars": round(summary.dollars, 6),
        "dollarsPerHourAtEnd": round(summary.rate, 6),
        "machines": [
            {
                "node": machine.node,
                "claim": machine.claim,
                "nodepool": machine.pool,
                "instanceType": machine.instance_type,
                "zone": machine.zone,
                "capacityType": machine.capacity_type,
                "reservation": machine.reservation or None,
                "dollarsPerHour": machine.price,
                "bought": round(machine.bought, 3),
                "ended": _rounded(machine.ended),
                "hours": round(machine.hours, 4),
            }
            for machine in summary.machines
        ],
        "pods": {
            "placed": len(summary.waits),
            "unplaced": dict(summary.unplaced),
            "waitSecondsP50": round(quantile(summary.waits, 0.5), 3),
            "waitSecondsP99": round(quantile(summary.waits, 0.99), 3),
            "waitSecondsMost": round(max(summary.waits, default=0.0), 3),
            "missing": [_missing(each) for each in summary.missing],
        },
        "nodes": {"most": summary.nodes_most, "claims": dict(summary.claims)},
        "refused": [
            {"workload": refusal.workload, "times": refusal.times, "reason": refusal.reason}
            for refusal in summary.refused
        ],
        "reservations": [
            {
                "id": use.reservation,
                "count": use.count,
                "hoursPaid": round(use.hours, 4),
                "hoursUsed": round(use.hours_used, 4),
                "most": use.most,
            }
            for use in summary.reservations
        ],
        "notes": list(summary.notes),
        "trace": summary.trace,
    }


def _missing(missing: Missing) -> dict[str, Any]:
    return {
        "workload": missing.workload,
        "times": missing.times,
        "seconds": round(missing.seconds, 3),
        "longestSeconds": round(missing.longest, 3),
        "podSeconds": round(missing.pod_seconds, 3),
        "most": missing.most,
    }


def _rounded(moment: float | None) -> float | None:
    return None if moment is None else round(moment, 3)


def show(summary: Summary) -> None:
    """Print the summary. Its numbers are those of `data`, rounded alike."""
    found = data(summary)
    click.echo()
    click.echo(output.bold(f"{output.safe(summary.title)} (seed {summary.seed}, {clock_time(summary.seconds)})"))
    click.echo()
    _show_costs(found)
    _show_counts(found)
    click.echo()
    for verdict in summary.verdicts:
        mark = output.styled("as told", "green") if verdict.holds else output.styled("NOT SO ", "red")
        detail = "" if verdict.holds else f": {output.safe(verdict.detail)}"
        click.echo(f"{mark}  {output.safe(verdict.text)}{detail}{_first(verdict)}")


def _first(verdict: Verdict) -> str:
    if verdict.first is None:
        return ""
    return f" ({'first so at' if verdict.holds else 'but was so at'} {clock_time(verdict.first)})"


def _show_counts(found: dict[str, Any]) -> None:
    pods, nodes = found["pods"], found["nodes"]
    if pods["placed"]:
        half, nearly, most = (wait(pods[f"waitSeconds{share}"]) for share in ("P50", "P99", "Most"))
        waits = f"half within {half}, 99% within {nearly}, all within {most}"
        click.echo(f"{counted(pods['placed'], 'time')} a pod got a node: {waits}")
    for name, number in pods["unplaced"].items():
        click.echo(
            f"at the end {counted(number, 'pod')} of {output.safe(name)} {'has' if number == 1 else 'have'} no node"
        )
    for each in pods["missing"]:
        longest = f", the longest time {wait(each['longestSeconds'])}" if each["times"] > 1 else ""
        times = "once" if each["times"] == 1 else counted(each["times"], "time")
        most = f"at most {counted(each['most'], 'pod')} at once"
        click.echo(
            f"pods of {output.safe(each['workload'])} that had run were missing {times}, {most}:"
            f" {wait(each['seconds'])} in all{longest}"
        )
    made = ", ".join(f"{count} of {output.safe(pool)}" for pool, count in nodes["claims"].items()) or "none"
    click.echo(f"at most {counted(nodes['most'], 'node')} at once; claims made: {made}")
    for each in found["reservations"]:
        share = f"{each['hoursUsed']:.2f} of {each['hoursPaid']:.2f} machine hours"
        click.echo(
            f"reservation {output.safe(each['id'])}: {share} used, at most {each['most']} of {each['count']} at once"
        )
    for each in found["refused"]:
        click.echo(
            f"refused: {output.safe(each['workload'])} ({counted(each['times'], 'time')}): {output.safe(each['reason'])}"
        )


def _show_costs(found: dict[str, Any]) -> None:
    if not found["costs"]:
        click.echo("nothing was bought")
        return
    columns = (
        TableColumn("NODEPOOL"), TableColumn("CAPACITY"), TableColumn("MACHINES", right=True), TableColumn("HOURS", right=True),
        TableColumn("DOLLARS", right=True),
    )  # fmt: skip
    rows: list[tuple[str | Cell, ...]] = [
        (each["nodepool"], each["capacityType"], str(each["machines"]), f"{each['hours']:.2f}", _dollars(each))
        for each in found["costs"]
    ]
    rows.append((Cell("to pay", "bold"), "", "", "", Cell(f"{found['dollars']:.4f}", "bold")))
    output.table(Table(columns, tuple(rows)))
    if any(each["capacityType"] == labels.RESERVED for each in found["costs"]):
        click.echo(
            "(in brackets: what reserved machines would cost on demand; they are paid for whether they run or not)"
        )
    click.echo()


def _dollars(cost: dict[str, Any]) -> str:
    """Reserved machines are paid for whether they run or not: what they save stands in brackets."""
    shown = f"{cost['dollars']:.4f}"
    return f"({shown})" if cost["capacityType"] == labels.RESERVED else shown
