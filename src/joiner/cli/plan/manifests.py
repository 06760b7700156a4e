"""`joiner plan -f`: asks for the report on a plan for manifests, and draws it."""

import sys
from typing import Final, NamedTuple

import click

from joiner.cli import output
from joiner.cli.findings import load
from joiner.cli.plan import costsandbound, data, explainpod, tables
from joiner.clock import SystemClock
from joiner.offline import instancetypes
from joiner.offline.files import Documents
from joiner.offline.report import plan as planned
from joiner.offline.report.plan import PlanOptions, PlanReport

_MANY: Final = 1_000
"""From so many pods on planning may take so long that a user wants to see progress."""
_FRESH_LINE: Final = "\r\x1b[K"


class Sources(NamedTuple):
    """Where objects, instance types and capacity reservations come from."""

    filenames: tuple[str, ...]
    catalogue: str | None = None
    reservations: str | None = None
    live: Documents | None = None
    """The objects of a live cluster."""


def show(sources: Sources, options: PlanOptions, form: str) -> bool:
    """Plan, and show the plan; says whether it serves every pod out of every pool."""
    loaded = load(sources.filenames, sources.live)
    manifests = instancetypes.stand_in(loaded, sources.catalogue, sources.reservations)
    posed = planned.pose(manifests, SystemClock().now(), options)
    for note in (*posed.missed, *posed.question.notes):
        output.echo(output.Cell("note", "yellow"), f": {note}", err=True)
    progress = Progress(len(posed.question.problem.pods))
    try:
        report = planned.answer(posed, options, progress.trying)
    finally:
        progress.close()
    if form == output.TABLE:
        _draw(report)
    elif report.pod is not None:
        output.data(data.pod_data(report, report.pod), form, "PodReport")
    else:
        output.data(data.as_data(report), form, "PlanReport")
    return report.complete


def _draw(report: PlanReport) -> None:
    if report.pod is not None:
        explainpod.draw(report, report.pod)
        return
    tables.draw(report)
    if report.costs is not None:
        costsandbound.draw_costs(report)
    if report.bound is not None:
        costsandbound.draw_bound(report, report.bound)
        tables.section("Ways to plan that were tried", costsandbound.attempts_table(report))
        output.echo(f"\nThe search ended: {report.plan.ended}")


class Progress:
    """Shows a user who waits at a terminal for many pods which way of planning is being tried."""

    def __init__(self, pods: int) -> None:
        self._pods = pods
        self._shown = pods >= _MANY and sys.stderr.isatty()

    def trying(self, planner: str) -> None:
        """A way of planning begins."""
        if self._shown:
            click.echo(f"{_FRESH_LINE}planning for {self._pods} pods: {planner}", nl=False, err=True)

    def close(self) -> None:
        """The plan is there: what was shown goes."""
        if self._shown:
            click.echo(_FRESH_LINE, nl=False, err=True)
