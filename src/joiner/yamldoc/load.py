"""The way in: a text, read as JSON where it is JSON, else as YAML."""

import json
import math
from typing import Any, Final

from joiner.yamldoc.document import OBJECT_BYTES_MAX, Document, LinePlaces, Loaded, oversized
from joiner.yamldoc.reader import DEPTH_MAX, YamlReader
from joiner.yamldoc.scalars import Number, number

_LINES_TEXT_MAX: Final = 8 << 20


def documents(text: str, source: str, *, pure: bool = False) -> Loaded:
    """Everything a text holds, and everything that is wrong with it. Empty documents are passed over.

    `pure` reads with the slow parser, as on a machine without the C one.
    """
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] in ("{", "[") and (loaded := _json(text, source)) is not None:
        return loaded
    reader = YamlReader(text, source, pure)
    found = tuple(reader.documents())
    return Loaded(source, found, tuple(reader.problems))


class _PlacesInJson(LinePlaces):
    """The JSON reader tells no lines, so the text is read once more, as YAML, when a line is asked for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def line_of(self, path: str) -> int:
        """The line, or the first one where the text is too large to be read twice."""
        if self._text and len(self._text) <= _LINES_TEXT_MAX:
            for document in YamlReader(self._text, "", pure=False).documents():
                self.root, self.line, self.lines = document.data, document.places.line, document.places.lines
        self._text = ""
        return super().line_of(path)


def _json(text: str, source: str) -> Loaded | None:
    """What a JSON text holds; nothing where YAML's reader, which knows lines, should have the word."""
    try:
        data = json.loads(
            text, object_pairs_hook=_unique, parse_float=_finite, parse_int=_whole, parse_constant=_no_constant
        )
        if _deeper_than(data, DEPTH_MAX):
            return None
        document = Document(source, data, _PlacesInJson(text))
        too_large = tuple(oversized(document)) if len(text) > OBJECT_BYTES_MAX // 4 or "\\u" in text else ()
    except (ValueError, RecursionError):
        # Also for half of a surrogate pair, which is no text and shows when the data is encoded.
        return None
    return Loaded(source, () if too_large else (document,), too_large)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("duplicate key")
    return data


def _finite(text: str) -> Number:
    real = Number(text)
    if math.isinf(real):
        raise ValueError("out of range")
    return real


def _whole(text: str) -> int | Number:
    whole = int(text) if len(text) < 20 else number(text)
    if isinstance(whole, str):
        raise ValueError("out of range")
    return whole


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def _deeper_than(data: Any, depth: int) -> bool:
    level = [data]
    for _ in range(depth + 1):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
