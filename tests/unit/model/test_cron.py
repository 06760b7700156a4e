"""Schedules against the answers of the parser budgets were always read with, kept in data/cron.json."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from joiner.model import cron
from joiner.model.cron import CronError

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "cron.json").read_text())
HITS = [(row["text"], after, hit) for row in VECTORS for after, hit in row.get("hits", ())]
UNREADABLE = [row["text"] for row in VECTORS if "hits" not in row]


@pytest.mark.parametrize(("text", "after", "hit"), HITS, ids=[f"{text} after {after}" for text, after, _ in HITS])
def test_the_next_hit_is_the_expected_one(text: str, after: str, hit: str | None) -> None:
    expected = None if hit is None else datetime.fromisoformat(hit)

    assert cron.next_after(cron.parse(text), datetime.fromisoformat(after)) == expected


@pytest.mark.parametrize("text", [*UNREADABLE, "@every 5m"], ids=repr)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(CronError, match="is not a schedule"):
        cron.parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "0 0 * * 1-7",
            "day of week '1-7' is out of range: the day of week goes from 0 to 6 or sun to sat; Sunday is 0",
        ),
        ("0 0 * * sat-sun", "day of week 'sat-sun' runs backwards, from 6 to 0: .* like 6,0"),
        ("0 0 * * fri-mon", "like 5-6,0-1"),
        ("* 24 * * *", "hour '24' is out of range: the hour goes from 0 to 23"),
        ("* * * foo *", "month 'foo' is not understood at 'foo': the month is a number from 1 to 12 or jan to dec"),
        ("1- * * * *", "minute '1-' is not understood where a number is missing"),
        ("*/0 * * * *", "needs a step of 1 or more"),
        ("1/2/3 * * * *", "more than one slash"),
        ("1-2-3 * * * *", "more than one hyphen"),
        ("* * * *", "it needs 5 fields and has 4"),
        ("@Daily", "the macros are @yearly, .*, in lower case"),
    ],
)
def test_the_message_says_which_field_and_what_is_allowed(text: str, words: str) -> None:
    with pytest.raises(CronError, match=words):
        cron.parse(text)


def test_moments_of_other_zones_are_read_in_utc() -> None:
    evening = datetime(2026, 3, 1, 23, 30, tzinfo=timezone(timedelta(hours=-5)))

    assert cron.next_after(cron.parse("@daily"), evening) == datetime(2026, 3, 3, tzinfo=UTC)


def test_the_end_of_the_calendar_is_no_error() -> None:
    assert cron.next_after(cron.parse("0 0 30 2 *"), datetime(9998, 1, 1, tzinfo=UTC)) is None
