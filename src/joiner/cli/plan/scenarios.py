"""`joiner plan --scenario`: answers each scenario with a line of JSON, in the same order."""

import gc
import os
import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from joiner.clock import SystemClock
from joiner.offline import files
from joiner.offline.scenario import answer, format, reader
from joiner.scheduling.schedule import schedule


def answer_all(name: str, *, debug: bool) -> None:
    """A line for each scenario, in order, as soon as it is there. One that cannot be answered does not stop the others."""
    folder = "" if name == "-" else os.path.dirname(name)
    whole = _bytes(name)
    if not whole or whole.isspace():
        source = files.STDIN if name == "-" else name
        raise files.InputProblem(source, "holds no scenario: it is empty", "a scenario is an object in JSON")
    failed = False
    for data in format.split(whole):
        for result in _answers(data, folder, debug=debug):
            failed = failed or "failure" in result
            click.echo(msgspec.json.encode(result))
            sys.stdout.flush()
    if failed:
        sys.exit(1)


def _bytes(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        with open(name, "rb") as file:
            return file.read()
    except OSError as error:
        raise files.InputProblem(name, f"cannot be read: {error.strerror or error}", "check the path") from None


def _answers(data: bytes, folder: str, *, debug: bool) -> Iterator[dict[str, Any]]:
    clock = SystemClock()
    watch = answer.Stopwatch(clock)
    try:
        question = reader.read(data, folder)
    except reader.Unanswerable as error:
        yield answer.failure(str(error), error.name)
        return
    del data
    # What was read lives until the answer is written: the collector need not look at it again and again.
    gc.freeze()
    try:
        yield answer.answer(question, schedule, clock, watch.seconds())
    except Exception as error:
        if debug:
            raise
        yield answer.failure(f"{type(error).__name__}: {error}", question.name)
    finally:
        gc.unfreeze()
