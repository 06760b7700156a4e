"""Findings of validation as lines for people, and loading manifests with their warnings on standard error."""

from collections.abc import Iterable, Iterator
from typing import Final

from joiner.cli import output
from joiner.cli.output import Cell
from joiner.offline import manifests
from joiner.offline.manifests import Manifests, Unsound
from joiner.offline.validation import Finding

_COLOURS: Final = {"error": "red", "warning": "yellow"}

Line = tuple[str | Cell, ...]


def told(finding: Finding) -> Iterator[Line]:
    """A finding in lines for people, each in parts that `output.echo` puts together."""
    place = f"{finding.source}:{finding.line}" if finding.line else finding.source
    what = ": ".join(part for part in (finding.object, finding.field, finding.message) if part)
    yield f"{place}: ", Cell(finding.severity, _COLOURS[finding.severity]), f": {what}"
    if finding.nearest:
        yield (f"    did you mean: {finding.nearest}",)
    if finding.allowed:
        yield (f"    allowed: {', '.join(finding.allowed)}",)


def load(filenames: Iterable[str]) -> Manifests:
    """The objects of the named files. Notes and warnings go to standard error; errors are raised, all of them at once."""
    try:
        found = manifests.load(filenames)
    except Unsound as error:
        _note((note,) for note in error.notes)
        lines = (map(output.text, line) for finding in error.findings for line in told(finding))
        raise Unsound("\n".join([str(error), *map("".join, lines)])) from None
    _note((note,) for note in found.notes)
    _note(line for finding in found.warnings for line in told(finding))
    return found


def _note(lines: Iterable[Line]) -> None:
    for line in lines:
        output.echo(*line, err=True)
