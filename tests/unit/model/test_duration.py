"""Durations against the answers of Go's own library, kept in data/durations.json."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from joiner.model.duration import LONGEST, NEVER, Duration, DurationError

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "durations.json").read_text())
UNREADABLE = [row["text"] for row in VECTORS if "nanoseconds" not in row and row["text"] != "Never"]


@pytest.mark.parametrize("row", [row for row in VECTORS if "nanoseconds" in row], ids=lambda row: row["text"])
def test_lengths_and_spellings_are_those_of_go(row: dict[str, Any]) -> None:
    length = Duration.parse(row["text"])

    assert length == row["nanoseconds"]
    assert length.text() == row["canonical"]


@pytest.mark.parametrize("text", [*UNREADABLE, "1" * 5000 + "s"], ids=lambda text: repr(text[:30]))
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(DurationError, match="is not a duration"):
        Duration.parse(text)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("1d", "there is no unit 'd'"),
        ("1h30", "30 has no unit"),
        ("h", "a number is missing"),
        ("", "it is empty"),
        ("3000000h", "longer than 292 years"),
        (5, "5 has no unit"),
        (True, "it is not a text"),
    ],
)
def test_the_message_says_why(raw: str | int, why: str) -> None:
    with pytest.raises(DurationError, match=why):
        Duration.parse(raw)


def test_never_is_longer_than_any_duration() -> None:
    assert Duration.parse("Never") == NEVER
    assert Duration(LONGEST) < NEVER
    assert f"{NEVER}" == "Never"
    assert NEVER.seconds == float("inf")


def test_never_cannot_be_added_to_a_moment() -> None:
    with pytest.raises(DurationError, match="not a length"):
        _ = NEVER.timedelta


def test_a_duration_knows_its_seconds() -> None:
    assert Duration.of_seconds(1.5) == Duration.parse("1500ms")
    assert Duration.parse("1m30s").seconds == 90
    assert Duration.parse("1m30s").timedelta == timedelta(seconds=90)


def test_a_duration_shows_itself() -> None:
    assert repr(Duration.parse("90m")) == "Duration('1h30m0s')"
    assert Duration.parse(Duration(7)) == 7
    assert Duration.parse(0) == 0
