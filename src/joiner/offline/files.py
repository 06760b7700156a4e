"""Reads the files behind `-f/--filename`: which files are read, and what is said when one cannot be.

A file, a folder (its manifests, at any depth, in order of name; hidden ones are passed over, and, with a note, those that
hold no Kubernetes object), or `-` for standard input.
Everything that can be wrong with them is gathered, so that a person sees all of it at once.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Final

from joiner.offline.unrendered import what

if TYPE_CHECKING:
    from joiner.yamldoc import Document, Loaded, YamlProblem

SUFFIXES: Final = (".yaml", ".yml", ".json")
FILE_BYTES_MAX: Final = 256 << 20
STDIN: Final = "<stdin>"
_NO_OBJECT: Final = "it holds no Kubernetes object (nothing with apiVersion and kind)"
_SHOWN: Final = 3


class InputProblem(ValueError):
    """A file that cannot be used: which, why, and what to do."""

    def __init__(self, source: str, message: str, advice: str = "") -> None:
        self.source = source
        self.message = message
        self.advice = advice
        super().__init__(f"{source}: {message}{'; ' + advice if advice else ''}")


class BadInput(ValueError):
    """Everything that is wrong with the files a command was given."""

    def __init__(self, problems: "Iterable[InputProblem | YamlProblem]") -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


@dataclass
class Documents:
    """What the named files hold: single objects, Lists taken apart, and what could not be read."""

    files: int = 0
    objects: "list[Document]" = field(default_factory=list)
    problems: "list[InputProblem | YamlProblem]" = field(default_factory=list)
    passed_over: dict[str, list[str]] = field(default_factory=dict)
    """Why files of a folder are not read, and which."""

    @property
    def notes(self) -> list[str]:
        """A line for each reason why files of a folder are not read."""
        return [f"{_few(sources)}: passed over: {why}" for why, sources in self.passed_over.items()]

    def sound(self) -> "list[Document]":
        """The objects; raises `BadInput` when anything could not be read."""
        if self.problems:
            raise BadInput(self.problems)
        return self.objects


def _few(sources: list[str]) -> str:
    more = len(sources) - _SHOWN
    return ", ".join(sources) if more <= 1 else f"{', '.join(sources[:_SHOWN])} and {more} more files"


def read(filenames: Iterable[str]) -> Documents:
    """All objects of the named files, each file once however often it is named."""
    manifests = Documents()
    seen: set[str] = set()
    for name in filenames:
        try:
            for path, required in _files(name):
                if (real := path if path == "-" else os.path.realpath(path)) not in seen:
                    seen.add(real)
                    _read(path, manifests, required)
        except InputProblem as problem:
            manifests.problems.append(problem)
    return manifests


def _files(name: str) -> Iterator[tuple[str, bool]]:
    """The files behind a name, and whether each must hold something."""
    if name.startswith(("http://", "https://")):
        raise InputProblem(name, "addresses are not read", f"fetch it first: curl -fsSL {name} | joiner ... -f -")
    if name == "-" or not os.path.isdir(name):
        yield name, True
        return
    found = False
    for path in _inside(name):
        found = True
        yield path, False
    if not found:
        raise InputProblem(
            name, f"the folder has no file that ends in {', '.join(SUFFIXES)}", "name a file, or another folder"
        )


def _inside(folder: str) -> Iterator[str]:
    unreadable: list[OSError] = []
    for root, folders, files in os.walk(folder, onerror=unreadable.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (
            os.path.join(root, name)
            for name in sorted(files)
            if name.lower().endswith(SUFFIXES) and not name.startswith(".") and os.path.isfile(os.path.join(root, name))
        )
    for error in unreadable:
        raise _cannot(str(error.filename), error)


def _read(path: str, manifests: Documents, required: bool) -> None:
    from joiner.yamldoc import documents

    source = STDIN if path == "-" else path
    try:
        text = _text(_bytes(path, source), source)
    except InputProblem as problem:
        manifests.problems.append(problem)
        return
    # Nothing in a list can be a manifest, so a long one is not even parsed.
    loaded = documents(text, source) if required or not text.lstrip().startswith("[") else None
    unrendered = what(source, text, loaded)
    if unrendered is not None and required:
        manifests.files += 1
        manifests.problems.append(InputProblem(source, *unrendered))
        return
    if unrendered is not None or loaded is None or not (required or loaded.problems or _is_manifest(loaded)):
        why = "; ".join(unrendered) if unrendered is not None else _NO_OBJECT
        manifests.passed_over.setdefault(why, []).append(source)
        return
    manifests.files += 1
    manifests.problems.extend(loaded.problems)
    if required and not loaded.documents and not loaded.problems:
        manifests.problems.append(InputProblem(source, "holds no object", "it is empty, or has nothing but comments"))
    for item in loaded.items():
        if isinstance(item.data, dict):
            manifests.objects.append(item)
        elif item.data is not None:
            manifests.problems.append(_no_object(item))


def _is_manifest(loaded: "Loaded") -> bool:
    """Whether any document says what it is; a file with nothing in it is as good as a manifest."""
    return not loaded.documents or any(
        isinstance(each.data, dict) and ("apiVersion" in each.data or "kind" in each.data) for each in loaded.documents
    )


def _no_object(item: "Document") -> "YamlProblem":
    from joiner.yamldoc import YamlProblem

    what = "a list" if isinstance(item.data, list) else "text or a number"
    where = f"{item.inside} is" if item.inside else "this is"
    advice = "an object is a mapping with apiVersion and kind; several are put apart by --- lines"
    return YamlProblem(item.source, item.line, 1, f"{where} {what}, not an object", advice)


def _bytes(path: str, source: str) -> bytes:
    try:
        if path == "-":
            if sys.stdin is None:
                raise InputProblem(source, "is closed", "give the manifests on standard input, or name a file")
            return _limited(sys.stdin.buffer, source)
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > FILE_BYTES_MAX:
                raise _too_large(source)
            return _limited(file, source)
    except OSError as error:
        raise _cannot(source, error) from None


def _limited(file: BinaryIO, source: str) -> bytes:
    data = file.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise _too_large(source)
    return data


def _too_large(source: str) -> InputProblem:
    return InputProblem(source, f"is larger than {FILE_BYTES_MAX >> 20} MiB", "split it")


def _cannot(source: str, error: OSError) -> InputProblem:
    if isinstance(error, FileNotFoundError):
        return InputProblem(source, "there is no such file or folder", "check the path")
    if isinstance(error, PermissionError):
        return InputProblem(source, "may not be read", "check the permissions of the file")
    return InputProblem(source, f"cannot be read: {error.strerror or error}")


def _text(data: bytes, source: str) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputProblem(source, "is written in UTF-16", "save it as UTF-8")
    if (offset := data.find(b"\0")) >= 0:
        raise InputProblem(source, f"is a binary file: byte {offset} is NUL", "name a YAML or JSON file")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}"
        raise InputProblem(source, message, "save it as UTF-8, or name a YAML or JSON file") from None
