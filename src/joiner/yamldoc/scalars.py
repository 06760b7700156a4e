"""What single words mean: the rules Kubernetes' YAML reader follows for booleans, numbers and the rest."""

import math
import re
from collections.abc import Mapping
from typing import Any, Final

_NUMBER: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER: Final = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_BASES: Final = (16, 2, 8, 10)
_NUMBER_CHARACTERS_MAX: Final = 800
_STARTS: Final = frozenset("yYnNtTfFoO~+-.0123456789")
_WORDS: Final[Mapping[str, Any]] = (
    dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True)
    | dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False)
    | dict.fromkeys(["~", "null", "Null", "NULL"])
    | dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan)
    | dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], math.inf)
    | dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf)
)


class Number(float):
    """A number with a fraction or an exponent, which still knows how it was written: `0.40` stays `0.40`."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> "Number":
        """Read the text; underscores between digits are dropped, as Kubernetes does."""
        number = super().__new__(cls, text)
        number.text = text.replace("_", "")
        return number

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type["Number"], tuple[str]]:
        return Number, (self.text,)


def plain(data: Any) -> Any:
    """The same data with every `Number` as a bare float, for readers that know only the built-in types."""
    if isinstance(data, dict):
        return {key: plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [plain(value) for value in data]
    return float(data) if isinstance(data, Number) else data


def resolve(text: str) -> Any:
    """What a bare word means to Kubernetes' reader, which follows YAML 1.1 but for dates and base 60."""
    if not text:
        return None
    if text[0] not in _STARTS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    return text if text[0].isalpha() else number(text)


def number(text: str) -> int | Number | str:
    """An integer or number; the text itself when it is neither, or beyond what 64 bits hold."""
    if len(text) > _NUMBER_CHARACTERS_MAX:
        return text
    digits = text if text[0] == "." else text.replace("_", "")
    if match := _INTEGER.fullmatch(digits):
        sign, *groups = match.groups()
        whole = next(int(group, base) for group, base in zip(groups, _BASES, strict=True) if group)
        whole = -whole if sign == "-" else whole
        if -(2**63) <= whole < 2**64:
            return whole
    if _NUMBER.fullmatch(digits) and not math.isinf(real := Number(digits)):
        return real
    return text
