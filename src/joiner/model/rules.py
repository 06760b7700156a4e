"""Validation rules written beside the fields they constrain: the single source of the CRDs and of offline validation.

A field says `Annotated[<type>, "<description>", Field(…)]`; a class says what holds between its fields in `rules`. Decoding
does not look at any of this: objects in a cluster were validated when they were written.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from joiner.model import labels, quantity
from joiner.model.meta import Value
from joiner.model.quantity import Quantity


class Rule(Value):
    """One whole-object rule in two forms: in CEL for the API server, in Python for offline validation.

    `holds` gets the JSON value after defaults, and for a rule about changes also the old one. It must cope with
    missing fields, because validation goes on after the first problem. Tests check that both forms agree.
    """

    cel: str
    message: str
    holds: Callable[..., bool]
    field: str = ""
    """The field the problem is reported at, like `.values`; empty for the whole value."""
    allows_key: Callable[[str], bool] | None = None
    """Of a rule about the keys of a map: whether one key is allowed, so that the others can be named."""

    @property
    def is_transition(self) -> bool:
        """Whether the rule compares with the object as it was before."""
        return "oldSelf" in self.cel


class Field(Value):
    """What the API says about a field beyond its type."""

    required: bool = False
    default: Any = None
    """As written in JSON; None if there is no default."""
    pattern: str = ""
    words: str = ""
    """What the pattern admits, in words for messages."""
    format: str = ""
    min_length: int | None = None
    max_length: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    max_properties: int | None = None
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()

    def over(self, base: "Field") -> "Field":
        """This and the base together; where both set something this one counts, rules add up."""
        set_here = {
            name: value for name in self.__struct_fields__ if (value := getattr(self, name)) != getattr(_UNSET, name)
        }
        return msgspec.structs.replace(base, **{**set_here, "rules": base.rules + self.rules})


_UNSET: Final = Field()


class OpenObject(Value):
    """Said of a field that keeps every key it is given: what is known of it is what this class says of its own fields."""

    known: type[Value]


_LABEL_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_NAME: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*"

DNS_SUBDOMAIN: Final = Field(
    pattern=f"^{_DNS_NAME}$",
    words="lower case letters, digits, '-' and '.', beginning and ending with a letter or digit",
    min_length=1,
    max_length=253,
)
LABEL_KEY: Final = Field(
    pattern=f"^({_DNS_NAME}/)?{_LABEL_NAME}$",
    words="a label key like example.com/team: an optional DNS name and a slash, then letters, digits, '-', '_' or '.'",
    max_length=316,
)
LABEL_VALUE: Final = Field(
    pattern=f"^({_LABEL_NAME})?$",
    words="letters, digits, '-', '_' or '.', beginning and ending with a letter or digit",
    max_length=63,
)
QUALIFIED_OR_EMPTY: Final = Field(
    pattern=f"^(({_DNS_NAME}/)?{_LABEL_NAME})?$",
    words="empty, or written like a label key",
    max_length=316,
)
SPAN: Final = Field(
    pattern="^([0-9]+(s|m|h))+$",
    words="a length of time in hours, minutes and seconds, like 1h30m",
    max_length=64,
)
SPAN_OR_NEVER: Final = Field(
    pattern="^(([0-9]+(s|m|h))+|Never)$",
    words="a length of time in hours, minutes and seconds, like 1h30m, or Never",
    max_length=64,
)
NON_NEGATIVE: Final = Field(
    pattern=r"^\+?" + quantity.PATTERN.removeprefix(r"^(\+|-)?"),
    words="an amount that is not negative, like 500m, 2 or 4Gi",
    minimum=0,
)
Amount = Annotated[Quantity, NON_NEGATIVE]
RESOURCE_LIST: Final = Field(max_properties=100)
CONDITIONS: Final = Field(list_type="map", list_keys=("type",), max_items=64)

_OURS: Final = "^([^/]*[.])?karpenter[.]sh/"
"""The domain itself or a proper sub-domain of it; `fookarpenter.sh` is another domain."""


def quoted(names: tuple[str, ...]) -> str:
    """A list of texts as CEL writes it."""
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def _about_keys(cel: str, message: str, allows_key: Callable[[str], bool]) -> Rule:
    return Rule(cel=cel, message=message, allows_key=allows_key, holds=lambda value: all(map(allows_key, value)))


def _foreign(allowed: tuple[str, ...]) -> Callable[[str], bool]:
    return lambda key: key in allowed or not labels.in_domain(key, labels.GROUP)


def _ours(allowed: tuple[str, ...]) -> str:
    return f"labels of karpenter.sh and its sub-domains are reserved; of them only {', '.join(allowed)} may be used"


def keys_not_ours(*allowed: str, elsewhere: tuple[str, ...] = ()) -> Rule:
    """The keys of a map stay out of the karpenter.sh domain, but for these; keys in `elsewhere` have rules of their own."""
    exempt = allowed + elsewhere
    cel = f"self.all(key, key in {quoted(exempt)} || !key.matches('{_OURS}'))"
    return _about_keys(cel, _ours(allowed), _foreign(exempt))


def key_not_ours(*allowed: str, elsewhere: tuple[str, ...] = ()) -> Rule:
    """The `key` of a requirement stays out of the karpenter.sh domain, in the same way."""
    exempt = allowed + elsewhere
    is_foreign = _foreign(exempt)
    return Rule(
        cel=f"self.key in {quoted(exempt)} || !self.key.matches('{_OURS}')",
        message=_ours(allowed),
        holds=lambda value: is_foreign(value.get("key", "")),
        field=".key",
    )


def keys_without(names: tuple[str, ...], message: str) -> Rule:
    """A map that has none of these keys."""
    return _about_keys(f"self.all(key, !(key in {quoted(names)}))", message, lambda key: key not in names)


def keys_only(names: tuple[str, ...], message: str) -> Rule:
    """A map that has no keys but these."""
    return _about_keys(f"self.all(key, key in {quoted(names)})", message, lambda key: key in names)


def key_is_not(name: str, message: str) -> Rule:
    """A requirement that must not be about one label."""
    return Rule(
        cel=f"self.key != '{name}'", message=message, holds=lambda value: value.get("key") != name, field=".key"
    )


def at_most_one(fields: tuple[str, ...], message: str) -> Rule:
    """Of several fields at most one is set."""
    listed = ", ".join(f"has(self.{name})" for name in fields)
    return Rule(
        cel=f"[{listed}].filter(given, given).size() <= 1",
        message=message,
        holds=lambda value: sum(name in value for name in fields) <= 1,
    )


def at_least_one(fields: tuple[str, ...], message: str) -> Rule:
    """Of several fields at least one is set."""
    return Rule(
        cel=" || ".join(f"has(self.{name})" for name in fields),
        message=message,
        holds=lambda value: any(name in value for name in fields),
    )


def excludes(one: str, others: tuple[str, ...], message: str) -> Rule:
    """Where one field is set none of the others is."""
    listed = " || ".join(f"has(self.{name})" for name in others)
    return Rule(
        cel=f"!has(self.{one}) || !({listed})",
        message=message,
        holds=lambda value: one not in value or not any(name in value for name in others),
    )


def both_or_neither(one: str, other: str, message: str) -> Rule:
    """Two fields that come together."""
    return Rule(
        cel=f"has(self.{one}) == has(self.{other})",
        message=message,
        holds=lambda value: (one in value) == (other in value),
    )


def same_as_before(name: str, message: str) -> Rule:
    """A field that keeps its value for the life of the object."""
    return Rule(
        cel=f"self.{name} == oldSelf.{name}",
        message=message,
        holds=lambda value, old: value.get(name) == old.get(name),
        field=f".{name}",
    )


def listing(value: Mapping[str, Any], name: str) -> Sequence[Any]:
    """The list a field of a JSON value holds; empty if there is none."""
    return value.get(name) or ()
