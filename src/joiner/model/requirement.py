"""A label requirement as it is written in an API object. The algebra of requirements is `joiner.requirements`."""

import re
from typing import Annotated, Any, ClassVar, Final, Literal

from joiner.model.meta import Value
from joiner.model.rules import LABEL_KEY, LABEL_VALUE, Field, Rule, listing, quoted

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
GT: Final = "Gt"
LT: Final = "Lt"
GTE: Final = "Gte"
LTE: Final = "Lte"

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT, GTE, LTE)
NUMERIC: Final = frozenset({GT, LT, GTE, LTE})

MOST_REQUIREMENTS: Final = 100
_WHOLE_NUMBER: Final = "^[0-9]{1,18}$"


def _has_one_number(value: dict[str, Any]) -> bool:
    values = listing(value, "values")
    return len(values) == 1 and re.fullmatch(_WHOLE_NUMBER, values[0], re.ASCII) is not None


IN_NEEDS_VALUES: Final = Rule(
    cel="self.operator != 'In' || (has(self.values) && size(self.values) > 0)",
    message="operator In needs at least one value",
    holds=lambda value: value.get("operator") != IN or bool(listing(value, "values")),
    field=".values",
)
NOT_IN_NEEDS_VALUES: Final = Rule(
    cel="self.operator != 'NotIn' || (has(self.values) && size(self.values) > 0)",
    message="operator NotIn needs at least one value",
    holds=lambda value: value.get("operator") != NOT_IN or bool(listing(value, "values")),
    field=".values",
)
BOUND_NEEDS_ONE_NUMBER: Final = Rule(
    cel=(
        f"!(self.operator in {quoted(tuple(sorted(NUMERIC)))})"
        f" || (has(self.values) && size(self.values) == 1 && self.values[0].matches('{_WHOLE_NUMBER}'))"
    ),
    message="operators Gt, Lt, Gte and Lte need exactly one value, a whole number that is not negative",
    holds=lambda value: value.get("operator") not in NUMERIC or _has_one_number(value),
    field=".values",
)
MIN_VALUES_NEED_VALUES: Final = Rule(
    cel="self.operator != 'In' || !has(self.minValues) || (has(self.values) && size(self.values) >= self.minValues)",
    message="operator In with minValues needs at least that many values",
    holds=lambda value: value.get("operator") != IN or len(listing(value, "values")) >= value.get("minValues", 0),
    field=".minValues",
)


class SelectorRequirement(Value):
    """Key, operator and values, as in a node selector term."""

    rules: ClassVar[tuple[Rule, ...]] = (IN_NEEDS_VALUES, BOUND_NEEDS_ONE_NUMBER)

    key: Annotated[str, "The label that is constrained.", LABEL_KEY]
    operator: Annotated[
        Operator,
        "How the label relates to the values. Exists and DoesNotExist take none; Gt, Lt, Gte and Lte take one number.",
    ]
    values: Annotated[tuple[Annotated[str, LABEL_VALUE], ...], "The values the operator speaks of."] = ()


class SelectorRequirementWithMinValues(SelectorRequirement):
    """A requirement that also asks how many different values must stay possible."""

    rules: ClassVar[tuple[Rule, ...]] = (*SelectorRequirement.rules, MIN_VALUES_NEED_VALUES)

    min_values: Annotated[
        int | None,
        "How many different values of this label the machines to choose from must keep among them.",
        Field(minimum=1, maximum=50),
    ] = None
