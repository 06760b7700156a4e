"""What people write and an API server would refuse, but offline has only one meaning.

The overlay design itself writes `matchExpressions` as one mapping and bare numbers as values. Both are read, with a warning
that the list form is the one to apply to a cluster.
"""

from collections.abc import Mapping
from typing import Any

from joiner.admission.problem import FieldProblem


def normalise(raw: object) -> tuple[Any, tuple[FieldProblem, ...]]:
    """The document in the form of its CRD, and warnings for what was changed. The input is left as it is.

    Only overlays and instance-type settings are touched. Numbers become the text they were written as, if they still
    know it (an attribute `text`), so that `0.40` stays `0.40`.
    """
    spec = raw.get("spec") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(spec, Mapping):
        return raw, ()
    warnings: list[FieldProblem] = []
    if raw.get("kind") == "NodeOverlay":
        return {**raw, "spec": _overlay(spec, warnings)}, tuple(warnings)
    if raw.get("kind") == "InstanceType" and isinstance(spec.get("offerings"), list):
        offerings = [_texts(entry) if isinstance(entry, Mapping) else entry for entry in spec["offerings"]]
        return {**raw, "spec": {**spec, "offerings": offerings}}, ()
    return dict(raw), ()


def _overlay(spec: Mapping[Any, Any], warnings: list[FieldProblem]) -> dict[Any, Any]:
    changed = dict(spec)
    if isinstance(spec.get("requirements"), list):
        changed["requirements"] = _expressions(spec["requirements"], "spec.requirements", warnings)
    selector = spec.get("selector")
    if isinstance(selector, Mapping):
        changed["selector"] = _selector(selector, warnings)
    return changed


def _selector(selector: Mapping[Any, Any], warnings: list[FieldProblem]) -> dict[Any, Any]:
    changed = dict(selector)
    path = "spec.selector.matchExpressions"
    expressions = selector.get("matchExpressions")
    if isinstance(expressions, Mapping):
        warnings.append(_warning(path, "is one mapping and was read as a list of one; a cluster takes only a list"))
        expressions = [expressions]
    if isinstance(expressions, list):
        changed["matchExpressions"] = _expressions(expressions, path, warnings)
    labels = selector.get("matchLabels")
    if isinstance(labels, Mapping):
        changed["matchLabels"] = {
            name: _warned_text(value, f"spec.selector.matchLabels[{name}]", warnings) for name, value in labels.items()
        }
    return changed


def _expressions(expressions: list[Any], path: str, warnings: list[FieldProblem]) -> list[Any]:
    changed = []
    for index, expression in enumerate(expressions):
        if isinstance(expression, Mapping) and isinstance(expression.get("values"), list):
            values = [
                _warned_text(value, f"{path}[{index}].values[{place}]", warnings)
                for place, value in enumerate(expression["values"])
            ]
            expression = {**expression, "values": values}
        changed.append(expression)
    return changed


def _warned_text(value: Any, path: str, warnings: list[FieldProblem]) -> Any:
    text = _text(value)
    if text is not value:
        warnings.append(_warning(path, f'is a number and was read as text; a cluster takes only text: "{text}"'))
    return text


def _texts(entry: Mapping[Any, Any]) -> dict[Any, Any]:
    return {name: _text(value) for name, value in entry.items()}


def _text(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return getattr(value, "text", None) or str(value)


def _warning(path: str, message: str) -> FieldProblem:
    return FieldProblem(path=path, message=message, severity="warning")
