"""Mistakes in the words of a story, with what to write instead."""

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from joiner.admission.problem import nearest
from joiner.model import codec, fieldpath
from joiner.yamldoc import Number

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`")
_MISSING: Final = re.compile(r"Object missing required field `(.*)`")
_EXPECTED: Final = re.compile(r"Expected `(.*)`, got `(.*)`")
_SORTS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "words with values, like {a: 1}",
}
"""What the struct library calls a sort of value, and what people call it."""


class Mistake(NamedTuple):
    """Something that cannot be read."""

    path: str
    """Where it stands."""
    place: str
    """What to take out so that the rest can be read; empty when nothing would be left."""
    problem: str
    needed: str = ""
    """The word that is missing, if that is what is wrong."""


def mistake(error: codec.DecodeError, kind: Any) -> Mistake:
    """What is wrong, for the author of words of this kind."""
    path, problem = error.path, error.problem
    if (match := _UNKNOWN.fullmatch(problem)) is not None:
        known = _words(fieldpath.kind_at(kind, path))
        listed = f"; known are {', '.join(known)}" if known else ""
        return Mistake(path, _joined(path, match[1]), f"unknown word {match[1]!r}{hint(match[1], known, listed)}")
    if (match := _MISSING.fullmatch(problem)) is not None:
        return Mistake(path, _owner(path), f"the word {match[1]!r} is missing", _joined(path, match[1]))
    if problem.startswith("Invalid enum value"):
        allowed = ", ".join(fieldpath.allowed(kind, path))
        return Mistake(path, _owner(path), f"{problem.split(' ', 3)[3]} is not known; known are {allowed}")
    if (match := _EXPECTED.fullmatch(problem)) is not None:
        problem = _sorts(match[1], match[2])
    return Mistake(path, _owner(path), problem)


def plain(raw: Any) -> Any:
    """A copy to take things out of. Its own numbers forget how they were written: that is for quantities inside objects."""
    if isinstance(raw, dict):
        return {key: float(value) if isinstance(value, Number) else _copied(value) for key, value in raw.items()}
    return _copied(raw)


def without(raw: Any, place: str) -> bool:
    """Take out what stands at a place, and say whether there was anything."""
    *steps, last = fieldpath.steps(place) or [""]
    for step in steps:
        raw = raw[int(step)] if isinstance(raw, list) else raw.get(step, {})
    return isinstance(raw, dict) and raw.pop(last, None) is not None


def _copied(raw: Any) -> Any:
    if isinstance(raw, dict):
        return {key: _copied(value) for key, value in raw.items()}
    return [_copied(each) for each in raw] if isinstance(raw, list) else raw


def _joined(path: str, word: str) -> str:
    return f"{path}.{word}" if path else word


def _owner(path: str) -> str:
    """The word whose value it is: of an item of a list that is the word of the list, so that the others keep their numbers."""
    return re.sub(r"(\[\d+\])+$", "", path)


def _words(kind: Any) -> list[str]:
    return [
        name
        for each in fieldpath.alternatives(kind)
        if isinstance(each, type) and issubclass(each, msgspec.Struct)
        for name in each.__struct_encode_fields__
    ]


def hint(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """The known word that is nearest, as the end of a message; the other text when none is near."""
    near = nearest(word, known) if word else None
    return f"; did you mean {near}?" if near else otherwise


def _sorts(expected: str, found: str) -> str:
    wanted = [_SORTS.get(each, each) for each in expected.split(" | ") if each != "null"]
    has = "nothing" if found == "null" else _SORTS.get(found, found)
    if (expected, found) == ("int", "float"):
        has = "one with a fraction"
    quotes = "; put it between quotes" if "str" in expected.split(" | ") and found in ("int", "float", "bool") else ""
    return f"must be {' or '.join(wanted)}, not {has}{quotes}"
