"""What an API server would say about manifests: every problem of every object, with its file and line."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from joiner.admission.kinds import Kinds
from joiner.admission.problem import FieldProblem
from joiner.admission.validate import judge, normalise
from joiner.model.labels import Vocabulary
from joiner.offline.files import Documents, InputProblem
from joiner.yamldoc import Document, YamlProblem


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
class Validation:
    """What was found in everything that was read."""

    findings: tuple[Finding, ...]
    files: int
    checked: int
    passed_over: Counter[str]
    """How many objects of other kinds there are, by kind: they were not looked at."""

    def count(self, severity: str) -> int:
        """How many findings are of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def plus(self, findings: Iterable[Finding]) -> "Validation":
        """The same with more findings, file by file and line by line."""
        found = [*self.findings, *findings]
        order = {source: index for index, source in enumerate(dict.fromkeys(finding.source for finding in found))}
        found.sort(key=lambda finding: (order[finding.source], finding.line))
        return replace(self, findings=tuple(found))


def examine(manifests: Documents, kinds: Kinds, vocabulary: Vocabulary) -> Validation:
    """Judge every object that is ours, and what they are together."""
    findings = [_unreadable(problem) for problem in manifests.problems]
    others: Counter[str] = Counter()
    for item in manifests.objects:
        normal, noted = normalise(item.data)
        problems = (*noted, *judge(normal, kinds, vocabulary))
        findings.extend(finding(item, problem) for problem in problems)
        if not problems and not _is_ours(item, kinds):
            others[str(item.data.get("kind"))] += 1
    findings.extend(_twins(item for item in manifests.objects if _is_ours(item, kinds)))
    return Validation((), manifests.files, len(manifests.objects) - others.total(), others).plus(findings)


def _is_ours(item: Document, kinds: Kinds) -> bool:
    return kinds.find(item.data.get("apiVersion"), item.data.get("kind")) is not None


def _unreadable(problem: InputProblem | YamlProblem) -> Finding:
    line = problem.line if isinstance(problem, YamlProblem) else 0
    advice = f"; {problem.advice}" if problem.advice else ""
    return Finding(problem.source, line, "", "", "error", problem.message + advice)


def finding(item: Document, problem: FieldProblem) -> Finding:
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
            where = f"the same object stands at {known.source}:{known.line}"
            # A repository with a folder for each environment has the same objects in all of them, for different clusters.
            apart = PurePath(known.source).parent != PurePath(item.source).parent
            message = (
                f"{where}; in one cluster only one of them is kept"
                if apart
                else f"{where}; only one of them would be kept"
            )
            yield finding(
                item,
                FieldProblem(path="metadata.name", message=message, severity="warning" if apart else "error"),
            )
