"""Logs: one JSON object a line, with the keys that Karpenter's logs have, because people's tools read them.

Everything that is decided says why. Nothing that is logged holds a credential: only names, numbers and sentences come in here.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from joiner.clock import Clock

LEVELS: Final = ("debug", "info", "warn", "error")
LOGGER: Final = "controller"


class Log:
    """Writes lines. Telling never fails: where nothing can be written any more, nothing is."""

    def __init__(
        self, clock: Clock, *, level: str = "info", write: Iterable[Callable[[str], None]] = (), **keys: Any
    ) -> None:
        """`keys` are part of every line."""
        self._clock, self._least, self._write, self._keys = clock, LEVELS.index(level), tuple(write), keys
        self._level = level

    def having(self, **keys: Any) -> "Log":
        """The same log with more keys in every line."""
        return Log(self._clock, level=self._level, write=self._write, **{**self._keys, **keys})

    def debug(self, message: str, **keys: Any) -> None:
        """What helps to find a mistake."""
        self._line("debug", message, keys)

    def info(self, message: str, **keys: Any) -> None:
        """What was decided or has happened."""
        self._line("info", message, keys)

    def warn(self, message: str, **keys: Any) -> None:
        """What works, and should be looked at."""
        self._line("warn", message, keys)

    def error(self, message: str, **keys: Any) -> None:
        """What failed."""
        self._line("error", message, keys)

    def _line(self, level: str, message: str, keys: dict[str, Any]) -> None:
        if LEVELS.index(level) < self._least or not self._write:
            return
        time = self._clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        said = {"level": level.upper(), "time": time, "logger": LOGGER, "message": message, **self._keys, **keys}
        text = msgspec.json.encode(said, enc_hook=str).decode() + "\n"
        for write in self._write:
            write(text)


def outputs(paths: str) -> tuple[Callable[[str], None], ...]:
    """Where lines go: `stdout`, `stderr`, or files, separated by commas. Raises OSError for a file that cannot be opened."""
    return tuple(_output(path.strip()) for path in paths.split(",") if path.strip())


def _output(path: str) -> Callable[[str], None]:
    if path not in ("stdout", "stderr"):
        with open(path, "a", encoding="utf-8"):
            pass  # a path that cannot be written is told at the start

    def write(text: str) -> None:
        try:
            if path in ("stdout", "stderr"):
                stream = sys.stdout if path == "stdout" else sys.stderr
                stream.write(text)
                stream.flush()
            else:  # opened for each line, so that the file may be moved away and begun anew
                with open(path, "a", encoding="utf-8") as file:
                    file.write(text)
        except (OSError, ValueError):
            return

    return write
