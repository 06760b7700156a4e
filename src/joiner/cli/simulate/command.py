"""`joiner simulate`: a story, played in the embedded cluster on virtual time."""

import sys
from pathlib import Path
from typing import Any

import click

from joiner.cli import output
from joiner.cli.output import JSON, TABLE
from joiner.cli.simulate import report
from joiner.cli.simulate.tracefile import steps_to
from joiner.model.duration import Duration, DurationError
from joiner.model.meta import replace
from joiner.sim.story.format import Story, StoryError
from joiner.sim.story.limits import LONGEST
from joiner.sim.story.narrator import Teller
from joiner.sim.story.phrases import clock_time
from joiner.sim.story.player import play
from joiner.sim.story.steps import Unplayable
from joiner.sim.story.summary import Summary
from joiner.sim.story.validation import prepared
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
  130  a hunt was stopped from the keyboard: what it found until then is shown
"""


class _Span(click.ParamType[Duration]):
    """A duration on the command line."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Duration:
        try:
            found = Duration.parse(str(value))
        except DurationError as error:
            self.fail(str(error), param, ctx)
        if not 0 < found <= LONGEST:
            self.fail(f"{value!r} must be longer than zero and not longer than ten years", param, ctx)
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
    then. Nothing outside is touched; hours pass in seconds. The same seed tells the same story, step by step. How to write
    one: docs/guide/stories.md.

    With --hunt no story is needed: from SEED on, N worlds are made up, with faults of every kind in them and checkers that
    watch, two hours each. A seed that breaks a rule prints the last steps before, and how to play it again.

    """
    if story is None and hunted is None:
        raise click.UsageError("name a STORY, or say --hunt N to play made-up worlds")
    if story is not None and hunted is not None:
        raise click.UsageError("say either a STORY or --hunt, not both: a hunt makes up its own worlds")
    _refuse_idle_options(hunted is not None, {"--for": length, "--tell": tell}, {"--jobs": jobs})
    if hunted is not None:
        from joiner.cli.simulate import hunt

        hunt.run(seed, hunted, jobs, trace_path, form)
        return
    assert story is not None
    told = _read(story)
    if length is not None:
        told = replace(told, ends=length)
    speak = form == TABLE if tell is None else tell
    summary = _play(told, seed, _teller(form) if speak else None, trace_path)
    if form == JSON:
        output.data(report.data(summary), JSON, "StoryReport")
    else:
        report.show(summary)
    if not summary.true:
        sys.exit(1)


def _refuse_idle_options(hunts: bool, of_stories: dict[str, Any], of_hunts: dict[str, Any]) -> None:
    """Nobody should believe that an option did something when it did not."""
    for name, value in (of_stories if hunts else of_hunts).items():
        if value is not None:
            raise click.UsageError(f"{name} is for {'stories' if hunts else 'hunts'} only")


def _read(path: Path) -> Story:
    file = path / "story.yaml" if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.ClickException(f"{file}: cannot be read: a story is text in UTF-8, and this is not") from None
    try:
        return prepared(text, str(file), file.parent)
    except StoryError as error:
        raise click.ClickException(f"this story cannot be told:\n{error}") from None


def _play(story: Story, seed: int, tell: Teller | None, trace_path: Path | None) -> Summary:
    bar = _Bar(story) if tell is None and sys.stderr.isatty() else None
    try:
        with steps_to(trace_path) as sink:
            return play(story, seed=seed, trace=Trace(sink=sink), progress=bar.at if bar else None, tell=tell)
    except (StoryError, Unplayable) as error:
        raise click.ClickException(f"this story cannot be told:\n{error}") from None
    finally:
        if bar is not None:
            bar.close()


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


def _teller(form: str) -> Teller:
    """Tells as it happens; beside the data, where data are asked for."""

    def tell(seconds: float, text: str) -> None:
        click.echo(f"{clock_time(seconds)}  {output.safe(text)}", err=form != TABLE)

    return tell
