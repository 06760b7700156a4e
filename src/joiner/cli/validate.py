"""`joiner validate`: the API server's judgement on manifests, without an API server, and all of it at once."""

from typing import Any, Final

import click

from joiner.cli import inputs, output
from joiner.cli.findings import as_data, told
from joiner.offline import files, references
from joiner.offline.kinds import known
from joiner.offline.validation import Validation, examine, finding

_SHOWN_KINDS: Final = 5

EPILOG = """\b
Examples:
  joiner validate nodepool.yaml overlays.yaml
  joiner validate -f manifests/
  kubectl get nodepools -o yaml | joiner validate -f -
  joiner validate -f manifests/ --strict -o json

\b
Exit codes:
  0  no errors (with --strict: no warnings either, and something was checked)
  1  at least one
  2  wrong usage of the command line
"""


@click.command("validate", short_help="Check manifests and print every problem at once.", epilog=EPILOG)
@click.argument("arguments", nargs=-1, type=click.Path(allow_dash=True), metavar="[FILE]...")
@inputs.option
@click.option("--strict", is_flag=True, help="Let warnings fail, too, and files in which there is nothing to check.")
@output.option()
@click.pass_context
def command(
    ctx: click.Context, arguments: tuple[str, ...], filenames: tuple[str, ...], strict: bool, form: str
) -> None:
    """Check manifests by the rules of the API server, offline.

    Every problem is printed with its file and line, the object, the field, what is wrong and what is allowed. Objects of
    kinds that are not Joiner's (a Deployment, say) are not looked at, and counted by kind.
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
    if verdict.count("error") or (strict and (verdict.findings or not verdict.checked)):
        ctx.exit(1)


def _print(verdict: Validation) -> None:
    for found in verdict.findings:
        for line in told(found):
            output.echo(*line)
    output.echo(_summary(verdict))


def _summary(verdict: Validation) -> str:
    errors, warnings = verdict.count("error"), verdict.count("warning")
    checked = f"{_counted(verdict.checked, 'object')} checked in {_counted(verdict.files, 'file')}"
    others = f", {_others(verdict)} not looked at" if verdict.passed_over else ""
    found = ", ".join(_counted(count, word) for count, word in ((errors, "error"), (warnings, "warning")) if count)
    nothing = "no problems" if verdict.checked else "nothing was checked"
    return f"{checked}{others}: {found or nothing}"


def _others(verdict: Validation) -> str:
    """How many objects are of other kinds, and of which."""
    common = verdict.passed_over.most_common()
    kinds = [f"{count} {kind}" for kind, count in common[:_SHOWN_KINDS]]
    rest = sum(count for _, count in common[_SHOWN_KINDS:])
    return (
        f"{verdict.passed_over.total()} of other kinds ({', '.join([*kinds, *([f'{rest} others'] if rest else [])])})"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _as_data(verdict: Validation) -> dict[str, Any]:
    return {
        "problems": [as_data(finding) for finding in verdict.findings],
        "passedOver": dict(sorted(verdict.passed_over.items())),
        "summary": {
            "files": verdict.files,
            "checked": verdict.checked,
            "passedOver": verdict.passed_over.total(),
            "errors": verdict.count("error"),
            "warnings": verdict.count("warning"),
        },
    }
