"""What the decoder could not read, in the words of validation: which value stands there, and what is allowed."""

import re
from collections.abc import Mapping
from typing import Any, Final

from joiner.admission.problem import FieldProblem, nearest
from joiner.admission.schema import Shape
from joiner.admission.schemacheck import shape_message
from joiner.model import fieldpath
from joiner.model.codec import DecodeError

_WORD: Final = re.compile("Invalid enum value '(.*)'")
_MISSING: Final = re.compile("Object missing required field `(.*)`")
_EXPECTED: Final = re.compile("Expected `(.*?)(?: \\| null)?`, got `(.*)`")
_SHAPES: Final[Mapping[str, tuple[Shape, type]]] = {
    "int": (Shape.INTEGER, int),
    "float": (Shape.SCALAR, float),
    "str": (Shape.TEXT, str),
    "bool": (Shape.BOOLEAN, bool),
    "array": (Shape.LIST, list),
    "object": (Shape.OBJECT, dict),
}
"""What the struct library calls a shape."""


def problem(error: DecodeError, raw: Any, kind: type) -> FieldProblem:
    """The error as a problem of the document that was to become an object of this kind."""
    path, words = error.path, error.problem
    if match := _WORD.fullmatch(words):
        allowed = fieldpath.allowed(kind, path)
        message = f"{match[1]!r} is not one of the allowed values"
        return FieldProblem(path=path, message=message, allowed=allowed, nearest=nearest(match[1], allowed))
    if match := _MISSING.fullmatch(words):
        where = f"{path}.{match[1]}" if path else match[1]
        return FieldProblem(path=where, message="is missing", allowed=fieldpath.allowed(kind, where))
    match, value = _EXPECTED.fullmatch(words), fieldpath.at(raw, path)
    # The path of a key that is wrong leads to the mapping that it is in, which is none of what was found.
    if match and match[1] in _SHAPES and match[2] in _SHAPES and isinstance(value, _SHAPES[match[2]][1]):
        words = shape_message(_SHAPES[match[1]][0], value)
    return FieldProblem(path=path, message=words)
