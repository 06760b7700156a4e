"""Exact Kubernetes quantities: the only place that reads `100m` or `1Gi`.

A quantity is an integer number of thousandths, the finest step the API server keeps in a resource list; anything finer is
rounded away from zero, as it does. Sums and comparisons are therefore exact and plain integer arithmetic.
"""

import re
from functools import lru_cache
from typing import Final

MILLI: Final = 1000
MAX: Final = (2**63 - 1) * MILLI
"""The largest quantity Kubernetes represents; larger ones are cut down to it."""

BINARY: Final = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_TEXT: Final = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?([A-Za-z]*|[eE][+-]?[0-9]+)", re.ASCII)
_EXPONENT: Final = re.compile(r"[eE][+-]?[0-9]+", re.ASCII)
_LONGEST: Final = 1000
"""Longer texts are refused before any arithmetic is done on them."""

_DECIMALS: Final = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
PATTERN: Final = rf"^(\+|-)?{_DECIMALS}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_DECIMALS}))?$"
"""What CRDs carry: the pattern Kubernetes publishes for quantities."""


class Quantity(int):
    """A quantity in thousandths. Arithmetic gives plain integers of the same scale."""

    __slots__ = ()


class QuantityError(ValueError):
    """The text is not a quantity; the message says what would be."""


def parse(value: str | int | float) -> Quantity:
    """Read a quantity as written in YAML or JSON: text, or a bare number."""
    if isinstance(value, Quantity):
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError(f"{value!r} is not a quantity: write a number with an optional suffix, like 500m, 2 or 4Gi")
    return _parse(str(value))


@lru_cache(maxsize=16384)
def _parse(text: str) -> Quantity:
    match = _TEXT.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError(_complaint(text))
    sign, whole, fraction, suffix = match.groups(default="")
    digits, power = int(whole + fraction), -len(fraction)
    if suffix in BINARY:
        return _rounded(sign, digits * BINARY[suffix], power)
    if suffix in _DECIMAL:
        return _rounded(sign, digits, power + _DECIMAL[suffix])
    if _EXPONENT.fullmatch(suffix):
        # Past this every non-zero amount is either the largest quantity or rounds to the smallest one.
        exponent = max(-2 * _LONGEST, min(2 * _LONGEST, int(suffix[1:])))
        return _rounded(sign, digits, power + exponent)
    raise QuantityError(_complaint(text))


def _rounded(sign: str, digits: int, power: int) -> Quantity:
    """The digits times ten to the power, in thousandths, rounded away from zero and cut at the largest quantity."""
    shift = power + 3
    milli = digits * 10**shift if shift >= 0 else -(-digits // 10**-shift)
    milli = min(milli, MAX)
    return Quantity(-milli if sign == "-" else milli)


_LIKELY: Final = {"K": "k or Ki", **{f"{letter}B": f"{letter} or {letter}i" for letter in "MGTPE"}, "KB": "k or Ki"}


def _complaint(text: str) -> str:
    shown = text if len(text) <= 40 else text[:37] + "..."
    suffix = re.sub(r"^[+-]?[0-9.]*\s*", "", text).upper().removesuffix("IB")
    likely = _LIKELY.get(suffix) or _LIKELY.get(suffix + "B")
    hint = f"; did you mean the suffix {likely}?" if likely else ""
    return (
        f"{shown!r} is not a quantity: a number may be followed by one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei,"
        f" or an exponent like e3{hint}"
    )


def text(amount: int, *, binary: bool = False) -> str:
    """The canonical spelling: the largest suffix that keeps the number whole, of the binary ones if so wished and possible."""
    if amount == 0:
        return "0"
    if binary and abs(amount) >= 1024 * MILLI and amount % MILLI == 0:
        return _binary(amount // MILLI)
    sign, digits = ("-" if amount < 0 else ""), abs(amount)
    exponent = -3
    while digits % 1000 == 0 and exponent < 18:
        digits, exponent = digits // 1000, exponent + 3
    suffix = next(name for name, power in _DECIMAL.items() if power == exponent)
    return f"{sign}{digits}{suffix}"


def _binary(whole: int) -> str:
    sign, digits = ("-" if whole < 0 else ""), abs(whole)
    suffix = ""
    for name in BINARY:
        if digits % 1024:
            break
        digits, suffix = digits // 1024, name
    return f"{sign}{digits}{suffix}"
