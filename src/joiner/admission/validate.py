"""Offline validation: everything that is wrong with a document, found with the schema and rules its CRD is made of."""

from collections.abc import Mapping
from typing import Any, Final

from joiner.admission.defaults import with_defaults
from joiner.admission.identity import check_metadata, identify
from joiner.admission.kinds import Kinds
from joiner.admission.normalise import normalise
from joiner.admission.problem import FieldProblem
from joiner.admission.runtime import runtime_problems
from joiner.admission.schema import schema_of
from joiner.admission.schemacheck import Found, check
from joiner.model import codec
from joiner.model.customobject import CustomObject
from joiner.model.labels import Vocabulary
from joiner.model.meta import replace

__all__ = ["at_the_door", "judge", "normalise"]

_EVERY_OBJECT: Final = frozenset({"apiVersion", "kind", "metadata"})


def judge(raw: object, kinds: Kinds, vocabulary: Vocabulary, *, old: object = None) -> tuple[FieldProblem, ...]:
    """Every problem of one document, or nothing if it may enter, or is none of our kinds (ask `kinds.find`).

    Give the object as it was before as `old` to judge a change. Fields are checked first, then the rules between them, then
    what the controllers would find at run time; a place that is wrong already is not blamed again.
    """
    if not isinstance(raw, Mapping):
        return (FieldProblem(path="", message="must be a mapping with apiVersion, kind, metadata and spec"),)
    kind, problems = identify(raw, kinds)
    if kind is None:
        return problems
    seen = at_the_door(raw, kind, old)
    body = with_defaults(schema_of(kind), _body(raw))
    later = _at_run_time(raw, body, kind, vocabulary, is_refused=any(problem.is_error for problem in seen))
    return seen + tuple(problem for problem in later if not any(_same_place(problem.path, one.path) for one in seen))


def at_the_door(raw: Mapping[Any, Any], kind: type[CustomObject], old: object = None) -> tuple[FieldProblem, ...]:
    """What an API server finds wrong with a document of a kind of ours, and which of its fields it would drop."""
    found = Found()
    check_metadata(raw, found)
    schema = schema_of(kind)
    before = with_defaults(schema, _body(old)) if isinstance(old, Mapping) else None
    check(schema, with_defaults(schema, _body(raw)), "", found, before)
    return tuple(found.problems)


def _body(raw: Mapping[Any, Any]) -> dict[Any, Any]:
    return {name: part for name, part in raw.items() if name not in _EVERY_OBJECT}


def _at_run_time(
    raw: Mapping[Any, Any], body: dict[Any, Any], kind: type[CustomObject], vocabulary: Vocabulary, *, is_refused: bool
) -> tuple[FieldProblem, ...]:
    document, _ = normalise({"kind": raw["kind"], **body})
    try:
        subject = codec.decode(document, kind)
    except codec.DecodeError as error:
        # What was refused already is not readable for the reasons that were given.
        return () if is_refused else (FieldProblem(path=error.path, message=error.problem),)
    metadata = raw.get("metadata")
    noted = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if isinstance(noted, Mapping) and all(isinstance(each, str) for pair in noted.items() for each in pair):
        subject = replace(subject, metadata=replace(subject.metadata, annotations=dict(noted)))
    return runtime_problems(subject, vocabulary)


def _same_place(one: str, other: str) -> bool:
    """Whether one path is the other, or lies in it."""
    shorter, longer = sorted((one, other), key=len)
    return longer == shorter or (longer.startswith(shorter) and longer[len(shorter)] in ".[")
