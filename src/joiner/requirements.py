"""The algebra of constraints on labels: the one place where a mistake would be invisible everywhere and wrong everywhere.

A `Requirement` is a set of allowed values for one key: either listed, or everything but a list, within optional inclusive
bounds. `Requirements` holds one of them per key. Both are immutable and canonical, so equal sets are equal values.
Nothing is ever chosen at random: "any value" is the smallest.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from joiner.model import labels
from joiner.model.labels import Vocabulary
from joiner.model.requirement import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    GTE,
    IN,
    LT,
    LTE,
    NOT_IN,
    NUMERIC,
    SelectorRequirement,
    SelectorRequirementWithMinValues,
)

_INT_MAX: Final = 2**63 - 1
_INT_MIN: Final = -(2**63)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_SHOWN_VALUES: Final = 5
_NOBODY: Final[frozenset[str]] = frozenset()

PLAIN_VOCABULARY: Final = Vocabulary()


def integer(text: str) -> int | None:
    """The integer a label value spells, if it spells one of 64 bits."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if _INT_MIN <= number <= _INT_MAX else None


class Requirement:
    """The values one label may have.

    `complement` false: exactly `values` (none at all means the label must be absent). `complement` true: everything except
    `values`, and if `gte` or `lte` is set only integers within them; `must_exist` tells whether an absent label is
    refused, which is not the case for `NotIn` alone.
    """

    __slots__ = ("_hash", "complement", "gte", "key", "lte", "min_values", "must_exist", "values")

    key: str
    complement: bool
    values: frozenset[str]
    gte: int | None
    lte: int | None
    min_values: int | None
    must_exist: bool

    def __init__(
        self,
        key: str,
        values: Iterable[str] = (),
        *,
        complement: bool = False,
        gte: int | None = None,
        lte: int | None = None,
        min_values: int | None = None,
        must_exist: bool = False,
    ) -> None:
        given = kept = frozenset(values)
        if gte is not None and lte is not None and gte > lte:
            complement, kept = False, _NOBODY
        if gte is not None or lte is not None:
            # Outside the bounds nothing is allowed anyway, so only values inside them need to be remembered.
            kept = frozenset(value for value in kept if _within(value, gte, lte))
        if complement:
            must_exist = must_exist or gte is not None or lte is not None or not given
        else:
            gte = lte = None
            must_exist = bool(kept)
        put = object.__setattr__
        put(self, "key", key)
        put(self, "complement", complement)
        put(self, "values", kept)
        put(self, "gte", gte)
        put(self, "lte", lte)
        put(self, "min_values", min_values)
        put(self, "must_exist", must_exist)
        put(self, "_hash", hash((key, complement, kept, gte, lte, min_values, must_exist)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a requirement does not change; make another one instead of setting {name}")

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.key, tuple(sorted(self.values)), self.complement, self.gte, self.lte, self.min_values)
        return (_rebuild, (*fields, self.must_exist))

    # -- how one is made ---------------------------------------------------------------------------------------------

    @classmethod
    def of(cls, key: str, operator: str, *values: str, min_values: int | None = None) -> "Requirement":
        """One requirement in the words of the API. The values were checked before; here they must make sense."""
        match operator:
            case "In":
                return cls(key, values, min_values=min_values)
            case "NotIn":
                return cls(key, values, complement=True, min_values=min_values)
            case "Exists":
                return cls(key, complement=True, min_values=min_values)
            case "DoesNotExist":
                return cls(key, min_values=min_values)
            case "Gt" | "Lt" | "Gte" | "Lte":
                return cls._bounded(key, operator, values, min_values)
        raise ValueError(f"unknown operator {operator!r}")

    @classmethod
    def _bounded(cls, key: str, operator: str, values: tuple[str, ...], min_values: int | None) -> "Requirement":
        bound = integer(values[0]) if len(values) == 1 else None
        if bound is None:
            raise ValueError(f"operator {operator} on {key} needs exactly one integer, not {list(values)}")
        if (operator == GT and bound == _INT_MAX) or (operator == LT and bound == _INT_MIN):
            return cls(key, min_values=min_values)  # nothing is beyond the last integer
        if operator in (GT, GTE):
            return cls(key, complement=True, gte=bound + (operator == GT), min_values=min_values)
        return cls(key, complement=True, lte=bound - (operator == LT), min_values=min_values)

    @classmethod
    def read(cls, written: SelectorRequirement, vocabulary: Vocabulary = PLAIN_VOCABULARY) -> "Requirement":
        """A requirement from an API object, with old label names and values replaced by today's."""
        key = vocabulary.normal_key(written.key)
        values = [vocabulary.normal_value(key, value) for value in written.values]
        min_values = written.min_values if isinstance(written, SelectorRequirementWithMinValues) else None
        return cls.of(key, written.operator, *values, min_values=min_values)

    # -- what it says ------------------------------------------------------------------------------------------------

    @property
    def operator(self) -> str:
        """The API operator that describes it best; bounds do not change the answer."""
        if self.complement:
            return NOT_IN if self.values else EXISTS
        return IN if self.values else DOES_NOT_EXIST

    @property
    def bounded(self) -> bool:
        """Whether only integers within bounds are allowed."""
        return self.gte is not None or self.lte is not None

    @property
    def allows_absence(self) -> bool:
        """Whether a node without the label is fine: only the negative operators say so."""
        return not self.must_exist

    def has(self, value: str) -> bool:
        """Whether the label may have this value."""
        if not self.complement:
            return value in self.values
        return value not in self.values and _within(value, self.gte, self.lte)

    def any(self) -> str | None:
        """The smallest value that is allowed; nothing if the label must be absent."""
        if not self.complement:
            return min(self.values, default=None)
        candidate = self.gte if self.gte is not None else min(0, self.lte) if self.lte is not None else 0
        while str(candidate) in self.values:
            candidate += 1
        return str(candidate) if self.lte is None or candidate <= self.lte else None

    def written(self) -> tuple[SelectorRequirementWithMinValues, ...]:
        """The requirement in API form. Both bounds need two entries; exclusions beside a bound keep an entry of their own."""
        entries: list[tuple[str, tuple[str, ...]]] = []
        if self.gte is not None:
            entries.append((GTE, (str(self.gte),)))
        if self.lte is not None:
            entries.append((LTE, (str(self.lte),)))
        if not entries and self.operator == NOT_IN and self.must_exist:
            entries.append((EXISTS, ()))
        if not entries or self.values:
            entries.append((self.operator, tuple(sorted(self.values))))
        return tuple(
            SelectorRequirementWithMinValues(key=self.key, operator=operator, values=values, min_values=self.min_values)  # type: ignore[arg-type]
            for operator, values in entries
        )

    # -- algebra -----------------------------------------------------------------------------------------------------

    def __and__(self, other: "Requirement") -> "Requirement":
        """What both allow."""
        if self is other:
            return self
        gte, lte = _largest(self.gte, other.gte), _smallest(self.lte, other.lte)
        min_values = _largest(self.min_values, other.min_values)
        if self.complement and other.complement:
            return Requirement(
                self.key,
                self.values | other.values,
                complement=True,
                gte=gte,
                lte=lte,
                min_values=min_values,
                must_exist=self.must_exist or other.must_exist,
            )
        if self.complement:
            kept = other.values - self.values
        elif other.complement:
            kept = self.values - other.values
        else:
            kept = self.values & other.values
        return Requirement(self.key, kept, gte=gte, lte=lte, min_values=min_values)

    def intersects(self, other: "Requirement") -> bool:
        """Whether some value satisfies both, without building the set."""
        if self.complement and other.complement:
            gte, lte = _largest(self.gte, other.gte), _smallest(self.lte, other.lte)
            return gte is None or lte is None or gte <= lte
        listed, test = (other, self) if self.complement else (self, other)
        if not test.complement:
            return not listed.values.isdisjoint(test.values)
        return any(test.has(value) for value in listed.values)

    def agrees(self, other: "Requirement") -> bool:
        """`intersects`, or both are content with an absent label."""
        return self.intersects(other) or (self.allows_absence and other.allows_absence)

    def is_within(self, other: "Requirement") -> bool:
        """Whether everything this one allows is allowed by the other as well."""
        if not self.complement:
            return all(other.has(value) for value in self.values) if self.values else other.allows_absence
        if not other.complement or (other.bounded and not self.bounded) or (other.must_exist and not self.must_exist):
            return False
        if other.gte is not None and (self.gte is None or self.gte < other.gte):
            return False
        if other.lte is not None and (self.lte is None or self.lte > other.lte):
            return False
        return all(not self.has(value) for value in other.values)

    def relaxed(self, min_values: int | None) -> "Requirement":
        """The same values with another minimum of different ones."""
        return Requirement(
            self.key,
            self.values,
            complement=self.complement,
            gte=self.gte,
            lte=self.lte,
            min_values=min_values,
            must_exist=self.must_exist,
        )

    # -- manners -----------------------------------------------------------------------------------------------------

    def _identity(self) -> tuple[object, ...]:
        return (self.key, self.complement, self.values, self.gte, self.lte, self.min_values, self.must_exist)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Requirement):
            return NotImplemented
        return self._hash == other._hash and self._identity() == other._identity()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __lt__(self, other: "Requirement") -> bool:
        return str(self) < str(other)

    def __repr__(self) -> str:
        return f"<Requirement {self}>"

    def __str__(self) -> str:
        parts: list[str] = []
        if self.gte is not None:
            parts.append(f">={self.gte}")
        if self.lte is not None:
            parts.append(f"<={self.lte}")
        if not parts and self.operator == NOT_IN and self.must_exist:
            parts.append(EXISTS)
        if not parts or self.values:
            parts.append(self.operator)
        if self.values:
            ordered = sorted(self.values)
            shown = ", ".join(ordered[:_SHOWN_VALUES])
            more = f" and {len(ordered) - _SHOWN_VALUES} others" if len(ordered) > _SHOWN_VALUES else ""
            parts.append(f"[{shown}{more}]")
        if self.min_values is not None:
            parts.append(f"minValues {self.min_values}")
        return f"{self.key} {' '.join(parts)}"


