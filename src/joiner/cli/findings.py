"""Findings of validation as lines for people, and loading manifests with their warnings on standard error."""

from collections.abc import Iterable, Iterator

import click

from joiner.cli import output
from joiner.offline import manifests
from joiner.offline.manifests import Manifests, Unsound
from joiner.offline.validation import Finding


def told(finding: Finding) -> Iterator[str]:
    """A finding in lines for people."""
    colours = {"error": "red", "warning": "yellow"}
    place = f"{finding.source}:{finding.line}" if finding.line else finding.source
    what = ": ".join(part for part in (finding.object, finding.field, finding.message) if part)
    severity = output.styled(finding.severity, colours[finding.severity])
    yield f"{output.safe(place)}: {severity}: {output.safe(what)}"
    if finding.nearest:
        yield f"    did you mean: {output.safe(finding.nearest)}"
    if finding.allowed:
        yield f"    allowed: {output.safe(', '.join(finding.allowed))}"


def load(filenames: Iterable[str]) -> Manifests:
    """The objects of the named files. Notes and warnings go to standard error; errors are raised, all of them at once."""
    try:
        found = manifests.load(filenames)
    except Unsound as error:
        _note(error.notes)
        raise Unsound("\n".join([str(error), *(line for each in error.findings for line in told(each))])) from None
    _note(found.notes)
    _note(line for each in found.warnings for line in told(each))
    return found


def _note(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line, err=True)
