"""Documents of a manifest: data, and where in the text it stands."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

OBJECT_BYTES_MAX: Final = 1_572_864
"""The largest object a cluster stores (etcd's request limit, 1.5 MiB)."""
_BRACKET: Final = re.compile(r"\[([^\]]*)\]")


class YamlProblem(ValueError):
    """Something in a text that cannot be read: where, what is wrong, and what to do about it."""

    def __init__(self, source: str, line: int, column: int, message: str, advice: str = "") -> None:
        self.source = source
        self.line = line
        self.column = column
        self.message = message
        self.advice = advice
        super().__init__(f"{source}:{line}:{column}: {message}{'; ' + advice if advice else ''}")


class LinePlaces:
    """Where things are in a document: the line of every key and list item, by the identity of what holds it."""

    def __init__(self, root: Any = None, line: int = 1, lines: dict[int, Any] | None = None) -> None:
        self.root = root
        self.line = line
        self.lines: dict[int, Any] = lines or {}

    def line_of(self, path: str) -> int:
        """The line of the deepest part of the path that is there."""
        data, line, rest = self.root, self.line, path
        while rest and (step := _step(data, rest)) is not None:
            key, rest = step
            line = self.lines[id(data)][key]
            data = data[key]
        return line


@dataclass(frozen=True, eq=False)
class Document:
    """One object of a manifest: a YAML document, or an item of a List in it."""

    source: str
    data: Any
    places: LinePlaces = field(repr=False)
    inside: str = ""
    """Where in its document the object is, like `items[3]`; empty when it is the document."""

    @property
    def line(self) -> int:
        """The line the object begins at, counted from 1."""
        return self.line_of("")

    def line_of(self, path: str) -> int:
        """The line of a field like `spec.requirements[0].key`; of the nearest one around it when it is not there."""
        return self.places.line_of(".".join(part for part in (self.inside, path) if part))


@dataclass(frozen=True)
class Loaded:
    """What a text held. A document with a problem of its own is not among the documents."""

    source: str
    documents: tuple[Document, ...] = ()
    problems: tuple[YamlProblem, ...] = ()

    def items(self) -> tuple[Document, ...]:
        """All objects, those in Lists one by one."""
        return tuple(item for document in self.documents for item in flat(document))


def _step(data: Any, path: str) -> tuple[str | int, str] | None:
    """The first key or index of a path that leads somewhere, and the rest of the path."""
    path = path.removeprefix(".")
    bracket = _BRACKET.match(path)
    if isinstance(data, list):
        index = int(bracket[1]) if bracket and bracket[1].isdecimal() else len(data)
        return (index, path[bracket.end() :]) if bracket and index < len(data) else None
    if not isinstance(data, dict):
        return None
    if bracket:
        key = bracket[1].strip("\"'")
        return (key, path[bracket.end() :]) if key in data else None
    # Keys may hold dots themselves (labels do), so the longest key that fits is the one that is meant.
    fitting = [key for key in data if key and path.startswith(key) and path[len(key) : len(key) + 1] in ("", ".", "[")]
    return (key, path[len(key) :]) if (key := max(fitting, key=len, default="")) else None


def _is_list(data: Any) -> bool:
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        return False
    return data["kind"] == "List" or (data["kind"].endswith("List") and isinstance(data.get("items"), list))


def flat(document: Document) -> Iterator[Document]:
    """The document, or the items of the List it is."""
    if not _is_list(document.data):
        yield document
        return
    prefix = f"{document.inside}.items" if document.inside else "items"
    for index, item in enumerate(document.data.get("items") or ()):
        yield from flat(Document(document.source, item, document.places, f"{prefix}[{index}]"))


def oversized(document: Document) -> Iterator[YamlProblem]:
    """A problem for every object that no cluster could store; raises `ValueError` for text that is no Unicode."""
    for item in flat(document):
        size = len(json.dumps(item.data, ensure_ascii=False, separators=(",", ":")).encode())
        if size > OBJECT_BYTES_MAX:
            where = f"the object at {item.inside}" if item.inside else "the object"
            yield YamlProblem(
                item.source,
                item.line,
                1,
                f"{where} takes {size / 2**20:.1f} MiB, more than the 1.5 MiB a cluster can store",
                "split it, or check that this is the file you meant",
            )
