"""`joiner validate`: the API server's judgement on manifests, without an API server, and all of it at once."""

from typing import Any

import click

from joiner.cli import inputs, output
from joiner.cli.findings import told
from joiner.offline import files, references
from joiner.offline.kinds import known
from joiner.offline.validation import Validation, examine, finding

EPILOG = """\b
Examples:
  joiner validate nodepool.yaml overlays.yaml
  joiner validate -f manifests/
  kubectl get nodepools -o yaml | joiner validate -f -
  joiner validate -f manifests/ --strict -o json

\b
Exit codes:
  0  no errors (and no warnings, with --strict)
  1  at least one
  2  wrong usage of the command line
"""


@click.command("validate", short_help="Check manifests and print every problem at once.", epilog=EPILOG)
@click.argument("arguments", nargs=-1, type=click.Path(allow_dash=True), metavar="[FILE]...")
@inputs.option
@click.option("--strict", is_flag=True, help="Let warnings fail, too.")
@output.option()
@click.pass_context
def command(
    ctx: click.Context, arguments: tuple[str, ...], filenames: tuple[str, ...], strict: bool, form: str
) -> None:
    """Check manifests by the rules of the API server, offline.

    Every problem is printed with its file and line, the object, the field, what is wrong and what is allowed. Objects of
    kinds that are not Joiner's (a Deployment, say) are passed over and counted.
    """
    named = (*arguments, *filenames)
    if not named:
        raise click.UsageError("Name a file or folder: joiner validate FILE, or -f PATH, or -f - for standard input.")
    manifests = files.read(named)
    for note in manifests.notes:
        output.echo(note, err=True)
    kinds, vocabulary = known()
    verdict = examine(manifests, kinds, vocabulary)
    between = references.problems(manifests.objects, kinds)
    verdict = verdict.plus(finding(item, problem) for item, problem in between)
    if form == output.TABLE:
        _print(verdict)
    else:
        output.data(_as_data(verdict), form, "ValidationReport")
    if verdict.count("error") or (strict and verdict.findings):
        ctx.exit(1)


def _print(verdict: Validation) -> None:
    for found in verdict.findings:
        for line in told(found):
            output.echo(*line)
    output.echo(_summary(verdict))


def _summary(verdict: Validation) -> str:
    errors, warnings = verdict.count("error"), verdict.count("warning")
    checked = f"{_counted(verdict.checked, 'object')} checked in {_counted(verdict.files, 'file')}"
    others = f", {verdict.passed_over} of other kinds passed over" if verdict.passed_over else ""
    found = ", ".join(_counted(count, word) for count, word in ((errors, "error"), (warnings, "warning")) if count)
    nothing = "no problems" if verdict.checked else "nothing was checked"
    return f"{checked}{others}: {found or nothing}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _as_data(verdict: Validation) -> dict[str, Any]:
    return {
        "problems": [
            {
                "file": finding.source,
                "line": finding.line or None,
                "object": finding.object or None,
                "field": finding.field or None,
                "severity": finding.severity,
                "message": finding.message,
                "allowed": list(finding.allowed),
                "nearest": finding.nearest or None,
            }
            for finding in verdict.findings
        ],
        "summary": {
            "files": verdict.files,
            "checked": verdict.checked,
            "passedOver": verdict.passed_over,
            "errors": verdict.count("error"),
            "warnings": verdict.count("warning"),
        },
    }
