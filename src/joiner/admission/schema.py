"""From a class of the model to the schema of its JSON, and from there to OpenAPI as CRDs carry it."""

import types
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from joiner.model import quantity
from joiner.model.conditions import Condition
from joiner.model.customobject import CustomObject
from joiner.model.duration import Duration
from joiner.model.meta import Value
from joiner.model.quantity import Quantity
from joiner.model.rules import Field, OpenObject, Rule


class Shape(Enum):
    """What kind of JSON a value is."""

    OBJECT = "object"
    MAP = "map"
    LIST = "array"
    TEXT = "string"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    QUANTITY = "quantity"
    INTEGER_OR_TEXT = "integer or text"
    SCALAR = "scalar"
    """Any single value. The API server takes whatever is there; the judge and the controllers look closer."""


class Schema(Value):
    """The shape of a JSON value, what constrains it, and the schemas of its parts."""

    shape: Shape
    description: str = ""
    field: Field = Field()
    choices: tuple[str, ...] = ()
    properties: "Mapping[str, Schema]" = {}
    element: "Schema | None" = None
    """Of every entry of a list or map."""
    is_open: bool = False
    """Of an object: whether fields that are not among its properties are kept."""

    @property
    def required(self) -> tuple[str, ...]:
        """Fields that must be there."""
        return tuple(name for name, part in self.properties.items() if part.field.required)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What must hold of the value as a whole."""
        return self.field.rules


_CONDITION: Final = Schema(
    shape=Shape.OBJECT,
    properties={
        "type": Schema(
            shape=Shape.TEXT, description="What the condition is about.", field=Field(required=True, max_length=316)
        ),
        "status": Schema(
            shape=Shape.TEXT,
            description="Whether it holds.",
            choices=("True", "False", "Unknown"),
            field=Field(required=True),
        ),
        "reason": Schema(
            shape=Shape.TEXT,
            description="Why, in one word.",
            field=Field(
                required=True,
                pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                words="one word",
                min_length=1,
                max_length=1024,
            ),
        ),
        "message": Schema(
            shape=Shape.TEXT, description="Why, in a sentence.", field=Field(required=True, max_length=32768)
        ),
        "lastTransitionTime": Schema(
            shape=Shape.TEXT,
            description="When the status last changed.",
            field=Field(required=True, format="date-time"),
        ),
        "observedGeneration": Schema(
            shape=Shape.INTEGER,
            description="The generation of the object that was judged.",
            field=Field(minimum=0, format="int64"),
        ),
    },
)
"""As every Kubernetes API publishes it; the class has defaults where the API has none."""

_PLAIN: Final[Mapping[Any, Schema]] = {
    str: Schema(shape=Shape.TEXT),
    int: Schema(shape=Shape.INTEGER),
    bool: Schema(shape=Shape.BOOLEAN),
    Duration: Schema(shape=Shape.TEXT),
    datetime: Schema(shape=Shape.TEXT, field=Field(format="date-time")),
    Quantity: Schema(shape=Shape.QUANTITY, field=Field(pattern=quantity.PATTERN, max_length=64)),
    Condition: _CONDITION,
    frozenset({str, int}): Schema(shape=Shape.INTEGER_OR_TEXT),
    frozenset({str, int, float}): Schema(shape=Shape.SCALAR),
}


@cache
def schema_of(kind: type[CustomObject]) -> Schema:
    """The schema of everything but `apiVersion`, `kind` and `metadata`, which every object has."""
    whole = _object(kind)
    parts = {name: part for name, part in whole.properties.items() if name != "metadata"}
    return Schema(shape=Shape.OBJECT, description=kind.title, properties=parts, field=whole.field)


def _object(kind: type[Value]) -> Schema:
    hints = get_type_hints(kind, include_extras=True)
    parts = {}
    for field in msgspec.structs.fields(kind):
        part = _schema(hints[field.name])
        parts[field.encode_name] = _constrained(part, Field(required=True)) if field.required else part
    return Schema(shape=Shape.OBJECT, properties=parts, field=Field(rules=getattr(kind, "rules", ())))


def _schema(hint: Any) -> Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(_schema(arguments[0]), arguments[1:])
    if origin in (Union, types.UnionType):
        kinds = [kind for kind in arguments if kind is not types.NoneType]
        return _schema(kinds[0]) if len(kinds) == 1 else _PLAIN[frozenset(kinds)]
    if hint is Any:
        return Schema(shape=Shape.SCALAR)
    if origin is Literal:
        return Schema(shape=Shape.TEXT, choices=arguments)
    if origin is tuple:
        return Schema(shape=Shape.LIST, element=_schema(arguments[0]))
    if origin is Mapping:
        return Schema(shape=Shape.MAP, element=_schema(arguments[1]))
    return _PLAIN[hint] if hint in _PLAIN else _object(hint)


def _annotated(schema: Schema, notes: tuple[Any, ...]) -> Schema:
    for note in notes:
        if isinstance(note, str):
            schema = msgspec.structs.replace(schema, description=note)
        elif isinstance(note, OpenObject):
            schema = msgspec.structs.replace(_object(note.known), description=schema.description, is_open=True)
        elif isinstance(note, Field):
            schema = _constrained(schema, note)
    return schema


def _constrained(schema: Schema, field: Field) -> Schema:
    return msgspec.structs.replace(schema, field=field.over(schema.field))


# -- OpenAPI ---------------------------------------------------------------------------------------------------------------


_WRITTEN_SHAPES: Final[Mapping[Shape, Mapping[str, Any]]] = {
    Shape.MAP: {"type": "object"},
    Shape.QUANTITY: {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
    Shape.INTEGER_OR_TEXT: {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
    Shape.SCALAR: {"x-kubernetes-preserve-unknown-fields": True},
}


def openapi(schema: Schema) -> dict[str, Any]:
    """The schema as OpenAPI v3, in the structural form that CRDs need."""
    written: dict[str, Any] = {"description": schema.description} if schema.description else {}
    written |= _WRITTEN_SHAPES.get(schema.shape, {"type": schema.shape.value})
    written |= _constraints(schema)
    if schema.shape is Shape.OBJECT:
        written["properties"] = {name: openapi(schema.properties[name]) for name in sorted(schema.properties)}
        if schema.required:
            written["required"] = sorted(schema.required)
        if schema.is_open:
            written["x-kubernetes-preserve-unknown-fields"] = True
    elif schema.element is not None:
        written["items" if schema.shape is Shape.LIST else "additionalProperties"] = openapi(schema.element)
    if schema.rules:
        written["x-kubernetes-validations"] = [_written_rule(rule) for rule in schema.rules]
    return written


def _constraints(schema: Schema) -> dict[str, Any]:
    field = schema.field
    named: dict[str, Any] = {
        "default": field.default,
        "enum": list(schema.choices) or None,
        "format": field.format or None,
        "pattern": field.pattern or None,
        "minLength": field.min_length,
        "maxLength": field.max_length,
        "minimum": field.minimum,
        "maximum": field.maximum,
        "minItems": field.min_items,
        "maxItems": field.max_items,
        "maxProperties": field.max_properties,
        "x-kubernetes-list-type": field.list_type or None,
        "x-kubernetes-list-map-keys": list(field.list_keys) or None,
    }
    return {name: value for name, value in named.items() if value is not None}


def _written_rule(rule: Rule) -> dict[str, Any]:
    written = {"rule": rule.cel, "message": rule.message}
    return {**written, "fieldPath": rule.field} if rule.field else written
