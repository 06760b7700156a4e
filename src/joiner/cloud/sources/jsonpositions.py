"""JSON that remembers where it stands, so that every problem of a file can be told with its place."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

_SHOWN: Final = 60


class MalformedJson(ValueError):
    """The text is not JSON at all; the message says where it stops being it."""


class Fields(dict[str, Any]):
    """A JSON object."""

    twice: tuple[str, ...] = ()
    """The names that are written in it more than once."""


class Located:
    """A piece of JSON: what is there, where that is, and the list that all problems of the file go to."""

    def __init__(self, raw: Any, place: str, path: str, problems: list[str]) -> None:
        self.raw = raw
        self.place = place
        """The entry of the file, in words."""
        self.path = path
        """The field within the entry."""
        self.problems = problems

    def complain(self, allowed: str, found: str | None = None) -> None:
        """Note a problem here: what was found, and what could be."""
        where = ": ".join(part for part in (self.place, self.path) if part)
        self.problems.append(f"{where}: found {shown(self.raw) if found is None else found}; {allowed}")

    def at(self, path: str, raw: Any) -> "Located":
        """Something inside of this."""
        inner = path if path.startswith("[") or not self.path else f".{path}"
        return Located(raw, self.place, self.path + inner, self.problems)

    def field(self, name: str) -> "Located":
        """A field by its name, in whatever case it is written, as the JSON reader of Go takes it."""
        if not isinstance(self.raw, dict):
            return self.at(name, None)
        spelling = next((key for key in self.raw if key.lower() == name.lower()), name)
        return self.at(spelling, self.raw.get(spelling))

    def items(self, allowed: str) -> Iterator["Located"]:
        """The members of a list."""
        if isinstance(self.raw, list):
            for number, raw in enumerate(self.raw):
                yield self.at(f"[{number}]", raw)
        else:
            self.complain(allowed)

    def members(self, allowed: str) -> Iterator[tuple[str, "Located"]]:
        """The members of an object whose names are the user's own."""
        if self.is_object(allowed, any_case=False):
            for name, raw in self.raw.items():
                yield name, self.at(f"[{name}]", raw)

    def is_object(self, allowed: str, *, any_case: bool = True) -> bool:
        """Whether this is an object; it is a problem if it is not, or if a name occurs twice in it in whatever case."""
        if not isinstance(self.raw, dict):
            self.complain(allowed)
            return False
        twice = set(getattr(self.raw, "twice", ()))
        if any_case:
            folded = Counter(name.lower() for name in self.raw)
            twice |= {name for name in self.raw if folded[name.lower()] > 1}
        if twice:
            self.complain(
                "each name may occur only once in an object", found=f"{', '.join(sorted(twice))} more than once"
            )
        return True

    def text(self, allowed: str) -> str:
        """A text that is not empty."""
        if isinstance(self.raw, str) and self.raw:
            return self.raw
        self.complain(allowed)
        return ""

    def number(self, allowed: str) -> float:
        """A finite number that is not negative."""
        if isinstance(self.raw, int | float) and not isinstance(self.raw, bool) and 0 <= self.raw < math.inf:
            return float(self.raw)
        self.complain(allowed)
        return 0.0

    def count(self, allowed: str, default: int = 0) -> int:
        """A whole number that is not negative."""
        if self.raw is None:
            return default
        if isinstance(self.raw, int) and not isinstance(self.raw, bool) and self.raw >= 0:
            return self.raw
        self.complain(allowed)
        return default

    def flag(self, allowed: str, default: bool) -> bool:
        """Yes or no."""
        if self.raw is None:
            return default
        if isinstance(self.raw, bool):
            return self.raw
        self.complain(allowed)
        return default


def shown(raw: Any) -> str:
    """A piece of JSON in a message: short, on one line."""
    if raw is None:
        return "nothing"
    if isinstance(raw, dict):
        return f"an object with {len(raw)} fields"
    if isinstance(raw, list):
        return f"a list of {len(raw)}"
    text = json.dumps(raw, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def read(data: bytes) -> Any:
    """The JSON in a file, whose objects know which names they have twice."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedJson(
            f"it is not text: byte {data[error.start]:#04x} at position {error.start} is not UTF-8"
        ) from None
    if not text.strip():
        raise MalformedJson("it is empty")
    try:
        return json.loads(text, object_pairs_hook=_fields, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise MalformedJson(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise MalformedJson("it is nested too deeply") from None
    except ValueError as error:
        raise MalformedJson(str(error)) from None


def _fields(pairs: list[tuple[str, Any]]) -> Fields:
    made = Fields(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        made.twice = tuple(sorted({name for name in names if names.count(name) > 1}))
    return made


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number that JSON knows")
