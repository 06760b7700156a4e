"""What an API server makes of an object before it looks at it: nulls dropped, defaults filled in."""

from collections.abc import Mapping
from typing import Any

from joiner.admission.schema import Schema, Shape


def with_defaults(schema: Schema, value: Any) -> Any:
    """The value with defaults, as a copy. A field that is null counts as absent, as for an API server."""
    if isinstance(value, Mapping):
        return _mapping(schema, value)
    if isinstance(value, list) and schema.shape is Shape.LIST and schema.element is not None:
        return [with_defaults(schema.element, item) for item in value]
    return value


def _mapping(schema: Schema, value: Mapping[Any, Any]) -> dict[Any, Any]:
    filled = {}
    for name, part in value.items():
        below = schema.properties.get(name) if schema.shape is Shape.OBJECT else schema.element
        if part is None and below is not None:
            continue
        filled[name] = part if below is None else with_defaults(below, part)
    for name, below in schema.properties.items():
        if name not in filled and below.field.default is not None:
            filled[name] = with_defaults(below, below.field.default)
    return filled
