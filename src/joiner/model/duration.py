"""Lengths of time as they are written in API objects: Go's syntax, and `Never`.

A duration is an integer number of nanoseconds, so sums and comparisons are exact and plain integer arithmetic.
"""

import re
from datetime import timedelta
from typing import Final

_NANOSECOND: Final = 1
_MICROSECOND: Final = 1000 * _NANOSECOND
_MILLISECOND: Final = 1000 * _MICROSECOND
SECOND: Final = 1000 * _MILLISECOND
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

LONGEST: Final = 2**63 - 1
"""The most nanoseconds a Go duration holds, a little more than 292 years."""

_UNITS: Final = {
    "ns": _NANOSECOND,
    "us": _MICROSECOND,
    "µs": _MICROSECOND,
    "μs": _MICROSECOND,  # the Greek letter, which looks like the micro sign above
    "ms": _MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_TOO_LONG: Final = "it is longer than 292 years"
_PART: Final = re.compile(r"([0-9]*)(\.[0-9]*)?([^.0-9]*)", re.ASCII)


class DurationError(ValueError):
    """The text is not a duration; the message says what would be."""


class Duration(int):
    """A length of time in nanoseconds. Arithmetic gives plain integers of the same scale."""

    __slots__ = ()

    @classmethod
    def parse(cls, raw: str | int) -> "Duration":
        """Read `1h30m5s` or `Never`. A bare number is refused, except 0: its unit is unknown."""
        if isinstance(raw, Duration):
            return raw
        if isinstance(raw, bool) or not isinstance(raw, str | int):
            raise DurationError(_complaint(repr(raw), "it is not a text"))
        return NEVER if raw == "Never" else cls(_nanoseconds(str(raw)))

    @classmethod
    def of_seconds(cls, seconds: float) -> "Duration":
        """A duration from a number of seconds; fractions of a nanosecond are cut off."""
        return cls(int(seconds * SECOND))

    @property
    def seconds(self) -> float:
        """The number of seconds; `Never` is infinitely many."""
        return float("inf") if self == NEVER else self / SECOND

    @property
    def timedelta(self) -> timedelta:
        """The same for arithmetic with times, cut to microseconds. `Never` has none and raises."""
        if self == NEVER:
            raise DurationError("Never is not a length of time that can be added to a moment")
        return timedelta(microseconds=int(self) // _MICROSECOND)

    def text(self) -> str:
        """The canonical spelling, as Go prints it: `1h30m0s`, `1.5s`, `0s`."""
        if self == NEVER:
            return "Never"
        sign, amount = ("-" if self < 0 else ""), abs(int(self))
        if amount == 0:
            return "0s"
        if amount < SECOND:
            name, unit = next((n, u) for n, u in _SMALL_UNITS if amount >= u)
            return f"{sign}{_decimal(amount, unit)}{name}"
        minutes, rest = divmod(amount, MINUTE)
        hours, minutes = divmod(minutes, 60)
        large = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
        return f"{sign}{large}{_decimal(rest, SECOND)}s"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Duration({self.text()!r})"


_SMALL_UNITS: Final = (("ms", _MILLISECOND), ("µs", _MICROSECOND), ("ns", _NANOSECOND))

NEVER: Final = Duration(LONGEST + 1)
"""Larger than any duration that can be written in numbers."""


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    places = len(str(unit)) - 1
    return f"{whole}.{rest:0{places}d}".rstrip("0")


def _nanoseconds(text: str) -> int:
    sign = -1 if text[:1] == "-" else 1
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return 0
    if not body:
        raise DurationError(_complaint(repr(text), "it is empty"))
    total, position = 0, 0
    while position < len(body):
        match = _PART.match(body, position)
        assert match is not None  # every part of the pattern is optional
        total += _part(text, match[1], match[2] or "", match[3])
        # Go keeps one nanosecond more below zero than above it.
        if total > LONGEST + (1 if sign < 0 else 0):
            raise DurationError(_complaint(repr(text), _TOO_LONG))
        position = match.end()
    return sign * total


def _part(text: str, whole: str, fraction: str, unit_name: str) -> int:
    if not whole and len(fraction) < 2:
        raise DurationError(_complaint(repr(text), "a number is missing"))
    if not unit_name:
        raise DurationError(_complaint(repr(text), f"{whole}{fraction} has no unit"))
    unit = _UNITS.get(unit_name)
    if unit is None:
        raise DurationError(_complaint(repr(text), f"there is no unit {unit_name!r}"))
    whole = whole.lstrip("0")
    if len(whole) > len(str(LONGEST)):
        raise DurationError(_complaint(repr(text), _TOO_LONG))
    return int(whole or "0") * unit + _share(fraction[1:], unit)


def _share(digits: str, unit: int) -> int:
    """A decimal fraction of a unit, with the float arithmetic Go uses, so that odd fractions come out the same."""
    numerator, denominator = 0, 1.0
    for digit in digits:
        longer = numerator * 10 + int(digit)
        if longer > LONGEST + 1:
            break
        numerator, denominator = longer, denominator * 10
    return int(numerator * (unit / denominator))


def _complaint(shown: str, why: str) -> str:
    shown = shown if len(shown) <= 40 else shown[:37] + "..."
    return f"{shown} is not a duration: {why}; write numbers with the units h, m, s, ms, us or ns, like 1h30m or 90s, or Never"
