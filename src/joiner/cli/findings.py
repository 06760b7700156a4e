"""Findings of validation as lines for people, and loading manifests with their warnings on standard error."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from joiner.cli import output
from joiner.cli.output import Cell
from joiner.offline import manifests
from joiner.offline.files import Documents
from joiner.offline.ignored import Ignored
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


def as_data(finding: Finding) -> dict[str, Any]:
    """A finding as plain data."""
    return {
        "file": finding.source,
        "line": finding.line or None,
        "object": finding.object or None,
        "field": finding.field or None,
        "severity": finding.severity,
        "message": finding.message,
        "allowed": list(finding.allowed),
        "nearest": finding.nearest or None,
    }


def ignored_data(ignored: Ignored) -> dict[str, Any]:
    """What was given and is not used, as plain data."""
    return {
        "kind": ignored.kind,
        "objects": list(ignored.objects),
        "field": ignored.field or None,
        "reason": ignored.reason,
    }


def load(filenames: Iterable[str], live: Documents | None = None) -> Manifests:
    """The objects of the named files and of a cluster that was read. Notes and warnings go to standard error.

    Errors are raised, all of them at once.
    """
    try:
        found = manifests.load(filenames, live)
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
