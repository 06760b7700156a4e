"""What an API server makes of an object, from the committed CRDs alone: a small schema check and a CEL engine."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cel
import yaml

from joiner.admission.defaults import with_defaults
from joiner.admission.kinds import CORE_KINDS
from joiner.admission.schema import schema_of
from joiner.cloud.aws.nodeclass.ec2nodeclass import EC2NodeClass
from joiner.cloud.kwok.nodeclass import KWOKNodeClass

FOLDER = Path(__file__).parents[3] / "charts" / "joiner-crds" / "templates"
KINDS = CORE_KINDS.plus(KWOKNodeClass, EC2NodeClass)
_PYTHON = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


class Verdict(NamedTuple):
    """One rule, asked of one value."""

    path: str
    rule: str
    holds: bool


def _schemas() -> dict[str, dict[str, Any]]:
    crds = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.yaml"))]
    return {crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in crds}


SCHEMAS = _schemas()


def spec_of(document: dict[str, Any]) -> Any:
    """The part of an object that is judged, with its defaults."""
    kind = KINDS.find(document["apiVersion"], document["kind"])
    assert kind is not None
    body = {name: part for name, part in document.items() if name not in ("apiVersion", "kind", "metadata")}
    return json.loads(json.dumps(with_defaults(schema_of(kind), body)))


def errors(schema: dict[str, Any], value: Any, path: str = "") -> Iterator[str]:
    """What the schema alone refuses. Unknown fields are dropped, as a server does."""
    if not _is_typed(schema, value):
        yield f"{path}: type"
        return
    yield from (f"{path}: {name}" for name, wrong in _constraints(schema, value) if wrong)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: required"
    for part, item, place, _ in parts(schema, value, path, None):
        yield from errors(part, item, place)


def _is_typed(schema: dict[str, Any], value: Any) -> bool:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return True
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    return isinstance(value, _PYTHON[schema["type"]]) and isinstance(value, bool) == (schema["type"] == "boolean")


def _constraints(schema: dict[str, Any], value: Any) -> Iterator[tuple[str, bool]]:
    yield "enum", "enum" in schema and value not in schema["enum"]
    if isinstance(value, str):
        yield "pattern", re.fullmatch(schema.get("pattern", "(?s).*"), value, re.ASCII) is None
        yield "length", not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
        yield "moment", schema.get("format") == "date-time" and not re.match("[0-9]{4}-[0-9]{2}-[0-9]{2}T", value)
    elif isinstance(value, int):
        yield "bounds", not schema.get("minimum", value) <= value <= schema.get("maximum", value)
    elif isinstance(value, list):
        keys = schema.get("x-kubernetes-list-map-keys")
        identities = [repr([item.get(key) for key in keys] if keys else item) for item in value]
        yield "items", not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        yield "repeated", "x-kubernetes-list-type" in schema and len(set(identities)) < len(identities)
    elif isinstance(value, dict):
        yield "properties", len(value) > schema.get("maxProperties", len(value))


def parts(schema: dict[str, Any], value: Any, path: str, old: Any) -> Iterator[tuple[dict[str, Any], Any, str, Any]]:
    if isinstance(value, list) and "items" in schema:
        yield from ((schema["items"], item, f"{path}[{index}]", None) for index, item in enumerate(value))
    elif isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for name, item in value.items():
            if name in schema.get("properties", {}):
                place = f"{path}.{name}" if path else name
                yield schema["properties"][name], item, place, before.get(name)
            elif "additionalProperties" in schema:
                yield schema["additionalProperties"], item, f"{path}[{name}]", before.get(name)


def verdicts(schema: dict[str, Any], value: Any, old: Any = None, path: str = "") -> Iterator[Verdict]:
    """Every CEL rule of the CRD, run on every value it is about."""
    for rule in schema.get("x-kubernetes-validations", ()):
        if "oldSelf" in rule["rule"] and old is None:
            continue
        yield Verdict(path, rule["rule"], bool(cel.evaluate(rule["rule"], {"self": value, "oldSelf": old})))
    for part, item, place, before in parts(schema, value, path, old):
        yield from verdicts(part, item, before, place)


def rules(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Every rule of a CRD with its place."""
    yield from ((path, rule["rule"]) for rule in schema.get("x-kubernetes-validations", ()))
    below = {**schema.get("properties", {}), "[]": schema.get("items"), "[*]": schema.get("additionalProperties")}
    for name, part in below.items():
        if part:
            yield from rules(part, f"{path}{name}" if name.startswith("[") else f"{path}.{name}".strip("."))
