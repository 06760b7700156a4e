"""What came of a story: the summary for people, and everything for programs."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import click

from joiner.cli import output
from joiner.cli.output import Cell, Table, TableColumn
from joiner.model import labels
from joiner.sim.story.format import Story
from joiner.sim.story.narrator import quantile
from joiner.sim.story.phrases import clock_time, counted, wait
from joiner.sim.story.player import Played, Verdict
from joiner.sim.world import World


def data(story: Story, played: Played, seed: int) -> dict[str, Any]:
    """Everything there is to say, for programs. Moments are seconds since the story began."""
    world, chronicle = played.world, played.chronicle
    now = world.clock.now()
    bill = world.cloud.bill(now)
    return {
        "story": story.title,
        "seed": seed,
        "seconds": played.seconds,
        "true": played.true,
        "verdicts": [
            {"text": each.text, "holds": each.holds, "detail": each.detail, "firstSo": _rounded(each.first)}
            for each in played.verdicts
        ],
        "told": [{"at": round(at, 3), "text": text} for at, text in chronicle.told],
        "costs": [
            {
                "nodepool": each.pool,
                "capacityType": each.capacity_type,
                "machines": each.machines,
                "hours": round(each.hours, 4),
                "dollars": round(each.dollars, 6),
            }
            for each in bill
        ],
        "dollars": round(sum(each.dollars for each in bill if each.capacity_type != labels.RESERVED), 6),
        "dollarsPerHourAtEnd": round(world.cloud.ledger.rate(now), 6),
        "machines": list(_machines(world)),
        "pods": {
            "placed": len(chronicle.waits),
            "unplaced": chronicle.unplaced(),
            "waitSecondsP50": round(quantile(chronicle.waits, 0.5), 3),
            "waitSecondsP99": round(quantile(chronicle.waits, 0.99), 3),
            "waitSecondsMost": round(max(chronicle.waits, default=0.0), 3),
        },
        "nodes": {"most": chronicle.nodes_most, "claims": dict(sorted(chronicle.claims.items()))},
        "refused": [
            {"workload": name, "times": count, "reason": reason}
            for name, (count, reason) in sorted(chronicle.refusals.items())
        ],
        "reservations": [
            {
                "id": each.reservation,
                "count": each.count,
                "hoursPaid": round(each.hours, 4),
                "hoursUsed": round(each.hours_used, 4),
                "most": each.most,
            }
            for each in world.cloud.reservation_use(now)
        ],
        "trace": world.trace.digest(),
    }


def _machines(world: World) -> Iterator[dict[str, Any]]:
    """Every machine that was bought, so that the sums can be done again."""
    now, begins = world.clock.now(), world.clock.now() - timedelta(seconds=world.clock.monotonic())
    for each in world.cloud.ledger.purchases():
        yield {
            "node": node.node_name if (node := world.cloud.machines.get(each.provider_id)) is not None else None,
            "claim": each.claim_name,
            "nodepool": each.pool,
            "instanceType": each.instance_type,
            "zone": each.zone,
            "capacityType": each.capacity_type,
            "reservation": each.reservation or None,
            "dollarsPerHour": each.price,
            "bought": round((each.launched - begins).total_seconds(), 3),
            "ended": None if each.ended is None else round((each.ended - begins).total_seconds(), 3),
            "hours": round(each.hours(None, now), 4),
        }


def _rounded(moment: float | None) -> float | None:
    return None if moment is None else round(moment, 3)


def show(story: Story, played: Played, seed: int) -> None:
    """The summary, for people."""
    found = data(story, played, seed)
    click.echo()
    click.echo(output.bold(f"{story.title} (seed {seed}, {clock_time(played.seconds)})"))
    click.echo()
    _show_costs(found)
    _show_counts(found)
    click.echo()
    for verdict in played.verdicts:
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
        click.echo(f"at the end {counted(number, 'pod')} of {name} {'has' if number == 1 else 'have'} no node")
    made = ", ".join(f"{count} of {pool}" for pool, count in nodes["claims"].items()) or "none"
    click.echo(f"at most {counted(nodes['most'], 'node')} at once; claims made: {made}")
    for each in found["reservations"]:
        share = f"{each['hoursUsed']:.2f} of {each['hoursPaid']:.2f} machine hours"
        click.echo(f"reservation {each['id']}: {share} used, at most {each['most']} of {each['count']} at once")
    for each in found["refused"]:
        click.echo(f"refused: {each['workload']} ({counted(each['times'], 'time')}): {output.safe(each['reason'])}")


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
