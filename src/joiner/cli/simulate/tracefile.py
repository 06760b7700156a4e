"""The file that `--trace` asks for: every step, one line each. Whether it can be written is known before anything is played."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

Sink = Callable[[str], None]


@contextmanager
def steps_to(path: Path | None) -> Iterator[Sink | None]:
    """A listener that writes lines to a file as they come; None when there is no file."""
    if path is None:
        yield None
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"--trace {path}: cannot be written: {error.strerror}") from None
    with file:
        yield lambda line: print(line, file=file)