@lru_cache(maxsize=1024)
def unconstrained(key: str) -> Requirement:
    """The requirement that says nothing about a label but that it should be there."""
    return Requirement(key, complement=True)


def _rebuild(
    key: str,
    values: tuple[str, ...],
    complement: bool,
    gte: int | None,
    lte: int | None,
    min_values: int | None,
    must_exist: bool,
) -> Requirement:
    return Requirement(
        key, values, complement=complement, gte=gte, lte=lte, min_values=min_values, must_exist=must_exist
    )


def _within(value: str, gte: int | None, lte: int | None) -> bool:
    if gte is None and lte is None:
        return True
    number = integer(value)
    return number is not None and (gte is None or number >= gte) and (lte is None or number <= lte)


def _largest(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else max(left, right)


def _smallest(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else min(left, right)


class Requirements(Mapping[str, Requirement]):
    """One requirement per key. A key that is not there is unconstrained."""

    __slots__ = ("_by_key", "_hash")

    _by_key: dict[str, Requirement]
    _hash: int

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        by_key: dict[str, Requirement] = {}
        for requirement in requirements:
            known = by_key.get(requirement.key)
            by_key[requirement.key] = requirement if known is None else known & requirement
        self._by_key = dict(sorted(by_key.items()))
        self._hash = hash(tuple(self._by_key.values()))

    @classmethod
    def read(cls, written: Iterable[SelectorRequirement], vocabulary: Vocabulary = PLAIN_VOCABULARY) -> "Requirements":
        """From the list form of an API object."""
        return cls(Requirement.read(entry, vocabulary) for entry in written)

    @classmethod
    def of_labels(cls, values: Mapping[str, str], vocabulary: Vocabulary = PLAIN_VOCABULARY) -> "Requirements":
        """Each label must have exactly the given value. What the labels of a node come to is remembered: it is asked often."""
        if vocabulary.value_aliases or not vocabulary.aliases.keys().isdisjoint(values):
            normal = ((vocabulary.normal_key(key), value) for key, value in values.items())
            return _exactly(tuple((key, vocabulary.normal_value(key, value)) for key, value in normal))
        return _exactly(tuple(values.items()))

    def __getitem__(self, key: str) -> Requirement:
        return self._by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def at(self, key: str) -> Requirement:
        """The requirement on a key; an unconstrained one where nothing was said."""
        return self._by_key.get(key) or unconstrained(key)

    def __and__(self, other: "Requirements") -> "Requirements":
        """What both sets allow, key by key."""
        if self is other or not other:
            return self
        return Requirements((*self.values(), *other.values())) if self else other

    def without(self, *keys: str) -> "Requirements":
        """The same set, silent about some keys."""
        return Requirements(requirement for key, requirement in self.items() if key not in keys)

    def conflicts(self, other: "Requirements") -> tuple[str, ...]:
        """The keys both name and on which they cannot agree."""
        small, large = (self, other) if len(self) <= len(other) else (other, self)
        return tuple(
            key
            for key, mine in small._by_key.items()
            if (its := large._by_key.get(key)) is not None and not mine.agrees(its)
        )

    def intersects(self, other: "Requirements") -> bool:
        """Whether no key that both name stands between them."""
        small, large = (self, other) if len(self) <= len(other) else (other, self)
        theirs = large._by_key
        return all((its := theirs.get(key)) is None or mine.agrees(its) for key, mine in small._by_key.items())

    def undefined(self, incoming: "Requirements", allow_undefined: frozenset[str] = _NOBODY) -> tuple[str, ...]:
        """The keys that `incoming` needs and this set does not define."""
        return tuple(
            key
            for key, wanted in incoming._by_key.items()
            if key not in self._by_key and key not in allow_undefined and not wanted.allows_absence
        )

    def compatible(self, incoming: "Requirements", allow_undefined: frozenset[str] = _NOBODY) -> bool:
        """Whether something described by this set can satisfy `incoming`.

        A key that this set does not define is a reason to say no, unless it is in `allow_undefined` or `incoming` is
        content with its absence.
        """
        own = self._by_key
        for key, wanted in incoming._by_key.items():
            mine = own.get(key)
            if mine is None:
                if key not in allow_undefined and not wanted.allows_absence:
                    return False
            elif not mine.agrees(wanted):
                return False
        return True

    def problems(self, incoming: "Requirements", allow_undefined: frozenset[str] = _NOBODY) -> tuple[str, ...]:
        """Why `compatible` says no, one sentence for each key; empty when it says yes."""
        return (
            *(
                f"label {key} is not defined{self._hint(key, allow_undefined)}"
                for key in self.undefined(incoming, allow_undefined)
            ),
            *(f"{incoming[key]} is not possible with {self[key]}" for key in self.conflicts(incoming)),
        )

    def _hint(self, key: str, allow_undefined: frozenset[str]) -> str:
        near = similar_key(key, (*sorted(allow_undefined), *self))
        return f" (did you mean {near}?)" if near else ""

    def invented(self) -> frozenset[str]:
        """The labels of which it is only known what they must not be: a new node that would lack one gets another value."""
        return frozenset(key for key, requirement in self.items() if requirement.operator == NOT_IN)

    def labels(self) -> dict[str, str]:
        """The labels that are settled: keys with exactly one value."""
        return {key: min(r.values) for key, r in self.items() if not r.complement and len(r.values) == 1}

    def written(self) -> tuple[SelectorRequirementWithMinValues, ...]:
        """The list form of an API object, in order of key."""
        return tuple(entry for requirement in self.values() for entry in requirement.written())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Requirements):
            return NotImplemented
        return self._hash == other._hash and self._by_key == other._by_key

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return (Requirements, (tuple(self.values()),))

    def __repr__(self) -> str:
        return f"<Requirements {self}>"

    def __str__(self) -> str:
        """In words; the hostname is left out, as it only names a place."""
        return ", ".join(sorted(str(r) for key, r in self.items() if key != labels.HOSTNAME))


EVERYTHING: Final = Requirements()


def unreadable(written: SelectorRequirement) -> bool:
    """Whether the algebra cannot make sense of a requirement: a bound that is not one integer."""
    return written.operator in NUMERIC and (len(written.values) != 1 or integer(written.values[0]) is None)


@lru_cache(maxsize=16_384)
def _exactly(values: tuple[tuple[str, str], ...]) -> Requirements:
    return Requirements(_one_value(key, value) for key, value in values)


@lru_cache(maxsize=32_768)
def _one_value(key: str, value: str) -> Requirement:
    """All nodes of a pool share most of their labels, and with them these."""
    return Requirement(key, (value,))


def similar_key(key: str, known: Iterable[str]) -> str | None:
    """The known label a mistyped key most likely meant: one that shares its last part, contains it, or looks alike.

    That two labels have the same domain does not make them look alike.
    """
    candidates = list(known)
    name = key.rpartition("/")[2]
    for candidate in candidates:
        if name and candidate.rpartition("/")[2] == name:
            return candidate
    if "-" in key:  # a single word like `type` is in too many labels to mean one of them
        for candidate in candidates:
            if key in candidate:
                return candidate
    from difflib import get_close_matches  # slow to import, and only mistyped keys need it

    alike = get_close_matches(key, candidates, n=len(candidates) or 1, cutoff=0.8)
    return next((each for each in alike if get_close_matches(name, [each.rpartition("/")[2]], cutoff=0.5)), None)


__all__ = [
    "DOES_NOT_EXIST",
    "EVERYTHING",
    "EXISTS",
    "GT",
    "GTE",
    "IN",
    "LT",
    "LTE",
    "NOT_IN",
    "Requirement",
    "Requirements",
    "integer",
    "similar_key",
    "unreadable",
]
