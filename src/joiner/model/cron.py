"""Cron schedules of disruption budgets: five fields, always in UTC.

The grammar is exactly Karpenter's, so a schedule means the same here: names and ranges do not wrap
around (`sat-sun` runs backwards), Sunday is 0 and never 7, `5/15` means from 5 to the end in steps of 15. When both the day of
month and the day of week are restricted, either is enough.
"""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from joiner.model.meta import Value

MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPACES: Final = re.compile(f"[{_SPACE}]+")
_NUMBER: Final = re.compile(r"\+?([0-9]+)", re.ASCII)
_YEARS_AHEAD: Final = 5
"""How far the next hit is looked for; beyond it a schedule counts as one without a hit."""


class CronError(ValueError):
    """The text is not a schedule; the message says which field and what it may hold."""


class _Field(Value):
    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()
    """Names of the values, beginning at `first`."""

    def allowed(self) -> str:
        """The allowed values of the field, in words."""
        named = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        return f"{self.first} to {self.last}{named}"


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    _Field(name="minute", first=0, last=59),
    _Field(name="hour", first=0, last=23),
    _Field(name="day of month", first=1, last=31),
    _Field(name="month", first=1, last=12, names=_MONTHS),
    _Field(name="day of week", first=0, last=6, names=_DAYS),
)


class Schedule(Value):
    """A schedule that was read: the values of each field, sorted."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """Sunday is 0."""
    either_day: bool
    """Whether a matching day of month or a matching day of week is enough, instead of both."""

    def falls_on(self, day: date) -> bool:
        """Whether there is a hit on that day."""
        if day.month not in self.months:
            return False
        matches = (day.day in self.days, day.isoweekday() % 7 in self.weekdays)
        return any(matches) if self.either_day else all(matches)


def parse(text: str) -> Schedule:
    """Read five fields or a macro like `@daily`."""
    trimmed = _SPACES.sub(" ", text).strip(" ")
    if trimmed.startswith("@"):
        if trimmed not in MACROS:
            raise CronError(f"{_shown(text)} is not a schedule: the macros are {', '.join(MACROS)}, in lower case")
        trimmed = MACROS[trimmed]
    parts = trimmed.split(" ") if trimmed else []
    if len(parts) != len(_FIELDS):
        raise CronError(
            f"{_shown(text)} is not a schedule: it needs 5 fields and has {len(parts)}"
            f" (minute, hour, day of month, month, day of week; always UTC), or be one of {', '.join(MACROS)}"
        )
    read = [_read(part, field, text) for part, field in zip(parts, _FIELDS, strict=True)]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = read
    return Schedule(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=days,
        months=months,
        weekdays=weekdays,
        either_day=not any_day and not any_weekday,
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _read(part: str, field: _Field, text: str) -> tuple[frozenset[int], bool]:
    """The values of one field, and whether it leaves the field open with `*` or `?`."""
    values: set[int] = set()
    unrestricted = False
    for item in part.split(","):
        if item:  # an empty item between commas counts for nothing
            try:
                numbers, is_open = _item(item, field)
            except CronError as problem:
                raise CronError(f"{_shown(text)} is not a schedule: {field.name} {item!r} {problem}") from None
            values |= numbers
            unrestricted |= is_open
    return frozenset(values), unrestricted


def _item(item: str, field: _Field) -> tuple[frozenset[int], bool]:
    span, *steps = item.split("/")
    if len(steps) > 1:
        raise CronError("has more than one slash")
    low, *highs = span.split("-")
    step = _step(steps[0]) if steps else 1
    if low in ("*", "?"):
        return frozenset(range(field.first, field.last + 1, step)), step == 1
    if len(highs) > 1:
        raise CronError("has more than one hyphen")
    first = _value(low, field)
    last = _value(highs[0], field) if highs else field.last if steps else first
    _check_range(first, last, field)
    return frozenset(range(first, last + 1, step)), False


def _check_range(first: int, last: int, field: _Field) -> None:
    if first < field.first or max(first, last) > field.last:
        sunday = "; Sunday is 0" if field.names is _DAYS and 7 in (first, last) else ""
        raise CronError(f"is out of range: the {field.name} goes from {field.allowed()}{sunday}")
    if first > last:
        raise CronError(
            f"runs backwards, from {first} to {last}: split it at the end of the range, like"
            f" {_span(first, field.last)},{_span(field.first, last)}"
        )


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _value(raw: str, field: _Field) -> int:
    if raw.lower() in field.names:
        return field.first + field.names.index(raw.lower())
    match = _NUMBER.fullmatch(raw)
    if match is None:
        where = f"at {raw!r}" if raw else "where a number is missing"
        raise CronError(f"is not understood {where}: the {field.name} is a number from {field.allowed()}, or *")
    return _whole(match[1])


def _step(raw: str) -> int:
    match = _NUMBER.fullmatch(raw)
    if match is None or _whole(match[1]) == 0:
        raise CronError("needs a step of 1 or more after the slash")
    return _whole(match[1])


def _whole(digits: str) -> int:
    significant = digits.lstrip("0") or "0"
    if len(significant) > 18:
        raise CronError("has a number that is too large")
    return int(significant)


def next_after(schedule: Schedule, moment: datetime) -> datetime | None:
    """The first hit strictly after the moment, in UTC; None if there is none in the next five years."""
    moment = moment.astimezone(UTC)
    start = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
    last_year = min((moment + timedelta(seconds=1)).year + _YEARS_AHEAD, date.max.year - 1)
    if not schedule.minutes or not schedule.hours:
        return None
    day, earliest = start.date(), start.time()
    while day.year <= last_year:
        if schedule.falls_on(day):
            hit = _first_time(schedule, earliest)
            if hit is not None:
                return datetime.combine(day, hit, UTC)
        day = _next_day(schedule, day)
        earliest = time.min
    return None


def _next_day(schedule: Schedule, day: date) -> date:
    if day.month in schedule.months:
        return day + timedelta(days=1)
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _first_time(schedule: Schedule, earliest: time) -> time | None:
    for hour in schedule.hours:
        if hour < earliest.hour:
            continue
        for minute in schedule.minutes:
            if hour > earliest.hour or minute >= earliest.minute:
                return time(hour, minute)
    return None
