"""What `-o/--output` means in every command: a table for people, JSON or YAML for machines.

A table looks the same on a terminal and in a pipe, but for colour, and for what is wider than the terminal: long cells are
wrapped, and columns that are needed least are left out and named. A pipe gets everything. The table library is imported only to
draw on a terminal.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, TypeVar

import click

TABLE: Final = "table"
JSON: Final = "json"
YAML: Final = "yaml"
API_VERSION: Final = "joiner.dev/v1"
"""The version of everything that is printed as JSON or YAML: docs/reference/json.md. Fields may be added within a version."""
_GAP: Final = "  "
_LEAST_WIDTH: Final = 24
"""A column of text is not made narrower than this."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Cell:
    """Text of a table with a style, like `red` or `bold`, for those who see colour."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table; numbers stand at the right."""

    name: str
    right: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of text under column names."""

    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    spare: tuple[str, ...] = ()
    """Columns that a narrow terminal goes without, the first to go first."""

    def without(self, name: str) -> "Table":
        """The same without a column."""
        at = next(index for index, column in enumerate(self.columns) if column.name == name)
        columns = (*self.columns[:at], *self.columns[at + 1 :])
        return Table(columns, tuple((*row[:at], *row[at + 1 :]) for row in self.rows), self.spare)


def option(*forms: str) -> Callable[[F], F]:
    """The `-o/--output` option of a command, with the first form as default; all three when none is given."""
    choice = click.Choice(forms or (TABLE, JSON, YAML))
    return click.option(
        "-o", "--output", "form", type=choice, default=choice.choices[0], show_default=True, help="Output format."
    )


def data(content: Mapping[str, Any], form: str, kind: str = "") -> None:
    """Print data as JSON or YAML. What is of a kind of ours says which, and in which version of its form."""
    value = {"apiVersion": API_VERSION, "kind": kind, **content} if kind else content
    if form == YAML:
        from joiner.yamldoc import dump

        click.echo(dump(value), nl=False)
    else:
        import json

        lines = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False).split("\n")
        click.echo("\n".join(map(_escaped, lines)))


def _escaped(line: str) -> str:
    """A line of JSON in which what does not print is escaped: bidirectional overrides, C1 control codes."""
    if line.isprintable():
        return line
    import json

    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)


def echo(*parts: str | Cell, err: bool = False) -> None:
    """Print a line for people. Control characters in it are spelled out: what comes from a file must not steer a terminal."""
    click.echo("".join(map(_drawn, parts)), err=err)


def _drawn(part: str | Cell) -> str:
    shown = "\n".join(map(safe, text(part).split("\n")))
    if not isinstance(part, Cell) or not in_colour():
        return shown
    return click.style(shown, bold=True) if part.style == "bold" else click.style(shown, fg=part.style)


def text(part: str | Cell) -> str:
    """The text without its style."""
    return part.text if isinstance(part, Cell) else part


def table(drawn: Table) -> None:
    """Print a table."""
    import shutil

    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        for count in range(len(drawn.spare) + 1):
            kept = reduce(Table.without, drawn.spare[:count], drawn)
            fitted = _fitted(kept, width)
            if max(map(len, plain(fitted))) <= width:
                _draw(fitted)
                if count:
                    click.echo(f"(no room here for {', '.join(drawn.spare[:count])})")
                return
    for line in plain(drawn):  # in a very narrow terminal lines run over: a number that is broken in two cannot be read
        click.echo(line)


def _fitted(drawn: Table, width: int) -> Table:
    """The table with its widest column of text wrapped, if that makes it fit: numbers and names stay whole."""
    excess = max(map(len, plain(drawn))) - width
    texts = [index for index, column in enumerate(drawn.columns) if not column.right]
    if excess <= 0 or not texts:
        return drawn
    sizes = {index: max(len(text(row[index])) for row in drawn.rows) for index in texts}
    widest = max(texts, key=lambda index: sizes[index])
    left = sizes[widest] - excess
    if left < _LEAST_WIDTH:
        return drawn
    return Table(drawn.columns, tuple(line for row in drawn.rows for line in _wrapped(row, widest, left)))


def _wrapped(row: tuple[str | Cell, ...], index: int, width: int) -> Iterator[tuple[str | Cell, ...]]:
    """The row, and below it what does not fit of one of its cells."""
    import textwrap

    cell = row[index]
    style = cell.style if isinstance(cell, Cell) else ""
    parts = textwrap.wrap(safe(text(cell)), width, break_long_words=False, break_on_hyphens=False) or [""]
    for number, part in enumerate(parts):
        rest = row if number == 0 else ("",) * len(row)
        yield (*rest[:index], Cell(part, style), *rest[index + 1 :])


def plain(drawn: Table) -> list[str]:
    """The lines of a table without colour, as wide as it takes."""
    rows = [[column.name for column in drawn.columns], *([safe(text(cell)) for cell in row] for row in drawn.rows)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(drawn.columns))]
    return [_GAP.join(_padded(row, widths, drawn.columns)).rstrip() for row in rows]


def styled(text: str, style: str) -> str:
    """The text in a colour, for those who see colour."""
    return click.style(text, fg=style) if in_colour() else text


def bold(text: str) -> str:
    """A headline, for those who see colour."""
    return click.style(text, bold=True) if in_colour() else text


def safe(text: str) -> str:
    """The text with control characters spelled out: what comes from a file must not steer a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def in_colour() -> bool:
    """Whether colour is wanted: on a terminal that can, unless the user said no."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _padded(row: Sequence[str], widths: Sequence[int], columns: Sequence[TableColumn]) -> list[str]:
    return [
        text.rjust(width) if column.right else text.ljust(width)
        for text, width, column in zip(row, widths, columns, strict=True)
    ]


def _draw(drawn: Table) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), header_style="bold" if in_colour() else "")
    for column in drawn.columns:
        grid.add_column(column.name, justify="right" if column.right else "left", overflow="fold")
    for row in drawn.rows:
        grid.add_row(*(Text(safe(text(cell)), style=cell.style if isinstance(cell, Cell) else "") for cell in row))
    Console(no_color=not in_colour(), highlight=False).print(grid)
