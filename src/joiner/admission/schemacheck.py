"""One walk over a JSON-like value beside its schema, collecting every problem on the way."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from joiner.admission.problem import FieldProblem, nearest
from joiner.admission.schema import Schema, Shape
from joiner.model import quantity
from joiner.model.rules import Field, Rule

_NAMES: Final[Mapping[Shape, str]] = {
    Shape.OBJECT: "a mapping",
    Shape.MAP: "a mapping",
    Shape.LIST: "a list",
    Shape.TEXT: "text",
    Shape.INTEGER: "a whole number",
    Shape.BOOLEAN: "true or false",
    Shape.QUANTITY: "a whole number, or an amount as text like 500m or 4Gi",
    Shape.INTEGER_OR_TEXT: "a whole number or text",
    Shape.SCALAR: "a single value: text or a number",
}
_PYTHON: Final[Mapping[Shape, tuple[type, ...]]] = {
    Shape.OBJECT: (Mapping,),
    Shape.MAP: (Mapping,),
    Shape.LIST: (list,),
    Shape.TEXT: (str,),
    Shape.INTEGER: (int,),
    Shape.BOOLEAN: (bool,),
    Shape.QUANTITY: (int, str),
    Shape.INTEGER_OR_TEXT: (int, str),
    Shape.SCALAR: (str, int, float),
}
_FORMER_FIELDS: Final[Mapping[str, str]] = {
    "kubelet": "kubelet settings are in spec.kubelet of the NodeClass",
    "kubeletConfiguration": "kubelet settings are in spec.kubelet of the NodeClass",
    "apiVersion": "write group, without the version",
    "provider": "what only the provider understands is in the NodeClass",
    "providerRef": "write nodeClassRef with group, kind and name",
    "expireAfter": "write it in spec.template.spec of the NodePool",
    "ttlSecondsAfterEmpty": "write consolidationPolicy: WhenEmpty and consolidateAfter in spec.disruption",
    "ttlSecondsUntilExpired": "write expireAfter in spec.template.spec",
    "consolidation": "write consolidationPolicy in spec.disruption",
}
"""Fields of older manifests, and where to go with them."""
_SIZES: Final = {"int32": 2**31, "int64": 2**63}
_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


class Found:
    """What a walk has found so far."""

    def __init__(self) -> None:
        self.problems: list[FieldProblem] = []

    def say(self, path: str, message: str, **more: Any) -> None:
        """One more problem."""
        self.problems.append(FieldProblem(path=path, message=message, **more))


def check(schema: Schema, value: Any, path: str, found: Found, old: Any = None) -> bool:
    """Collect what is wrong with a value that has its defaults; the answer is whether all shapes below are right.

    Rules are asked wherever the shapes allow it, even if a pattern or a bound is wrong elsewhere: people want to see
    everything at once. An API server would stop before the rules.
    """
    if not _has_shape(schema.shape, value):
        found.say(path, shape_message(schema.shape, value, schema.field))
        return False
    sound = _check_parts(schema, value, path, found, old)
    _check_value(schema, value, path, found)
    if sound:
        for rule in broken_rules(schema, value, old):
            for culprit in _culprits(rule, value):
                found.say(path + rule.field + culprit, rule.message)
    return sound


def broken_rules(schema: Schema, value: Any, old: Any = None) -> Iterator[Rule]:
    """The rules of this very value that do not hold. Rules about changes are asked only if there was an old value."""
    for rule in schema.rules:
        if rule.is_transition:
            if old is not None and not rule.holds(value, old):
                yield rule
        elif not rule.holds(value):
            yield rule


def _culprits(rule: Rule, value: Any) -> list[str]:
    allows = rule.allows_key
    return [""] if allows is None else [f"[{key}]" for key in value if not allows(key)]


def below(schema: Schema, value: Any, path: str, old: Any = None) -> Iterator[tuple[Schema, Any, str, Any]]:
    """The known parts of a mapping or list: schema, value, path, and the old value where the two can be told to belong."""
    if schema.shape is Shape.LIST and schema.element is not None:
        for index, item in enumerate(value):
            yield schema.element, item, f"{path}[{index}]", None
    elif isinstance(value, Mapping):
        before = old if isinstance(old, Mapping) else {}
        for name, item in value.items():
            part = schema.element if schema.shape is Shape.MAP else schema.properties.get(name)
            if part is not None:
                yield part, item, _joined(schema.shape, path, name), before.get(name)


def _joined(shape: Shape, path: str, name: Any) -> str:
    if shape is Shape.MAP:
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else str(name)


def _has_shape(shape: Shape, value: Any) -> bool:
    if isinstance(value, bool):
        return shape is Shape.BOOLEAN
    return isinstance(value, _PYTHON[shape])


def shape_message(shape: Shape, value: Any, field: Field | None = None) -> str:
    """What is said of a value that has not the shape it should have."""
    message = f"must be {_NAMES[shape]}, not {_shown_type(value)}"
    if shape not in (Shape.TEXT, Shape.SCALAR, Shape.QUANTITY) or not isinstance(value, bool | int | float):
        return message
    if isinstance(value, bool):
        word, others = ("true", '"yes", "on" or "y"') if value else ("false", '"no", "off" or "n"')
        return f'{message}; put it in quotes: "{word}", or {others} if that is what is written there'
    text = getattr(value, "text", str(value))
    if field and field.pattern and field.words and re.fullmatch(field.pattern, text, re.ASCII) is None:
        return f"{message}; it is {field.words}"
    return f'{message}; put it in quotes: "{text}"'


def _shown_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {_short(value)}"
        case Mapping():
            return "a mapping"
        case list():
            return "a list"
    return f"a {type(value).__name__}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _check_parts(schema: Schema, value: Any, path: str, found: Found, old: Any) -> bool:
    sound = True
    if isinstance(value, Mapping):
        sound = _check_names(schema, value, path, found)
    # Not a generator inside all(): that would stop at the first part that is wrong.
    for part in below(schema, value, path, old):
        sound = check(*part[:3], found, part[3]) and sound
    return sound


def _check_names(schema: Schema, value: Mapping[Any, Any], path: str, found: Found) -> bool:
    sound = True
    for name in value:
        if not isinstance(name, str):
            sound = False
            found.say(_joined(schema.shape, path, name), f'the name {name!r} must be text; put it in quotes: "{name}"')
        elif schema.shape is Shape.OBJECT and name not in schema.properties and not schema.is_open:
            _say_unknown(schema, name, path, found)
    for name in schema.required:
        if name not in value:
            part = schema.properties[name]
            found.say(
                _joined(schema.shape, path, name), f"is missing; it must be {_NAMES[part.shape]}", allowed=part.choices
            )
    return sound


def _say_unknown(schema: Schema, name: str, path: str, found: Found) -> None:
    lost = "there is no such field; an API server drops it silently"
    if name in _FORMER_FIELDS:
        found.say(_joined(schema.shape, path, name), f"{lost}; {_FORMER_FIELDS[name]}")
        return
    deeper = _find_below(schema, name)
    likely = _joined(schema.shape, path, deeper) if deeper else nearest(name, schema.properties)
    found.say(_joined(schema.shape, path, name), lost, allowed=tuple(schema.properties), nearest=likely)


def _find_below(schema: Schema, name: str) -> str | None:
    """Where further down a field of this name is, if it is in one place only: people leave out levels."""
    places = [
        f"{parent}.{place}"
        for parent, part in schema.properties.items()
        if part.shape is Shape.OBJECT and parent != "status"
        for place in ([name] if name in part.properties else [_find_below(part, name)])
        if place
    ]
    return places[0] if len(places) == 1 else None


def _check_value(schema: Schema, value: Any, path: str, found: Found) -> None:
    if schema.choices and value not in schema.choices:
        found.say(
            path,
            f"{_short(value)} is not one of the allowed values",
            allowed=schema.choices,
            nearest=nearest(value, schema.choices),
        )
    for complaint in _complaints(schema.shape, schema.field, value):
        found.say(path, complaint)


def _complaints(shape: Shape, field: Field, value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from _text_complaints(shape, field, value)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from _number_complaints(field, value)
    elif isinstance(value, list):
        if field.min_items is not None and len(value) < field.min_items:
            yield "must not be empty" if field.min_items == 1 else f"must have at least {field.min_items} entries"
        if field.max_items is not None and len(value) > field.max_items:
            yield f"has {len(value)} entries; at most {field.max_items} are allowed"
        yield from _repetitions(field, value)
    elif isinstance(value, Mapping) and field.max_properties is not None and len(value) > field.max_properties:
        yield f"has {len(value)} entries; at most {field.max_properties} are allowed"


def _text_complaints(shape: Shape, field: Field, text: str) -> Iterator[str]:
    if field.max_length is not None and len(text) > field.max_length:
        yield f"has {len(text)} characters; at most {field.max_length} are allowed"
        return  # an endless text is not worth matching
    unreadable = _quantity_problem(text) if shape is Shape.QUANTITY else None
    if unreadable:
        yield unreadable
    elif field.min_length is not None and len(text) < field.min_length:
        yield "must not be empty" if field.min_length == 1 else f"must have at least {field.min_length} characters"
    elif field.pattern and re.fullmatch(field.pattern, text, re.ASCII) is None:
        yield (
            f"{_short(text)} is not {field.words}" if field.words else f"{_short(text)} does not match {field.pattern}"
        )
    elif field.format == "date-time" and not _is_moment(text):
        yield f"is {_short(text)}, but must be a moment like 2026-01-31T18:00:00Z"


def _number_complaints(field: Field, number: int) -> Iterator[str]:
    size = _SIZES.get(field.format or "int64", 2**63)
    if not -size <= number < size:
        yield f"{number} is out of range for a whole number of this field"
    elif field.minimum is not None and field.maximum is not None and not field.minimum <= number <= field.maximum:
        yield f"{number} is not between {field.minimum} and {field.maximum}"
    elif field.minimum is not None and number < field.minimum:
        yield f"{number} is less than {field.minimum}"


def _repetitions(field: Field, items: list[Any]) -> Iterator[str]:
    """A set holds nothing twice, and a map-like list has no two entries with the same keys."""
    if field.list_type not in ("set", "map"):
        return
    seen = []
    for index, item in enumerate(items):
        identity = [item.get(key) for key in field.list_keys] if isinstance(item, Mapping) else [item]
        if identity in seen:
            yield f"entry {index} repeats {', '.join(map(str, identity))}"
        seen.append(identity)


def _quantity_problem(text: str) -> str | None:
    try:
        quantity.parse(text)
    except quantity.QuantityError as error:
        return str(error)
    return None


def _is_moment(text: str) -> bool:
    if _MOMENT.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text.upper())
    except ValueError:
        return False
    return True
