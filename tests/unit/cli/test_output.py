"""Tables for people, JSON and YAML for machines."""

import json
import os
import pty
import subprocess
import sys

import pytest

from joiner.cli import output
from joiner.cli.output import Cell, Table, TableColumn

TABLE = Table(
    (TableColumn("TYPE"), TableColumn("PRICE", right=True)), (("m5.large", "0.096"), (Cell("c5", "red"), "10.2"))
)
DRAW = """
from joiner.cli.output import Cell, TableColumn, Table, table
table(Table((TableColumn("TYPE"), TableColumn("PRICE", right=True)), (("m5.large", "0.096"), (Cell("c5", "red"), "10.2"))))
"""


def on_a_terminal(code: str, environment: dict[str, str]) -> str:
    """What a Python program writes when a terminal of 80 columns is looking."""
    master, slave = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLORTERM")}
    variables = clean | {"TERM": "xterm-256color", "COLUMNS": "80"} | environment
    subprocess.run([sys.executable, "-c", code], stdout=slave, env=variables, check=True)
    os.close(slave)
    text = os.read(master, 65536).decode()
    os.close(master)
    return text


def test_a_table_in_a_pipe_is_plain_and_aligned() -> None:
    assert output.plain(TABLE) == ["TYPE      PRICE", "m5.large  0.096", "c5         10.2"]


def test_a_table_in_a_pipe_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(Table((TableColumn("A"),), (("x" * 500,),)))

    assert "x" * 500 in capsys.readouterr().out


def test_the_table_library_is_not_imported_for_a_pipe() -> None:
    code = DRAW + "import sys; assert 'rich' not in sys.modules"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout


def test_a_terminal_gets_the_same_layout_in_colour() -> None:
    coloured = on_a_terminal(DRAW, {})
    bare = on_a_terminal(DRAW, {"NO_COLOR": "1", "TERM": "dumb"})

    assert "\x1b[31mc5" in coloured
    assert [line.rstrip() for line in bare.splitlines()] == output.plain(TABLE)


@pytest.mark.parametrize(
    ("environment", "colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)],
)
def test_colour_is_for_terminals_that_want_it(environment: dict[str, str], colour: bool) -> None:
    code = "from joiner.cli.output import styled; print(styled('bad', 'red'))"

    assert ("\x1b[" in on_a_terminal(code, environment)) is colour


def test_a_pipe_gets_no_colour() -> None:
    assert output.styled("bad", "red") == "bad"


def test_control_characters_are_spelled_out() -> None:
    assert output.safe("a\x1b[31mb\udcff") == "a\\x1b[31mb\\udcff"


def test_json_and_yaml_hold_the_same_data(capsys: pytest.CaptureFixture[str]) -> None:
    output.data({"on": "yes", "é": [1]}, output.JSON)
    assert json.loads(capsys.readouterr().out) == {"on": "yes", "é": [1]}

    output.data({"on": "yes", "é": [1]}, output.YAML)
    assert capsys.readouterr().out == "'on': 'yes'\né:\n- 1\n"


WIDE = """
from joiner.cli.output import TableColumn, Table, table
words = " ".join(f"word{n}" for n in range(30))
columns = (TableColumn("NAME"), TableColumn("PODS", right=True), TableColumn("WHERE"))
table(Table(columns, (("web", "1234567", words), ("b", "1", "x"))))
"""


def test_a_table_that_is_too_wide_goes_without_the_columns_that_are_needed_least() -> None:
    columns = 'tuple(TableColumn(name, right=True) for name in ("NODES", "CPU", "MEMORY", "PODS"))'
    rows = '(("1" * 30, "2" * 30, "3" * 30, "4"), ("5", "6", "7", "8"))'
    code = f"from joiner.cli.output import *; table(Table({columns}, {rows}, spare=('MEMORY', 'CPU')))"
    lines = [line.rstrip() for line in on_a_terminal(code, {"NO_COLOR": "1"}).splitlines()]

    assert [line.split() for line in lines[:3]] == [
        ["NODES", "CPU", "PODS"],
        ["1" * 30, "2" * 30, "4"],
        ["5", "6", "8"],
    ]
    assert lines[3:] == ["(no room here for MEMORY)"]


def test_a_long_text_is_wrapped_at_the_width_of_a_terminal_and_numbers_stay_whole() -> None:
    lines = [line.rstrip() for line in on_a_terminal(WIDE, {"NO_COLOR": "1"}).splitlines()]

    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("web   1234567  word0 word1 ")
    assert lines[2].startswith(" " * 15 + "word")
    assert " ".join(" ".join(line[15:] for line in lines[1:-1]).split()) == " ".join(f"word{n}" for n in range(30))
    assert lines[-1] == "b           1  x"
