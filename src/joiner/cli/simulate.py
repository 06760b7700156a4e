"""`joiner simulate`: a story, played in the embedded cluster on virtual time."""

import sys
from pathlib import Path
from typing import Any

import click

from joiner.cli import output
from joiner.cli.output import JSON, TABLE, Cell, Column, Table
from joiner.model.duration import Duration, DurationError
from joiner.model.meta import replace
from joiner.sim.chronicle import quantile
from joiner.sim.play import Played, play
from joiner.sim.stage import Unplayable
from joiner.sim.story import Story, StoryError
from joiner.sim.story import read as read_story
from joiner.sim.trace import Trace
from joiner.sim.world import World

EPILOG = """\b
Examples:
  joiner simulate examples/19-an-hour-of-a-web-shop
  joiner simulate story.yaml --seed 7 --for 24h -o json
  joiner simulate story.yaml --trace steps.txt
  joiner simulate --hunt 200

\b
Exit codes:
  0  everything came as the story says; a hunt found nothing
  1  something did not, or the story cannot be told: the message says what
  2  wrong usage of the command line
"""


class _Span(click.ParamType[Duration]):
    """A duration on the command line."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Duration:
        try:
            found = Duration.parse(str(value))
        except DurationError as error:
            self.fail(str(error), param, ctx)
        if not 0 < found < Duration.parse("87600h"):
            self.fail(f"{value!r} must be longer than zero and shorter than ten years", param, ctx)
        return found


@click.command("simulate", short_help="Play a story in the embedded cluster, on virtual time.", epilog=EPILOG)
@click.argument("story", type=click.Path(exists=True, path_type=Path), required=False)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="What chance decides.")
@click.option(
    "--hunt", "hunted", type=click.IntRange(min=1), metavar="N", help="Play N made-up worlds full of faults instead."
)
@click.option(
    "--jobs", type=click.IntRange(min=1), help="How many worlds to play at once when hunting; one per core by default."
)
@click.option("--for", "length", type=_Span(), help="Play for this long instead of as long as the story says.")
@click.option("--tell/--no-tell", default=None, help="Tell what happens as it happens. On by default for tables.")
@click.option(
    "--trace", "trace_path", type=click.Path(path_type=Path, dir_okay=False), help="Write every step to a file."
)
@output.option(TABLE, JSON)
def command(
    story: Path | None,
    seed: int,
    hunted: int | None,
    jobs: int | None,
    length: Duration | None,
    tell: bool | None,
    trace_path: Path | None,
    form: str,
) -> None:
    """Play a story in the embedded cluster: pods, nodes, a cloud and the real controllers, in virtual time.

    STORY is a YAML file, or a folder with a story.yaml, that says what is given, what happens when, and what must be true
    then. Nothing outside is touched; hours pass in seconds. The same seed tells the same story, step by step.

    With --hunt no story is needed: from SEED on, N worlds are made up, with faults of every kind in them and checkers that
    watch, two hours each. A seed that breaks a rule prints the last steps before, and how to play it again.

    """
    if (story is None) == (hunted is None):
        raise click.UsageError("name a STORY, or say --hunt N to play made-up worlds")
    if hunted is not None:
        from joiner.cli import hunting

        hunting.run(seed, hunted, jobs, trace_path, form)
        return
    assert story is not None
    told = _read(story)
    if length is not None:
        told = replace(told, ends=length)
    speak = form == TABLE if tell is None else tell
    played = _play(told, seed, speak, trace_path)
    if form == JSON:
        output.data(_data(told, played, seed), JSON)
    else:
        _show(told, played, seed)
    if not played.true:
        sys.exit(1)


def _read(path: Path) -> Story:
    file = path / "story.yaml" if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return read_story(text, str(file), file.parent)
    except StoryError as error:
        raise click.ClickException(f"this story cannot be told:\n{error}") from None


def _play(story: Story, seed: int, speak: bool, trace_path: Path | None) -> Played:
    lines: list[str] = []
    trace = Trace(sink=lines.append if trace_path is not None else None)
    bar = _Bar(story) if not speak and sys.stderr.isatty() else None
    try:
        return play(story, seed=seed, trace=trace, progress=bar.at if bar else None, tell=_tell if speak else None)
    except (StoryError, Unplayable) as error:
        raise click.ClickException(f"this story cannot be told:\n{error}") from None
    finally:
        if bar is not None:
            bar.close()
        if trace_path is not None:
            trace_path.write_text("\n".join(lines) + "\n", encoding="utf-8")


class _Bar:
    """How far the story has come, for those who look at a terminal."""

    def __init__(self, story: Story) -> None:
        from rich.progress import Progress

        self._progress = Progress(transient=True, console=_stderr())
        self._progress.start()
        self._task = self._progress.add_task("playing", total=story.ends.seconds)

    def at(self, seconds: float, world: World) -> None:
        """The story has come to this second."""
        del world
        self._progress.update(self._task, completed=seconds)

    def close(self) -> None:
        """Take the bar away."""
        self._progress.stop()


def _stderr() -> Any:
    from rich.console import Console

    return Console(stderr=True)


def _tell(seconds: float, text: str) -> None:
    click.echo(f"{_clock(seconds)}  {output.safe(text)}")


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


# -- the summary ---------------------------------------------------------------------------------------------------------


def _data(story: Story, played: Played, seed: int) -> dict[str, Any]:
    world, chronicle = played.world, played.chronicle
    now = world.clock.now()
    return {
        "story": story.title,
        "seed": seed,
        "seconds": played.seconds,
        "true": played.true,
        "verdicts": [{"text": each.text, "holds": each.holds, "detail": each.detail} for each in played.verdicts],
        "costs": [
            {
                "nodepool": each.pool,
                "capacityType": each.capacity_type,
                "machines": each.machines,
                "hours": round(each.hours, 4),
                "dollars": round(each.dollars, 6),
            }
            for each in world.cloud.bill(now)
        ],
        "pods": {
            "placed": len(chronicle.waits),
            "waitSecondsP50": round(quantile(chronicle.waits, 0.5), 3),
            "waitSecondsP99": round(quantile(chronicle.waits, 0.99), 3),
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


def _show(story: Story, played: Played, seed: int) -> None:
    found = _data(story, played, seed)
    click.echo()
    click.echo(output.bold(f"{story.title} (seed {seed}, {_clock(played.seconds)})"))
    click.echo()
    _show_costs(found)
    pods, nodes = found["pods"], found["nodes"]
    if pods["placed"]:
        waits = f"half within {pods['waitSecondsP50']:.0f} s, 99 of 100 within {pods['waitSecondsP99']:.0f} s"
        click.echo(f"{pods['placed']} times a pod got a node: {waits}")
    made = ", ".join(f"{count} of {pool}" for pool, count in nodes["claims"].items()) or "none"
    click.echo(f"at most {nodes['most']} nodes at once; claims made: {made}")
    for each in found["reservations"]:
        share = f"{each['hoursUsed']:.1f} of {each['hoursPaid']:.1f} machine hours"
        click.echo(f"reservation {each['id']}: {share} used, at most {each['most']} of {each['count']} at once")
    for each in found["refused"]:
        click.echo(f"refused: {each['workload']} ({each['times']} times): {output.safe(each['reason'])}")
    click.echo()
    for verdict in played.verdicts:
        mark = output.styled("as told", "green") if verdict.holds else output.styled("NOT SO", "red")
        detail = "" if verdict.holds else f": {output.safe(verdict.detail)}"
        click.echo(f"{mark}  {output.safe(verdict.text)}{detail}")


def _show_costs(found: dict[str, Any]) -> None:
    if not found["costs"]:
        click.echo("nothing was bought")
        return
    columns = (
        Column("NODEPOOL"), Column("CAPACITY"), Column("MACHINES", right=True), Column("HOURS", right=True),
        Column("DOLLARS", right=True),
    )  # fmt: skip
    rows: list[tuple[str | Cell, ...]] = [
        (each["nodepool"], each["capacityType"], str(each["machines"]), f"{each['hours']:.2f}", _dollars(each))
        for each in found["costs"]
    ]
    total = sum(each["dollars"] for each in found["costs"] if each["capacityType"] != "reserved")
    rows.append((Cell("paid now", "bold"), "", "", "", Cell(f"{total:.4f}", "bold")))
    output.table(Table(columns, tuple(rows)))
    click.echo()


def _dollars(cost: dict[str, Any]) -> str:
    """Reserved machines are paid for whether they run or not: what they save stands in brackets."""
    shown = f"{cost['dollars']:.4f}"
    return f"({shown})" if cost["capacityType"] == "reserved" else shown
