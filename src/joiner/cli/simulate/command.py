"""`joiner simulate`: a story, played in the embedded cluster on virtual time."""

import sys
from pathlib import Path
from typing import Any

import click

from joiner.cli import inputs, output
from joiner.cli.output import JSON, TABLE
from joiner.cli.simulate import report
from joiner.cli.simulate.progress import StoryProgress
from joiner.cli.simulate.tracefile import steps_to
from joiner.model.duration import Duration, DurationError
from joiner.model.meta import replace
from joiner.sim.hunt.worseworlds import WORSE
from joiner.sim.story.document.format import Story, StoryError
from joiner.sim.story.document.limits import LONGEST
from joiner.sim.story.document.manifests import StoryManifests
from joiner.sim.story.phrases import clock_time
from joiner.sim.story.player import play
from joiner.sim.story.report.narrator import Teller
from joiner.sim.story.report.summary import Summary
from joiner.sim.story.steps import Unplayable
from joiner.sim.story.validation import prepared
from joiner.sim.trace import Trace

EPILOG = """\b
Examples:
  joiner simulate examples/19-an-hour-of-a-web-shop
  joiner simulate story.yaml --seed 7 --for 24h -o json
  joiner simulate story.yaml --instance-types ec2/us-east-1
  joiner simulate story.yaml --trace steps.txt
  joiner simulate --hunt 200
  joiner simulate --hunt 50 --worse outage

\b
Exit codes:
  0  everything came as the story says; a hunt found nothing
  1  something did not, or the story cannot be told: the message says what
  2  wrong usage of the command line
  130  a hunt was stopped from the keyboard: what it found until then is shown
"""

_OF_MANIFESTS = (
    "simulate plays a story, one YAML document; of manifests in a folder it is"
    " {story: my manifests, given: {manifests: [folder]}, for: 2h} (docs/guide/stories.md)"
)


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
@click.argument("story", type=click.Path(path_type=Path), required=False)
@inputs.catalogue_option
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="What chance decides.")
@click.option(
    "--hunt", "hunted", type=click.IntRange(min=1), metavar="N", help="Play N made-up worlds full of faults instead."
)
@click.option(
    "--worse",
    type=click.Choice(sorted(WORSE)),
    help="Make the worlds of a hunt worse: " + "; ".join(f"{name}: {WORSE[name]}" for name in sorted(WORSE)) + ".",
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
    catalogue: str | None,
    seed: int,
    hunted: int | None,
    worse: str | None,
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
    of_stories = {"--for": length, "--tell": tell, "--instance-types": catalogue}
    _refuse_idle_options(hunted is not None, of_stories, {"--jobs": jobs, "--worse": worse})
    if hunted is not None:
        from joiner.cli.simulate import hunt

        hunt.run(seed, hunted, worse or "", jobs, trace_path, form)
        return
    assert story is not None
    told = _read(story, catalogue)
    if length is not None:
        told = replace(told, ends=length)
    speak = form == TABLE if tell is None else tell
    for note in StoryManifests(told).notes():
        output.echo(output.Cell("note", "yellow"), f": {note}", err=True)
    summary = _play(told, seed, _teller(form) if speak else None, trace_path)
    if form == JSON:
        output.data(report.data(summary), JSON, "StoryReport")
    else:
        report.show(summary)
    if not summary.true:
        sys.exit(1)


def _refuse_idle_options(hunts: bool, of_stories: dict[str, Any], of_hunts: dict[str, Any]) -> None:
    """An option that would do nothing is an error."""
    for name, value in (of_stories if hunts else of_hunts).items():
        if value is not None:
            raise click.UsageError(f"{name} is for {'stories' if hunts else 'hunts'} only")


def _read(path: Path, catalogue: str | None) -> Story:
    file = path / "story.yaml" if path.is_dir() else path
    if path.is_dir() and not file.exists():
        raise click.ClickException(output.safe(f"{path}: has no story.yaml. {_OF_MANIFESTS}"))
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise click.ClickException(output.safe(f"{file}: cannot be read: {error.strerror}")) from None
    except UnicodeDecodeError:
        raise click.ClickException(f"{file}: cannot be read: a story is text in UTF-8, and this is not") from None
    try:
        return prepared(text, str(file), file.parent, catalogue or "")
    except StoryError as error:
        raise _untold(error) from None


def _untold(error: Exception) -> click.ClickException:
    """What is wrong with a story. Names in it come from a file, and must not steer a terminal."""
    return click.ClickException("\n".join(["this story cannot be told:", *map(output.safe, str(error).split("\n"))]))


def _play(story: Story, seed: int, tell: Teller | None, trace_path: Path | None) -> Summary:
    progress = None if tell is not None else StoryProgress(story.ends.seconds)
    try:
        with steps_to(trace_path) as sink:
            at = progress.at if progress is not None else None
            return play(story, seed=seed, trace=Trace(sink=sink), progress=at, tell=tell)
    except (StoryError, Unplayable) as error:
        raise _untold(error) from None
    finally:
        if progress is not None:
            progress.close()


def _teller(form: str) -> Teller:
    """Tells as it happens; beside the data, where data are asked for."""

    def tell(seconds: float, text: str) -> None:
        click.echo(f"{clock_time(seconds)}  {output.safe(text)}", err=form != TABLE)

    return tell
