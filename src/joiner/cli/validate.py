"""`joiner validate`: the API server's judgement on manifests, without an API server, and all of it at once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import click

from joiner.admission.judge import judge, normalise
from joiner.admission.kinds import Kinds
from joiner.admission.problem import Problem
from joiner.cli import inputs, output, references
from joiner.cli.inputs import InputProblem
from joiner.cli.kinds import known
from joiner.model.labels import Vocabulary
from joiner.yamldoc import Document, YamlProblem

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


@dataclass(frozen=True)
class Finding:
    """One problem, with the place a person looks for it."""

    source: str
    line: int
    """Nothing (0) when it concerns the whole file."""
    object: str
    field: str
    severity: str
    message: str
    allowed: tuple[str, ...] = ()
    nearest: str = ""


@dataclass(frozen=True)
class Verdict:
    """What was found in everything that was read."""

    findings: tuple[Finding, ...]
    files: int
    checked: int
    passed_over: int

    def count(self, severity: str) -> int:
        """How many findings are of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def plus(self, findings: Iterable[Finding]) -> "Verdict":
        """The same with more findings, file by file and line by line."""
        found = [*self.findings, *findings]
        order = {source: index for index, source in enumerate(dict.fromkeys(finding.source for finding in found))}
        found.sort(key=lambda finding: (order[finding.source], finding.line))
        return replace(self, findings=tuple(found))


@click.command("validate", short_help="Check manifests and print every problem at once.", epilog=EPILOG)
@click.argument("files", nargs=-1, type=click.Path(allow_dash=True), metavar="[FILE]...")
@inputs.option
@click.option("--strict", is_flag=True, help="Let warnings fail, too.")
@output.option()
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], filenames: tuple[str, ...], strict: bool, form: str) -> None:
    """Check manifests by the rules of the API server, offline.

    Every problem is printed with its file and line, the object, the field, what is wrong and what is allowed. Objects of
    kinds that are not Joiner's (a Deployment, say) are passed over and counted.
    """
    named = (*files, *filenames)
    if not named:
        raise click.UsageError("Name a file or folder: joiner validate FILE, or -f PATH, or -f - for standard input.")
    manifests = inputs.read(named)
    kinds, vocabulary = known()
    verdict = examine(manifests, kinds, vocabulary)
    between = references.problems(manifests.objects, kinds)
    verdict = verdict.plus(finding(item, problem) for item, problem in between)
    if form == output.TABLE:
        _print(verdict)
    else:
        output.data(_as_data(verdict), form)
    if verdict.count("error") or (strict and verdict.findings):
        ctx.exit(1)


def examine(manifests: inputs.Manifests, kinds: Kinds, vocabulary: Vocabulary) -> Verdict:
    """Judge every object that is ours, and what they are together."""
    findings = [_unreadable(problem) for problem in manifests.problems]
    others = 0
    for item in manifests.objects:
        normal, noted = normalise(item.data)
        problems = (*noted, *judge(normal, kinds, vocabulary))
        findings.extend(finding(item, problem) for problem in problems)
        others += not problems and not _is_ours(item, kinds)
    findings.extend(_twins(item for item in manifests.objects if _is_ours(item, kinds)))
    return Verdict((), manifests.files, len(manifests.objects) - others, others).plus(findings)


def _is_ours(item: Document, kinds: Kinds) -> bool:
    return kinds.find(item.data.get("apiVersion"), item.data.get("kind")) is not None


def _unreadable(problem: InputProblem | YamlProblem) -> Finding:
    line = problem.line if isinstance(problem, YamlProblem) else 0
    advice = f"; {problem.advice}" if problem.advice else ""
    return Finding(problem.source, line, "", "", "error", problem.message + advice)


def finding(item: Document, problem: Problem) -> Finding:
    """A problem of an object, with the place where it is written."""
    return Finding(
        item.source,
        item.line_of(problem.path),
        label(item),
        problem.path,
        problem.severity,
        problem.message,
        tuple(problem.allowed),
        problem.nearest or "",
    )


def label(item: Document) -> str:
    """How an object is called in messages: `NodePool/default`, or where in its List it is when it has no name."""
    metadata = item.data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    kind = item.data.get("kind")
    return f"{kind if isinstance(kind, str) else 'object'}/{name or item.inside or '(no name)'}"


def _twins(items: Iterable[Document]) -> Iterator[Finding]:
    """Two objects of one kind and name: the later would replace the earlier in the cluster."""
    first: dict[tuple[str, ...], Document] = {}
    for item in items:
        metadata: Any = item.data.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str):
            continue
        group = item.data["apiVersion"].rpartition("/")[0]
        known = first.setdefault((group, item.data["kind"], str(metadata.get("namespace")), name), item)
        if known is not item:
            message = f"the same object stands at {known.source}:{known.line}; only one of them would be kept"
            yield finding(item, Problem(path="metadata.name", message=message))


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


def _print(verdict: Verdict) -> None:
    for finding in verdict.findings:
        for line in told(finding):
            click.echo(line)
    click.echo(_summary(verdict))


def _summary(verdict: Verdict) -> str:
    errors, warnings = verdict.count("error"), verdict.count("warning")
    checked = f"{_counted(verdict.checked, 'object')} checked in {_counted(verdict.files, 'file')}"
    others = f", {verdict.passed_over} of other kinds passed over" if verdict.passed_over else ""
    found = ", ".join(_counted(count, word) for count, word in ((errors, "error"), (warnings, "warning")) if count)
    return f"{checked}{others}: {found or 'no problems'}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _as_data(verdict: Verdict) -> dict[str, Any]:
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
