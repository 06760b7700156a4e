"""Builds documents from parser events, with bounds on everything."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from joiner.yamldoc.document import OBJECT_BYTES_MAX, Document, LinePlaces, YamlProblem, oversized
from joiner.yamldoc.scalars import Number, resolve

DEPTH_MAX: Final = 100
"""How deep lists and mappings may nest, aliases expanded."""
ALIAS_CHARACTERS_FREE: Final = 4 << 20
"""What aliases may add to a text of any size; a larger text may double."""
PROBLEMS_MAX: Final = 100
"""After so many problems the rest of a text is not read."""
_TAG: Final = "tag:yaml.org,2002:"
_SCALAR_TAGS: Final[Mapping[str, tuple[type, ...]]] = {
    _TAG + "int": (int,),
    _TAG + "float": (int, float),
    _TAG + "bool": (bool,),
    _TAG + "null": (type(None),),
}
_TEXT_TAGS: Final = frozenset({"!", _TAG + "str", _TAG + "timestamp"})
_ADVICE: Final = (
    ("that cannot start any token", "indent with spaces, not tabs, and put quotes around text that begins with a sign"),
    (
        "mapping values are not allowed",
        "put quotes around text that has a colon and a space, and check the indentation",
    ),
    ("unexpected end of stream", "close the quote or bracket that is still open"),
    ("control characters are not allowed", 'write the character as an escape between double quotes, like "\\x07"'),
    ("special characters are not allowed", 'write the character as an escape between double quotes, like "\\x07"'),
)

_KEY_WORDS: Final[Mapping[type, str]] = {bool: "a boolean", type(None): "nothing"}
_NO_KEY: Final = object()
_MERGE: Final = object()
_USELESS: Final = object()
"""A key that was refused; its value is read and dropped."""


class _Frame:
    """A mapping or list that is being read."""

    __slots__ = ("anchor", "data", "height", "key", "lines", "mark", "merges", "size")

    def __init__(self, data: Any, lines: Any, event: Any) -> None:
        self.data = data
        self.lines = lines
        self.anchor: str | None = event.anchor
        self.mark = event.start_mark
        self.size = 2
        """Characters it would take as JSON, aliases expanded; near enough."""
        self.height = 1
        self.key: Any = _NO_KEY
        self.merges: list[Any] = []


class YamlReader:
    """Builds documents from parser events with a stack of its own. Never raises; see `problems` when it has ended."""

    def __init__(self, text: str, source: str, pure: bool) -> None:
        self.problems: list[YamlProblem] = []
        self._text = text
        self._source = source
        self._parser: Any = yaml.SafeLoader if pure else getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._alias_characters = max(ALIAS_CHARACTERS_FREE, len(text))
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int, int] | None] = {}
        self._lines: dict[int, Any] = {}
        self._root: tuple[Any, int, int] = (None, 0, 0)

    def documents(self) -> Iterator[Document]:
        """The documents without problems, in order."""
        try:
            yield from self._documents()
        except YamlProblem as problem:
            self.problems.append(problem)
        except yaml.MarkedYAMLError as error:
            self.problems.append(self._syntax(error))
        except yaml.reader.ReaderError as error:
            line, column = self._position(error.position)
            self.problems.append(self._problem(line, column, error.reason, _advice(error.reason)))
        except (ValueError, OverflowError) as error:
            # Text that is no Unicode, and escapes for characters that do not exist.
            self.problems.append(self._problem(1, 1, f"cannot be read as text: {error}", "save the file as UTF-8"))

    def _documents(self) -> Iterator[Document]:
        before = 0
        for event in yaml.parse(self._text, Loader=self._parser):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._open(event, {} if kind is yaml.MappingStartEvent else [])
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._close()
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                before = len(self.problems)
                self._anchors, self._lines = {}, {}
            elif kind is yaml.DocumentEndEvent and len(self.problems) == before:
                yield from self._finished()

    def _finished(self) -> Iterator[Document]:
        data, size, line = self._root
        if data is None:
            return
        document = Document(self._source, data, LinePlaces(data, line, self._lines))
        too_large = list(oversized(document)) if size > OBJECT_BYTES_MAX // 4 else []
        self.problems.extend(too_large)
        if not too_large:
            yield document

    def _open(self, event: Any, data: Any) -> None:
        mark = event.start_mark
        if len(self._stack) >= DEPTH_MAX:
            raise self._too_deep(mark)
        if event.tag not in (None, "!", _TAG + ("map" if isinstance(data, dict) else "seq")):
            self._unknown_tag(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        frame = _Frame(data, {} if isinstance(data, dict) else [], event)
        self._lines[id(data)] = frame.lines
        self._stack.append(frame)

    def _close(self) -> None:
        frame = self._stack.pop()
        for merged in frame.merges:
            for key, line in self._lines[id(merged)].items():
                if key not in frame.data:
                    frame.data[key] = merged[key]
                    frame.lines[key] = line
        self._take(frame.data, frame.mark, frame.anchor, frame.size, frame.height)

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        if not text.isascii():
            text.encode()  # The slow parser lets an escape make half of a surrogate pair, which is no text.
        if event.implicit[0]:
            value = resolve(text)
            if text == "<<" and self._stack and self._stack[-1].key is _NO_KEY and type(self._stack[-1].data) is dict:
                self._take(_MERGE, event.start_mark, None, 0, 0)
                return
        elif event.implicit[1] or event.tag in _TEXT_TAGS:
            value = text
        else:
            value = self._tagged(event)
        if type(value) is float:
            message = f"{text} is a number that JSON does not have"
            self._complain(event.start_mark, message, "put quotes around it if it is text")
        self._take(value, event.start_mark, event.anchor, len(text) + 3, 0)

    def _tagged(self, event: Any) -> Any:
        types = _SCALAR_TAGS.get(event.tag)
        if types is None:
            self._unknown_tag(event)
            return None
        value = resolve(event.value)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            name = event.tag.removeprefix(_TAG)
            message = f"{_shown(event.value)} is not of the type !!{name} it is tagged with"
            self._complain(event.start_mark, message, "remove the tag")
            return None
        return Number(str(value)) if event.tag == _TAG + "float" and isinstance(value, int) else value

    def _unknown_tag(self, event: Any) -> None:
        message = f"the tag {_shown(event.tag)} means nothing here"
        self._complain(event.start_mark, message, "remove it: manifests are plain data")

    def _alias(self, event: Any) -> None:
        name, mark = event.anchor, event.start_mark
        if name not in self._anchors:
            raise self._at(mark, f"*{name} refers to nothing: no &{name} comes before it")
        anchored = self._anchors[name]
        if anchored is None:
            raise self._at(mark, f"*{name} refers to itself", "write the value out")
        value, size, height = anchored
        if len(self._stack) + height > DEPTH_MAX:
            raise self._too_deep(mark)
        self._alias_characters -= size
        if self._alias_characters < 0:
            raise self._at(mark, "aliases make the text grow too large when they are expanded", "write the values out")
        self._take(value, mark, None, size, height)

    def _take(self, value: Any, mark: Any, anchor: str | None, size: int, height: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size, height)
        if not self._stack:
            self._root = (value, size, mark.line + 1)
            return
        frame = self._stack[-1]
        frame.size += size
        if height >= frame.height:
            frame.height = height + 1
        if type(frame.data) is list:
            frame.data.append(value)
            frame.lines.append(mark.line + 1)
        elif frame.key is _NO_KEY:
            frame.key = self._key(frame, value, mark)
        else:
            key, frame.key = frame.key, _NO_KEY
            if key is _MERGE:
                self._merge(frame, value, mark)
            elif key is not _USELESS:
                frame.data[key] = value

    def _key(self, frame: _Frame, key: Any, mark: Any) -> Any:
        """The key, noted with its line; `_USELESS` when it cannot be one."""
        if key is _MERGE and not frame.merges:
            return _MERGE
        if key is _MERGE:
            self._complain(mark, "'<<' stands twice in one mapping", "write one: <<: [*first, *second]")
            return _USELESS
        if not isinstance(key, str):
            what = "a list or mapping" if isinstance(key, dict | list) else _KEY_WORDS.get(type(key), "a number")
            self._complain(mark, f"a key must be text, not {what}", "put quotes around it")
            return _USELESS
        if key in frame.lines:
            first, second = frame.lines[key], mark.line + 1
            message = f"the key {_shown(key)} stands twice, at lines {first} and {second}"
            self._complain(mark, message, "keep one of them")
            return _USELESS
        frame.lines[key] = mark.line + 1
        return key

    def _merge(self, frame: _Frame, value: Any, mark: Any) -> None:
        merged = value if isinstance(value, list) else [value]
        if all(isinstance(item, dict) for item in merged):
            frame.merges = merged
        else:
            advice = "give it an alias of a mapping, or a list of them"
            self._complain(mark, "'<<' merges mappings, and this is none", advice)

    def _complain(self, mark: Any, message: str, advice: str) -> None:
        """Note a problem that does not keep the rest of the text from being read."""
        self.problems.append(self._at(mark, message, advice))
        if len(self.problems) >= PROBLEMS_MAX:
            raise self._at(mark, f"{PROBLEMS_MAX} problems so far; the rest was not read")

    def _at(self, mark: Any, message: str, advice: str = "") -> YamlProblem:
        return self._problem(mark.line + 1, mark.column + 1, message, advice)

    def _problem(self, line: int, column: int, message: str, advice: str = "") -> YamlProblem:
        return YamlProblem(self._source, line, column, message, advice)

    def _too_deep(self, mark: Any) -> YamlProblem:
        message = f"lists and mappings are nested more than {DEPTH_MAX} deep"
        return self._at(mark, message, "check that this is the file you meant")

    def _syntax(self, error: yaml.MarkedYAMLError) -> YamlProblem:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        message = f"is not YAML: {error.problem or error.context}"
        if error.context and error.context_mark and error.context_mark.line + 1 != line:
            message += f" ({error.context} that began at line {error.context_mark.line + 1})"
        return self._problem(line, column, message, _advice(error.problem or ""))

    def _position(self, offset: int) -> tuple[int, int]:
        before = self._text[:offset]
        return before.count("\n") + 1, len(before) - before.rfind("\n")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _advice(problem: str) -> str:
    return next(
        (advice for words, advice in _ADVICE if words in problem),
        "check the indentation, quotes and brackets around it",
    )
