"""`joiner simulate --hunt`: many seeds, each a world with faults in it, played by as many processes as there are cores."""

import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import click

from joiner.cli import output
from joiner.cli.output import Table, TableColumn
from joiner.cli.simulate.tracefile import steps_to
from joiner.sim.hunt.hunt import HOURS, Outcome, hunt, missing
from joiner.sim.story.phrases import counted
from joiner.sim.trace import Trace

ENOUGH: Final = 100
"""In so many seeds everything that can occur should have."""
LOGGED: Final = 100
"""After so many seeds a log has another line."""
INTERRUPTED: Final = 130
"""The exit code of what was stopped from the keyboard."""
SHOWN: Final = 40
"""How many of the last steps before a violation are shown."""


def run(first: int, number: int, kind: str, jobs: int | None, trace_path: Path | None, form: str) -> None:
    """Play the seeds, show what was found, and end with exit code 1 if anything was."""
    counts: Counter[str] = Counter()
    broken: list[Outcome] = []
    played = 0
    try:
        for outcome in _outcomes(first, number, kind, jobs, trace_path):
            played += 1
            counts.update(outcome.counts)
            if not outcome.sound:
                broken.append(outcome)
                _show_violation(outcome, kind)
            _show_progress(played, number, len(broken))
    except KeyboardInterrupt:
        click.echo(f"\nstopped after {played} of {counted(number, 'seed')}; this is what was found so far", err=True)
    never = missing(counts) if played >= ENOUGH else ()
    _show(first, played, kind, counts, broken, never, form)
    if played < number:
        sys.exit(INTERRUPTED)
    if broken or never:
        sys.exit(1)


def _show_progress(played: int, number: int, broken: int) -> None:
    """On a terminal one line that moves on; in a log a line now and then."""
    said = f"{played} of {counted(number, 'seed')}, {broken} with violations"
    if sys.stderr.isatty():
        click.echo(f"\r{said}", err=True, nl=played == number)
    elif played % LOGGED == 0 and played < number:
        click.echo(said, err=True)


def _outcomes(first: int, number: int, kind: str, jobs: int | None, trace_path: Path | None) -> Iterator[Outcome]:
    seeds = range(first, first + number)
    workers = min(jobs or os.cpu_count() or 1, number)
    if workers == 1 or trace_path is not None:
        with steps_to(trace_path) as sink:
            for seed in seeds:
                if sink is not None and number > 1:
                    sink(f"seed {seed}")
                yield hunt(seed, kind=kind, trace=Trace(sink=sink))
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap(partial(hunt, kind=kind), seeds)


def _show_violation(outcome: Outcome, kind: str) -> None:
    click.echo(f"seed {outcome.seed}:", err=True)
    for violation in outcome.violations:
        click.echo(f"  {output.safe(violation)}", err=True)
    click.echo("  the last steps before:", err=True)
    for line in outcome.last[-SHOWN:]:
        click.echo(f"    {output.safe(line)}", err=True)
    worse = f" --worse {kind}" if kind else ""
    again = f"joiner simulate --hunt 1{worse} --seed {outcome.seed} --trace steps.txt"
    click.echo(f"  to see every step: {again}", err=True)


def _show(
    first: int, number: int, kind: str, counts: Counter[str], broken: list[Outcome], never: tuple[str, ...], form: str
) -> None:
    if form == output.JSON:
        found = {
            "first": first,
            "seeds": number,
            "hours": HOURS,
            **({"worse": kind} if kind else {}),
            "violations": {str(each.seed): list(each.violations) for each in broken},
            "counts": dict(sorted(counts.items())),
            "never": list(never),
        }
        output.data(found, form, "HuntReport")
        return
    rows = tuple((name, str(count)) for name, count in sorted(counts.items()))
    output.table(Table((TableColumn("WHAT OCCURRED"), TableColumn("TIMES", right=True)), rows))
    click.echo()
    for name in never:
        click.echo(f"never occurred: {name}")
    seeds = ", ".join(str(each.seed) for each in broken)
    verdict = f"violations in {counted(len(broken), 'seed')}: {seeds}" if broken else "no violation"
    where = f", worse by {kind}" if kind else ""
    click.echo(f"{counted(number, 'seed')} from {first} on{where}, {HOURS} virtual hours each: {verdict}")
